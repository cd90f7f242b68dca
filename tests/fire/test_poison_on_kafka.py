"""Poison on a real Kafka: good counts exact, bad records buried as they came."""

import pytest

from tests.fire.command import fire
from tests.fire.report import FIGURES

pytestmark = pytest.mark.broker

N_EVENTS = 6_900
"""Of which more than 6,000 are good."""


def test_poison_changes_no_count() -> None:
    """Every hostile record, the largest that fits, and one of twenty hours ahead.

    Two roles are killed meanwhile; nobody else ends.
    """
    options = ("--fast", "--events", str(N_EVENTS), "--rate", "500", "--poison")
    result = fire(*options, "--plan", "kill:ingest,kill:fold")
    assert {name: result[name] for name in FIGURES} == dict.fromkeys(FIGURES, 0), result
    assert result["ok"], result
    assert result["outcomes"]["consumed"] > 6_000
    assert result["hostile_kinds_unsent"] == []
    assert result["dead_letters"] > 0.05 * N_EVENTS
    # Nobody ended by itself, and no bad record had a line of its own.
    assert sum(result["exits"].values()) == 2
    assert result["stops"]["first"][0] == 0
    assert result["log_lines"] < 400 + result["seconds"] * 4
    assert max(result["peak_memory_mb"].values()) < 700
    assert result["disk_mb"] < 400
