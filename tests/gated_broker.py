"""A broker that workers reach through a gate, and everybody else directly."""

from pathlib import Path

from deploy.broker import Broker
from deploy.process import free_port
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
