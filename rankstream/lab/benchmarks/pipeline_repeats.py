"""Ours and the rival in turns, and what the repeats come to.

The speed of a machine drifts by a factor of two within minutes, so that only runs side
by side are compared: a ratio is the median of the ratios of the repeats, not the ratio
of two medians. Of what needs a broker, only runs that last count, and none that finds
the broker's code not compiled yet.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

Figure = dict[str, Any]

SPARE = 1.5
"""So much longer than an estimate says, as speed drifts."""

STILL = 0.8
"""A broker that takes less than this much of what it took before is still compiling."""

MOST_LONGER = 8.0
"""So many times longer than the last log, at most, before the spare."""

Ours = TypeVar("Ours")
Theirs = TypeVar("Theirs")


class Run(NamedTuple):
    """One run of ours.

    Parameters
    ----------
    rate
        Events a second.
    event_bytes
        Mean size of an event.
    faults
        What is wrong with what came out; empty if nothing.
    lasted_s
        Seconds of the part that is measured; 0 where nobody asks for a length.
    cpu_us
        Microseconds of CPU an event, by process and thread, where they are told.
    binds
        What kept it from being faster.
    """

    rate: float
    event_bytes: float
    faults: list[str]
    lasted_s: float = 0.0
    cpu_us: Mapping[str, float] = MappingProxyType({})
    binds: str = ""

    @property
    def told(self) -> str:
        """Length, CPU and what binds, as a line."""
        return f"{self.lasted_s:.1f} s; {cpu_line(self.cpu_us)}; {self.binds}"


def cpu_line(cpu_us: Mapping[str, float]) -> str:
    """CPU an event by process and thread, in words."""
    told = ", ".join(f"{name} {us:.3g}" for name, us in cpu_us.items())
    return f"us of CPU an event: {told}"


class Lasting:
    """Runs over a log of a length at which what is measured lasts.

    Until one has lasted, runs are estimates: each log is as long as the rate of the
    last says, and a half longer. The first is a warm-up however long it lasts, and so
    is each in which the broker took much less CPU an event than in the one before.

    Parameters
    ----------
    run
        Takes the length of its log.
    n_first
        Length of the warm-up's log, over 0.
    least_s
        Seconds that what is measured must last.
    """

    def __init__(self, run: Callable[[int], Run], n_first: int, least_s: float) -> None:
        self.n = n_first
        self._run = run
        self._least_s = least_s

    def warm_up(self) -> None:
        """Run until one lasts and the broker is compiled; none of these counts."""
        before_us = math.inf
        while True:
            found = self._run(self.n)
            now_us = found.cpu_us.get("broker", 0.0)
            is_warm = now_us >= STILL * before_us
            before_us = now_us
            if self._has_lasted(found) and is_warm:
                return

    def __call__(self) -> Run:
        """The next run that lasts; a machine may have become faster meanwhile."""
        while not self._has_lasted(found := self._run(self.n)):
            pass
        return found

    def _has_lasted(self, found: Run) -> bool:
        if found.lasted_s >= self._least_s:
            return True
        # Start-up is most of a short run, so its rate says little of a long one.
        factor = self._least_s / max(found.lasted_s, self._least_s / MOST_LONGER)
        self.n = math.ceil(self.n * SPARE * factor)
        return False


def in_turns(
    ours: Callable[[], Ours], rival: Callable[[], Theirs], n_repeats: int
) -> list[tuple[Ours, Theirs]]:
    """What each repeat gave, ours and the rival's; they begin by turns."""
    pairs = []
    for number in range(n_repeats):
        if number % 2:
            mine = ours()
            pairs.append((mine, rival()))
        else:
            theirs = rival()
            pairs.append((ours(), theirs))
    return pairs


def throughput_figure(
    name: str, pairs: list[tuple[Run, Run]], *, goal: float, floor: float
) -> Figure:
    """Medians of the repeats, each with its least and its largest value.

    One run that is wrong voids the ratio. What binds is said of the run in the middle.

    Parameters
    ----------
    pairs : [n_repeats]
        A run of ours, and one of the rival beside it.
    """
    figure = paired_figure(
        name,
        "events/s",
        [(ours.rate, rival.rate) for ours, rival in pairs],
        bounds=(goal, floor),
        faults=[fault for pair in pairs for run in pair for fault in run.faults],
    )
    ours, rival = zip(*pairs, strict=True)
    return figure | told_of(ours) | told_of(rival, "rival_")


def paired_figure(
    name: str,
    unit: str,
    pairs: Sequence[tuple[float, float]],
    *,
    bounds: tuple[float | None, float | None] = (None, None),
    less_is_better: bool = False,
    faults: list[str],
) -> Figure:
    """Medians of ours, of the rival and of their ratios, with least and largest.

    Parameters
    ----------
    pairs : [n_repeats]
        Ours and the rival's beside it, one or more.
    bounds
        Goal and floor.
    faults
        Any voids the ratio.
    """
    runs = {
        "value": [ours for ours, _ in pairs],
        "rival": [rival for _, rival in pairs],
    }
    if not faults:
        runs["ratio"] = [ours / rival for ours, rival in pairs]
    return {
        "name": name,
        "unit": unit,
        "ratio": None,
        **{key: median(values) for key, values in runs.items()},
        "goal": bounds[0],
        "floor": bounds[1],
        "repeats": len(pairs),
        "spread": {key: [min(values), max(values)] for key, values in runs.items()},
        "faults": faults,
        **({"less_is_better": True} if less_is_better else {}),
    }


def told_of(runs: Sequence[Run], prefix: str = "") -> Figure:
    """How long the runs of one side lasted, their CPU, and what binds, where known."""
    middle = sorted(runs, key=lambda run: run.rate)[len(runs) // 2]
    if not middle.binds:
        return {}
    lasted = [run.lasted_s for run in runs]
    cpu_us = {name: median(run.cpu_us[name] for run in runs) for name in middle.cpu_us}
    return {
        f"{prefix}lasted_s": [min(lasted), max(lasted)],
        f"{prefix}cpu_us": cpu_us,
        f"{prefix}binds": middle.binds,
    }


def cost_figure(
    name: str,
    values: list[float],
    unit: str,
    *,
    before: float,
    goal: float | None = None,
    floor: float | None = None,
) -> Figure:
    """The median of what is better the less it is, with least and largest.

    A ratio is that to the fold of before, or to whatever else stands there.

    Parameters
    ----------
    values : [n_repeats]
        One or more.
    before, goal, floor
        In the unit of the values; None where nothing is asked for. A value is at most
        its goal, and never above its floor.
    """
    runs = {"value": values, "ratio": [value / before for value in values]}
    return {
        "name": name,
        "unit": unit,
        "rival": before,
        **{key: median(each) for key, each in runs.items()},
        "goal": goal,
        "floor": floor,
        "less_is_better": True,
        "repeats": len(values),
        "spread": {key: [min(each), max(each)] for key, each in runs.items()},
        "faults": [],
    }


def standing(figure: Figure) -> str:
    """`goal` or `floor`: what it reaches; `below`: neither; `void`: it says nothing.

    What is not asked for is reached, but for a goal. Goals of costs are compared with
    the value, all others with the ratio.
    """
    if figure["ratio"] is None:
        return "void"
    sign = -1.0 if figure.get("less_is_better") else 1.0
    found = sign * figure["value" if sign < 0 else "ratio"]
    goal, floor = figure["goal"], figure["floor"]
    if goal is not None and found >= sign * goal:
        return "goal"
    return "floor" if floor is None or found >= sign * floor else "below"
