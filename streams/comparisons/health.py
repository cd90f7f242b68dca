"""Checks that tell whether a comparison can be believed, and its sessions suffice."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from models.evaluation.balance import log_evidence
from models.evaluation.list_counts import BY_RANKER, TOTALS
from models.evaluation.session_coverage import MOST_WITHOUT_SESSION, coverage_of
from models.evaluation.sums import PreferenceSums, n_pairs_of
from rankstream.ranking.methods import LOGGING_POLICY
from rankstream.wire.verdicts import HealthCheck, Light, SessionCoverage
from streams.comparisons.comparison import Comparison

ALPHA = 0.05
"""Of all pairs of one method together."""

ALARM, WARNING = math.log(1_000.0), math.log(20.0)
"""Evidence against a share that was meant; an e-value of 20 is worth a look."""

LEAST_COVERAGE = 0.3
"""Where rankers differ in fewer impressions, little is learned."""

WELL_JOINED = 0.95
"""Where more clicks are late or orphans, what is counted is a biased part."""

LOG_COUNTS = (
    "applied_clicks",
    "duplicate",
    "late",
    "orphan",
    "dead_letter",
    "compared",
    "unknown",
)
"""Outcomes of the log's events that its health is made of."""

UNEVEN = 0.2
"""Lists that differ more in mean length are not compared on equal terms."""


def health_of(comparison: Comparison, outcomes: Mapping[str, int]) -> list[HealthCheck]:
    """Checks with a value, a state and what it means: ok, warning or alarm.

    Parameters
    ----------
    outcomes
        Of all events of the log; without any the log is not judged.
    """
    totals = dict(zip(TOTALS, comparison.totals.tolist(), strict=True))
    of = {name: comparison.by_ranker[:, i] for i, name in enumerate(BY_RANKER)}
    n = max(1, totals["impressions"])
    refused, taken = sum(comparison.refusals.values()), n + comparison.n_refused
    lengths = of["documents"] / n
    checks = [
        _check("refused", refused / taken, 0.001, 0.05, comparison.refusals),
        _check("too heavy", totals["too_heavy"] / n, 0.001, 0.05, None),
        _check("teams missing", totals["without_assignments"] / n, 0.001, 0.05, None),
        *_fairness(comparison),
        _check("empty lists", float(of["empty"].max()) / n, 0.01, 0.2, None),
        _check(
            "list length",
            float(np.ptp(lengths)) / max(1.0, float(lengths.max())),
            UNEVEN,
            2 * UNEVEN,
            lengths.tolist(),
        ),
        _check("foreign clicks", totals["foreign_clicks"] / n, 0.05, 0.5, None),
        _check("abandonment", 1.0 - totals["clicked_lists"] / n, 1.1, 1.1, None),
        _check("clicks per list", totals["clicks"] / n, math.inf, math.inf, None),
        *_balances(comparison, of),
        _coverage(comparison, n),
        *_sessions(comparison),
        _check("foreign seeds", comparison.n_foreign_seeds / n, 0.001, 0.05, None),
    ]
    hours = (comparison.last_ms - comparison.first_ms) / 3_600_000.0
    checks.append(_check("hours since change", hours, math.inf, math.inf, None))
    return checks + _log_checks(outcomes)


def _log_checks(outcomes: Mapping[str, int]) -> list[HealthCheck]:
    """Shares of the log's events; of clicks, how many found their impression."""
    unread = outcomes.get("unread", 0)
    if unread:
        why = "counts of another release: run one release of all roles"
        return [stated("partitions unread", unread, "alarm", why)]
    if not outcomes.get("consumed"):
        return []
    outcomes = dict.fromkeys(LOG_COUNTS, 0) | dict(outcomes)
    consumed = outcomes["consumed"]
    lost = outcomes["late"] + outcomes["orphan"]
    joined = outcomes["applied_clicks"] / max(1, outcomes["applied_clicks"] + lost)
    unknown = outcomes["unknown"] / max(1, outcomes["compared"])
    state: Light = "ok" if joined >= WELL_JOINED else "warning"
    return [
        stated("join rate", joined, state, None),
        *(
            _check(name, outcomes[name] / consumed, 0.01, 0.1, None)
            for name in ("duplicate", "late", "orphan", "dead_letter")
        ),
        _check("unknown experiments", unknown, 0.001, 0.05, None),
    ]


def rounded_log_checks(outcomes: Mapping[str, int]) -> list[tuple[str, str, float]]:
    """Name, state and value of the log's health, as exactly as it is worth telling."""
    return [
        (check.name, check.state, round(check.value or 0.0, 3))
        for check in _log_checks(outcomes)
    ]


def _balances(comparison: Comparison, of: dict[str, Any]) -> list[HealthCheck]:
    """Shares that chance alone decides, by tests that may be looked at any time."""
    shares = comparison.methods[comparison.settings.method].traits.even_shares
    checks = [_balance(name, of[count]) for name, count in shares]
    if of["places"].any():
        share = of["places"] / max(1, int(of["places"].sum()))
        spread = float(np.ptp(share)) * len(share)
        checks.append(_check("places", spread, 0.1, 0.5, share.tolist()))
    return checks


def _balance(name: str, counts: Any) -> HealthCheck:
    shares = np.full(len(counts), 1.0 / len(counts))
    return _check(name, log_evidence(counts, shares), WARNING, ALARM, counts.tolist())


def _fairness(comparison: Comparison) -> list[HealthCheck]:
    """A warning of methods that prefer somebody where relevance plays no part."""
    methods = comparison.methods.items()
    unfair = [name for name, method in methods if not method.traits.is_fair]
    if not unfair:
        return []
    return [_check("unfair methods", len(unfair), 1, math.inf, unfair)]


def _coverage(comparison: Comparison, n: int) -> HealthCheck:
    """Share of impressions in which the two rankers could be told apart, at least."""
    sums = comparison.sums[comparison.settings.method]
    if comparison.settings.method == LOGGING_POLICY:  # few groups of users judge
        n = max(1, int(sums.impressions.sum()))
    least = float(sums.possible_impressions().min()) / n
    state: Light = "ok" if least >= LEAST_COVERAGE else "warning"
    return stated("coverage", least, state, None)


def _sessions(comparison: Comparison) -> list[HealthCheck]:
    """Groups of sessions that carry the impressions; lists that name no session."""
    each = ALPHA / n_pairs_of(len(comparison.rankers))
    sums = comparison.sums[comparison.settings.method]
    found = sessions_of(comparison, sums, each)
    without = comparison.n_without_session / max(1, int(comparison.totals[0]))
    is_covered = found.effective_groups > found.needed
    return [
        stated(
            "sessions",
            found.effective_groups,
            "ok" if is_covered else "warning",
            f"more than {found.needed:.1f} groups of sessions must carry the "
            "impressions before anything is said of sessions to come",
        ),
        _check("without session", without, 0.001, MOST_WITHOUT_SESSION, None),
    ]


def _check(
    name: str, value: float, warning: float, alarm: float, detail: Any
) -> HealthCheck:
    state: Light = (
        "alarm" if value >= alarm else "warning" if value >= warning else "ok"
    )
    return stated(name, value, state, detail)


def stated(name: str, value: float, state: Light, detail: Any) -> HealthCheck:
    """A check whose light is known."""
    return HealthCheck(name=name, value=value, state=state, detail=detail)


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
