"""Losses by name, and as kernels take them."""

import numpy as np
import pytest

from models.losses.compiled_loss import EXPECTED_WORTH, add_query_loss
from models.losses.loss_value import NO_CURVATURES, NO_PARENTS
from models.losses.pair_kernel import room_for
from models.losses.registry import CUTOFF, DEFAULT, LOSSES, compiled_loss, loss_of


@pytest.mark.parametrize("name", LOSSES)
def test_tables_of_longer_queries_serve_shorter_ones(name: str) -> None:
    """One loss for all queries gives each the bits that it has alone."""
    loss = compiled_loss(name, 3, 30)
    room = room_for(30)
    rng = np.random.default_rng(1)
    for n in (30, 7, 1, 2):
        scores, weights = rng.normal(size=n), rng.normal(size=n)
        where = rng.random(n) < 0.8
        slopes = np.zeros(n)
        given = (loss, scores, weights, where, room)
        others = (rng, NO_PARENTS)
        value = add_query_loss(*given, slopes, NO_CURVATURES, *others)
        alone = LOSSES[name].loss(scores, weights, where, 3)

        assert value == alone.value
        assert slopes.tolist() == alone.gradient.tolist()

        curvatures = np.zeros(len(alone.curvature))
        add_query_loss(*given, slopes, curvatures, *others)
        assert slopes == pytest.approx(2.0 * alone.gradient, rel=1e-9, abs=1e-15)
        assert curvatures.tolist() == alone.curvature.tolist()


@pytest.mark.parametrize("name", LOSSES)
def test_entries_say_what_they_need(name: str) -> None:
    """The cutoff changes those that need it, and no others."""
    entry = loss_of(name)
    rng = np.random.default_rng(2)
    scores, weights = rng.normal(size=6), rng.random(6)
    values = {entry.loss(scores, weights, np.ones(6, bool), k).value for k in (1, 3)}

    assert (len(values) == 2) is (CUTOFF in entry.needs)
    assert entry.bounds


def test_unknown_names_are_refused() -> None:
    """With all that there are."""
    assert DEFAULT in LOSSES
    with pytest.raises(
        ValueError, match=r"loss must be one of truncated-lambda, .*hin"
    ):
        loss_of("hinge")


def test_worths_go_to_the_policy_gradient_alone() -> None:
    """Where they stand for the discounts of DCG."""
    worths = np.array([1.0, 0.8, 0.7])
    loss = compiled_loss("policy-gradient", 2, 9, worths=worths, n_samples=7)

    assert loss.family == EXPECTED_WORTH
    assert (loss.worths.tolist(), loss.n_samples) == ([1.0, 0.8], 7)
    with pytest.raises(ValueError, match="policy-gradient or proximal; got loss 'la"):
        compiled_loss("lambda-rank", 2, 9, worths=worths)
