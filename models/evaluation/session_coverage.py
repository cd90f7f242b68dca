"""Whether the sessions of an experiment are enough to name a winner."""

from typing import Literal, NamedTuple

from models.arrays import Integers
from models.evaluation.session_sequence import (
    LEAST_GROUPS,
    groups_of_equal_size,
    largest_score,
)
from models.evaluation.sums import PreferenceSums

MOST_WITHOUT_SESSION = 0.05
"""Of the lists: where more name no session and no user, there is no winner."""

Lack = Literal["named", "impressions", "groups"]
"""Lists that name a session, impressions of those planned, or groups of sessions."""


class Coverage(NamedTuple):
    """Groups of sessions that carry the impressions, and how many must.

    `lack` is what is missing before a winner may be named; None where nothing is, or
    nothing came.
    """

    effective_groups: float
    needed: float
    lack: Lack | None


def coverage_of(
    sums: PreferenceSums, alpha: float, *, planned: float, without_session: float
) -> Coverage:
    """Whether sessions are enough to name a winner, and what is missing.

    One session that outweighs the others, or few sessions, fill few groups. Lists that
    name no session would each be one.

    Parameters
    ----------
    alpha
        Of one pair.
    planned
        Impressions of the whole experiment.
    without_session
        Share of the lists that name neither session nor user.
    """
    return coverage_of_groups(
        sums.impressions, alpha, planned=planned, without_session=without_session
    )


def coverage_of_groups(
    impressions: Integers, alpha: float, *, planned: float, without_session: float
) -> Coverage:
    """The same, of impressions by group of sessions.

    Parameters
    ----------
    impressions : [n_groups]
    alpha, planned, without_session
        As of `coverage_of`.
    """
    effective, n = groups_of_equal_size(impressions), int(impressions.sum())
    score = largest_score(n / planned, alpha) if n else 0.0
    needed = max(LEAST_GROUPS, score)
    lack: Lack | None = None
    if without_session >= MOST_WITHOUT_SESSION:
        lack = "named"
    elif n and needed >= len(impressions):
        lack = "impressions"
    elif n and effective <= needed:
        lack = "groups"
    return Coverage(effective, needed, lack)
