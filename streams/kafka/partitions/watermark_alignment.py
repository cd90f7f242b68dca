"""Which sources are not fetched, as they are far ahead of the slowest in event time.

That is watermark alignment. Event time passes when all sources have passed it. Records
from far ahead of the slowest source would stay open until that has caught up, so they
are not fetched yet, which bounds the memory. Sources are compared within one process;
the watermark itself is of `streams.event_time`.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

Name = TypeVar("Name")


class SourceFrontier(NamedTuple):
    """The frontier of a source, -1 while it has none, and whether more is waiting."""

    frontier_ms: int
    is_behind: bool


def held_back(sources: Mapping[Name, SourceFrontier], lead_ms: int) -> set[Name]:
    """The sources that are more than `lead_ms` ahead of the slowest still behind."""
    behind = [
        one.frontier_ms
        for one in sources.values()
        if one.is_behind and one.frontier_ms >= 0
    ]
    if not behind:
        return set()
    furthest_ms = min(behind) + lead_ms
    return {place for place, one in sources.items() if one.frontier_ms > furthest_ms}
