"""Ours and the rival in turns, and what the repeats come to.

The speed of a machine drifts by a factor of two within minutes, so that only runs side
by side are compared: a ratio is the median of the ratios of the repeats, not the ratio
of two medians.
"""

from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple, TypeVar

Figure = dict[str, Any]

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
    """

    rate: float
    event_bytes: float
    faults: list[str]


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
    name: str, pairs: list[tuple[Run, float]], *, goal: float, floor: float
) -> Figure:
    """Medians of the repeats, each with its least and its largest value.

    One run that is wrong voids the ratio.

    Parameters
    ----------
    pairs : [n_repeats]
        A run of ours, and events a second of the rival beside it.
    """
    runs = {
        "value": [run.rate for run, _ in pairs],
        "rival": [rival for _, rival in pairs],
    }
    faults = [fault for run, _ in pairs for fault in run.faults]
    if not faults:
        runs["ratio"] = [run.rate / rival for run, rival in pairs]
    return {
        "name": name,
        "unit": "events/s",
        "ratio": None,
        **{key: median(values) for key, values in runs.items()},
        "goal": goal,
        "floor": floor,
        "repeats": len(pairs),
        "spread": {key: [min(values), max(values)] for key, values in runs.items()},
        "faults": faults,
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
