"""Ways of comparing rankers, by the name that settings and events use."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from models.interleaving.balanced import Balanced, DebiasedBalanced
from models.interleaving.counterfactual import Counterfactual
from models.interleaving.logging_policy_credit import LoggingPolicy
from models.interleaving.method import Method
from models.interleaving.optimized import Optimized
from models.interleaving.pairwise_preference import PairwisePreference
from models.interleaving.probabilistic import Probabilistic
from models.interleaving.sample_scored import SampleScored
from models.interleaving.split import Split
from models.interleaving.team_draft import TeamDraft

METHODS: dict[str, type[Method]] = {
    "pairwise-preference": PairwisePreference,
    "team-draft": TeamDraft,
    "optimized": Optimized,
    "probabilistic": Probabilistic,
    "sample-scored": SampleScored,
    "balanced": Balanced,
    "debiased-balanced": DebiasedBalanced,
    "ab": Split,
    "logging-policy": LoggingPolicy,
}

BY_LIST = ("logged",)
"""Fields of a method that each list has of its own: no options."""


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
        examination = given.pop("examination", ())
        if not isinstance(examination, list | tuple):
            raise ValueError(f"examination must be a list; got {examination!r}")
        length = int(given.pop("length", 0))
        return Counterfactual(method_of(logged, given), tuple(examination), length)
    if name not in METHODS:
        raise ValueError(f"method must be one of {sorted(METHODS)}; got {name!r}")
    made: type[Any] = METHODS[name]
    known = {
        field.name: field.default
        for field in dataclasses.fields(made)
        if field.name not in BY_LIST
    }
    if isinstance(given.get("examination"), list):
        given["examination"] = tuple(given["examination"])
    unknown = set(given) - set(known)
    if unknown:
        raise ValueError(
            f"options of {name} must be among {sorted(known)}; got {sorted(unknown)}"
        )
    for option, value in given.items():
        _check_kind(option, value, type(known[option]))
    method: Method = made(**given)
    return method


def _check_kind(option: str, value: object, kind: type) -> None:
    """Numbers are finite, and no booleans; whole ones will do for any."""
    is_kind = type(value) is kind or (kind is float and type(value) is int)
    if not is_kind or (isinstance(value, float) and not math.isfinite(value)):
        finite = "finite " if kind is float else ""
        raise ValueError(f"{option} must be {finite}{kind.__name__}; got {value!r}")
