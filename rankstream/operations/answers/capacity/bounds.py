"""What binds first: the rate that each bound of a deployment allows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.capacity.constants import Costs
from rankstream.operations.answers.capacity.drivers import hottest_share
from rankstream.operations.answers.capacity.load import Load
from rankstream.operations.answers.capacity.needs import (
    idle_cores,
    most_processes,
    work_of,
)

MOST_PER_S = 1e9
"""Beyond that no bound is looked for."""

N_HALVINGS = 60


@dataclass(frozen=True)
class Bound(Answer):
    """Events a second that something allows, by itself, and what helps."""

    what: str
    events_per_s: float
    remedy: str


REMEDIES = (
    ("ingest", "processes of ingest", "more kafka.input_partitions: a new namespace"),
    ("fold", "processes of the fold", "rankstream topics split (docs/partitions.md)"),
    (
        "learn",
        "processes that learn, one for a model",
        "fewer features, or a trained one",
    ),
)
"""Roles whose processes are bounded, by what, and what helps."""


def bounds(load: Load, costs: Costs, utilisation: float) -> list[Bound]:
    """All that can be said, the first one reached first."""
    found = []
    for role, what, remedy in REMEDIES:
        n = most_processes(load, role)
        room = n * (utilisation - idle_cores(role, costs))
        rate = reached(load, partial(work_of, role=role, costs=costs), room)
        found.append(Bound(f"{n} {what}", rate, remedy))
    share = hottest_share(load)
    room = (utilisation - idle_cores("fold", costs)) / share
    rate = reached(load, partial(work_of, role="fold", costs=costs), room)
    found.append(
        Bound(
            f"the most frequent query, {share:.1%} of all lists, in one partition",
            rate,
            "nothing: a query is counted in one place",
        )
    )
    known = [each for each in found if each.events_per_s < MOST_PER_S]
    return sorted(known, key=lambda each: each.events_per_s)


def reached(load: Load, cores: Callable[[Load], float | None], room: float) -> float:
    """The most events a second that take no more cores than there is room for.

    `MOST_PER_S` where no rate does, or nobody measured it; cores grow with the rate.
    """
    low, high = 0.0, MOST_PER_S
    if (cores(load.at(high)) or 0.0) <= room:
        return MOST_PER_S
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2.0
        if (cores(load.at(middle)) or 0.0) <= room:
            low = middle
        else:
            high = middle
    return low
