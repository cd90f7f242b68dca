"""The pipeline under fire on a real Kafka and Redis; and that fire can hurt."""

import pytest

from tests.fire.command import fire
from tests.fire.report import FIGURES

pytestmark = pytest.mark.broker

BUSY = "--stop-s", "600"
"""A machine that has much else to do stops slowly."""


def test_kills_and_a_broker_that_goes_change_nothing() -> None:
    """Killed while it restores, publishes and commits; every outcome is as planned."""
    options = (
        "--fast",
        "--events",
        "3500",
        "--rate",
        "280",
        "--plan",
        "kill:fold@restoring,broker:8,kill:publish@publishing,stop:all,"
        "kill:train@training,kill:fold@ending",
        *BUSY,
    )
    result = fire(*options)
    assert {name: result[name] for name in FIGURES} == dict.fromkeys(FIGURES, 0), result
    assert result["ok"], result
    struck = {fault["where"] for fault in result["faults"]}
    assert {"kill:fold@restoring", "kill:fold@ending", "broker:8"} <= struck


def test_without_the_resume_position_something_is_double() -> None:
    """Or the harness would not notice."""
    options = ("--fast", "--events", "2000", "--rate", "250", "--plan", "kill:fold")
    result = fire(*options, "--break", "position")
    assert result["double"] > 0, result
    assert not result["ok"]


def test_with_the_largest_time_as_watermark_outcomes_differ() -> None:
    """What was planted to be in time comes too late."""
    options = ("--fast", "--events", "2000", "--rate", "400", "--plan", "none")
    # A busy machine may read so much at once that nothing is late.
    for seed in ("1", "2", "3"):
        result = fire(*options, "--break", "watermark", "--seed", seed)
        if not result["failure"] and result["by_what_was_sent"]["lost"]:
            break
    assert not result["failure"], result
    assert result["by_what_was_sent"]["lost"] > 0, result
    assert result["by_what_was_sent"]["extra"] > 0, result
    assert not result["ok"]
