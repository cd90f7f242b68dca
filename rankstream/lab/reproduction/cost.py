"""What a table will take: core-hours from a few runs of each kind."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

Job = TypeVar("Job")

N_MEASURED = 3
"""Runs of each kind after which its seconds are known well enough."""

SECONDS = "seconds"
"""Where a result says how long a core was busy with it."""


def to_measure(jobs: Sequence[Job], kind_of: Callable[[Job], str]) -> list[Job]:
    """The first few jobs of each kind, as they are to be run first."""
    found: dict[str, list[Job]] = {}
    for job in jobs:
        of_kind = found.setdefault(kind_of(job), [])
        if len(of_kind) < N_MEASURED:
            of_kind.append(job)
    return [job for few in found.values() for job in few]


def core_hours(
    jobs: Sequence[Job],
    kind_of: Callable[[Job], str],
    results: Mapping[str, Sequence[dict[str, Any]]],
) -> float:
    """What jobs will take, by the median seconds of finished runs of their kind.

    Parameters
    ----------
    results
        Finished runs by kind; a kind without any counts as the mean of the others.
    """
    known = {
        kind: float(median(result[SECONDS] for result in found))
        for kind, found in results.items()
        if found
    }
    other = sum(known.values()) / len(known) if known else 0.0
    return sum(known.get(kind_of(job), other) for job in jobs) / 3600.0
