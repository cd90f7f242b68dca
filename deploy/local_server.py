"""What a broker and a Redis of ours have in common: one process, files in a folder."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from deploy.process import ServerProcess, free_port


class LocalServer(ABC):
    """A server on loopback that can be started again on the same port."""

    patience_s = 180.0
    """How long a start may take."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._server: ServerProcess | None = None

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
            Where something that it needs is missing, or it does not start.
        """
        if self.is_running:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._server, is_ready = self._prepared()
        self._server.start(is_ready, timeout_s=self.patience_s, outlives_us=outlives_us)

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

    @abstractmethod
    def _prepared(self) -> tuple[ServerProcess, Callable[[], bool]]:
        """The process to start, and whether it is ready."""
