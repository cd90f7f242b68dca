"""How a development server is run from a shell: in the foreground or detached."""

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from deploy.process import ServerFailed, answers, stop_signals

VERBS = ("run", "start", "stop", "status")


class Server(Protocol):
    """What a server of ours can do."""

    folder: Path
    port: int

    @property
    def pid(self) -> int | None:
        """Process id, where it runs."""

    def start(self, *, outlives_us: bool = False) -> None:
        """Start, and wait until it answers."""

    def stop(self) -> None:
        """SIGTERM, and wait."""


def command_line(
    name: str,
    make: Callable[[Path, int], Server],
    *,
    default_port: int,
    default_folder: Path,
    words: list[str] | None = None,
) -> int:
    """Run, start, stop or look at one server; returns the exit status.

    0: done, or it runs; 1: it failed, or it does not run.
    """
    parser = argparse.ArgumentParser(
        description=f"A {name} for development, on loopback only.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "what", nargs="?", choices=VERBS, default="run",
        help="run: until Ctrl-C; start: detached",
    )  # fmt: skip
    parser.add_argument("--port", type=int, default=default_port, help="to listen on")
    parser.add_argument("--dir", type=Path, default=default_folder, help="its files")
    arguments = parser.parse_args(words)
    folder = arguments.dir.resolve()
    act = {"run": _run, "start": _start, "stop": _stop, "status": _status}
    try:
        return act[arguments.what](name, make(folder, arguments.port))
    except ServerFailed as error:
        print(error, file=sys.stderr)  # noqa: T201  this is the command line
        return 1


def _run(name: str, server: Server) -> int:
    asked = stop_signals()
    _refuse_a_second(name, server)
    server.start()
    _say(f"{name} at 127.0.0.1:{server.port}, Ctrl-C stops it")
    while not asked:
        time.sleep(0.1)
    server.stop()
    return 0


def _start(name: str, server: Server) -> int:
    _refuse_a_second(name, server)
    server.start(outlives_us=True)
    _pid_file(server).write_text(str(server.pid))
    _say(f"{name} at 127.0.0.1:{server.port}, its files in {server.folder}")
    return 0


def _stop(name: str, server: Server) -> int:
    pid = _started_pid(server)
    if pid is None:
        _say(f"no {name} was started in {server.folder}")
        return 0
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 30.0
    while _lives(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    _pid_file(server).unlink()
    _say(f"{name} stopped")
    return 0


def _status(name: str, server: Server) -> int:
    if answers(server.port):
        _say(f"{name} answers at 127.0.0.1:{server.port}")
        return 0
    _say(f"nothing answers at 127.0.0.1:{server.port}")
    return 1


def _refuse_a_second(name: str, server: Server) -> None:
    if answers(server.port):
        raise ServerFailed(
            f"a {name} needs a free port; somebody listens on {server.port}: choose "
            "another --port"
        )


def _pid_file(server: Server) -> Path:
    return server.folder / "pid"


def _started_pid(server: Server) -> int | None:
    """The process that `start` left behind, where it still lives."""
    with contextlib.suppress(OSError, ValueError):
        pid = int(_pid_file(server).read_text())
        if _lives(pid) and answers(server.port):
            return pid
    return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A child that ended and was not waited for still has a number.
    status = Path(f"/proc/{pid}/status")
    return not (status.exists() and "State:\tZ" in status.read_text())


def _say(sentence: str) -> None:
    print(sentence, flush=True)  # noqa: T201  this is the command line
