import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

PARENT = """
import sys
from streams.kafka.supervisor import supervise
child = [sys.executable, "-c", sys.argv[1], *sys.argv[2:]]
sys.exit(supervise({"one": child}, final=frozenset({0, 78})))
"""
FAILS_TWICE = """
import sys, pathlib
log = pathlib.Path(sys.argv[1])
log.write_text(log.read_text() + "x" if log.exists() else "x")
sys.exit(78 if log.read_text() == "xxx" else 1)
"""
STOPS_WHEN_ASKED = """
import os, pathlib, signal, sys, time
from streams.kafka.supervisor import stop_with_parent
log = pathlib.Path(sys.argv[1])
def stop(*_):
    log.write_text("stopped")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
stop_with_parent(sys.stdin.buffer)
log.write_text("started")
while True:
    time.sleep(0.05)
"""


def started(child: str, log: Path) -> subprocess.Popen[bytes]:
    """A parent and its child."""
    return subprocess.Popen([sys.executable, "-c", PARENT, child, str(log)], cwd=ROOT)


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait, and fail if it never comes."""
    deadline = time.monotonic() + 20.0
    while not is_true():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.05)


def says(log: Path, words: str) -> bool:
    """Whether a child has written some words."""
    return log.exists() and log.read_text() == words


def test_a_child_is_started_again_until_that_would_not_help(tmp_path: Path) -> None:
    """Failures are tried again; a refused configuration ends the parent too."""
    parent = started(FAILS_TWICE, tmp_path / "log")
    assert parent.wait(20) == 78
    assert (tmp_path / "log").read_text() == "xxx"


def test_sigterm_is_passed_on(tmp_path: Path) -> None:
    """The child stops as asked, and the parent says that all went well."""
    log = tmp_path / "log"
    parent = started(STOPS_WHEN_ASKED, log)
    wait_until(lambda: says(log, "started"))
    os.kill(parent.pid, signal.SIGTERM)
    assert parent.wait(20) == 0
    assert says(log, "stopped")


def test_a_child_stops_when_its_parent_was_killed(tmp_path: Path) -> None:
    """Nobody is left behind who would hold on to partitions."""
    log = tmp_path / "log"
    parent = started(STOPS_WHEN_ASKED, log)
    wait_until(lambda: says(log, "started"))
    parent.kill()
    parent.wait()
    wait_until(lambda: says(log, "stopped"))
