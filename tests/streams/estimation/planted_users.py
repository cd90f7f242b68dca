"""Users whose taste is known, shown lists by policies that put the good items low."""

from typing import NamedTuple

import numpy as np

from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import PLACKETT_LUCE, ClickMark, Interaction
from streams.estimation.targets import QueryRanking
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics.reader import Statistics
from tests.event_factory import impression
from tests.placed_list import placement_probabilities

GROUPS = 12
ITEMS = ("a", "b", "c", "d", "e")
LOOKED = np.array([1.0, 0.55, 0.35])
N_SHOWN = len(LOOKED)
N_QUERIES = 6


class Planted(NamedTuple):
    """A log and the truth behind it.

    Parameters
    ----------
    statistics
        What the fold counted.
    relevance : [n_queries, n_items]
        P(click | looked at).
    shares : [n_queries]
        Of the lists.
    """

    statistics: Statistics
    relevance: np.ndarray
    shares: np.ndarray

    def reward(self, placements: np.ndarray) -> float:
        """Clicks per list under P(item at rank), [n_queries, n_items, n_ranks]."""
        clicks = np.einsum("qir,r,qi->q", placements, LOOKED, self.relevance)
        return float(self.shares @ clicks)

    def chunks(self):
        """Columns of the log."""
        statistics = self.statistics
        return statistics.columns(marks_mixed=True)


def planted(
    n_lists: int, seed: int, interventions: tuple[str, ...] = ("v1", "v2")
) -> Planted:
    """Lists drawn by Plackett-Luce, those of each intervention by scores of its own.

    Scores fall with relevance: what is good stands low, so clicks per list mislead.
    """
    rng = np.random.default_rng(seed)
    relevance = rng.uniform(0.05, 0.6, (N_QUERIES, len(ITEMS)))
    scores = {
        name: (-4.0 * relevance + rng.normal(0.0, 0.3, relevance.shape)).astype("<f4")
        for name in interventions
    }
    counts, log = np.zeros(N_QUERIES), []
    for number in range(n_lists):
        query, name = int(rng.integers(N_QUERIES)), interventions[number % 2]
        own = scores[name][query]
        keys = own + rng.gumbel(size=len(ITEMS))
        order = np.argsort(-keys)[:N_SHOWN]
        liked = rng.random(N_SHOWN) < relevance[query, order] * LOOKED
        one = impression(
            query_id=f"q{query}",
            items=[*ITEMS],
            shown=[ITEMS[item] for item in order],
            unit=int(rng.integers(100_000)),
            policy=PLACKETT_LUCE,
            scores=own.tobytes(),
            intervention=name,
        )
        marks = [
            ClickMark(row + 1, 1, "click") for row in np.flatnonzero(liked).tolist()
        ]
        counts[query] += 1
        log.append(Interaction(one, marks))
    return Planted(statistics_of(log), relevance, counts / n_lists)


def statistics_of(log: list[Interaction], groups: int = GROUPS) -> Statistics:
    """What the real fold counts."""
    kept = StatisticsSettings(groups=groups)
    fold = StatisticsFold(LimitSettings(), kept, 10_000, 0)
    fold.take(closed_of(log))
    return Statistics((key, value) for _, key, value in fold.changes({}))


def best_first(relevance: np.ndarray) -> dict[str, QueryRanking]:
    """Rankings in the order of relevance."""
    return {
        f"q{query}": QueryRanking(tuple(ITEMS[i] for i in np.argsort(-of_query)))
        for query, of_query in enumerate(relevance)
    }


def placements_of(rankings: dict[str, QueryRanking]) -> np.ndarray:
    """P(item at rank) of rankings, [n_queries, n_items, n_ranks]."""
    placed = np.zeros((N_QUERIES, len(ITEMS), N_SHOWN))
    for query in range(N_QUERIES):
        items, scores = rankings[f"q{query}"]
        rows = [ITEMS.index(item) for item in items]
        own = np.eye(len(items), N_SHOWN)
        if scores is not None:
            own = placement_probabilities(scores, N_SHOWN)
        placed[query, rows] = own
    return placed
