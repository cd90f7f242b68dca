"""Estimators of relevance by name: what each needs, and what it is unbiased for."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from models.arrays import Floats
from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog
from models.estimators.doubly_robust import doubly_robust
from models.estimators.intervention_aware import intervention_aware
from models.estimators.item_estimates import ItemEstimates
from models.estimators.policy_corrected import (
    intervention_oblivious,
    policy_aware,
    self_normalised,
)
from models.estimators.rank_corrected import (
    affine,
    affine_shown,
    naive,
    oblivious,
    rerank,
)

CURVE = "curve"
PLACEMENTS = "placements"
POLICIES = "policies"
"""What estimators need: a curve of bias, P(item at rank), and who logged what."""

POSITION, SELECTION, TRUST = "position", "selection", "trust"
"""Biases: ranks are looked at unlike, items are not on each list, and what is not
relevant is clicked too."""

BY_GROUP = ("doubly-robust",)
"""Estimators that compare groups, and look at other items of what they are given: they
are given one query at a time."""


class Estimator(Protocol):
    """The signature of all estimators."""

    def __call__(
        self,
        log: ClickLog,
        impressions: Floats,
        curve: BiasCurve,
        *,
        least: float = 0.0,
    ) -> ItemEstimates:
        """Values of all items; `least` is for training alone."""


class Entry(NamedTuple):
    """An estimator by name.

    Parameters
    ----------
    estimator
        See `Estimator`.
    needs
        Some of `CURVE`, `PLACEMENTS` and `POLICIES`.
    corrects
        Biases that do not bias it, all or some of them at once, where policies were
        fixed before the clicks and the curve is right.
    unbiased_for
        In a sentence.
    """

    estimator: Estimator
    needs: frozenset[str]
    corrects: frozenset[str]
    unbiased_for: str


def _entry(estimator: Estimator, needs: str, corrects: str, unbiased_for: str) -> Entry:
    return Entry(
        estimator, frozenset(needs.split()), frozenset(corrects.split()), unbiased_for
    )


ESTIMATORS: Mapping[str, Entry] = MappingProxyType(
    {
        "naive": _entry(
            naive,
            "",
            "",
            "clicks per list of the policies that logged, not relevance",
        ),
        "oblivious": _entry(
            oblivious,
            "curve",
            "position",
            "relevance where each list shows the item and there is no trust bias",
        ),
        "rerank": _entry(
            rerank,
            "curve",
            "position selection",
            "relevance of what was shown, given that it was, without trust bias; "
            "rewards are of the shown items alone",
        ),
        "policy-aware": _entry(
            policy_aware,
            "curve placements policies",
            "position selection",
            "relevance of what each policy could show, without trust bias",
        ),
        "affine": _entry(
            affine,
            "curve",
            "position trust",
            "relevance where each list shows the item",
        ),
        "affine-shown": _entry(
            affine_shown,
            "curve",
            "position selection trust",
            "relevance of what was shown, given that it was, if what lists show was "
            "fixed before the clicks",
        ),
        "intervention-oblivious": _entry(
            intervention_oblivious,
            "curve placements policies",
            "position selection trust",
            "relevance of what each policy could show, even if policies were chosen "
            "from clicks",
        ),
        "intervention-aware": _entry(
            intervention_aware,
            "curve placements",
            "position selection trust",
            "relevance of what any policy could show, if policies were fixed before "
            "the clicks",
        ),
        "self-normalised": _entry(
            self_normalised,
            "curve placements policies",
            "position selection trust",
            "relevance of what was shown, given that it was, if policies were fixed "
            "before the clicks; else consistent only",
        ),
        "doubly-robust": _entry(
            doubly_robust,
            "curve placements policies",
            "position selection trust",
            "relevance of what each policy could show, or where the regression is "
            "right, if policies were fixed before the clicks; with a fixed regression "
            "even if they were chosen from them",
        ),
    }
)


def estimator_of(name: str) -> Entry:
    """The entry of a name.

    Raises
    ------
    ValueError
        Where there is none.
    """
    if name not in ESTIMATORS:
        raise ValueError(
            f"estimator must be one of {', '.join(ESTIMATORS)}; got {name!r}"
        )
    return ESTIMATORS[name]
