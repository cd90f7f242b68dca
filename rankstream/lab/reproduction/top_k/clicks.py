"""Clicks on the first k documents of a production ranker, and what is made of them.

Users look at rank r by chance 1 / r, and not beyond k; they click all relevant
documents that they look at, and of the others one in ten. The last document shown may
be drawn uniformly from all that are not above it.

Lists of a query differ in that document alone, and users look at each rank by itself.
So its clicks are drawn document by document, each from a binomial law, and take no
longer for more of them.

The rerank baseline learns from each list that was shown as if it were a query of so
many documents: from nothing but the order of what was displayed. All others learn from
all documents of a query.

References
----------
Oosterhuis & de Rijke (SIGIR 2020), sections 4, 5.2 and 5.3; Oosterhuis (PhD thesis,
2020), sections 7.5.2 and 7.5.3. The chance of a document that is drawn is
1 / (k (n - k + 1)) whatever its rank in the production ranking; the thesis prints its
own rank for k.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog
from models.estimators.registry import estimator_of
from models.losses.gains import binary_gains
from models.training.labelled_queries import labelled_queries
from models.training.query_chunk import QueryChunk
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.top_k.plan import WHOLE, Logging

RERANK, AFFINE = "rerank", "affine"

CLICKED, NOISE = 1.0, 0.1
"""P(click | looked at) of what is relevant, and of what is not."""


class Shown(NamedTuple):
    """Where a policy shows each document, [n_documents] each.

    A document has one rank at which it can be: its own, or the last one shown.

    Parameters
    ----------
    ranks : [n_documents]
        From 1; 0 for documents that are never shown.
    chances : [n_documents]
        P(shown); 0 for these.
    """

    ranks: Integers
    chances: Floats


class ClickSums(NamedTuple):
    """What was shown and clicked.

    Parameters
    ----------
    impressions : [n_queries]
    shown, clicked : [n_documents]
        Lists on which a document was, and on which it was clicked.
    """

    impressions: Integers
    shown: Integers
    clicked: Integers


def click_chances(is_relevant: Flags) -> Floats:
    """P(click | looked at), [n_documents]; `is_relevant` [n_documents]."""
    return np.where(is_relevant, CLICKED, NOISE)


def ranks_of(scores: Floats, offsets: Integers) -> Integers:
    """Ranks within queries from 1, [n_documents]; equal scores in their order.

    `scores` [n_documents]; `offsets` [n_queries + 1].
    """
    ranks = np.empty(len(scores), np.int64)
    for begin, end in itertools.pairwise(offsets.tolist()):
        order = np.argsort(-scores[begin:end], kind="stable")
        ranks[begin + order] = np.arange(1, end - begin + 1)
    return ranks


def shown_by(ranks: Integers, offsets: Integers, logging: Logging) -> Shown:
    """Where documents of production ranks are shown.

    `ranks` [n_documents], `offsets` [n_queries + 1].
    """
    k = logging.cutoff
    if k == WHOLE:
        return Shown(ranks, np.ones(len(ranks)))
    sizes = np.repeat(np.diff(offsets), np.diff(offsets))
    is_top = ranks <= k
    if not logging.is_randomised:
        return Shown(np.where(is_top, ranks, 0), is_top.astype(np.float64))
    is_drawn = (ranks >= k) & (sizes > k)
    return Shown(
        np.where(is_drawn, k, ranks),
        np.where(is_drawn, 1.0 / np.maximum(sizes - k + 1, 1), 1.0),
    )


def clicks_per_list(shown: Shown, wanted: Floats, offsets: Integers) -> float:
    """Expected clicks on a list of a query drawn uniformly.

    `wanted` [n_documents] is P(click | looked at); `offsets` [n_queries + 1].
    """
    looked = np.divide(
        shown.chances, shown.ranks, out=np.zeros(len(wanted)), where=shown.ranks > 0
    )
    return float((looked * wanted).sum()) / (len(offsets) - 1)


def drawn_clicks(
    shown: Shown,
    wanted: Floats,
    offsets: Integers,
    n_clicks: float,
    *,
    rng: np.random.Generator,
) -> ClickSums:
    """So many lists that `n_clicks` clicks on them are expected.

    Parameters
    ----------
    wanted : [n_documents]
        P(click | looked at).
    offsets : [n_queries + 1]
        Of documents, from 0.
    """
    n_queries = len(offsets) - 1
    n_lists = max(1, round(n_clicks / clicks_per_list(shown, wanted, offsets)))
    impressions = rng.multinomial(n_lists, np.full(n_queries, 1.0 / n_queries))
    lists = np.repeat(impressions, np.diff(offsets))
    times = np.where(shown.chances == 1.0, lists, 0)
    is_drawn = (shown.chances > 0.0) & (shown.chances < 1.0)
    for query, (begin, end) in enumerate(itertools.pairwise(offsets.tolist())):
        rows = begin + np.flatnonzero(is_drawn[begin:end])
        if len(rows):
            times[rows] = rng.multinomial(impressions[query], shown.chances[rows])
    clicked = rng.binomial(times, wanted / np.maximum(shown.ranks, 1))
    return ClickSums(impressions, times, clicked)


def logged_places(
    clicks: ClickSums, shown: Shown, offsets: Integers
) -> tuple[ClickLog, Floats]:
    """As estimators take it: rows, and impressions [1, 1, n_documents].

    `offsets` [n_queries + 1] are those of the queries.
    """
    lists = np.repeat(clicks.impressions, np.diff(offsets))
    items = np.flatnonzero((shown.ranks > 0) & (lists > 0))
    nobody = np.zeros(len(items), np.int64)
    log = ClickLog(
        nobody,
        nobody,
        items,
        shown.ranks[items],
        clicks.shown[items],
        clicks.clicked[items],
        lists[items] * shown.chances[items],
    )
    return log, lists[None, None, :].astype(np.float64)


def curve_of(shown: Shown, *, with_noise: bool) -> BiasCurve:
    """How users look, of all ranks at which documents are.

    `with_noise`: clicks on what is not relevant are told apart, as trust bias is.
    """
    looked = 1.0 / np.arange(1.0, max(int(shown.ranks.max(initial=1)), 1) + 1.0)
    if not with_noise:
        return BiasCurve(looked, np.zeros(len(looked)))
    return BiasCurve((CLICKED - NOISE) * looked, NOISE * looked)


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
    log, impressions = logged_places(clicks, shown, world.offsets)
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
