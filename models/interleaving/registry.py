"""Ways of comparing rankers, by the name that settings and events use."""

from collections.abc import Mapping
from typing import Any

from models.interleaving.balanced import Balanced, DebiasedBalanced
from models.interleaving.counterfactual import Counterfactual
from models.interleaving.method import Method
from models.interleaving.optimized import Optimized
from models.interleaving.pairwise_preference import PairwisePreference
from models.interleaving.probabilistic import Probabilistic
from models.interleaving.sample_scored import SampleScored
from models.interleaving.split import Split
from models.interleaving.team_draft import TeamDraft

METHODS: dict[str, type[Any]] = {
    "pairwise-preference": PairwisePreference,
    "team-draft": TeamDraft,
    "optimized": Optimized,
    "probabilistic": Probabilistic,
    "sample-scored": SampleScored,
    "balanced": Balanced,
    "debiased-balanced": DebiasedBalanced,
    "ab": Split,
}


def method_of(name: str, options: Mapping[str, Any] | None = None) -> Method:
    """The named method.

    Parameters
    ----------
    name
        One of `METHODS`, or "counterfactual" before one of them, as in
        "counterfactual:pairwise-preference", with the options `examination` and, for
        lists that may be shorter than asked for, `length`.
    options
        What the method takes; see its class.

    Raises
    ------
    ValueError
        Where the name or an option is unknown, or a value is of no use.
    """
    given = dict(options or {})
    prefix, _, logged = name.rpartition(":")
    if prefix == "counterfactual":
        examination = tuple(given.pop("examination", ()))
        length = int(given.pop("length", 0))
        return Counterfactual(method_of(logged, given), examination, length)
    if name not in METHODS:
        raise ValueError(f"method must be one of {sorted(METHODS)}; got {name!r}")
    known = set(METHODS[name].__dataclass_fields__) - {"needs_assignments"}
    unknown = set(given) - known
    if unknown:
        raise ValueError(
            f"options of {name} must be among {sorted(known)}; got {sorted(unknown)}"
        )
    made: Method = METHODS[name](**given)
    return made
