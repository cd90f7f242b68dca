"""A worker as users start it, with its children at hand."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from producers.brokers.topic_admin import TopicAdmin
from rankstream.settings import Settings, load_settings
from streams.kafka.processes.preloader import short_name
from streams.topology import topics_of
from streams.worker_roles import ROLES

SHORT_TIMES = """[time]
click_window_ms = 20_000
disorder_ms = 2_000
idle_ms = 60_000
[delivery]
session_timeout_s = 6.0
state_s = 1.0
"""
"""Settings by which a test of a minute sees what takes an hour.

Senders end their sources themselves: an idle one would be one that the machine kept.
"""

FOR_TESTS = {
    "RANKSTREAM_DELIVERY__COMMIT_S": "0.1",
    "RANKSTREAM_DELIVERY__STOP_S": "120",
}
"""Tests wait for commits; a busy machine may take longer to stop than by default."""

PATIENCE_S = 600.0
"""What must come is waited for: a busy machine is slow, and only slow."""


def role_of(process: psutil.Process) -> str | None:
    """The role of a process of a worker: forked ones have it in their name only.

    Raises
    ------
    psutil.Error
        Where it has ended.
    """
    words = process.cmdline()
    if words[-2:-1] == ["--child"]:
        return str(words[-1])
    names = {short_name(role): role for role in ROLES}
    return names.get(process.name())


class WorkerProcess:
    """`rankstream worker` and the process of each role.

    `options` are those of `subprocess.Popen`.
    """

    def __init__(self, config: Path, log: Path, *words: str, **options: Any) -> None:
        self.log = log
        self._file = log.open("ab")
        options.setdefault("env", {**os.environ, **FOR_TESTS})
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "rankstream", "worker"),
                *("--config", str(config), *words),
            ],
            stdout=self._file,
            stderr=self._file,
            stdin=subprocess.DEVNULL,
            **options,
        )

    def child(self, role: str) -> psutil.Process | None:
        """The process of a role, where it lives."""
        for process in psutil.Process(self.process.pid).children(recursive=True):
            try:
                if role_of(process) == role:
                    return process
            except psutil.Error:
                continue
        return None

    def kill(self, role: str) -> bool:
        """Kill -9 a role; False where it was not there."""
        child = self.child(role)
        if child is None:
            return False
        try:
            child.kill()
        except psutil.NoSuchProcess:
            return False
        return True

    def kill_all(self) -> None:
        """Kill -9 it and its children, of which one may be gone by then."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self.process.kill()
        self.process.wait()

    def stop(self) -> tuple[int, float]:
        """SIGTERM; exit status and seconds."""
        started = time.monotonic()
        self.process.terminate()
        status = self.process.wait(PATIENCE_S)
        return status, time.monotonic() - started

    def close(self) -> None:
        """No more of its log."""
        self._file.close()

    def said(self) -> str:
        """Its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")


def written_settings(
    folder: Path, bootstrap: str, redis_url: str, namespace: str, more: str = ""
) -> Path:
    """A settings file of this namespace."""
    config = folder / "rankstream.toml"
    config.write_text(
        f'namespace = "{namespace}"\n[kafka]\nbootstrap = "{bootstrap}"\n'
        f'[redis]\nurl = "{redis_url}"\n{more}'
    )
    return config


def configured(
    folder: Path, bootstrap: str, redis_url: str, namespace: str, more: str = ""
) -> Path:
    """A settings file for a worker of this namespace, and its topics."""
    config = written_settings(folder, bootstrap, redis_url, namespace, more)
    settings = load_settings(config)
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    admin.create()
    admin.close()
    return config


@contextmanager
def running(
    config: Path, log: Path, *words: str, **options: Any
) -> Iterator[WorkerProcess]:
    """A worker that is gone afterwards, whatever happened."""
    worker = WorkerProcess(config, log, *words, **options)
    try:
        yield worker
    finally:
        if worker.process.poll() is None:
            worker.kill_all()
        worker.close()


def waited_until(is_true: Callable[[], bool], log: Path) -> None:
    """Wait for something; the worker's last words where it does not come."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        if time.monotonic() > deadline:
            words = log.read_text(encoding="utf-8", errors="replace")[-3_000:]
            raise AssertionError(f"not after {PATIENCE_S} s; the worker said:\n{words}")
        time.sleep(0.5)


def settings_of(config: Path) -> Settings:
    """The settings in a file."""
    return load_settings(config, {})
