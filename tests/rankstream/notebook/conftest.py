"""A shop whose clicks are read once."""

import pytest

import rankstream
from tests.clicked_tables import Shop, shop


@pytest.fixture(scope="session")
def own() -> Shop:
    """Clicks and products."""
    return shop()


@pytest.fixture(scope="session")
def log(own: Shop) -> rankstream.Log:
    """The clicks, with features of the products."""
    return rankstream.read(own.clicks, features=own.products, progress=False)


@pytest.fixture(scope="session")
def ranker(log: rankstream.Log) -> rankstream.ClickRanker:
    """What it learned from the clicks."""
    return log.train()
