"""Plans: which faults a run is struck by, in which order."""

import re
from typing import NamedTuple

import numpy as np

from streams.topology import ROLES, kinds_of

STAGED = [role for role in ROLES if kinds_of(role)]
"""Roles whose state is read back."""


class Fault(NamedTuple):
    """What is done, to whom, and how: `kill:fold@restoring`, `broker:30`."""

    kind: str
    target: str = ""
    moment: str = ""

    def __str__(self) -> str:
        moment = f"@{self.moment}" if self.moment else ""
        return f"{self.kind}:{self.target}{moment}" if self.target else self.kind


KINDS = {
    "kill": re.compile(
        rf"(?:{'|'.join(STAGED)})(?:@restoring)?|publish(?:@publishing)?|all"
    ),
    "stop": re.compile(r"all"),
    "broker": re.compile(r"\d+(?:\.\d+)?"),
    "redis": re.compile(r"\d+(?:\.\d+)?"),
    "second": re.compile(r"join|leave|kill"),
    "pause": re.compile(r"fold"),
}
"""What each kind of fault can strike."""


def fault_of(text: str) -> Fault:
    """The fault that a text names."""
    kind, _, rest = text.partition(":")
    if kind not in KINDS or not KINDS[kind].fullmatch(rest):
        raise ValueError(f"a fault must be one that --help names; got {text!r}")
    target, _, moment = rest.partition("@")
    return Fault(kind, target, moment)


def _checked(plan: list[Fault]) -> list[Fault]:
    """The plan, if there is a second worker wherever it needs one."""
    is_there = False
    for fault in plan:
        joins = fault.target == "join"
        if fault.kind in ("second", "pause") and joins == is_there:
            raise ValueError(
                "a second worker must join before it is struck, and only once; "
                f"got {fault} in {', '.join(map(str, plan))}"
            )
        if fault.kind == "second":
            is_there = joins
    return plan


OTHERS = {
    "full": [
        "broker:30",
        "stop:all",
        "second:join",
        "second:leave",
        "redis:30",
        "stop:all",
        "second:join",
        "pause:fold",
        "second:kill",
    ],
    "small": ["broker:8", "stop:all"],
}
"""What a plan holds beside its kills, in this order."""


def plan_of(name: str, n_kills: int, seed: int) -> list[Fault]:
    """The faults of a run, in order.

    Parameters
    ----------
    name
        `full`, `small`, `none`, or the faults themselves, with commas between.
    """
    if name == "none":
        return []
    if name not in OTHERS:
        return _checked([fault_of(text) for text in name.split(",")])
    rng = np.random.default_rng(seed)
    special = ["kill:fold@restoring", "kill:publish@publishing"]
    others = [role for role in STAGED if role != "fold"]
    special += [f"kill:{role}@restoring" for role in others] if n_kills > 8 else []
    roles = ["fold", *others, "all", "publish"]
    kills = special[:n_kills]
    kills += [f"kill:{roles[n % len(roles)]}" for n in range(n_kills - len(kills))]
    rng.shuffle(kills)
    between = OTHERS[name]
    places = np.linspace(0, len(kills), len(between) + 2)[1:-1].round().astype(int)
    plan = list(kills)
    for place, other in reversed(list(zip(places, between, strict=True))):
        plan.insert(int(place), other)
    return _checked([fault_of(text) for text in plan])
