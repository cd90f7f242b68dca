"""Whether the sessions of an experiment are enough to name a winner."""

from models.evaluation.session_sequence import (
    LEAST_GROUPS,
    effective_groups,
    largest_score,
)
from models.evaluation.sums import PreferenceSums
from rankstream.wire.verdicts import SessionCoverage
from streams.comparisons.comparison import Comparison

ALPHA = 0.05
"""Of all pairs of one method together."""

MOST_WITHOUT_SESSION = 0.05
"""Of the lists: where more name no session and no user, there is no winner."""


def sessions_of(
    comparison: Comparison, sums: PreferenceSums, alpha: float
) -> SessionCoverage:
    """Whether sessions are enough to name a winner, and what is missing.

    One session that outweighs the others, or few sessions, fill few groups. Lists that
    name no session would each be one.

    Parameters
    ----------
    alpha
        Of one pair.
    """
    effective, n = effective_groups(sums), int(sums.impressions.sum())
    planned = comparison.settings.planned_impressions
    score = largest_score(n / planned, alpha) if n else 0.0
    needed = max(LEAST_GROUPS, score)
    without = comparison.n_without_session
    n_lists = max(1, int(comparison.totals[0]))
    why = ""
    if without >= MOST_WITHOUT_SESSION * n_lists:
        why = (
            f"No winner: {without:,} of {n_lists:,} lists name neither session nor "
            "user, so tastes that a session shares are not seen. Send `session` in "
            "query events."
        )
    elif n and needed >= len(sums.impressions):
        why = (
            f"No winner yet: {n:,} impressions are too few where {planned:,} are "
            "planned (`planned_impressions`)."
        )
    elif n and effective <= needed:
        why = (
            f"No winner yet: too few sessions. They fill {effective:.1f} groups of "
            f"{len(sums.impressions)} evenly, and more than {needed:.1f} are needed."
        )
    return SessionCoverage(
        effective_groups=effective,
        needed=needed,
        enough=n > 0 and not why,
        why=why,
    )
