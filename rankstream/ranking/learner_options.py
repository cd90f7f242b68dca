"""The names and options of learners, as far as settings need them.

What a learner can learn from stands on its class in `models.learners`, which is not
imported here: a service has no numba. A test holds both to the same rows.
"""

from collections.abc import Mapping
from typing import Any

EVERY = ("optimiser",)
"""Options of every learner."""

LEARNERS: dict[str, tuple[str, ...]] = {
    "pdgd": (*EVERY, "counterfactual", "biased", "all_observed"),
    "dbgd": (*EVERY, "comparison", "unit", "tau"),
    "mgd": (*EVERY, "n_candidates", "comparison", "unit", "tau"),
    "pairwise": EVERY,
    "coltr": (*EVERY, "n_candidates", "unit", "variance_weight"),
    "pl-rank": (*EVERY, "n_samples", "cutoff", "examination"),
}
"""Options by name; the same as those of `models.learners.registry`."""

TRAINED = "trained"
"""In the place of a learner: nothing is learned online, and versions are trained."""

EXAMINATION = "examination"
"""In the place of a learner: the model is a curve of bias, fitted on counted lists."""

CURVE_OPTIONS = (
    "estimator",
    "ranks",
    "confidence",
    "anchor",
    "bootstrap",
    "classes",
)
"""Of `EXAMINATION`; `rankstream.curve_options` says what they may be."""


def check_learner(name: str, options: Mapping[str, Any]) -> None:
    """Refuse a name that no learner has, and options that this one has not.

    Raises
    ------
    ValueError
        With those that there are.
    """
    known = {**LEARNERS, TRAINED: (), EXAMINATION: CURVE_OPTIONS}
    if name not in known:
        raise ValueError(f"learner must be one of {sorted(known)}; got {name!r}")
    if unknown := sorted(set(options) - set(known[name])):
        raise ValueError(
            f"options of {name} must be among {sorted(known[name])}; got {unknown}"
        )
