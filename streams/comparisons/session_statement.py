"""Whether the sessions of an experiment are enough to name a winner, in words."""

from models.evaluation.session_coverage import coverage_of
from models.evaluation.sums import PreferenceSums
from rankstream.wire.verdicts import SessionCoverage
from streams.comparisons.comparison import Comparison

ALPHA = 0.05
"""Of all pairs of one method together."""


def sessions_of(
    comparison: Comparison, sums: PreferenceSums, alpha: float
) -> SessionCoverage:
    """Whether sessions are enough to name a winner, and what is missing.

    Parameters
    ----------
    alpha
        Of one pair.
    """
    planned = comparison.settings.planned_impressions
    without, n_lists = comparison.n_without_session, max(1, int(comparison.totals[0]))
    found = coverage_of(sums, alpha, planned=planned, without_session=without / n_lists)
    n, n_groups = int(sums.impressions.sum()), len(sums.impressions)
    words = {
        None: "",
        "named": f"No winner: {without:,} of {n_lists:,} lists name neither session "
        "nor user, so tastes that a session shares are not seen. Send `session` in "
        "query events.",
        "impressions": f"No winner yet: {n:,} impressions are too few where "
        f"{planned:,} are planned (`planned_impressions`).",
        "groups": "No winner yet: too few sessions. They fill "
        f"{found.effective_groups:.1f} groups of {n_groups} evenly, and more than "
        f"{found.needed:.1f} are needed.",
    }
    return SessionCoverage(
        effective_groups=found.effective_groups,
        needed=found.needed,
        enough=n > 0 and found.lack is None,
        why=words[found.lack],
    )
