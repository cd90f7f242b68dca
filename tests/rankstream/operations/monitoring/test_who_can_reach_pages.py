"""Where pages listen, as the kernel says: loopback, unless somebody says otherwise."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from deploy.process import free_port
from streams.worker_roles import ROLES
from tests.listening import beyond_loopback, listening
from tests.worker_process import PATIENCE_S

NOWHERE = (
    '[kafka]\nbootstrap = "127.0.0.1:1"\n[redis]\nurl = "redis://127.0.0.1:1/0"\n'
    "[models.m]\nfeatures = 2\n"
)


@contextmanager
def started(*words: str) -> Iterator[tuple[int, Path]]:
    """A command that runs, and where it writes."""
    log = Path(words[-1]).with_name("log")
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "rankstream", *words],
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
    try:
        yield process.pid, log
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def waited_for(words: str, log: Path) -> str:
    """What was said, once these words were among it."""
    deadline = time.monotonic() + PATIENCE_S
    while words not in (said := log.read_text()):
        assert time.monotonic() < deadline, said
        time.sleep(0.1)
    return said


@pytest.mark.parametrize(
    ("host", "is_open"),
    [("", False), ("0.0.0.0", True)],  # noqa: S104
)
def test_the_monitor_listens_on_loopback(
    host: str, is_open: bool, tmp_path: Path
) -> None:
    """And says so where it was told to listen beyond it."""
    config = tmp_path / "shop.toml"
    config.write_text(NOWHERE)
    chosen = ["--host", host] if host else []
    options = ["--web", "--port", str(free_port()), *chosen, "--config", str(config)]
    with started("monitor", *options) as (pid, log):
        said = waited_for("monitor at http://", log)
        if is_open:
            said = waited_for("is not loopback", log)
        assert listening(pid) == {host or "127.0.0.1"}
        assert beyond_loopback(pid) == ({host} if is_open else set())
    assert ("asks for no password" in said) == is_open


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104
def test_a_role_listens_on_loopback(host: str, tmp_path: Path) -> None:
    """With its page; without one it listens nowhere."""
    config, port = tmp_path / "shop.toml", free_port(len(ROLES))
    config.write_text(f'{NOWHERE}[metrics]\nhost = "{host}"\nport = {port}\n')
    words = ("worker", "--child", "publish", "--config", str(config))
    with started(*words) as (pid, log):
        said = waited_for("event=waiting", log)
        assert listening(pid) == {host}
    is_open, own = host != "127.0.0.1", port + ROLES["publish"].metrics_port
    assert ("event=page-is-open" in said) == is_open
    assert (f"{host}:{own} is not loopback" in said) == is_open


def test_what_listens_is_found() -> None:
    """Streams and datagrams of a process; else the tests above would say nothing."""
    with (
        socket.create_server(("0.0.0.0", 0)),  # noqa: S104
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(("127.0.0.2", 0))
        found = listening(os.getpid())
    assert {"0.0.0.0", "127.0.0.2"} <= found  # noqa: S104
