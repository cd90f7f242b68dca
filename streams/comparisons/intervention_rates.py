"""Clicks per list of interventions, with intervals for sessions to come."""

import math
from collections.abc import Mapping

from models.evaluation.session_coverage import Coverage, coverage_of_groups
from models.evaluation.session_sequence import rate_interval
from rankstream.wire.envelope import Pointer
from rankstream.wire.models.model_evaluations import (
    FIRST_POLICY,
    InterventionRate,
    ModelRates,
    place_of,
)
from streams.comparisons.health import ALPHA
from streams.comparisons.intervention_lists import CLICKS, LISTS
from streams.native.intervention_lists import Sums

PLANNED = 10_000
"""Lists of an intervention at which its interval is narrowest, as of experiments."""

MOST_TOLD = 256
"""Interventions of a model that fit a record: the first policy, and those with the most
lists, as versions may be made up."""

QUESTION = (
    "Clicks per list of sessions to come, whenever one looks; each interval holds "
    "alone."
)


def rates_of(
    sums: Mapping[str, Sums], alpha: float = ALPHA, planned: int = PLANNED
) -> list[ModelRates]:
    """Clicks per list of all interventions, model by model.

    Parameters
    ----------
    sums
        By intervention, those of all partitions added up.
    """
    by_model: dict[str, list[tuple[Pointer, InterventionRate]]] = {}
    for name, one in sums.items():
        model, pointer = place_of(name)
        rate = rate_of(name, one, alpha, planned)
        by_model.setdefault(model, []).append((pointer, rate))
    return [
        ModelRates(
            model=model,
            alpha=alpha,
            planned=planned,
            question=QUESTION,
            interventions=[
                rate
                for _, rate in sorted(
                    sorted(rates, key=_weight)[-MOST_TOLD:], key=lambda each: each[0]
                )
            ],
        )
        for model, rates in sorted(by_model.items())
    ]


def _weight(each: tuple[Pointer, InterventionRate]) -> tuple[bool, int, Pointer]:
    pointer, rate = each
    return pointer == FIRST_POLICY, rate.lists, pointer


def rate_of(name: str, sums: Sums, alpha: float, planned: int) -> InterventionRate:
    """Clicks per list of one intervention, and what they say of sessions to come."""
    lists, clicks = sums.groups[:, LISTS], sums.groups[:, CLICKS]
    n_lists, n_clicks = int(lists.sum()), int(clicks.sum())
    n_without = int(sums.without_session[0])
    covered = coverage_of_groups(
        lists, alpha, planned=planned, without_session=n_without / max(1, n_lists)
    )
    low, high = rate_interval(clicks, lists, alpha, planned)
    why = _lack(covered, n_lists, n_without, planned)
    is_said = not why and math.isfinite(low) and math.isfinite(high)
    return InterventionRate(
        intervention=name,
        lists=n_lists,
        clicks=n_clicks,
        mean=n_clicks / n_lists if n_lists else None,
        # Clicks are never negative, and the mean of all sessions is not either.
        to_come=(max(0.0, low), high) if is_said else (None, None),
        effective_groups=covered.effective_groups,
        needed=covered.needed,
        why=why if is_said or why else "Clicks lie in too few groups of sessions.",
    )


def _lack(covered: Coverage, n_lists: int, n_without: int, planned: int) -> str:
    if not n_lists:
        return "No list yet."
    words = {
        None: "",
        "named": f"{n_without:,} of {n_lists:,} lists name neither session nor user, "
        "so tastes that a session shares are not seen: send `session` in query events.",
        "impressions": f"{n_lists:,} lists are too few where {planned:,} are planned.",
        "groups": f"Sessions fill {covered.effective_groups:.1f} groups of 100 evenly, "
        f"and more than {covered.needed:.1f} are needed.",
    }
    return words[covered.lack]
