"""How far a trained policy explores: its scale, its temperature and a floor.

LambdaLoss tells in which order items go, and says little of how far apart scores lie:
a policy that draws lists by them may be deterministic by accident. So weights are
divided by the spread of their scores, and by a temperature that is asked for. Under
Plackett-Luce an item is then as far above the others as its score is above theirs in
standard deviations, over the temperature.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.plackett_luce.placement import placement_batch
from models.training.linear_scores import mean_deviation, scores_of, spans
from models.training.query_chunk import ChunkSource, QueryChunk

Floats = npt.NDArray[np.float64]

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
    weights : [n_features]
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


def explored(
    weights: Floats,
    chunks: ChunkSource,
    *,
    temperature: float,
    floor: float,
    cutoff: int,
    placements: Placements = placement_batch,
) -> Exploration:
    """Bring weights to a temperature, a higher one where exposure is below the floor.

    Parameters
    ----------
    weights : [n_features]
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
    sampled = _sample(chunks)
    _check_floor(floor, sampled, cutoff)
    scale = mean_deviation(weights, chunks)
    for doubling in range(MOST_DOUBLINGS + 1 if scale else 1):
        used = temperature * 2.0**doubling
        served = _served(weights, scale * used if scale else 1.0)
        least = _least_exposure(served, sampled, cutoff, placements)
        if least >= floor:
            return Exploration(served, scale, used, least)
    raise ExplorationRefused(
        f"the mean least exposure must be at least {floor:g}; got {least:g} at a "
        f"temperature of {used:g}: lower the floor, or raise the temperature"
    )


def _check_floor(floor: float, sampled: list[QueryChunk], cutoff: int) -> None:
    """Refuse a floor above what no policy exceeds: an item's least is at most mean."""
    total = sum(float(one.weights[0]) for one in sampled)
    if not total:
        raise ValueError("exploration needs queries with items; got none")
    most = sum(
        float(one.weights[0]) * min(1.0, cutoff / len(one.values)) for one in sampled
    )
    # Rounding must not refuse what uniformly random lists have.
    if floor > most / total + 1e-9:
        raise ExplorationRefused(
            f"the mean least exposure must be at least {floor:g}; got at most "
            f"{most / total:g}, as even uniformly random lists have no more: lower the "
            "floor"
        )


def _served(weights: Floats, divisor: float) -> Floats:
    """What is left of weights once they are float32 numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        served = (weights / divisor).astype(np.float32).astype(np.float64)
    if not np.isfinite(served).all():
        raise ExplorationRefused(
            "weights over their scale and temperature must be float32 numbers; got "
            f"{np.abs(weights).max():g} over {divisor:g}: raise the temperature"
        )
    return served


def _queries(chunk: QueryChunk) -> Iterator[QueryChunk]:
    """Queries of a chunk that have items, one each."""
    for i, (begin, end) in enumerate(spans(chunk)):
        if end > begin:
            yield QueryChunk(
                np.array([0, end - begin]), chunk.features[begin:end],
                chunk.values[begin:end], chunk.is_kept[begin:end],
                chunk.weights[i : i + 1],
            )  # fmt: skip


def _sample(chunks: ChunkSource) -> list[QueryChunk]:
    """At most `SAMPLE` queries, as far apart as can be."""
    n = sum(
        int(np.count_nonzero(np.diff(chunks[i].offsets))) for i in range(len(chunks))
    )
    wanted = {place * n // min(n, SAMPLE) for place in range(min(n, SAMPLE))}
    found, place = [], 0
    for number in range(len(chunks)):
        for one in _queries(chunks[number]):
            if place in wanted:
                # Its own memory: a mapped file may be gone when this is read.
                found.append(one._replace(features=one.features.copy()))
            place += 1
    return found


def _least_exposure(
    weights: Floats, sampled: list[QueryChunk], cutoff: int, placements: Placements
) -> float:
    least = total = 0.0
    for one in sampled:
        shown = min(cutoff, len(one.values))
        placed = placements(scores_of(one, weights)[None, :], shown)[0]
        least += float(one.weights[0] * placed.sum(axis=1).min())
        total += float(one.weights[0])
    return least / total
