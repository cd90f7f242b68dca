"""The table of bandits: what it writes, and what it claims."""

import csv
from pathlib import Path

import numpy as np
import pytest

from rankstream.lab.reproduction.bandits import (
    CELLS,
    PIE,
    WITHOUT,
    Cell,
    claims_of,
)
from rankstream.operations.cli import main


def test_the_table_has_all_bandits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the file a row for each run; the same seed gives the same file."""
    words = ["reproduce", "--table", "bandits", "--runs", "2", "--impressions", "300"]
    files = []
    for out in ("one", "other"):
        assert main([*words, "--processes", "1", "--out", str(tmp_path / out)]) == 0
        files.append((tmp_path / out / "bandits.csv").read_text())
    assert files[0] == files[1]
    told = capsys.readouterr().out
    assert "PIE without" in told
    assert "grows" not in told  # of fewer lists nothing is claimed
    rows = [*csv.DictReader(files[0].splitlines())]
    assert len(rows) == 2 * len(CELLS)
    assert {row["lists"] for row in rows} == {"300"}
    assert all(float(row["regret"]) > 0.0 for row in rows)


@pytest.mark.parametrize(
    ("runs", "lists", "said", "is_grown"),
    [("1", "300", "lists, 1 run ", False), ("2", "3000", "lists, 2 runs", True)],
)
def test_the_table_says_what_its_columns_are_of(  # noqa: PLR0913  fixtures too
    runs: str,
    lists: str,
    said: str,
    is_grown: bool,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Growth only of two numbers of lists; no times of who looked once."""
    monkeypatch.setenv("COLUMNS", "200")
    command = ["reproduce", "--table", "bandits", "--runs", runs, "--processes", "1"]
    assert main([*command, "--impressions", lists, "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert said in told
    assert ("3,000 lists over that after 1,000, 3 times" in told) is is_grown
    (late,) = (x for x in told.splitlines() if "PIE, each 10,000" in x)
    (soon,) = (x for x in told.splitlines() if "PIE, each 1,000" in x)
    assert late.split("│")[-2].strip() == ""
    assert bool(soon.split("│")[-2].strip()) is is_grown


def test_other_tables_ask_for_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """And so does nothing of which there are none."""
    assert main(["reproduce", "--table", "genspec"]) == 2
    assert "must have a LETOR folder" in capsys.readouterr().err
    assert main(["reproduce", "--table", "bandits", "--runs", "0"]) == 2
    assert "--runs and --impressions must be at least 1" in capsys.readouterr().err


def test_claims_are_about_ten_times_as_many_lists() -> None:
    """A bandit that grows as it should not is told."""
    means = {cell: np.array([1.0, 2.0, 2.2]) for cell in CELLS}
    means[Cell(WITHOUT, 1)] = np.array([1.0, 2.0, 19.0])
    assert all(claims_of(means).values())
    worse = means | {Cell(PIE, 1): np.array([1.0, 2.0, 3.1])}
    assert [*claims_of(worse).values()].count(False) == 1
    worse = means | {Cell(WITHOUT, 1): np.array([1.0, 2.0, 3.0])}
    assert [*claims_of(worse).values()].count(False) == 1
