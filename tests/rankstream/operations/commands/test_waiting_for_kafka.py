"""How long a worker tries to reach Kafka: longer each time, and it says so."""

import logging
import os
import signal
import socket
import subprocess
import sys

import pytest

from rankstream.operations.cli import main
from rankstream.operations.commands.monitor.run import TroubleTold
from rankstream.operations.commands.worker import waited_for
from rankstream.operations.monitoring.overview import Gathered


class Away(RuntimeError):
    """Nobody answers."""


def test_each_attempt_may_take_twice_as_long_up_to_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A broker that needs 50 s under load is reached, and one that is away too."""
    given_ms: list[int] = []

    def attempt(timeout_ms: int) -> str:
        given_ms.append(timeout_ms)
        if len(given_ms) < 7:
            raise Away("no answer")
        return "reached"

    caplog.set_level(logging.INFO)
    assert waited_for(attempt, Away, "Kafka at k:9", pause_s=0.0) == "reached"
    assert given_ms == [3_000, 6_000, 12_000, 24_000, 48_000, 60_000, 60_000]
    assert [record.getMessage() for record in caplog.records] == [
        "event=waiting for=Kafka at k:9 attempt_s=3 next_attempt_s=6 reason=no answer"
    ]


def test_another_error_is_not_waited_for() -> None:
    """A refusal does not pass."""

    def attempt(timeout_ms: int) -> str:
        raise LookupError(timeout_ms)

    with pytest.raises(LookupError, match="3000"):
        waited_for(attempt, Away, "Kafka", pause_s=0.0)


def test_options_of_topics_go_with_their_actions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Others are refused before anybody is waited for."""
    assert main(["topics", "check", "--dry-run"]) == 2
    assert "--dry-run goes with split" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["monitor"], ["monitor", "--web", "--port", "0"]])
def test_a_monitor_without_a_terminal_says_what_it_waits_for(words: list[str]) -> None:
    """On standard error, at once; it had words on a screen or a page alone."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        monitor = subprocess.Popen(
            [sys.executable, "-m", "rankstream.operations.cli", *words],
            env=os.environ | {"RANKSTREAM_KAFKA__BOOTSTRAP": place},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert monitor.stderr is not None
        line = next(each for each in monitor.stderr if "Kafka: " in each)
        monitor.send_signal(signal.SIGINT)
        monitor.communicate()
    why = f"Kafka: {place.replace(':', ', port ')}: connected, but no answer"
    assert why in line
    assert line.endswith("; Ctrl-C ends the monitor\n")


def test_trouble_is_told_once_and_so_is_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With how to stop."""
    gathered = Gathered({})
    told = TroubleTold(gathered)
    told.look()
    for n, trouble in enumerate(("it is gone", "it is gone", "", "")):
        if trouble:
            gathered.missed("Redis", trouble, n)
        else:
            gathered.heard("Redis", n)
        told.look()
    assert capsys.readouterr().err.splitlines() == [
        "Redis: it is gone; Ctrl-C ends the monitor",
        "all that the monitor reads can be reached",
    ]
