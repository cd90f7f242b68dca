"""Verdicts: what may be concluded from the sums of an experiment, with its names.

A verdict is a function of the merged sums alone, so that anybody who reads the topic
`preferences` to the same place comes to the same one. Whether its sessions are enough
to name a winner is said by `models.evaluation.session_coverage`.
"""

import math
from collections.abc import Mapping, Sequence

from models.evaluation.conclusion import Conclusion, conclude
from models.evaluation.list_counts import BY_RANKER, TOTALS
from models.evaluation.session_sequence import LEAST_GROUPS
from models.evaluation.sums import PreferenceSums, n_pairs_of, pairs_of
from models.interleaving.counterfactual import Counterfactual
from rankstream.wire.verdicts import (
    Ends,
    MethodVerdict,
    PairVerdict,
    RateDifference,
    SessionCoverage,
    Verdict,
)
from streams.comparisons.comparison import Comparison
from streams.comparisons.health import ALPHA, health_of, sessions_of, stated

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

MOST_CUT = 0.001
"""Of the lists: where more are cut short, click rates of the rest name no winner."""


def verdict_of(
    comparison: Comparison, outcomes: Mapping[str, int] | None = None
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
        Of all events of the log, as `preference_fold.read_outcomes` gives them.
    """
    settings = comparison.settings
    methods = {
        name: _of_method(comparison, name, sums)
        for name, sums in comparison.sums.items()
    }
    totals = dict(zip(TOTALS, comparison.totals.tolist(), strict=True))
    n_pairs = n_pairs_of(len(comparison.rankers))
    return Verdict(
        experiment=comparison.name,
        epoch=settings.epoch,
        method=settings.method,
        rankers=list(comparison.rankers),
        alpha=ALPHA,
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
        health=[stated("records refused", 1.0, "alarm", why)],
    )


def _of_method(
    comparison: Comparison, name: str, sums: PreferenceSums
) -> MethodVerdict:
    n = sums.n_rankers
    found = conclude(
        sums,
        ALPHA,
        planned=comparison.settings.planned_impressions,
        typical_square=comparison.methods[name].typical_square(n),
    )
    sessions = sessions_of(comparison, sums, ALPHA / n_pairs_of(n))
    names = comparison.rankers
    winner = None if found.best is None else names[found.best]
    if _is_cut(comparison, name) or not sessions.enough:
        winner = None
    return MethodVerdict(
        impressions=int(sums.impressions.sum()),
        sessions=sessions,
        matrix=sums.matrix().tolist(),
        pairs=_pairs(names, sums, found),
        winner=winner,
        copeland=found.copeland.tolist(),
        bradley_terry=found.bradley_terry.tolist(),
        cycles=[[names[i] for i in each] for each in found.cycles],
        decided_cycles=[[names[i] for i in each] for each in found.decided_cycles],
    )


def _pairs(
    names: Sequence[str], sums: PreferenceSums, found: Conclusion
) -> list[PairVerdict]:
    possible = sums.possible_impressions()
    first, second = (each.tolist() for each in pairs_of(sums.n_rankers))
    return [
        PairVerdict(
            a=names[a],
            b=names[b],
            mean=float(found.mean[i]),
            to_come=_ends(*found.to_come[i]),
            came=_ends(*found.came[i]),
            fixed=_ends(*found.fixed[i]),
            sessions=_ends(*found.sessions[i]),
            log_e_a=float(found.evidence[a, b]),
            log_e_b=float(found.evidence[b, a]),
            preferred_a=int(sums.counts[i, 0]),
            preferred_b=int(sums.counts[i, 1]),
            possible=int(possible[i]),
        )
        for i, (a, b) in enumerate(zip(first, second, strict=True))
    ]


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
