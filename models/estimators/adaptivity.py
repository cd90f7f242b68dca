"""Whether policies were chosen from the clicks that an estimate is made of."""

import re
from collections.abc import Collection, Container, Mapping
from typing import NamedTuple

_OF_A_VERSION = re.compile(r".+@\d+\.\d+", re.DOTALL)
"""MODEL@EPOCH.VERSION: what was trained, promoted or rolled back to."""


NAMELESS = "what has no name"
"""The intervention of lists that name neither one nor a model."""


class Basis(NamedTuple):
    """Which groups an estimate may rest on, and what must be said of it.

    Parameters
    ----------
    groups
        Sorted. All of them where no policy was chosen from clicks, or where it is not
        known from whose; else those that no policy was fitted on.
    has_intervals
        Whether the estimate is unbiased on these groups.
    warning
        What to print beside values; empty where there is nothing.
    """

    groups: tuple[int, ...]
    has_intervals: bool
    warning: str


def is_chosen_from_clicks(intervention: str, models: Container[str]) -> bool:
    """Whether the policy of an intervention follows from clicks.

    Parameters
    ----------
    intervention
        As logged; empty where none was declared.
    models
        Names of models that learn online; asked only where the name does not tell.

    Examples
    --------
    >>> is_chosen_from_clicks("search@0.12", []), is_chosen_from_clicks("v2", [])
    (True, False)
    """
    return bool(_OF_A_VERSION.fullmatch(intervention)) or intervention in models


def basis_of(
    interventions: Collection[str],
    models: Container[str],
    fitted_on: Mapping[str, frozenset[int] | None],
    n_groups: int,
    surely: Collection[str] = (),
) -> Basis:
    """Groups on which policies of these interventions were fixed beforehand.

    Parameters
    ----------
    interventions
        All that logged what is estimated from.
    models
        Names of models that learn online.
    fitted_on
        Groups whose clicks each intervention was chosen from, its ancestors'
        included; None, or no entry, where that is not known. Groups that the
        statistics do not have were counted otherwise, and tell nothing.
    surely
        Those that were chosen from clicks, whatever they are called.
    """
    everybody = tuple(range(n_groups))
    chosen = [
        name
        for name in sorted(interventions)
        if name in surely or is_chosen_from_clicks(name, models)
    ]
    if not chosen:
        return Basis(everybody, has_intervals=True, warning="")
    unknown = [
        name for name in chosen if not (fitted_on.get(name) or {-1}) <= {*everybody}
    ]
    if unknown:
        return Basis(
            everybody,
            has_intervals=False,
            warning=f"{_named(unknown)} chosen from clicks, maybe from these: values "
            "are biased, less so the more impressions there are, and have no interval",
        )
    used: frozenset[int] = frozenset().union(
        *(fitted_on[name] or frozenset() for name in chosen)
    )
    free = tuple(group for group in everybody if group not in used)
    if len(free) < 2:
        return Basis(
            everybody,
            has_intervals=False,
            warning=f"{_named(chosen)} chosen from clicks of all groups but "
            f"{len(free)}: values are biased, and have no interval",
        )
    return Basis(
        free,
        has_intervals=True,
        warning=f"{_named(chosen)} chosen from clicks of {len(used)} groups: values "
        f"are those of the other {len(free)}",
    )


def _named(interventions: list[str]) -> str:
    told = ", ".join(repr(name) if name else NAMELESS for name in interventions[:3])
    more = f" and {len(interventions) - 3} more" if len(interventions) > 3 else ""
    return f"{told}{more} {'was' if len(interventions) == 1 else 'were'}"
