"""The largest loss is the maximum over all relevances, by enumeration of lists too."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from models.estimators.bias_curve import BiasCurve, position_curve
from models.plackett_luce.placement import placement_batch
from models.training.largest_loss import Fall, Falls, fall_of
from models.training.query_chunk import QueryChunk
from models.training.reward import estimated_reward
from tests.laws.enumerated_placements import enumerated_placements
from tests.models.training.chunks import cut

Floats = npt.NDArray[np.float64]

THETA = np.array([1.0, 0.6, 0.35, 0.2])


def chunk_of(sizes: list[int], seed: int) -> QueryChunk:
    """Queries of so many items, of three features."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    shares = rng.random(len(sizes)) + 0.1
    features = rng.standard_normal((offsets[-1], 3)).astype(np.float32)
    n = int(offsets[-1])
    return QueryChunk(offsets, features, np.zeros(n), np.ones(n, bool), shares)


def weights_of(chunk: QueryChunk, policy: Floats, theta: Floats) -> list[Floats]:
    """Expected weights of each query's items, by enumeration."""
    found = []
    for begin, end in itertools.pairwise(chunk.offsets):
        scores = chunk.features[begin:end].astype(float) @ policy
        k = min(len(theta), int(end - begin))
        placed = enumerated_placements(scores[None], k)[0] if k else np.zeros((0, 0))
        found.append(placed @ theta[:k])
    return found


@pytest.mark.parametrize(
    ("sizes", "k"), [([8], 3), ([6], 4), ([3, 5, 1], 4), ([2, 4, 6], 1), ([5, 0, 2], 2)]
)
def test_no_relevance_costs_more_and_one_costs_as_much(
    sizes: list[int], k: int
) -> None:
    """Of each query all 2^n, whose mean by weight is the largest loss; so the ratio."""
    chunk, rng = chunk_of(sizes, len(sizes) + k), np.random.default_rng(k)
    parent, new = 2.0 * rng.standard_normal((2, 3))
    theta = THETA[:k]
    before, after = (weights_of(chunk, each, theta) for each in (parent, new))
    lost, total, least = 0.0, 0.0, np.inf
    for share, old, now in zip(chunk.weights, before, after, strict=True):
        if not len(old):
            continue
        most = max(
            float(np.dot(liked, old) - np.dot(liked, now))
            for liked in itertools.product([0.0, 1.0], repeat=len(old))
        )
        lost, total = lost + share * most, total + share
        least = min(least, *(y / x for x, y in zip(old, now, strict=True)))
    found = Falls(parent, [chunk], theta, placements=enumerated_placements).of(new)

    assert found.largest_loss == pytest.approx(lost / total, abs=1e-12)
    assert found.least_ratio == pytest.approx(least, abs=1e-12)
    assert found.largest_loss > 0.0
    exact = Falls(parent, [chunk], theta).of(new)
    assert exact.largest_loss == pytest.approx(lost / total, abs=1e-8)
    assert exact.least_ratio == pytest.approx(least, rel=1e-6)


def test_no_relevance_in_between_costs_more() -> None:
    """A linear function on a box is largest in a corner."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        parent, new = rng.random((2, 6))
        most = fall_of(parent, new).largest_loss
        liked = rng.random((200, 6))

        assert (liked @ (parent - new) <= most + 1e-12).all()


@pytest.mark.parametrize(
    "curve",
    [
        position_curve(THETA.tolist()),
        BiasCurve(THETA * 0.8, np.array([0.2, 0.1, 0.05, 0.02])),
    ],
)
def test_rewards_of_the_training_differ_by_no_more(curve: BiasCurve) -> None:
    """In the reward's own unit, with its weights of queries, and with trust bias."""
    rng = np.random.default_rng(5)
    chunk = chunk_of([5, 3, 6], 9)
    parent, new = rng.standard_normal((2, 3))
    bound = Falls(parent, [chunk], curve.alpha).of(new).largest_loss
    before, after = (weights_of(chunk, each, curve.alpha) for each in (parent, new))
    worst = (np.concatenate(before) > np.concatenate(after)).astype(float)
    losses = []
    for values in (worst, *(rng.random((20, len(worst))))):
        of = chunk._replace(values=values)
        clicks = [
            estimated_reward(
                policy, [of], curve, cutoff=len(THETA), most_unsupported=1.0
            ).clicks
            for policy in (parent, new)
        ]
        assert clicks[0] is not None
        assert clicks[1] is not None
        losses.append(clicks[0] - clicks[1])

    assert losses[0] == pytest.approx(bound, abs=1e-8)
    assert max(losses) == losses[0]


def test_the_parent_itself_loses_nothing() -> None:
    """And only shares of weights count, however queries lie in chunks."""
    chunk = chunk_of([4, 2, 5, 3], 2)
    parent, new = np.array([1.0, -1.0, 0.5]), np.array([0.2, 0.4, 2.0])
    assert Falls(parent, [chunk], THETA).of(parent) == Fall(0.0, 1.0)
    one, other = (
        Falls(parent, each, THETA).of(new)
        for each in (
            [chunk],
            cut(chunk._replace(weights=chunk.weights * 4.0), 1, 3),
        )
    )

    assert one.largest_loss == pytest.approx(other.largest_loss, rel=1e-12)
    assert one.least_ratio == other.least_ratio


def test_what_the_parent_never_shows_has_no_ratio() -> None:
    """Below what placements are exact to; the largest loss has it none the less."""
    found = fall_of(np.array([1.0, 1e-13, 0.0]), np.array([0.5, 0.0, 0.5]))
    assert found == Fall(0.5 + 1e-13, 0.5)
    assert fall_of(np.zeros(2), np.ones(2)) == Fall(0.0, np.inf)


def test_no_queries_are_refused() -> None:
    """Nobody could be said to lose nothing."""
    chunk = chunk_of([2, 0], 1)
    for chunks in ([], [chunk._replace(weights=np.array([0.0, 1.0]))]):
        with pytest.raises(ValueError, match="needs queries to fall in; got none"):
            Falls(np.ones(3), chunks, THETA)


def test_placements_are_the_exact_ones_unless_told() -> None:
    """The definition is what computes them."""
    chunk = chunk_of([4, 6], 3)
    parent, new = np.ones(3), np.array([0.0, 1.0, -1.0])
    told = Falls(parent, [chunk], THETA, placements=placement_batch).of(new)
    assert Falls(parent, [chunk], THETA).of(new) == told
