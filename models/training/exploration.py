"""How far a trained policy explores: its scale, its temperature and a floor.

LambdaLoss tells in which order items go, and says little of how far apart scores lie:
a policy that draws lists by them may be deterministic by accident. So weights that
scores are proportional to (of a network the last layer's) are divided by the spread of
scores, and by a temperature that is asked for. Under
Plackett-Luce an item is then as far above the others as its score is above theirs in
standard deviations, over the temperature.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.plackett_luce.placement import placement_batch
from models.rankers.ranker import Scorer
from models.training.query_chunk import ChunkSource
from models.training.ranker_scores import linear_unless, mean_deviation

Placements = Callable[[Floats, int], Floats]
"""As `models.plackett_luce.placement.placement_batch`, of which there are faster ones
with the same bits."""

SAMPLE = 256
"""Queries, evenly through all of them, on which exposure is checked."""

MOST_DOUBLINGS = 16


class ExplorationRefused(ValueError):
    """No temperature within reach gives the exposure that is asked for."""


class Exploration(NamedTuple):
    """A policy that explores as far as it says.

    Parameters
    ----------
    weights : [n_parameters]
        To be served; each is a float32 number.
    scale
        What weights were divided by beside the temperature: the mean by weight over
        queries of the standard deviation of their scores. 0 where all scores of every
        query are equal: weights are then as they were, and lists uniformly random.
    temperature
        As used: that which was asked for, or doubled for the sake of the floor.
    least_exposure
        Mean by weight over queries, of the least probability among a query's items of
        being among the first ranks.
    """

    weights: Floats
    scale: float
    temperature: float
    least_exposure: float


def explored(  # noqa: PLR0913  all that a policy depends on
    weights: Floats,
    chunks: ChunkSource,
    *,
    temperature: float,
    floor: float,
    cutoff: int,
    placements: Placements = placement_batch,
    ranker: Scorer | None = None,
) -> Exploration:
    """Bring weights to a temperature, a higher one where exposure is below the floor.

    Parameters
    ----------
    weights : [n_parameters]
        As trained.
    chunks
        Queries of which the policy ranks all items.
    temperature
        Above 0; standard deviations of a query's scores are about 1 / temperature.
    floor
        In [0, 1]: `least_exposure` is at least this.
    cutoff
        Ranks that are shown.
    placements
        Computes probabilities of ranks.
    ranker
        A linear one if not given.

    Raises
    ------
    ExplorationRefused
        Where the floor is above what uniformly random lists have, or not reached after
        16 doublings, or where a weight would leave the range of float32.
    ValueError
        Where temperature or floor are outside their range, or there are no queries.
    """
    if not 0.0 < temperature < np.inf:
        raise ValueError(f"temperature must be finite and above 0; got {temperature}")
    if not 0.0 <= floor <= 1.0:
        raise ValueError(f"the floor of exposure must lie in [0, 1]; got {floor}")
    sampled = _Sample(chunks)
    _check_floor(floor, sampled, cutoff)
    ranker = linear_unless(ranker, len(weights))
    scale = mean_deviation(weights, chunks, ranker)
    for doubling in range(MOST_DOUBLINGS + 1 if scale else 1):
        used = temperature * 2.0**doubling
        served = _served(weights, scale * used if scale else 1.0, ranker)
        least = _least_exposure(served, sampled, ranker, cutoff, placements)
        if least >= floor:
            return Exploration(served, scale, used, least)
    raise ExplorationRefused(
        f"the mean least exposure must be at least {floor:g}; got {least:g} at a "
        f"temperature of {used:g}: lower the floor, or raise the temperature"
    )


def least_exposure(
    weights: Floats,
    chunks: ChunkSource,
    *,
    cutoff: int,
    placements: Placements = placement_batch,
    ranker: Scorer | None = None,
) -> float:
    """That of a policy as it is served; see `Exploration`.

    Parameters
    ----------
    weights : [n_parameters]
    chunks, cutoff, placements, ranker
        As in `explored`.

    Raises
    ------
    ValueError
        Where there are no queries with items.
    """
    sampled = _Sample(chunks)
    _check_floor(0.0, sampled, cutoff)
    ranker = linear_unless(ranker, len(weights))
    return _least_exposure(weights, sampled, ranker, cutoff, placements)


def _check_floor(floor: float, sampled: "_Sample", cutoff: int) -> None:
    """Refuse a floor above what no policy exceeds: an item's least is at most mean."""
    total = sum(sampled.weights)
    if not total:
        raise ValueError("exploration needs queries with items; got none")
    most = sum(
        weight * min(1.0, cutoff / size)
        for weight, size in zip(sampled.weights, sampled.sizes, strict=True)
    )
    # Rounding must not refuse what uniformly random lists have.
    if floor > most / total + 1e-9:
        raise ExplorationRefused(
            f"the mean least exposure must be at least {floor:g}; got at most "
            f"{most / total:g}, as even uniformly random lists have no more: lower the "
            "floor"
        )


def _served(weights: Floats, divisor: float, ranker: Scorer) -> Floats:
    """What is left of weights once they are float32 numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        divided = np.array(weights, np.float64)
        divided[ranker.proportional] /= divisor
        served = divided.astype(np.float32).astype(np.float64)
    if not np.isfinite(served).all():
        raise ExplorationRefused(
            "weights over their scale and temperature must be float32 numbers; got "
            f"{np.abs(weights).max():g} over {divisor:g}: raise the temperature"
        )
    return served


class _Sample:
    """At most `SAMPLE` queries with items, as far apart as can be.

    Their features are read anew each time, a chunk at a time: together they may be
    larger than memory.

    Attributes
    ----------
    weights, sizes
        Of each query, and how many items it has.
    """

    def __init__(self, chunks: ChunkSource) -> None:
        self._chunks = chunks
        counts = [np.diff(chunks[number].offsets) for number in range(len(chunks))]
        n = sum(int(np.count_nonzero(each)) for each in counts)
        n_wanted = min(n, SAMPLE)
        wanted = [place * n // n_wanted for place in range(n_wanted)]
        self._places: list[tuple[int, list[int]]] = []
        self.weights: list[float] = []
        self.sizes: list[int] = []
        first = 0
        for number, items in enumerate(counts):
            is_there = np.flatnonzero(items)
            end = first + len(is_there)
            found = [int(is_there[x - first]) for x in wanted if first <= x < end]
            first = end
            if found:
                self._places.append((number, found))
                self.weights += chunks[number].weights[found].tolist()
                self.sizes += items[found].tolist()

    def scores(self, weights: Floats, ranker: Scorer) -> Iterator[Floats]:
        """Scores of each query's items, [n_items]; `weights` [n_parameters]."""
        for number, found in self._places:
            chunk = self._chunks[number]
            for i in found:
                span = slice(chunk.offsets[i], chunk.offsets[i + 1])
                yield ranker.item_scores(weights, chunk.features[span])


def _least_exposure(
    weights: Floats,
    sampled: _Sample,
    ranker: Scorer,
    cutoff: int,
    placements: Placements,
) -> float:
    least = 0.0
    found = sampled.scores(weights, ranker)
    for share, scores in zip(sampled.weights, found, strict=True):
        placed = placements(scores[None, :], min(cutoff, len(scores)))[0]
        least += share * float(placed.sum(axis=1).min())
    return least / sum(sampled.weights)
