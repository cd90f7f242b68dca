"""What all figures share: how they are timed, repeated beside a rival, and said.

The speed of a machine drifts by a factor of two within minutes, so that only runs side
by side are compared: a ratio is the median of the ratios of the repeats, not the ratio
of two medians. Of what needs a broker, only runs that last count, and none that finds
the broker's code not compiled yet.
"""

import gc
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from rankstream.installation import path_options

Figure = dict[str, Any]
"""A name, a value with its unit, that of a rival, their ratio, and what is asked for.

Goals and floors are those of the ratio, or of the value where less is better and they
are not said to be ratios. A ratio of None is void: the value says nothing.
"""

Bounds = tuple[float | None, float | None]
"""A goal and a floor."""

NO_BOUNDS: Bounds = (None, None)


SPARE = 1.5
"""So much longer than an estimate says, as speed drifts."""

STILL = 0.8
"""A broker that takes less than this much of what it took before is still compiling."""

MOST_LONGER = 8.0
"""So many times longer than the last log, at most, before the spare."""

IN_A_ROW = 10
"""Calls of a side whose microseconds are told."""

Ours = TypeVar("Ours")
Theirs = TypeVar("Theirs")
Result = TypeVar("Result")


class Timed(NamedTuple, Generic[Result]):
    """Seconds of some work, and what it gave."""

    seconds: float
    result: Result


def timed(
    work: Callable[[], Result], clock: Callable[[], float] = time.process_time
) -> Timed[Result]:
    """How long it takes; what a core was busy, unless there is another clock."""
    started_s = clock()
    result = work()
    return Timed(clock() - started_s, result)


def rate(
    work: Callable[[], object],
    n_times: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """How often a second it is done, over so many times."""

    def often() -> None:
        for _ in range(n_times):
            work()

    return n_times / timed(often, clock).seconds


def own_python(module: str, *words: object) -> list[str]:
    """The command that runs a module of ours as a program."""
    return [sys.executable, *path_options(), "-m", module, *map(str, words)]


def in_fresh_process(work: Callable[..., Result], *arguments: object) -> Result:
    """What a function of a module gives in a process that has done nothing yet."""
    own = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=own) as pool:
        return pool.submit(work, *arguments).result()


def resident() -> int:
    """Bytes of this process in memory, after what is garbage has gone."""
    gc.collect()
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def peak_mib(pid: int | str = "self") -> float:
    """The most resident memory that a process had, or since its peak was reset."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1_024
    raise ValueError(f"/proc/{pid}/status must have VmHWM; it has not")


def new_figure(
    name: str,
    value: float | None,
    unit: str,
    rival: float | None,
    ratio: float | None,
    bounds: Bounds = NO_BOUNDS,
    **more: Any,
) -> Figure:
    """What every figure says, and what only this one does."""
    found = {"name": name, "value": value, "unit": unit, "rival": rival, "ratio": ratio}
    return {**found, "goal": bounds[0], "floor": bounds[1], **more}


def alone_figure(
    name: str, value: float, unit: str, bounds: Bounds = NO_BOUNDS
) -> Figure:
    """What is better the less it is, with nothing beside it."""
    return new_figure(name, value, unit, None, value, bounds, less_is_better=True)


def beside_figure(
    name: str,
    unit: str,
    pairs: Sequence[tuple[float, float]],
    bounds: Bounds = NO_BOUNDS,
    *,
    is_same: bool = True,
) -> Figure:
    """Medians of ours, of the rival and of their ratios.

    Parameters
    ----------
    pairs : [n_repeats]
        Rates of ours and of the rival beside it, one or more.
    is_same
        Whether both gave the same; the ratio is void where they did not.
    """
    ours, rivals = zip(*pairs, strict=True)
    ratio = median(mine / theirs for mine, theirs in pairs) if is_same else None
    return new_figure(name, median(ours), unit, median(rivals), ratio, bounds)


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


def least_microseconds(
    ours: Callable[[], object], theirs: Callable[[], object], n_times: int
) -> tuple[float, float]:
    """The least time of each side, of `IN_A_ROW`, in turns."""
    least = [float("inf")] * 2
    for _ in range(n_times):
        for side, work in enumerate((ours, theirs)):
            started_s = time.perf_counter()
            for _ in range(IN_A_ROW):
                work()
            least[side] = min(least[side], (time.perf_counter() - started_s) / IN_A_ROW)
    return least[0] * 1e6, least[1] * 1e6


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
        (goal, floor),
        faults=[fault for pair in pairs for run in pair for fault in run.faults],
    )
    ours, rival = zip(*pairs, strict=True)
    return figure | told_of(ours) | told_of(rival, "rival_")


def paired_figure(
    name: str,
    unit: str,
    pairs: Sequence[tuple[float, float]],
    bounds: Bounds = NO_BOUNDS,
    *,
    faults: list[str],
    **more: Any,
) -> Figure:
    """The figure of ours beside the rival, with the least and the largest of each.

    Parameters
    ----------
    pairs : [n_repeats]
        Ours and the rival's beside it, one or more.
    faults
        Any voids the ratio.
    """
    runs = {
        "value": [ours for ours, _ in pairs],
        "rival": [rival for _, rival in pairs],
    }
    if not faults:
        runs["ratio"] = [ours / rival for ours, rival in pairs]
    found = beside_figure(name, unit, pairs, bounds, is_same=not faults)
    return found | repeats_of(runs) | {"faults": faults} | more


def repeats_of(runs: Mapping[str, Sequence[float]]) -> Figure:
    """How many repeats there are, and the least and the largest of each figure."""
    return {
        "repeats": len(runs["value"]),
        "spread": {key: [min(values), max(values)] for key, values in runs.items()},
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
    value, ratio = (median(each) for each in runs.values())
    found = new_figure(name, value, unit, before, ratio, (goal, floor))
    return found | repeats_of(runs) | {"less_is_better": True, "faults": []}


def standing(figure: Figure) -> str:
    """`goal` or `floor`: what it reaches; `below`: neither; `void`: it says nothing.

    What is not asked for is reached, but for a goal. Goals of costs are compared with
    the value, unless `bounds_are_ratios`, all others with the ratio.
    """
    if figure["ratio"] is None:
        return "void"
    sign = -1.0 if figure.get("less_is_better") else 1.0
    is_value = sign < 0 and not figure.get("bounds_are_ratios")
    found = sign * figure["value" if is_value else "ratio"]
    goal, floor = figure["goal"], figure["floor"]
    if goal is not None and found >= sign * goal:
        return "goal"
    return "floor" if floor is None or found >= sign * floor else "below"
