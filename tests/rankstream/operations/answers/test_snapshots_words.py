"""What `rankstream snapshots rollback` says that ends it."""

import pytest

from rankstream.operations.answers.models.snapshots import held_until
from rankstream.settings import ModelSettings, Settings

SETTINGS = Settings(
    models={
        "online": ModelSettings(features=3),
        "trained": ModelSettings(features=3, versions="trained"),
    }
)


@pytest.mark.parametrize(
    ("model", "said", "unsaid"),
    [
        ("online", ["`rankstream snapshots follow online`"], "intervene"),
        ("trained", ["leaves it alone", "`rankstream intervene trained`"], "follow"),
        ("unknown", ["snapshots follow unknown`", "intervene unknown`"], "alone"),
    ],
)
def test_what_ends_a_rollback_is_what_the_model_knows(
    model: str, said: list[str], unsaid: str
) -> None:
    """A trained one cannot be followed; of one without settings both are named."""
    told = held_until(SETTINGS, model)
    assert all(words in told for words in said)
    assert unsaid not in told
