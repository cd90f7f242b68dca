"""Lists of a few queries, as raw impressions and as the real fold counts them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from models.counts.definition import ClosedImpression
from models.plackett_luce.placement import placement_batch
from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import PLACKETT_LUCE, ClickMark, Interaction
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics.reader import Statistics
from tests.event_factory import impression

GROUPS = 8
ITEMS = ("a", "b", "c", "d", "e")


class Shown(NamedTuple):
    """One list: of which query, to whom, in which order, what was clicked.

    Parameters
    ----------
    order
        Numbers of the items at ranks 1, 2, ...
    clicked
        Ranks from 1.
    scores
        Of Plackett-Luce; empty for other policies.
    """

    query: int
    group: int
    order: Sequence[int]
    clicked: frozenset[int]
    policy: int
    scores: Sequence[float] = ()

    def interaction(self) -> Interaction:
        """As the join closes it."""
        one = impression(
            query_id=f"q{self.query}",
            items=[*ITEMS],
            shown=[ITEMS[item] for item in self.order],
            unit=self.group,
            policy=self.policy,
            intervention=f"policy {self.policy}",
            scores=np.array(self.scores, "<f4").tobytes(),
        )
        marks = [ClickMark(rank, 1, "click") for rank in sorted(self.clicked)]
        return Interaction(one, marks)

    def closed(self) -> ClosedImpression:
        """As the definition of counts takes it."""
        placement = None
        if self.policy == PLACKETT_LUCE:
            scores = np.array([self.scores], "<f4").astype(np.float64)
            placement = placement_batch(scores, len(self.order))[0]
        clicks = {0: [*self.clicked]}
        return ClosedImpression(
            self.group, self.order, clicks, self.policy, b"", placement
        )

    def flipped(self, rank: int) -> "Shown":
        """With a click more, or one less."""
        return self._replace(clicked=self.clicked ^ {rank})


def counted(shown: Iterable[Shown], **limits: int) -> Statistics:
    """What the real fold counts."""
    kept = StatisticsSettings(groups=GROUPS)
    fold = StatisticsFold(LimitSettings(**limits), kept, 10_000, 0)
    fold.take(closed_of([one.interaction() for one in shown]))
    return Statistics((key, value) for _, key, value in fold.changes({}))
