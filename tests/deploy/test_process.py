"""How a server of ours is started, watched and ended."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy.process import (
    MOST_KEPT,
    PORTS,
    ServerFailed,
    ServerProcess,
    answers,
    free_port,
)

PATIENT = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(60)"]


def state_of(pid: int) -> str:
    """The letter that Linux gives a process, empty where there is none."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return ""
    return status.rpartition(")")[2].split()[0]


def awaited_state(pid: int, letters: str) -> str:
    """The state of a process, once it is one of these."""
    for _ in range(10_000):
        state = state_of(pid)
        if state in letters or (not state and " " in letters):
            break
        time.sleep(0.02)
    return state


def started(folder: Path) -> ServerProcess:
    """A process that has said that it is up."""
    server = ServerProcess(PATIENT, folder, "patient")
    server.start(lambda: server.has_logged(b"up"))
    return server


def test_it_is_paused_and_goes_on_and_stops_also_when_paused(tmp_path: Path) -> None:
    """SIGSTOP, SIGCONT, and SIGTERM that reaches a paused process."""
    server = started(tmp_path)
    assert server.process is not None
    server.pause()
    assert awaited_state(server.process.pid, "T") == "T"
    server.resume()
    assert awaited_state(server.process.pid, "SR") in "SR"
    server.pause()
    server.stop()
    assert server.process.returncode == -signal.SIGTERM
    assert not server.is_running


def test_a_server_that_ends_at_its_start_names_its_log(tmp_path: Path) -> None:
    """The message leads to what the server said."""
    server = ServerProcess([sys.executable, "-c", "1/0"], tmp_path, "broken")
    with pytest.raises(ServerFailed, match=r"broken ended at its start; see .*\.log"):
        server.start(lambda: False)
    assert b"ZeroDivisionError" in server.log.read_bytes()


def test_a_server_that_never_answers_is_ended(tmp_path: Path) -> None:
    """Nothing stays behind after a start that failed."""
    server = ServerProcess(PATIENT, tmp_path, "mute")
    with pytest.raises(ServerFailed, match="did not answer"):
        server.start(lambda: False, timeout_s=0.2)
    assert not server.is_running


def test_what_an_earlier_start_logged_does_not_count(tmp_path: Path) -> None:
    """Readiness is of this start, though the log goes on."""
    (tmp_path / "patient.log").write_bytes(b"ready of old\n")
    server = started(tmp_path)
    try:
        assert not server.has_logged(b"ready of old")
    finally:
        server.kill()


def test_a_server_does_not_outlive_us_even_when_we_are_killed(tmp_path: Path) -> None:
    """SIGKILL of the one who started it ends the server too."""
    program = (
        "import sys, time; from pathlib import Path;"
        "from deploy.process import ServerProcess;"
        "s = ServerProcess(sys.argv[2:], Path(sys.argv[1]), 'patient');"
        "s.start(lambda: s.has_logged(b'up'));"
        "print(s.process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), *PATIENT],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    ) as us:
        assert us.stdout is not None
        pid = int(us.stdout.readline())
        assert state_of(pid)
        us.kill()
    assert awaited_state(pid, "Z ") in {"", "Z"}


def test_ports_are_not_those_that_clients_are_given() -> None:
    """A client that knocks at a server that is down can never hold its port."""
    port = free_port()
    assert port in PORTS
    assert not answers(port)
    lent = Path("/proc/sys/net/ipv4/ip_local_port_range")
    if lent.exists():
        lowest = int(lent.read_text().split()[0])
        assert max(PORTS) < lowest or os.environ.get("CI") is None


@pytest.mark.skipif(sys.platform != "linux", reason="others cannot keep a port")
def test_a_port_is_given_once_until_its_server_listens_and_when_it_is_down() -> None:
    """Whoever looks for one finds it taken; the server itself does not."""
    first = free_port(n_in_a_row=3)
    for port in (first, first + 2):
        for _ in range(2):
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))
            assert not answers(port)
            with socket.create_server(("127.0.0.1", port)):
                assert answers(port)
    for _ in range(MOST_KEPT):
        free_port()
    with socket.socket() as other:
        other.bind(("127.0.0.1", first))
