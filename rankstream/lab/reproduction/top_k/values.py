"""Queries with values of their documents, as training and selection take them.

The rerank baseline learns from each list that was shown as if it were a query of so
many documents: from nothing but the order of what was displayed. All others learn from
all documents of a query.

References
----------
Oosterhuis & de Rijke (SIGIR 2020), sections 4 and 5.3; Oosterhuis (PhD thesis, 2020),
section 7.5.3.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from models.estimators.registry import estimator_of
from models.losses.gains import binary_gains
from models.training.labelled_queries import labelled_queries
from models.training.query_chunk import QueryChunk
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.top_k.logged_clicks import (
    ClickSums,
    Shown,
    click_chances,
    click_log,
    curve_of,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

RERANK, AFFINE = "rerank", "affine"


def estimated_chunk(
    name: str, world: World, shown: Shown, clicks: ClickSums, *, least: float = 0.0
) -> QueryChunk:
    """What an estimator makes of clicks.

    Parameters
    ----------
    name
        One of `models.estimators.registry.ESTIMATORS`.
    world
        Whose documents were shown.
    least
        To which propensities are raised, in training only.
    """
    log, impressions = click_log(clicks, shown, world.offsets)
    curve = curve_of(shown, with_noise=name == AFFINE)
    found = estimator_of(name).estimator(log, impressions, curve, least=least)
    is_kept = np.isfinite(found.values)
    values = np.where(is_kept, found.values, 0.0)
    whole = QueryChunk(
        world.offsets,
        world.features,
        values,
        is_kept,
        clicks.impressions / clicks.impressions.sum(),
    )
    return _displayed(whole, shown, clicks) if name == RERANK else whole


def labelled_chunk(world: World, *, as_clicks: bool = False) -> QueryChunk:
    """What labels say; `as_clicks` in units of P(click | looked at).

    Labels of `world` are 0 and 1.
    """
    gains = click_chances(np.array([False, True])) if as_clicks else binary_gains(2, 1)
    return labelled_queries(world.features, world.labels, world.offsets, gains=gains)


def queries_of(world: World, queries: Integers) -> World:
    """Some `queries` [n_drawn] of a world, as they are given."""
    rows = [
        np.arange(world.offsets[query], world.offsets[query + 1]) for query in queries
    ]
    sizes = np.diff(world.offsets)[queries]
    chosen = np.concatenate(rows)
    return World(
        np.ascontiguousarray(world.features[chosen]),
        world.labels[chosen],
        np.concatenate([[0], np.cumsum(sizes)]),
    )


def _displayed(whole: QueryChunk, shown: Shown, clicks: ClickSums) -> QueryChunk:
    """Each list that was shown as a query of its own, by how often it was."""
    rows, times = [], []
    for part, count in _lists(whole.offsets, shown, clicks):
        rows.append(part)
        times.append(count)
    chosen = np.concatenate(rows)
    sizes = [len(part) for part in rows]
    return QueryChunk(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.ascontiguousarray(whole.features[chosen]),
        whole.values[chosen],
        whole.is_kept[chosen],
        np.array(times) / clicks.impressions.sum(),
    )


def _lists(
    offsets: Integers, shown: Shown, clicks: ClickSums
) -> Iterator[tuple[Integers, int]]:
    """Documents of each list that was shown, and how often it was."""
    for query, (begin, end) in enumerate(itertools.pairwise(offsets.tolist())):
        n_lists = int(clicks.impressions[query])
        chances = shown.chances[begin:end]
        always = begin + np.flatnonzero(chances == 1.0)
        drawn = begin + np.flatnonzero((chances > 0.0) & (chances < 1.0))
        if len(drawn):
            for row in drawn.tolist():
                if clicks.shown[row]:
                    yield np.append(always, row), int(clicks.shown[row])
        elif n_lists:
            yield always, n_lists
