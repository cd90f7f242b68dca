"""How often intervals of items hold relevance that is known, of few clicks and of many.

Items are replicates: all are alike, and each has clicks of its own.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog
from models.estimators.intervals import Intervals
from models.estimators.intervention_aware import ItemSums

Floats = npt.NDArray[np.float64]

ALPHA, RELEVANCE = 0.5, 0.2


class Users(NamedTuple):
    """Who clicks.

    Parameters
    ----------
    beta
        P(click) of what is not relevant, of trust.
    n_shared
        Lists of a session that have the item.
    taste
        Tastes of sessions are drawn from the beta distribution with this sum of
        parameters; the lower, the more a session's clicks have in common. 0: all
        alike.
    """

    beta: float = 0.0
    n_shared: int = 1
    taste: float = 0.0

    @property
    def chance(self) -> float:
        """Of a click on a list."""
        return ALPHA * RELEVANCE + self.beta


KINDS = {
    "alone": Users(),
    "trusting": Users(beta=0.05),
    "of a taste, twice": Users(n_shared=2, taste=1.0),
    "of a taste, five times": Users(n_shared=5, taste=1.0),
}
"""Of a taste, clicks of a session on the item have a correlation of .5: they vary 1.5
and 3 times as much as they would if each list were another user's."""


def sums_of(
    users: Users, expected: float, n_groups: int, n_items: int, rng: np.random.Generator
) -> ItemSums:
    """Clicks of items of so many expected clicks, over groups drawn by session."""
    n_sessions = max(round(expected / users.chance / users.n_shared), 1)
    even = np.full(n_groups, 1.0 / n_groups)
    sessions = rng.multinomial(n_sessions, even, n_items).T
    lists = sessions.astype(np.float64) * users.n_shared
    if users.taste:
        clicked = _clicks_of_tastes(users, sessions, rng)
    else:
        clicked = rng.binomial(lists.astype(np.int64), users.chance).astype(np.float64)
    return ItemSums(lists, ALPHA * lists, users.beta * lists, clicked)


def _clicks_of_tastes(
    users: Users, sessions: npt.NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Clicks of sessions whose taste is theirs, [n_groups, n_items]."""
    heavy = users.chance * users.taste
    n = int(sessions.sum())
    tastes = rng.beta(heavy, users.taste - heavy, n)
    clicks = rng.binomial(users.n_shared, tastes)
    cells = np.repeat(np.arange(sessions.size), sessions.ravel())
    sums = np.bincount(cells, clicks, sessions.size)
    return np.asarray(sums.reshape(sessions.shape), np.float64)


EXAMINATION = np.array([0.9, 0.5, 0.25])
TRUST = np.array([0.04, 0.02, 0.01])
PLACED = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
"""Of two policies: how likely they show an item at ranks."""


def log_of(
    expected: float,
    n_groups: int,
    n_items: int,
    rng: np.random.Generator,
    *,
    has_trust: bool,
) -> tuple[ClickLog, Floats, BiasCurve]:
    """Lists of two policies, and clicks of users who look down them.

    Each list is another user's, and shows the item at one of three ranks. So many
    clicks are expected of an item, over groups and both policies.
    """
    beta = TRUST if has_trust else np.zeros(3)
    chances = EXAMINATION * RELEVANCE + beta
    n_lists = max(round(2.0 * expected / float((PLACED @ chances).sum())), 2)
    even = np.full(2 * n_groups, 0.5 / n_groups)
    lists = rng.multinomial(n_lists, even, n_items).reshape(n_items, n_groups, 2)
    shown = np.stack(
        [rng.multinomial(lists[..., p], PLACED[p]) for p in range(2)], axis=2
    )
    clicked = rng.binomial(shown, chances)
    items, groups, policies, ranks = (x.ravel() for x in np.indices(shown.shape))
    awaited = (lists[..., None] * PLACED).ravel()
    log = ClickLog(
        groups, policies, items, ranks + 1, shown.ravel(), clicked.ravel(), awaited
    )
    impressions = lists.transpose(1, 2, 0).astype(np.float64)
    return log, impressions, BiasCurve(EXAMINATION, beta)


class Held(NamedTuple):
    """Shares of items: with an interval; of these those that hold relevance."""

    told: float
    held: float


def held(intervals: Intervals) -> Held:
    """How many intervals of all items there are, and hold the relevance of them."""
    is_told = np.isfinite(intervals.low)
    holds = (intervals.low <= RELEVANCE) & (intervals.high >= RELEVANCE)
    n = max(int(is_told.sum()), 1)
    return Held(float(is_told.mean()), float(holds[is_told].sum() / n))
