"""Verdicts: what may be concluded from the sums of an experiment, and its health.

A verdict is a function of the merged sums alone, so that anybody who reads the topic
`preferences` to the same place comes to the same one.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from models.evaluation.balance import log_evidence
from models.evaluation.betting import log_e_values
from models.evaluation.confidence_sequence import half_widths
from models.evaluation.intervals import clustered_half_widths, fixed_half_widths
from models.evaluation.list_counts import BY_RANKER, TOTALS
from models.evaluation.session_sequence import (
    LEAST_GROUPS,
    effective_groups,
    largest_score,
    session_intervals,
)
from models.evaluation.standings import bradley_terry, copeland, cycles
from models.evaluation.sums import PreferenceSums, n_pairs_of, pairs_of, skew
from models.interleaving.counterfactual import Counterfactual
from rankstream.wire.verdicts import (
    Ends,
    HealthCheck,
    Light,
    MethodVerdict,
    PairVerdict,
    RateDifference,
    SessionCoverage,
    Verdict,
)
from streams.comparisons.comparison import Comparison

ALPHA = 0.05

QUESTIONS = {
    "to_come": "For sessions to come, is a better than b? At any time; asymptotic in "
    "the number of sessions.",
    "came": "For the sessions that came, was a better than b? At any time; exact, by "
    "the draws alone.",
    "fixed": "Were impressions independent of each other, is a better than b? For one "
    "look, at a time that was fixed before.",
    "sessions": "For sessions to come, is a better than b? For one look, at a time "
    "that was fixed before.",
}
"""What each interval of a pair answers."""

RULE = "A winner is better by both intervals, for sessions that came and to come."
"""What makes one."""

MOST_WITHOUT_SESSION = 0.05
"""Of the lists: where more name no session and no user, there is no winner."""

MOST_CUT = 0.001
"""Of the lists: where more are cut short, click rates of the rest name no winner."""

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


def verdict_of(
    comparison: Comparison,
    outcomes: Mapping[str, int] | None = None,
    alpha: float = ALPHA,
) -> Verdict:
    """Everything about one (experiment, epoch).

    Intervals of all pairs of one method hold together at 1 - alpha: each is made for
    alpha over the number of pairs (Bonferroni). Each method is a family of its own.
    Only `to_come` and `came` may be looked at more than once; `QUESTIONS` says what
    each answers. A winner is better by both: better for sessions to come, as far as
    their number tells, and, without any doubt about sessions, for those that came.

    Parameters
    ----------
    outcomes
        Of all events of the log, as `preferences.read_outcomes` gives them.
    """
    settings = comparison.settings
    methods = {
        name: _of_method(comparison, name, sums, alpha)
        for name, sums in comparison.sums.items()
    }
    totals = dict(zip(TOTALS, comparison.totals.tolist(), strict=True))
    n_pairs = n_pairs_of(len(comparison.rankers))
    return Verdict(
        experiment=comparison.name,
        epoch=settings.epoch,
        method=settings.method,
        rankers=list(comparison.rankers),
        alpha=alpha,
        correction=f"Bonferroni over {n_pairs} pair{'s' * (n_pairs > 1)}",
        first_ms=comparison.first_ms,
        last_ms=comparison.last_ms,
        totals=totals,
        questions={**QUESTIONS, "winner": RULE},
        methods=methods,
        clicks_per_list=_rates(comparison, methods[settings.method].pairs),
        health=health_of(comparison, outcomes or {}),
    )


def refused_verdict(name: str, epoch: int, why: str) -> Verdict:
    """Of an experiment whose records cannot be read or merged: an alarm."""
    nothing = MethodVerdict(
        impressions=0,
        sessions=SessionCoverage(
            effective_groups=0.0, needed=LEAST_GROUPS, enough=False, why=""
        ),
        matrix=[],
        pairs=[],
        winner=None,
        copeland=[],
        bradley_terry=[],
        cycles=[],
        decided_cycles=[],
    )
    return Verdict(
        experiment=name,
        epoch=epoch,
        method="refused",
        rankers=[],
        alpha=ALPHA,
        correction="nothing is compared",
        first_ms=-1,
        last_ms=-1,
        totals=dict.fromkeys(TOTALS, 0),
        questions={**QUESTIONS, "winner": RULE},
        methods={"refused": nothing},
        clicks_per_list=[],
        health=[_stated("records refused", 1.0, "alarm", why)],
    )


def _of_method(
    comparison: Comparison, name: str, sums: PreferenceSums, alpha: float
) -> MethodVerdict:
    n = sums.n_rankers
    each = alpha / n_pairs_of(n)
    typical = comparison.methods[name].typical_square(n)
    planned = typical * comparison.settings.planned_impressions
    mean = sums.mean()
    to_come = session_intervals(sums, each, comparison.settings.planned_impressions)
    came = half_widths(sums, each, planned)
    fixed = fixed_half_widths(sums, each)
    clustered = clustered_half_widths(sums, each)
    evidence = log_e_values(sums)
    signs = np.sign(skew(mean, n))
    is_better = (to_come[:, 0] > 0.0) & (mean > came)
    is_worse = (to_come[:, 1] < 0.0) & (mean < -came)
    decided = skew(np.where(is_better, 1.0, np.where(is_worse, -1.0, 0.0)), n)
    sessions = sessions_of(comparison, sums, each)
    wins = np.zeros((n, n))
    first, second = pairs_of(n)
    wins[first, second], wins[second, first] = sums.counts.T
    names = comparison.rankers
    pairs = [
        PairVerdict(
            a=names[first[i]],
            b=names[second[i]],
            mean=float(mean[i]),
            to_come=_ends(*to_come[i]),
            came=_ends(mean[i] - came[i], mean[i] + came[i]),
            fixed=_ends(mean[i] - fixed[i], mean[i] + fixed[i]),
            sessions=_ends(mean[i] - clustered[i], mean[i] + clustered[i]),
            log_e_a=float(evidence[first[i], second[i]]),
            log_e_b=float(evidence[second[i], first[i]]),
            preferred_a=int(sums.counts[i, 0]),
            preferred_b=int(sums.counts[i, 1]),
            possible=int(sums.possible_impressions()[i]),
        )
        for i in range(len(mean))
    ]
    best = [i for i in range(n) if (np.delete(decided[i], i) > 0).all()]
    if _is_cut(comparison, name) or not sessions.enough:
        best = []
    return MethodVerdict(
        impressions=int(sums.impressions.sum()),
        sessions=sessions,
        matrix=sums.matrix().tolist(),
        pairs=pairs,
        winner=names[best[0]] if best else None,
        copeland=copeland(signs.astype(np.int64)).tolist(),
        bradley_terry=bradley_terry(wins).tolist(),
        cycles=[[names[i] for i in each] for each in cycles(signs.astype(np.int64))],
        decided_cycles=[
            [names[i] for i in each] for each in cycles(decided.astype(np.int64))
        ],
    )


def _is_cut(comparison: Comparison, name: str) -> bool:
    """Whether lists were cut so often that click rates of the others may be a choice.

    Where a cut depends on the draw, what is left is no fair sample, and the log cannot
    tell.
    """
    if not isinstance(comparison.methods[name], Counterfactual):
        return False
    n_cut = comparison.refusals.get("cut-short", 0)
    n = int(comparison.sums[name].impressions.sum())
    return n_cut >= MOST_CUT * (n + n_cut) and n_cut > 0


def _ends(low: float, high: float) -> Ends:
    """Both ends; None where nothing can be said."""
    if not math.isfinite(high - low):
        return None, None
    return float(low), float(high)


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


def _rates(comparison: Comparison, pairs: list[PairVerdict]) -> list[RateDifference]:
    """Differences in clicks per list between the arms of an A/B comparison.

    Only lists count for which all rankers returned something: a ranker that is silent
    where queries are hard would else be shown for the easy ones only. A preference of
    A/B is a difference in clicks, each times the number of rankers that might have
    been shown, so the pairs say it already, all intervals of the same difference.
    """
    if not comparison.methods[comparison.settings.method].traits.shows_one_ranker:
        return []
    lists = comparison.by_ranker[:, BY_RANKER.index("lists")].tolist()
    first, second = pairs_of(len(comparison.rankers))
    return [
        RateDifference(
            a=pair.a,
            b=pair.b,
            mean=pair.mean,
            to_come=pair.to_come,
            came=pair.came,
            fixed=pair.fixed,
            sessions=pair.sessions,
            lists=(lists[i], lists[j]),
        )
        for i, j, pair in zip(first.tolist(), second.tolist(), pairs, strict=True)
    ]


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
        return [_stated("partitions unread", unread, "alarm", why)]
    if not outcomes.get("consumed"):
        return []
    outcomes = dict.fromkeys(LOG_COUNTS, 0) | dict(outcomes)
    consumed = outcomes["consumed"]
    lost = outcomes["late"] + outcomes["orphan"]
    joined = outcomes["applied_clicks"] / max(1, outcomes["applied_clicks"] + lost)
    unknown = outcomes["unknown"] / max(1, outcomes["compared"])
    state: Light = "ok" if joined >= WELL_JOINED else "warning"
    return [
        _stated("join rate", joined, state, None),
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
    least = float(sums.possible_impressions().min()) / n
    state: Light = "ok" if least >= LEAST_COVERAGE else "warning"
    return _stated("coverage", least, state, None)


def _sessions(comparison: Comparison) -> list[HealthCheck]:
    """Groups of sessions that carry the impressions; lists that name no session."""
    each = ALPHA / n_pairs_of(len(comparison.rankers))
    sums = comparison.sums[comparison.settings.method]
    found = sessions_of(comparison, sums, each)
    without = comparison.n_without_session / max(1, int(comparison.totals[0]))
    is_covered = found.effective_groups > found.needed
    return [
        _stated(
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
    return _stated(name, value, state, detail)


def _stated(name: str, value: float, state: Light, detail: Any) -> HealthCheck:
    return HealthCheck(name=name, value=value, state=state, detail=detail)
