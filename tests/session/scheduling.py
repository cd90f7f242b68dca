"""Which process runs which tests: the longest first, so that all end together.

Some tests compute, and some wait for a broker or for processes that they started. The
first process begins with what computes, the others with what waits.
"""

from collections.abc import Mapping

import pytest
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

from tests.session.durations import UNKNOWN, Kept, file_of, function_of

LARGEST_S = 300.0
"""A file that takes longer is divided: each of its tests goes where there is room.

Not a shorter one: what its tests share would be made by several processes."""


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]  # xdist is untyped
    """Files in the order of what they took; long ones test by test.

    Parameters
    ----------
    kept
        What files and tests took before.
    """

    def __init__(
        self, config: pytest.Config, log: Producer | None, kept: Mapping[str, Kept]
    ) -> None:
        super().__init__(config, log)
        self._kept = kept

    def _split_scope(self, nodeid: str) -> str:
        file = file_of(nodeid)
        is_short = self._kept.get(file, UNKNOWN).seconds <= LARGEST_S
        return file if is_short else function_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        begins_with_waits = node.gateway.id != "gw0"
        self.workqueue.move_to_end(
            next_unit(self.workqueue, self._kept, waits=begins_with_waits), last=False
        )
        super()._assign_work_unit(node)


def next_unit(
    units: Mapping[str, object], kept: Mapping[str, Kept], *, waits: bool
) -> str:
    """The longest unit of the kind that is asked for, else the longest."""

    def order(unit: str) -> tuple[bool, float]:
        took = kept.get(unit, UNKNOWN)
        return took.waits is not waits, -took.seconds

    return min(units, key=order)
