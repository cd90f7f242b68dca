import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.worker_process import PATIENCE_S

ROOT = Path(__file__).resolve().parents[4]

SPAWNED = """
import logging, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout)
from streams.kafka.processes.supervisor import supervise
child = [sys.executable, "-c", *sys.argv[1:]]
sys.exit(supervise({"one": child}, final=frozenset({0, 78}), patience_s=30.0))
"""
FORKED = """
import logging, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout)
from streams.kafka.processes.role_processes import Preloaded
from streams.kafka.processes.supervisor import supervise
processes = Preloaded(
    [sys.executable],
    "tests.streams.kafka.script_child",
    ["streams.kafka.processes.supervisor"],
)
try:
    status = supervise(
        {"one": sys.argv[1:]},
        final=frozenset({0, 78}),
        patience_s=30.0,
        start=processes.start,
    )
finally:
    processes.close()
sys.exit(status)
"""
FAILS_TWICE = """
import sys, pathlib
log = pathlib.Path(sys.argv[1])
log.write_text(log.read_text() + "x" if log.exists() else "x")
sys.exit(78 if log.read_text() == "xxx" else 1)
"""
STOPS_WHEN_ASKED = """
import os, pathlib, signal, sys, time
from streams.kafka.processes.supervisor import stop_with_parent
log = pathlib.Path(sys.argv[1])
def stop(*_):
    log.write_text("stopped")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
stop_with_parent(sys.stdin.buffer, patience_s=30.0)
log.write_text("started")
while True:
    time.sleep(0.05)
"""


NEVER_STOPS = """
import os, pathlib, signal, sys, time
from streams.kafka.processes.supervisor import stop_with_parent
signal.signal(signal.SIGTERM, signal.SIG_IGN)
stop_with_parent(sys.stdin.buffer, patience_s=0.2)
pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
while True:
    time.sleep(0.05)
"""


TELLS_WHERE = """
import os, pathlib, signal, sys, time
from streams.kafka.processes.child_end import tell_where_asked
tell_where_asked()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def waits_for_ever():
    pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
    while True:
        time.sleep(0.05)
waits_for_ever()
"""

TELLS = """
import os, pathlib, signal, sys, threading
from streams.kafka.processes.child_end import tell_parent
from streams.kafka.processes.supervisor import stop_with_parent
stop_with_parent(sys.stdin.buffer, patience_s=30.0)
log = pathlib.Path(sys.argv[1])
log.write_text(log.read_text() + "x" if log.exists() else "x")
n = len(log.read_text())
if n == 1:
    tell_parent("an earlier word")
    tell_parent("PartitionLost: events[0]\\nwas taken away " + "!" * 5000)
    os._exit(70)
if n == 2:
    os.kill(os.getpid(), signal.SIGKILL)
if n == 3:
    os.kill(os.getpid(), signal.SIGSEGV)
if n == 4:
    raise LookupError("a fault that nobody foresaw")
tell_parent("topic events must exist; it does not")
sys.exit(78)
"""


@pytest.fixture(params=[SPAWNED, FORKED], ids=["spawned", "forked"])
def parent_script(request: pytest.FixtureRequest) -> str:
    """A parent whose child has an interpreter of its own, or was forked."""
    script: str = request.param
    return script


def started(parent: str, child: str, log: Path) -> subprocess.Popen[bytes]:
    """A parent and its child."""
    return subprocess.Popen([sys.executable, "-c", parent, child, str(log)], cwd=ROOT)


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait, and fail if it never comes."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether a process is there, and not only what its parent has still to read."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def says(log: Path, words: str) -> bool:
    """Whether a child has written some words."""
    return log.exists() and log.read_text() == words


def test_a_child_is_started_again_until_that_would_not_help(
    parent_script: str, tmp_path: Path
) -> None:
    """Failures are tried again; a refused configuration ends the parent too."""
    parent = started(parent_script, FAILS_TWICE, tmp_path / "log")
    assert parent.wait(PATIENCE_S) == 78
    assert (tmp_path / "log").read_text() == "xxx"


def test_sigterm_is_passed_on(parent_script: str, tmp_path: Path) -> None:
    """The child stops as asked, and the parent says that all went well."""
    log = tmp_path / "log"
    parent = started(parent_script, STOPS_WHEN_ASKED, log)
    wait_until(lambda: says(log, "started"))
    os.kill(parent.pid, signal.SIGTERM)
    assert parent.wait(PATIENCE_S) == 0
    assert says(log, "stopped")


def test_a_child_stops_when_its_parent_was_killed(
    parent_script: str, tmp_path: Path
) -> None:
    """Nobody is left behind who would hold on to partitions."""
    log = tmp_path / "log"
    parent = started(parent_script, STOPS_WHEN_ASKED, log)
    wait_until(lambda: says(log, "started"))
    parent.kill()
    parent.wait()
    wait_until(lambda: says(log, "stopped"))


def test_a_child_that_cannot_stop_ends_without_its_parent(
    parent_script: str, tmp_path: Path
) -> None:
    """As one that waits for Kafka would: nobody is there to kill it."""
    log = tmp_path / "log"
    parent = started(parent_script, NEVER_STOPS, log)
    wait_until(lambda: log.exists() and bool(log.read_text()))
    child = int(log.read_text())
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_running(child))


def test_a_child_that_cannot_stop_says_where_it_is(
    parent_script: str, tmp_path: Path
) -> None:
    """Then it is killed, and the parent tells of it."""
    log = tmp_path / "log"
    script = parent_script.replace("30.0", "0.2")
    command = [sys.executable, "-c", script, TELLS_WHERE, str(log)]
    parent = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: log.exists() and bool(log.read_text()))
    parent.terminate()
    said, told = parent.communicate(timeout=PATIENCE_S)
    assert parent.returncode == 256 - signal.SIGKILL
    assert "event=stopping-too-long role=one" in said
    assert "in waits_for_ever" in told


def test_the_log_says_why_each_child_ended(parent_script: str, tmp_path: Path) -> None:
    """By its own words, else by its status; the last line says why all end."""
    command = [sys.executable, "-c", parent_script, TELLS, str(tmp_path / "log")]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 78
    said = done.stdout.splitlines()
    reasons = [line.partition(" reason=")[2] for line in said]
    assert [line.split(" reason=")[0].split(" again_in_s=")[0] for line in said] == [
        "event=child-ended role=one status=70",
        f"event=child-ended role=one status=-{int(signal.SIGKILL)}",
        f"event=child-ended role=one status=-{int(signal.SIGSEGV)}",
        "event=child-ended role=one status=1",
        "event=worker-ended role=one status=78",
    ]
    assert reasons[0].startswith("it failed: PartitionLost: events[0] was taken away")
    assert len(reasons[0]) < 1_100
    assert "SIGKILL" in reasons[1]
    assert "memory" in reasons[1]
    assert reasons[2] == "it was killed by SIGSEGV; it crashed, report it"
    assert "(status 1); it did not say why" in reasons[3]
    assert reasons[4] == (
        "it was refused, and another start would not help: "
        "topic events must exist; it does not"
    )


def test_who_is_not_supervised_tells_nobody(tmp_path: Path) -> None:
    """A terminal or a file as standard input stays as it is."""
    file = tmp_path / "input"
    file.write_text("as it was")
    imported = "from streams.kafka.processes.child_end import tell_parent"
    code = f"{imported}; tell_parent('a reason')"
    with file.open("r+") as stdin:
        command = [sys.executable, "-c", code]
        subprocess.run(command, cwd=ROOT, stdin=stdin, check=True)
    assert file.read_text() == "as it was"


def test_a_stop_as_asked_says_nothing(parent_script: str, tmp_path: Path) -> None:
    """No line of an end that was wished for."""
    command = [
        sys.executable,
        "-c",
        parent_script,
        STOPS_WHEN_ASKED,
        str(tmp_path / "log"),
    ]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    wait_until(lambda: says(tmp_path / "log", "started"))
    parent.terminate()
    said, _ = parent.communicate(timeout=PATIENCE_S)
    assert (parent.returncode, said) == (0, b"")
