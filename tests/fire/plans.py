"""Plans: which faults a run is struck by, in which order."""

import itertools
import re
from typing import NamedTuple

import numpy as np

from streams.worker_roles import ROLES, kinds_of
from tests.fire.commit_phases import PHASES

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


SECONDS = r"\d+(?:\.\d+)?"

KINDS = {
    "kill": re.compile(
        rf"(?:{'|'.join(STAGED)})(?:@(?:restoring|{'|'.join(PHASES)}))?|publish(?:@publishing)?|train(?:@training)?|all"
    ),
    "stop": re.compile(r"all"),
    "broker": re.compile(rf"{SECONDS}(?:@kill)?"),
    "leader": re.compile(SECONDS),
    "coordinator": re.compile(SECONDS),
    "redis": re.compile(SECONDS),
    "first": re.compile(r"join|leave"),
    "second": re.compile(r"join|leave|kill"),
    "pause": re.compile(r"fold"),
}
"""What each kind of fault can strike."""

WORKERS = ("first", "second")
CLUSTERED = ("leader", "coordinator")
"""Where one broker is struck, and others must be there."""

LASTING = ("broker", *CLUSTERED, "redis")
NEEDED = {"kill": {"first"}, "stop": {"first"}, "pause": {"first", "second"}}
"""Workers that must be there."""


def fault_of(text: str) -> Fault:
    """The fault that a text names."""
    kind, _, rest = text.partition(":")
    if kind not in KINDS or not KINDS[kind].fullmatch(rest):
        raise ValueError(f"a fault must be one that --help names; got {text!r}")
    target, _, moment = rest.partition("@")
    return Fault(kind, target, moment)


def _checked(plan: list[Fault]) -> list[Fault]:
    """The plan, if whoever is struck is there, and one worker always."""
    there = {"first"}
    for fault in plan:
        needed = NEEDED.get(fault.kind, set())
        if fault.kind in WORKERS:
            is_absent = fault.target == "join"
            is_wrong = (fault.kind in there) == is_absent
            there = there | {fault.kind} if is_absent else there - {fault.kind}
        else:
            is_wrong = not needed <= there
        if is_wrong or not there:
            raise ValueError(
                "a worker must join before it is struck, and only once; the first is "
                "there at the beginning, and one must always be; "
                f"got {fault} in {', '.join(map(str, plan))}"
            )
    return plan


def seconds_of(plan: list[Fault]) -> float:
    """How long the faults themselves last that say so."""
    return sum(float(each.target) for each in plan if each.kind in LASTING)


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

PHASED = [f"kill:{role}@{phase}" for phase in PHASES for role in STAGED]
"""What the plan `phases` takes its kills of, in turn."""

FIXED = {
    "none": [],
    "outages": ["broker:30", "broker:70", "broker:110", "broker:70@kill"],
    "leaders": ["leader:10", "coordinator:10"] * 3,
    "moves": ["second:join", "second:leave"] * 15,
    "rolling": [
        "second:join",
        "first:leave",
        "first:join",
        "second:leave",
        "second:join",
        "first:leave",
    ],
}
"""Plans without kills."""


def plan_of(name: str, n_kills: int, seed: int) -> list[Fault]:
    """The faults of a run, in order.

    Parameters
    ----------
    name
        `full`, `small` or `phases`, one of `FIXED`, or the faults, with commas between.
    """
    if name == "phases":
        turns = itertools.islice(itertools.cycle(PHASED), n_kills)
        return [fault_of(text) for text in turns]
    if name not in OTHERS:
        texts = FIXED[name] if name in FIXED else name.split(",")
        return _checked([fault_of(text) for text in texts])
    rng = np.random.default_rng(seed)
    special = [
        "kill:fold@restoring",
        "kill:publish@publishing",
        "kill:train@training",
    ]
    others = [role for role in STAGED if role != "fold"]
    special += [f"kill:{role}@restoring" for role in others] if n_kills > 8 else []
    roles = ["fold", *others, "all", "publish", "train"]
    kills = special[:n_kills]
    kills += [f"kill:{roles[n % len(roles)]}" for n in range(n_kills - len(kills))]
    rng.shuffle(kills)
    between = OTHERS[name]
    places = np.linspace(0, len(kills), len(between) + 2)[1:-1].round().astype(int)
    plan = list(kills)
    for place, other in reversed(list(zip(places, between, strict=True))):
        plan.insert(int(place), other)
    return _checked([fault_of(text) for text in plan])
