"""A broker that workers reach through a gate, and everybody else directly."""

from collections.abc import Iterator
from pathlib import Path

from deploy.broker import Broker
from deploy.process import free_port
from rankstream.wire.topics import SNAPSHOTS
from tests.tcp_gate import Gate

PROPERTIES = """
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},\
GATED://127.0.0.1:{behind}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},GATED://127.0.0.1:{gate}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,GATED:PLAINTEXT
"""


def gated_broker(folder: Path, gate: Gate) -> Broker:
    """The broker, not started yet; who asks it at the gate is told to stay there.

    Its own connections to itself, as for the ends of transactions, do not go through.
    """
    behind = free_port()
    gate.lead_to(behind)
    return Broker(folder, more=PROPERTIES.format(behind=behind, gate=gate.port))


PRODUCE, END_TXN = 0, 26
"""Kinds of requests to a broker."""


class Publication:
    """Of a snapshot, for `Gate.hold`: it is let through, and its commit is not."""

    def __init__(self) -> None:
        self._is_written = False

    def __call__(self, piece: bytes) -> bool:
        """Whether a piece of what a client sends is to be held."""
        for request in requests_of(piece):
            kind = int.from_bytes(request[:2], "big")
            if kind == PRODUCE and SNAPSHOTS.encode() in request:
                self._is_written = True
            elif kind == END_TXN and self._is_written:
                # Its last byte says how; who fences others writes, and aborts that.
                if request[-1]:
                    return True
                self._is_written = False
        return False


def requests_of(piece: bytes) -> Iterator[bytes]:
    """Each request that begins in it, as far as it is there."""
    at = 0
    while at + 6 <= len(piece):
        length = int.from_bytes(piece[at : at + 4], "big")
        yield piece[at + 4 : at + 4 + length]
        at += 4 + length
