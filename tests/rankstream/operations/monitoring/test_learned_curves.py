"""Curves that models are, in the monitor: the newest one, in place of its estimate."""

import io

import pytest
from rich.console import Console

from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.terminal import view_of
from rankstream.wire.models.curves import encode_published, published
from rankstream.wire.models.training import encode_record, training_key
from tests.curve_factory import UNKNOWN, curve_record, curve_snapshot

ESTIMATE = [{"ratio": 1.0, "interval": None, "reason": ""}]


def records_of(*snapshots, **changes):
    """Keys and values in `training`."""
    return [
        (training_key("curve", each.intervention), encode_record(record))
        for each in snapshots
        for record in [curve_record(each, **changes)]
    ]


def seen(gathered, width=100):
    """What a terminal shows."""
    text = io.StringIO()
    Console(file=text, width=width).print(view_of(gathered))
    return text.getvalue()


def test_the_newest_curve_is_shown_in_place_of_the_estimate() -> None:
    """Whatever the order of records; without one the estimate stays."""
    gathered = Gathered()
    gathered.set_examination(ESTIMATE)
    assert gathered.overview()["examination"] == ESTIMATE
    old = curve_snapshot([1.0, 0.9], version=50)
    new = curve_snapshot([1.0, 0.5], epoch=1, version=20)
    gathered.take_training(records_of(new, old))
    found = gathered.overview()
    assert found["examination"] == []
    (curve,) = found["curves"]
    assert (curve["model"], curve["version"]) == ("eyes", "1.20")
    assert curve["ranks"][1]["alpha"] == 0.5
    number = found["number"]
    gathered.take_training(records_of(old))
    assert gathered.overview()["number"] == number


def test_after_a_rollback_the_curve_that_is_taken_is_shown() -> None:
    """No fit made that version, but the one of the same number did."""
    gathered = Gathered()
    old = curve_snapshot([1.0, 0.9], version=50)
    gathered.take_training(records_of(old, curve_snapshot([1.0, 0.5], version=80)))
    for version, alpha in (("0.80", 0.5), ("1.50", 0.9), ("1.70", 0.5)):
        served = {"model": "eyes", "version": version, "created_ms": 1_000}
        gathered.set_snapshots([{**served, "updates": 1, "is_trained": True}])
        (curve,) = gathered.overview()["curves"]
        assert curve["ranks"][1]["alpha"] == alpha
        # What nobody fitted is not known here, and the newest fit says whose it is.
        assert curve["version"] == (version if version != "1.70" else "0.80")


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_alpha_and_beta_whose_clicks_and_how_old(width: int) -> None:
    """And why a rank has no number."""
    gathered = Gathered()
    snapshot = curve_snapshot([1.0, 0.952, UNKNOWN], [0.0, -0.182, UNKNOWN])
    gathered.take_training(records_of(snapshot))
    text = seen(gathered, width)
    assert "curve eyes 0.100, trust" in text
    assert "0.952" in text
    assert "0.85 to 1.05" in text
    assert "-0.182" in text
    assert "-0.28 to -0.08" in text
    assert "rank 3: not shown" in text
    words = " ".join(text.split())
    assert "3,400 views and 560 clicks" in words
    assert "old in event time" in words


def test_a_plain_curve_has_no_column_of_zeros() -> None:
    """But a bar, as the estimate has."""
    gathered = Gathered()
    records = records_of(curve_snapshot([1.0, 0.5]), estimator="position")
    gathered.take_training(records)
    text = seen(gathered)
    assert "beta" not in text
    assert "█" * 5 in text


def test_what_cannot_be_read_is_said_and_json_of_others_passed_over() -> None:
    """As records of `training` are; the JSON of a curve is for people's tools."""
    gathered = Gathered()
    gathered.take_training([(training_key("curve", "eyes@0.1"), b"\x92\x01x")])
    assert gathered.overview()["trouble"]
    whole = Gathered()
    record = curve_record(curve_snapshot([1.0, 0.5]))
    whole.take_verdict(encode_published(published(record)))
    assert whole.overview()["trouble"] == ""
    assert whole.overview()["curves"] == []
