"""Patience with services that are not there yet: one line now and then."""

import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from producers.patience import check_patience, left_s
from rankstream.configuration.redis_url import redis_place
from rankstream.settings import KafkaSettings

SAY_EVERY_S = 60.0
TRY_EVERY_S = 0.5
FIRST_S, LONGEST_S = 2.0, 32.0
"""How long the first attempt may take, so how soon there is a word; and the longest,
as each may take twice as long: a broker under load may need more."""

LEAST_S = 0.5
"""An attempt may take so long even where one does not wait."""

LOOK_S = 0.2
"""How often an attempt looks whether the user has stopped it."""

KAFKA_PORT = 9092

VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""A request for the versions of Kafka's protocol: a broker answers it to anybody."""

PING = b"PING\r\n"

STOPS = "Ctrl-C ends the wait"


class Interrupted(RuntimeError):
    """The user stopped a wait.

    Operator action: none.
    """


class Waiting:
    """Says what is waited for: as soon as it is, then once a minute.

    Parameters
    ----------
    say
        Takes a line.
    """

    def __init__(self, say: Callable[[str], object] | None = None) -> None:
        self._say = say or _to_standard_error
        self._said_s = 0.0
        self._since_s = 0.0

    def waits(self, what: str, why: str = "", since_s: float | None = None) -> None:
        """Hear that somebody still waits, and what is in the way.

        Parameters
        ----------
        since_s
            Since when, by the monotonic clock; if not given since the first call.

        Raises
        ------
        TimedOut
            Where the time is up that a command may wait.
        """
        check_patience(what, why)
        now = time.monotonic()
        if not self._since_s:
            self._since_s = now if since_s is None else since_s
        if not self._said_s or now - self._said_s >= SAY_EVERY_S:
            self._said_s = now
            reason = f": {why}" if why else ""
            waited_s = now - self._since_s
            self._say(f"waiting for {what} ({waited_s:.0f} s){reason}; {STOPS}")

    def over(self) -> None:
        """Hear that it came."""
        self._said_s = self._since_s = 0.0


def wait_for_kafka(
    kafka: KafkaSettings,
    waiting: Waiting,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Return as soon as some broker answers.

    Raises
    ------
    Interrupted
        Where the user stopped.
    TimedOut
    """
    since_s, attempt_s = time.monotonic(), FIRST_S
    while True:
        why = why_no_kafka(kafka, _bounded(attempt_s), is_stopped=is_stopped)
        if not why:
            waiting.over()
            return
        attempt_s = min(LONGEST_S, 2 * attempt_s)
        if is_stopped():
            raise Interrupted(f"stopped while waiting for Kafka at {kafka.bootstrap}")
        waiting.waits(f"Kafka at {kafka.bootstrap}", why, since_s)
        time.sleep(TRY_EVERY_S)


def why_no_kafka(
    kafka: KafkaSettings,
    attempt_s: float = FIRST_S,
    *,
    is_stopped: Callable[[], bool] = lambda: False,
) -> str:
    """Why no broker answers; empty where one does.

    Parameters
    ----------
    attempt_s
        How long all of them together may take.
    """
    # Behind TLS only the connection can be seen: the client shakes hands.
    said = VERSIONS if "SSL" not in kafka.security_protocol else b""
    addresses = kafka.bootstrap.split(",")
    why = ""
    for address in addresses:
        each_s = attempt_s / len(addresses)
        found = _silence(*_place(address), said, each_s, is_stopped)
        if not found:
            return ""
        why = why or found
    return why


def wait_for_redis(url: str, waiting: Waiting) -> None:
    """Return as soon as a Redis answers at its address.

    Raises
    ------
    TimedOut
    """
    attempt_s, since_s = FIRST_S, time.monotonic()
    while why := why_no_redis(url, _bounded(attempt_s)):
        attempt_s = min(LONGEST_S, 2 * attempt_s)
        waiting.waits(f"Redis at {shown_url(url)}", why, since_s)
        time.sleep(TRY_EVERY_S)


def why_no_redis(url: str, attempt_s: float = FIRST_S) -> str:
    """Why no Redis answers at an address; empty where one does, or none is named.

    Parameters
    ----------
    attempt_s
        How long it may take.
    """
    place = redis_place(url)
    said, why = b"" if place.is_tls else PING, ""
    for host in place.hosts:
        each_s = attempt_s / len(place.hosts)
        found = _silence(*host, said, each_s, lambda: False)
        if not found:
            return ""
        why = why or found
    return why


def shown_url(url: str) -> str:
    """The address without what stands before `@`, or after its path."""
    place = urlsplit(url)._replace(query="", fragment="")
    return place._replace(netloc=place.netloc.rpartition("@")[2]).geturl()


def _bounded(attempt_s: float) -> float:
    return max(LEAST_S, min(attempt_s, left_s()))


def _place(address: str) -> tuple[str, int]:
    host, colon, port = address.strip().rpartition(":")
    if not colon or not port.isdigit():
        return address.strip().strip("[]"), KAFKA_PORT
    return host.strip("[]"), int(port)


def _silence(
    host: str,
    port: int,
    said: bytes,
    within_s: float,
    is_stopped: Callable[[], bool],
) -> str:
    """Why nobody answers there; empty if somebody does.

    Parameters
    ----------
    said
        What is to be answered; a connection is answer enough where it is empty.
    """
    until_s = time.monotonic() + within_s
    try:
        with socket.create_connection((host, port), timeout=within_s) as connection:
            if not said:
                return ""
            connection.sendall(said)
            while not is_stopped() and time.monotonic() < until_s:
                if select.select([connection], [], [], LOOK_S)[0]:
                    # An end without a word is a refusal: of TLS, say.
                    if connection.recv(1):
                        return ""
                    why = "hung up, as a port of TLS does"
                    return f"{host}, port {port}: {why}"
    except OSError as error:
        return f"{host}, port {port}: {error.strerror or error}"
    return f"{host}, port {port}: connected, but no answer"


def _to_standard_error(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
