"""What tests may take, and what they took: told at the end of a run.

A test that computes for more than 20 s is named, and fails above 40: what takes 20 on
one machine takes 30 on another. Free of it are tests marked `long`, and `broker` by
what they use: a broker and a worker take what they take. Seconds of processors count,
not those on the wall: on a busy machine all waits are long. Nor does the compilation
of kernels: whichever test needs one first would pay for all others.
"""

import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from numba.core.event import Listener, install_listener

from tests.session.durations import Durations, above

TEST_CPU_S = 20.0
SLOWEST = 2.0
"""How much slower than the machine of the kept durations another may be."""
FILE_S = 90.0

CPU_S = "cpu_s"
"""Under which name a report tells what its phase took."""

_STARTED = pytest.StashKey[float]()


class _Compiled(Listener):
    """Seconds of processors that compilations took in this process."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self._begun: list[float] = []

    def on_start(self, event: Any) -> None:
        """One begins, perhaps inside another."""
        del event
        self._begun.append(time.thread_time())

    def on_end(self, event: Any) -> None:
        """One has ended."""
        del event
        took = time.thread_time() - self._begun.pop()
        if not self._begun:
            self.cpu_s += took


class Budget:
    """Measures each phase of each test where it runs."""

    def __init__(self) -> None:
        self._compiled = _Compiled()

    def _cpu_s(self) -> float:
        """Of processors so far: ours, and those of processes we waited for."""
        return sum(os.times()[:4]) - self._compiled.cpu_s

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """A test begins."""
        item.stash[_STARTED] = self._cpu_s()
        with install_listener("numba:compile", self._compiled):
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """A phase has ended."""
        del call
        report = yield
        now = self._cpu_s()
        taken = now - item.stash[_STARTED]
        report.user_properties.append((CPU_S, taken))
        item.stash[_STARTED] = now
        if report.when == "call" and report.passed and taken > SLOWEST * TEST_CPU_S:
            if _may_be_long(report):
                return report
            report.outcome = "failed"
            report.longrepr = (
                f"a test must compute for {TEST_CPU_S:.0f} s at most; this one did for "
                f"{taken:.1f}: choose fewer cases, or mark it `long` with the reason"
            )
        return report


def _may_be_long(report: pytest.TestReport) -> bool:
    return not {"long", "broker"}.isdisjoint(report.keywords)


class Summary:
    """What tests took by room, and what is above its budget.

    Parameters
    ----------
    keep
        Where the durations are to be written.
    """

    def __init__(self, keep: Path | None) -> None:
        self._keep = keep
        self._durations = Durations()
        self._long: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One phase of one test, wherever it ran."""
        taken = sum(
            float(str(value)) for name, value in report.user_properties if name == CPU_S
        )
        self._durations.add(report.nodeid, report.when, report.duration, taken)
        is_named = report.when == "call" and report.passed and taken > TEST_CPU_S
        if is_named and not _may_be_long(report):
            self._long.append(f"{report.nodeid} computed for {taken:.0f} s")

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        """The table of rooms, and long files by name."""
        rooms = self._durations.by_room()
        if sum(taken.seconds for taken in rooms.values()) < FILE_S:
            return
        say = terminalreporter.write_line
        terminalreporter.section("durations by room")
        say(f"{'wall s':>8} {'cpu s':>8} {'tests':>6}")
        for room, taken in rooms.items():
            line = f"{taken.seconds:8.1f} {taken.cpu_s:8.1f} {len(taken.cases):6}"
            say(f"{line}  {room or '.'}")
        for name in above(self._durations.files.items(), FILE_S):
            say(f"above {FILE_S:.0f} s: {name}")
        for name in self._long:
            say(f"above {TEST_CPU_S:.0f} s: {name}")
        if self._keep is not None:
            self._durations.write(self._keep)
            say(f"written: {self._keep}")
