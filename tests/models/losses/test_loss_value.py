"""What losses do with queries that say little, or nothing that can be."""

import numpy as np
import pytest

from models.losses.compiled_loss import EXACT_ITEMS
from models.losses.policy_gradient import policy_gradient
from models.losses.registry import LOSSES, Loss

EVERY = pytest.mark.parametrize(
    "loss", [entry.loss for entry in LOSSES.values()], ids=[*LOSSES]
)


@EVERY
def test_no_relevant_item_costs_nothing(loss: Loss) -> None:
    """And moves nothing, as when no value is known."""
    scores = np.array([0.3, -1.0, 2.0])
    for weights, where in (
        (np.zeros(3), np.ones(3, bool)),
        (np.array([1.0, np.nan, np.inf]), np.zeros(3, bool)),
    ):
        found = loss(scores, weights, where, 2)

        assert found.value == 0.0
        assert found.gradient.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("weight", [0.0, 2.0, -2.0])
def test_one_document_has_no_slope(name: str, weight: float) -> None:
    """It is first whatever it scores, and costs what it costs there."""
    found = LOSSES[name].loss(np.array([0.7]), np.array([weight]), np.ones(1, bool), 3)
    cost = {"lambda": 0.0, "truncated": 0.0, "arp": 1.0, "precision": -1.0 / 3.0}

    assert found.value == pytest.approx(
        cost.get(name.split("-", maxsplit=1)[0], -1.0) * weight
    )
    assert found.gradient == pytest.approx([0.0], abs=1e-9)


@EVERY
def test_an_empty_list_costs_nothing(loss: Loss) -> None:
    """Nor does it have slopes."""
    found = loss(np.zeros(0), np.zeros(0), np.zeros(0, bool), 1)

    assert (found.value, found.gradient.tolist()) == (0.0, [])


@EVERY
def test_equal_scores_everywhere_still_tell_what_is_relevant(loss: Loss) -> None:
    """Its score must rise, wherever it stands, as far as the cutoff reaches."""
    for row in range(4):
        weights = np.eye(4)[row]
        found = loss(np.zeros(4), weights, np.ones(4, bool), 4)

        assert np.isfinite(found.value)
        assert found.gradient[row] < 0.0
        assert found.gradient.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_a_cutoff_above_the_list_is_that_of_the_whole_list(name: str) -> None:
    """Its slopes are finite; but Precision@k is over k, which then is larger."""
    rng = np.random.default_rng(1)
    scores, weights, known = rng.normal(size=5), rng.random(5), np.ones(5, bool)
    loss = LOSSES[name].loss
    whole, above = (loss(scores, weights, known, k) for k in (5, 500))

    assert np.isfinite(above.value)
    if "precision" not in name:
        assert above.value == whole.value
        assert above.gradient.tolist() == whole.gradient.tolist()
    else:
        assert -weights.sum() / 500 <= above.value < 0.0


@EVERY
def test_negative_values_push_down(loss: Loss) -> None:
    """An item that is worse than one without clicks goes below it."""
    found = loss(np.array([0.1, 0.0]), np.array([-1.0, 0.0]), np.ones(2, bool), 1)

    assert found.gradient[0] > 0.0 > found.gradient[1]


@EVERY
def test_unknown_items_keep_their_rank(loss: Loss) -> None:
    """But for expected lists they take no part: their weights are never read."""
    scores, where = np.array([1.0, 0.5, 0.0]), np.array([True, False, True])
    weights = np.array([0.0, np.nan, 1.0])
    found = loss(scores, weights, where, 3)
    other = loss(scores, np.array([0.0, 7.0, 1.0]), where, 3)

    assert found.value == other.value
    assert found.gradient.tolist() == other.gradient.tolist()
    if loss not in (LOSSES["policy-gradient"].loss, LOSSES["proximal"].loss):
        assert found.gradient[1] == 0.0
    assert found.gradient[2] < 0.0 < found.gradient[0]


@EVERY
@pytest.mark.parametrize("weight", [np.inf, -np.inf, np.nan])
def test_a_weight_that_is_no_number_is_refused(loss: Loss, weight: float) -> None:
    """Where it is known; the sentence says where."""
    with pytest.raises(ValueError, match=r"weights of a loss must be finite.*in row 1"):
        loss(np.zeros(2), np.array([1.0, weight]), np.ones(2, bool), 1)


@EVERY
def test_wrong_arguments_are_refused(loss: Loss) -> None:
    """Scores that are no numbers, shapes that differ, no ranks."""
    known = np.ones(2, bool)
    for wrong in (np.inf, -np.inf, np.nan):
        with pytest.raises(ValueError, match=f"a loss must be finite; got {wrong}"):
            loss(np.array([0.0, wrong]), np.zeros(2), known, 1)
    with pytest.raises(ValueError, match="must be of the same items; got shapes"):
        loss(np.zeros(2), np.zeros(3), known, 1)
    with pytest.raises(ValueError, match="must be of the same items; got shapes"):
        loss(np.zeros((1, 2)), np.zeros((1, 2)), known[None], 1)
    for cutoff in (0, 2.5, np.inf):
        with pytest.raises(ValueError, match=f"whole number, at least 1; got {cutoff}"):
            loss(np.zeros(2), np.zeros(2), known, cutoff)  # type: ignore[arg-type]


def test_what_the_policy_gradient_needs_is_refused_where_it_is_wrong() -> None:
    """A generator for long lists, worths that are numbers, samples."""
    n = EXACT_ITEMS + 1
    with pytest.raises(ValueError, match="must be drawn; got 257 items and no gen"):
        policy_gradient(np.zeros(n), np.ones(n), np.ones(n, bool), 3)
    two = (np.zeros(2), np.ones(2), np.ones(2, bool), 3)
    for worths in ([np.nan], [], [[1.0]]):
        with pytest.raises(ValueError, match="worths of ranks must be finite"):
            policy_gradient(*two, worths=np.array(worths))
    with pytest.raises(ValueError, match="n_samples must be at least 1; got 0"):
        policy_gradient(*two, n_samples=0)


def test_worths_of_fewer_ranks_cut_the_list() -> None:
    """Beyond those that are given nothing counts."""
    two = (np.array([0.4, 0.0]), np.array([0.0, 1.0]), np.ones(2, bool))
    cut = policy_gradient(*two, 5, worths=np.array([1.0]))

    assert cut.value == pytest.approx(policy_gradient(*two, 1).value)
