"""The kernel clicks as the models do."""

import numpy as np
import pytest

from models.click_models.compiled_users import click_on, users_of
from models.click_models.registry import NAMES, click_model_of
from tests.session.cases import n_cases


@pytest.mark.parametrize("name", NAMES)
def test_rates_are_those_of_the_model(name: str) -> None:
    """At every rank, also beyond the ranks that users look at."""
    labels = np.array([0, 2, 1, 0, 2, 1])
    rows, clicks = np.arange(6)[::-1].copy(), np.empty(6, np.bool_)
    model = click_model_of(name, 3)
    users, rng = users_of(model), np.random.default_rng(8)
    counts, n_lists = np.zeros(6), n_cases(6_000, 20_000)
    for _ in range(n_lists):
        assert click_on(labels, rows, users, clicks, rng) == clicks.sum()
        counts += clicks
    expected = model.click_probabilities(labels[rows])
    deviation = np.sqrt(expected * (1.0 - expected) / n_lists)

    assert (np.abs(counts / n_lists - expected) <= 4.5 * deviation).all()


def test_users_by_rank_click_like_cascades_that_look_by_chance() -> None:
    """At rank r with the probability of the table over r."""
    labels = np.array([0, 1, 2, 2])
    by_rank = click_model_of("almost_random_by_rank", 3)
    table = np.array([0.4, 0.5, 0.6])

    assert by_rank.click_probabilities(labels) == pytest.approx(
        table[labels] / np.arange(1, 5)
    )


def test_strangers_raise() -> None:
    """A model of another package has no arrays here."""
    with pytest.raises(ValueError, match="users must be of this package; got object"):
        users_of(object())  # type: ignore[arg-type]
