"""Processes that are forked by a preloader, where that differs from starting them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from streams.kafka.processes.role_processes import CAN_FORK, Preloaded, Running
from tests.streams.kafka.processes.test_supervisor import (
    FORKED,
    ROOT,
    SPAWNED,
    STOPS_WHEN_ASKED,
    says,
    started,
    wait_until,
)
from tests.worker_process import PATIENCE_S

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="forks are for Linux")

WHAT_IT_HOLDS = """
import os, pathlib, signal, sys
held = {}
for number in sorted(map(int, os.listdir("/proc/self/fd"))):
    try:
        held[number] = os.readlink(f"/proc/self/fd/{number}").split(":")[0]
    except FileNotFoundError:
        pass
handlers = [signal.getsignal(each) for each in (15, 2, 17)]
mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
pathlib.Path(sys.argv[1]).write_text(f"{sorted(held)} {held[0]} {handlers} {mask}")
"""
ENDS_AT_ONCE = """
import sys
sys.exit(int(sys.argv[1]))
"""


def family(parent: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """The preloader first, then its child."""
    found: list[psutil.Process] = psutil.Process(parent.pid).children(recursive=True)
    return found


def are_gone(processes: list[psutil.Process]) -> bool:
    """Whether none of them runs any more."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return all(
            not each.is_running() or each.status() == psutil.STATUS_ZOMBIE
            for each in processes
        )
    return True


@contextlib.contextmanager
def preloaded(*loaded: str) -> Iterator[Preloaded]:
    """What starts processes; no preloader is left of it."""
    processes = Preloaded([sys.executable], "tests.streams.kafka.script_child", loaded)
    try:
        yield processes
    finally:
        processes.close()


def begun(processes: Preloaded, *words: str) -> Running:
    """A process that was started."""
    ours, its = socket.socketpair()
    with ours, its:
        process = processes.start(words, its, threading.Event())
    assert process is not None
    return process


def test_a_forked_process_holds_what_a_started_one_holds(tmp_path: Path) -> None:
    """Its own standard input, no other file, and the signals of any process."""
    held: list[str] = []
    for script in (SPAWNED, FORKED):
        log = tmp_path / str(len(held))
        assert started(script, WHAT_IT_HOLDS, log).wait(PATIENCE_S) == 0
        held.append(log.read_text())
    assert held[0] == held[1]
    assert " socket " in held[0]


def test_the_end_of_each_is_told_to_whoever_waits_for_it() -> None:
    """By its own status, however many there are."""
    with preloaded() as processes:
        running = [begun(processes, ENDS_AT_ONCE, str(n)) for n in range(8)]
        assert len({each.pid for each in running}) == 8
        assert [each.wait() for each in reversed(running)] == [*range(7, -1, -1)]


def test_processes_share_what_was_loaded_once(tmp_path: Path) -> None:
    """A module that was loaded before the fork is not loaded again."""
    (tmp_path / "loaded_once.py").write_text("import os\nLOADED_BY = os.getpid()\n")
    script = (
        "import os, sys, loaded_once; sys.exit(loaded_once.LOADED_BY == os.getppid())"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with preloaded("loaded_once") as processes:
            assert [begun(processes, script).wait() for _ in range(2)] == [1, 1]


def test_what_cannot_be_loaded_is_left_to_the_process(tmp_path: Path) -> None:
    """It says itself what it lacks; others have no need of it."""
    (tmp_path / "broken.py").write_text("import nothing_of_this_name\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with preloaded("broken") as processes:
            assert begun(processes, ENDS_AT_ONCE, "3").wait() == 3
            assert begun(processes, "import broken").wait() == 1


def test_without_a_preloader_an_interpreter_starts() -> None:
    """A process that cannot be forked is started, with the same words."""
    no_preloader = f'case "$2" in streams*) exit 9;; esac; exec {sys.executable} "$@"'
    python = ["/bin/sh", "-c", no_preloader, "sh"]
    processes = Preloaded(python, "tests.streams.kafka.script_child", ())
    process = begun(processes, ENDS_AT_ONCE, "5")
    processes.close()
    assert isinstance(process, subprocess.Popen)
    assert process.wait() == 5


def test_a_preloader_that_was_killed_takes_its_processes_along(tmp_path: Path) -> None:
    """Nobody would hear of their ends; they are started again by another one."""
    log = tmp_path / "log"
    # It would not stop by itself, as it does not hear that its parent has let go.
    stays = STOPS_WHEN_ASKED.replace(
        "stop_with_parent(sys.stdin.buffer, patience_s=30.0)", ""
    )
    parent = started(FORKED, stays, log)
    wait_until(lambda: says(log, "started"))
    preloader, child = family(parent)
    log.unlink()
    preloader.kill()
    wait_until(lambda: says(log, "started"))
    wait_until(lambda: are_gone([preloader, child]))
    other_preloader, other_child = family(parent)
    assert preloader.pid != other_preloader.pid
    assert child.pid != other_child.pid
    parent.terminate()
    assert parent.wait(PATIENCE_S) == 0
    assert says(log, "stopped")
    wait_until(lambda: are_gone([other_preloader, other_child]))


def test_nothing_is_left_when_the_parent_was_killed(tmp_path: Path) -> None:
    """Neither the preloader nor its child."""
    log = tmp_path / "log"
    parent = started(FORKED, STOPS_WHEN_ASKED, log)
    wait_until(lambda: says(log, "started"))
    left = family(parent)
    parent.kill()
    parent.wait()
    wait_until(lambda: are_gone(left))
    assert says(log, "stopped")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_processes_stops_in_order(
    tmp_path: Path, number: signal.Signals
) -> None:
    """As a terminal or a service sends it: the preloader tells of its child's end."""
    log = tmp_path / "log"
    stops = STOPS_WHEN_ASKED.replace(
        "signal.signal(", "signal.signal(signal.SIGINT, stop)\nsignal.signal("
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", FORKED, stops, str(log)],
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.PIPE,
    )
    wait_until(lambda: says(log, "started"))
    os.killpg(parent.pid, number)
    said, _ = parent.communicate(timeout=PATIENCE_S)
    assert (parent.returncode, said) == (0, b"")
    assert says(log, "stopped")


def test_a_stop_does_not_wait_for_what_is_being_loaded(tmp_path: Path) -> None:
    """A process that was not forked yet is not wanted any more."""
    (tmp_path / "endless.py").write_text("import time\ntime.sleep(600)\n")
    log = tmp_path / "log"
    parent = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            FORKED.replace('["streams.kafka.processes.supervisor"]', '["endless"]'),
            *(STOPS_WHEN_ASKED, str(log)),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    wait_until(lambda: len(family(parent)) == 1)
    left = family(parent)
    parent.terminate()
    assert parent.wait(PATIENCE_S) == 0
    wait_until(lambda: are_gone(left))
    assert not log.exists()
