"""Patience with services that are not there yet: one line now and then."""

import socket
import sys
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from rankstream.settings import KafkaSettings

SAY_EVERY_S = 60.0
TRY_EVERY_S = 0.5
KAFKA_PORT, REDIS_PORT = 9092, 6379


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

    def waits(self, what: str, why: str = "") -> None:
        """Hear that somebody still waits, and what is in the way."""
        now = time.monotonic()
        if not self._since_s:
            self._since_s = now
        if not self._said_s or now - self._said_s >= SAY_EVERY_S:
            self._said_s = now
            reason = f": {why}" if why else ""
            self._say(f"waiting for {what} ({now - self._since_s:.0f} s){reason}")

    def over(self) -> None:
        """Hear that it came."""
        self._said_s = self._since_s = 0.0


def wait_for_kafka(
    kafka: KafkaSettings,
    waiting: Waiting,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
    within_s: float | None = None,
) -> None:
    """Return as soon as some broker takes a connection.

    Parameters
    ----------
    within_s
        How long to wait; without end if not given.

    Raises
    ------
    Interrupted
        Where the user stopped.
    RuntimeError
        Where nobody answered for so long.
    """
    since_s = time.monotonic()
    while True:
        why = why_no_kafka(kafka)
        if not why:
            waiting.over()
            return
        if is_stopped():
            raise Interrupted(f"stopped while waiting for Kafka at {kafka.bootstrap}")
        if within_s is not None and time.monotonic() - since_s >= within_s:
            raise RuntimeError(
                f"Kafka at {kafka.bootstrap} must answer within {within_s:g} s; {why}: "
                "start it, or name another with kafka.bootstrap"
            )
        waiting.waits(f"Kafka at {kafka.bootstrap}", why)
        time.sleep(TRY_EVERY_S)


def why_no_kafka(kafka: KafkaSettings) -> str:
    """Why no broker takes a connection; empty where one does."""
    refusals = [_refusal(*_place(each)) for each in kafka.bootstrap.split(",")]
    return "" if "" in refusals else refusals[0]


def wait_for_redis(url: str, waiting: Waiting) -> None:
    """Return as soon as somebody listens at the address of a Redis."""
    place = urlsplit(url)
    while place.hostname:
        why = _refusal(place.hostname, place.port or REDIS_PORT)
        if not why:
            return
        shown = place._replace(netloc=place.netloc.rpartition("@")[2]).geturl()
        waiting.waits(f"Redis at {shown}", why)
        time.sleep(TRY_EVERY_S)


def _place(address: str) -> tuple[str, int]:
    host, colon, port = address.strip().rpartition(":")
    if not colon or not port.isdigit():
        return address.strip().strip("[]"), KAFKA_PORT
    return host.strip("[]"), int(port)


def _refusal(host: str, port: int) -> str:
    """Why nobody answers there; empty if somebody does."""
    try:
        socket.create_connection((host, port), timeout=3).close()
    except OSError as error:
        return f"{host}, port {port}: {error.strerror or error}"
    return ""


def _to_standard_error(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
