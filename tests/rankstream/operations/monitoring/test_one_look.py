"""What one look refuses, and where the page cannot listen."""

import socket

import msgspec
import pytest

from rankstream.operations.commands.monitor.run import look_once
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.web import Server
from tests.rankstream.operations.monitoring.test_monitoring import verdict


def test_a_port_that_is_taken_is_refused_with_the_remedy() -> None:
    """The number of the system's error helps nobody."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"{port} is not: choose another with --p"):
            Server("127.0.0.1", port, Gathered())


@pytest.mark.parametrize("is_json", [False, True])
def test_an_experiment_without_a_verdict_is_refused(
    is_json: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """One look ends with 1 and the nearest name; without a name, with 0."""
    gathered = Gathered()
    gathered.take_verdict(msgspec.json.encode(verdict()))

    assert look_once(gathered, "bost", is_json) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "'bost' must have a verdict; it has none: did you mean boost?" in told
    assert look_once(gathered, "boost", is_json) == 0
    assert look_once(gathered, None, is_json) == 0
