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

    def remove_node(self, node: WorkerController) -> str | None:
        """Give back what a process that died has not done; says what killed it.

        That counts as done: whoever had it next would die of it too.
        """
        left: dict[str, dict[str, bool]] = self.assigned_work.pop(node)
        pending = [
            (unit, test)
            for unit in left.values()
            for test, is_done in unit.items()
            if not is_done
        ]
        if not pending:
            return None
        unit, killer = pending[0]
        unit[killer] = True
        self.workqueue |= {
            at: unit for at, unit in left.items() if not all(unit.values())
        }
        for other in self.nodes:
            self._reschedule(other)
        return killer

    def _reschedule(self, node: WorkerController) -> None:
        # Who takes the place of a dead process has collected nothing at first.
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        # A process begins a test when it knows the next one, or that there is none.
        if self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)

    def _assign_work_unit(self, node: WorkerController) -> None:
        begins_with_waits = node.gateway.id != "gw0"
        self.workqueue.move_to_end(
            next_unit(self.workqueue, self._kept, waits=begins_with_waits), last=False
        )
        name, unit = next(iter(self.workqueue.items()))
        try:
            super()._assign_work_unit(node)
        except OSError:
            # It died, which is told later: what it was never sent did not kill it.
            del self.assigned_work[node][name]
            self.workqueue[name] = unit
            self.workqueue.move_to_end(name, last=False)


def next_unit(
    units: Mapping[str, object], kept: Mapping[str, Kept], *, waits: bool
) -> str:
    """The longest unit of the kind that is asked for, else the longest."""

    def order(unit: str) -> tuple[bool, float]:
        took = kept.get(unit, UNKNOWN)
        return took.waits is not waits, -took.seconds

    return min(units, key=order)
