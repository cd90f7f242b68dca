"""Patience with a cluster that is not there yet: one line now and then."""

import socket
import sys
import time
from collections.abc import Callable

from rankstream.settings import KafkaSettings

SAY_EVERY_S = 60.0
TRY_EVERY_S = 0.5
DEFAULT_PORT = 9092


class Interrupted(RuntimeError):
    """The user stopped a wait.

    Operator action: none.
    """


class Waiting:
    """Says what is waited for: at once, then once a minute.

    Parameters
    ----------
    say
        Takes a line.
    """

    def __init__(self, say: Callable[[str], object] | None = None) -> None:
        self._say = say or _to_standard_error
        self._said_s = 0.0
        self._since_s = 0.0

    def waits(self, what: str) -> None:
        """Hear that somebody still waits."""
        now = time.monotonic()
        if not self._since_s:
            self._since_s = now
        if not self._said_s or now - self._said_s >= SAY_EVERY_S:
            self._said_s = now
            self._say(f"waiting for {what} ({now - self._since_s:.0f} s)")

    def over(self) -> None:
        """Hear that it came."""
        self._said_s = self._since_s = 0.0


def wait_for_kafka(
    kafka: KafkaSettings,
    waiting: Waiting,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Return as soon as some broker takes a connection.

    Raises
    ------
    Interrupted
        Where the user stopped.
    """
    while not any(_answers(address) for address in kafka.bootstrap.split(",")):
        if is_stopped():
            raise Interrupted(f"stopped while waiting for Kafka at {kafka.bootstrap}")
        waiting.waits(f"Kafka at {kafka.bootstrap}")
        time.sleep(TRY_EVERY_S)
    waiting.over()


def _answers(address: str) -> bool:
    host, colon, port = address.strip().rpartition(":")
    if not colon or not port.isdigit():
        host, port = address.strip(), str(DEFAULT_PORT)
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=3).close()
    except OSError:
        return False
    return True


def _to_standard_error(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
