"""A trained policy explores as far as it says, and no less than is asked for."""

import itertools
import tracemalloc

import numpy as np
import pytest

from models.plackett_luce.placement import placement_batch
from models.training.exploration import SAMPLE, ExplorationRefused, explored
from models.training.query_chunk import QueryChunk
from models.training.ranker_scores import mean_deviation
from tests.models.training.chunks import cut, queries

WEIGHTS = np.array([30.0, -10.0, 5.0])


def some(n_queries: int = 12, *, seed: int = 0) -> list[QueryChunk]:
    """Queries in two chunks."""
    chunk = queries(n_queries, np.ones(3), np.random.default_rng(seed))
    return cut(chunk, n_queries // 2)


def deviations(weights, chunks: list[QueryChunk]) -> float:
    """Mean by weight of the deviations of scores, by definition."""
    return sum(
        float(weight * np.std(chunk.features[begin:end] @ weights))
        for chunk in chunks
        for weight, (begin, end) in zip(
            chunk.weights, itertools.pairwise(chunk.offsets), strict=True
        )
    )


def in_first(scores, cutoff: int):
    """P(within the first ranks), from all rankings."""
    found = np.zeros(len(scores))
    for ranking in itertools.permutations(range(len(scores))):
        rates = np.exp(scores[list(ranking)])
        left = rates[::-1].cumsum()[::-1]
        found[list(ranking[:cutoff])] += np.prod(rates / left)
    return found


@pytest.mark.parametrize("temperature", [0.25, 1.0, 3.0])
def test_scores_deviate_by_one_over_the_temperature(temperature: float) -> None:
    """Whatever the size of the weights was, and in the same order."""
    chunks = some()
    for size in (1e-6, 1.0, 1e6):
        found = explored(
            WEIGHTS * size, chunks, temperature=temperature, floor=0.0, cutoff=3
        )

        assert deviations(found.weights, chunks) == pytest.approx(1.0 / temperature)
        assert found.scale == pytest.approx(deviations(WEIGHTS * size, chunks))
        assert found.temperature == temperature
        assert found.weights / found.weights[2] == pytest.approx(WEIGHTS / WEIGHTS[2])
        assert (found.weights == found.weights.astype(np.float32)).all()


def test_least_exposure_is_that_of_all_rankings() -> None:
    """Mean by weight of each query's least, by enumeration."""
    rng = np.random.default_rng(2)
    features = rng.random((15, 3)).astype(np.float32)
    shares = np.array([0.2, 0.5, 0.3])
    chunk = QueryChunk(
        np.array([0, 5, 9, 15]), features, np.zeros(15), np.ones(15, bool), shares
    )
    found = explored(WEIGHTS, [chunk], temperature=0.7, floor=0.0, cutoff=2)
    expected = sum(
        share * in_first(features[begin:end] @ found.weights, 2).min()
        for share, (begin, end) in zip(
            shares, itertools.pairwise(chunk.offsets), strict=True
        )
    )

    assert found.least_exposure == pytest.approx(expected)


def test_the_temperature_is_doubled_until_the_floor_is_reached() -> None:
    """And not once more."""
    chunks = some()
    plain = explored(WEIGHTS, chunks, temperature=0.05, floor=0.0, cutoff=3)
    found = explored(WEIGHTS, chunks, temperature=0.05, floor=0.15, cutoff=3)
    doublings = np.log2(found.temperature / 0.05)
    before = explored(
        WEIGHTS, chunks, temperature=found.temperature / 2.0, floor=0.0, cutoff=3
    )

    assert plain.least_exposure < 0.01
    assert found.least_exposure >= 0.15 > before.least_exposure
    assert doublings == round(doublings)
    assert found.scale == plain.scale


def test_a_floor_beyond_uniform_lists_is_refused() -> None:
    """In words that say how far one can go; what they have themselves is reached."""
    chunks = some()
    uniform = explored(np.zeros(3), chunks, temperature=1.0, floor=0.0, cutoff=3)
    floor = uniform.least_exposure
    with pytest.raises(ExplorationRefused, match="even uniformly random lists have"):
        explored(WEIGHTS, chunks, temperature=1.0, floor=floor + 1e-6, cutoff=3)
    found = explored(np.zeros(3), chunks, temperature=1.0, floor=floor, cutoff=3)

    assert found.least_exposure == floor


def test_doublings_come_to_an_end() -> None:
    """A floor that the highest temperature does not reach is refused."""
    chunks = some()
    floor = explored(
        np.zeros(3), chunks, temperature=1.0, floor=0.0, cutoff=3
    ).least_exposure

    def never(scores, cutoff: int):
        return np.zeros((*scores.shape, cutoff))

    with pytest.raises(ExplorationRefused, match=r"at a temperature of 65536: lower"):
        explored(
            WEIGHTS, chunks, temperature=1.0, floor=floor, cutoff=3, placements=never
        )


def test_equal_scores_stay_as_they_are() -> None:
    """Zeros, or weights of features that are constant in a query, rank uniformly."""
    chunks = [
        one._replace(features=np.full_like(one.features, 1.0 / 3.0)) for one in some()
    ]
    rounded = np.array([0.1, 0.2, 0.4])
    assert deviations(rounded, chunks) > 0.0
    for weights in (np.zeros(3), WEIGHTS, rounded.astype(np.float32).astype(float)):
        found = explored(weights, chunks, temperature=2.0, floor=0.0, cutoff=3)
        uniform = np.mean([3.0 / n for one in chunks for n in np.diff(one.offsets)])

        assert found.scale == 0.0
        assert (found.weights == weights).all()
        assert found.least_exposure == pytest.approx(uniform, rel=0.1)
    with pytest.raises(ExplorationRefused):
        explored(np.zeros(3), chunks, temperature=2.0, floor=0.9, cutoff=3)


def test_many_queries_are_sampled_evenly() -> None:
    """At most so many lists, and the same ones on every run."""
    chunks, n_asked = some(4 * SAMPLE), 0

    def counting(scores, cutoff: int):
        nonlocal n_asked
        n_asked += len(scores)
        return np.full((*scores.shape, cutoff), 1.0 / scores.shape[1])

    first = explored(
        WEIGHTS, chunks, temperature=1.0, floor=0.0, cutoff=3, placements=counting
    )
    every = np.concatenate([np.diff(one.offsets) for one in chunks])[::4]
    weights = np.concatenate([one.weights for one in chunks])[::4]

    assert n_asked == SAMPLE
    assert first.least_exposure == pytest.approx(
        np.average(3.0 / every, weights=weights)
    )


class Generated:
    """Queries of equal size, a chunk each, made anew whenever they are read."""

    def __init__(self, n_queries: int, n_items: int, n_features: int) -> None:
        self._sizes = n_queries, n_items, n_features

    def __len__(self) -> int:
        return self._sizes[0]

    def __getitem__(self, number: int, /) -> QueryChunk:
        n_queries, n_items, n_features = self._sizes
        rng = np.random.default_rng(number)
        return QueryChunk(
            np.array([0, n_items]),
            rng.random((n_items, n_features), np.float32),
            np.zeros(n_items),
            np.ones(n_items, bool),
            np.array([1.0 / n_queries]),
        )


def test_features_of_a_few_queries_are_held_at_once() -> None:
    """However many are sampled, and however often they are looked at."""
    source = Generated(60, 1_000, 136)
    of_query = source[0].features.nbytes

    def uniform(scores, cutoff: int):
        return np.full((*scores.shape, cutoff), 1.0 / scores.shape[1])

    tracemalloc.start()
    explored(
        np.ones(136), source, temperature=1.0, floor=0.0, cutoff=3, placements=uniform
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 4 * of_query


def test_queries_without_items_count_nothing() -> None:
    """They have no scores that could deviate."""
    chunk = queries(5, np.ones(3), np.random.default_rng(0))
    empty = chunk._replace(
        offsets=np.append(chunk.offsets, chunk.offsets[-1]),
        weights=np.append(chunk.weights, 1.0),
    )
    least = [
        explored(WEIGHTS, [one], temperature=1.0, floor=0.0, cutoff=3)
        for one in (chunk, empty)
    ]

    assert least[0].least_exposure == pytest.approx(least[1].least_exposure)
    assert mean_deviation(WEIGHTS, [chunk]) == mean_deviation(WEIGHTS, [empty])
    halved = chunk._replace(weights=chunk.weights / 2.0)
    assert mean_deviation(WEIGHTS, [chunk]) == mean_deviation(WEIGHTS, [halved])


def test_settings_out_of_range_are_refused_in_words() -> None:
    """Before anything is computed."""
    chunks = some(4)
    with pytest.raises(ValueError, match="temperature must be finite and above 0"):
        explored(WEIGHTS, chunks, temperature=0.0, floor=0.0, cutoff=3)
    with pytest.raises(ValueError, match="floor of exposure must lie in"):
        explored(WEIGHTS, chunks, temperature=1.0, floor=1.5, cutoff=3)
    with pytest.raises(ValueError, match="needs queries with items; got none"):
        explored(WEIGHTS, [], temperature=1.0, floor=0.0, cutoff=3)
    with pytest.raises(ExplorationRefused, match="must be float32 numbers"):
        explored(WEIGHTS, chunks, temperature=1e-300, floor=0.0, cutoff=3)


def test_placements_are_the_exact_ones_unless_told() -> None:
    """The definition is what computes them."""
    chunks = some(6)
    plain = explored(WEIGHTS, chunks, temperature=1.0, floor=0.0, cutoff=3)
    told = explored(
        WEIGHTS, chunks, temperature=1.0, floor=0.0, cutoff=3,
        placements=placement_batch,
    )  # fmt: skip

    assert plain.least_exposure == told.least_exposure
