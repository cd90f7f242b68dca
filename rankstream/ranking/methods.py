"""The catalogue of interleaving methods, as far as services and settings need it.

What only the counting of clicks needs stands on the classes of `models.interleaving`,
which is not imported here: a service has numpy only. A test holds both to the same
names, draws and exposures.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream.ranking.closed_forms import (
    Floats,
    Rows,
    exposures_of_balanced,
    exposures_of_draft,
    exposures_of_pairwise,
    exposures_of_split,
)
from rankstream.ranking.draws import (
    Drawn,
    Lists,
    draw_balanced,
    draw_draft,
    draw_pairwise,
    draw_probabilistic,
    draw_sample_scored,
    draw_scored,
    draw_split,
)

LOGGING_POLICY = "logging-policy"
"""The method whose lists a policy of neither ranker draws."""

Draw = Callable[[Lists, int, np.random.Generator, dict[str, Any]], Drawn]


@dataclass(frozen=True, kw_only=True)
class Served:
    """A method as services and settings see it.

    Parameters
    ----------
    draw
        How a service draws its lists; None where that takes more than numpy.
    exposures
        Its closed form, for the rankings that have one; None where none have.
    is_for_two
        Whether it compares two rankers only.
    fair_beside
        Methods whose credit may be scored on its lists, as they draw the same.
    options_of_credit
        They change neither the draw nor that credit is fair.
    """

    draw: Draw | None
    exposures: Callable[[Lists, Rows, Floats], bool] | None
    is_for_two: bool = False
    fair_beside: tuple[str, ...] = ()
    options_of_credit: tuple[str, ...] = ()


METHODS: dict[str, Served] = {
    "pairwise-preference": Served(
        draw=draw_pairwise,
        exposures=exposures_of_pairwise,
        options_of_credit=("largest_preference", "largest_weight"),
    ),
    "team-draft": Served(
        draw=draw_draft,
        exposures=exposures_of_draft,
        fair_beside=("sample-scored",),  # whose lists log no teams: not the reverse
    ),
    "optimized": Served(draw=None, exposures=None),  # a linear programme: scipy
    "probabilistic": Served(
        draw=draw_probabilistic,
        exposures=None,
        options_of_credit=("outcome",),
    ),
    "sample-scored": Served(draw=draw_sample_scored, exposures=exposures_of_draft),
    "balanced": Served(
        draw=draw_balanced,
        exposures=exposures_of_balanced,
        is_for_two=True,
        fair_beside=("debiased-balanced",),
    ),
    "debiased-balanced": Served(
        draw=draw_balanced,
        exposures=exposures_of_balanced,
        is_for_two=True,
        fair_beside=("balanced",),
    ),
    "ab": Served(
        draw=draw_split,
        exposures=exposures_of_split,
        options_of_credit=("most_clicks",),
    ),
    LOGGING_POLICY: Served(
        draw=draw_scored,
        exposures=None,  # exact from the scores that are logged, but not in numpy
        is_for_two=True,
        options_of_credit=("groups", "selection"),
    ),
}
"""By the name that settings and events use; the same as those of
`models.interleaving.registry`."""

DRAWN: dict[str, Draw] = {
    name: each.draw for name, each in METHODS.items() if each.draw is not None
}
"""What a service can draw."""


def check_method(name: str) -> None:
    """Refuse a name that no method has.

    Raises
    ------
    ValueError
        With the names that there are.
    """
    if name not in METHODS:
        raise ValueError(f"method must be one of {sorted(METHODS)}; got {name!r}")
