"""`rankstream plan` as people call it."""

import json
from pathlib import Path

import pytest

from rankstream.operations.cli import main
from rankstream.operations.commands.plan.run import _bytes

CALL = ["plan", "--events", "20000/s", "--lists", "10", "--queries", "5e6"]


def test_a_plan_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """Roles, topics, what binds, and where the constants are from."""
    assert main(CALL) == 0
    said = capsys.readouterr().out
    for words in ("20,000 events/s", "ingest", "statistics", "what binds", "bench"):
        assert words in said
    assert "not said" not in said


def test_a_plan_is_of_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Windows, retention and partitions are the file's, unless options say more."""
    file = tmp_path / "shop.toml"
    file.write_text(
        "[kafka]\npartitions = 12\nevents_days = 5\n[time]\nclick_window_ms = 600000\n"
    )
    plans = []
    for more in ([], ["--partitions", "24", "--retention", "7", "--window", "60"]):
        assert main([*CALL, "--config", str(file), "--json", *more]) == 0
        plans.append(json.loads(capsys.readouterr().out))
    events = [
        next(each for each in plan["topics"] if each["topic"] == "events")
        for plan in plans
    ]
    assert [each["partitions"] for each in events] == [12, 24]
    assert [each["keeps"] for each in events] == ["5 days", "7 days"]
    fold = [
        next(each for each in plan["roles"] if each["role"] == "fold") for plan in plans
    ]
    assert fold[0]["memory_bytes"] > fold[1]["memory_bytes"]


def test_what_is_not_said_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the reason is printed."""
    file = tmp_path / "shop.toml"
    file.write_text('[experiments.e]\nrankers = {a = "", b = ""}\n')
    assert main([*CALL, "--config", str(file)]) == 1
    assert "not said: CPU of evaluate" in capsys.readouterr().out


@pytest.mark.parametrize("told", ["20000/week", "-1/s", "many", "inf", "nan/s"])
def test_a_rate_is_a_number_with_a_unit(
    told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anything else is refused."""
    with pytest.raises(SystemExit, match="2"):
        main(["plan", f"--events={told}", "--lists", "10", "--queries", "5"])
    assert "must be a number of 0 or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (["--events=1e308/s"], "--events must be 1e+12 at most"),
        (["--queries=1e19"], "--queries must be 1e+15 at most"),
        (["--queries=1e300"], "--queries must be 1e+15 at most"),
        (["--lists=10000000000"], "--lists must be at most limits.documents, 10,000"),
        (["--candidates=20000"], "--candidates must be at most limits.documents"),
        (["--features=1000000"], "a list must take at most 8,388,608 bytes"),
        (["--input-days=nan"], "--input-days must be over 0"),
        (["--input-days=-1"], "--input-days must be over 0"),
    ],
)
def test_a_load_that_nothing_could_carry_is_refused(
    told: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words, before anything is made of it."""
    assert main([*CALL, *told]) == 2
    assert words in capsys.readouterr().err


def test_bytes_are_in_a_unit_that_can_be_read() -> None:
    """Thousands, as networks and disks are sold."""
    found = [_bytes(value) for value in (0.0, 999.0, 1_500.0, 2.5e12, 7e18, None)]
    assert found == ["0 B", "999 B", "1.5 kB", "2.5 TB", "7e+03 PB", "not said"]
