"""The table of policies that bounds choose: stopped, resumed, and what it writes."""

import csv
from pathlib import Path

import pytest

from rankstream.lab.reproduction.engine import finished_runs
from rankstream.lab.reproduction.genspec.plan import POLICIES
from rankstream.operations.cli import main
from tests.rankstream.lab.reproduction.test_reproduce import parts_folder


def test_a_table_has_every_policy_and_goes_on_where_it_stopped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that was cut off is run again, to the same numbers; others are not."""
    folder, out = parts_folder(tmp_path / "data"), tmp_path / "out"
    words = ["reproduce", str(folder), "--table", "genspec", "--impressions", "30"]
    words += ["--runs", "3", "--folds", "2", "--processes", "1", "--out", str(out)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    table = (out / "genspec.csv").read_text()
    runs = out / "genspec.txt"
    whole = finished_runs(runs)
    lines = runs.read_text().splitlines(keepends=True)
    runs.write_text("".join(lines[:4]) + lines[4][:50])
    assert main(words) == 0
    again = finished_runs(runs)

    assert "9 runs are left: 0.00 core-hours" in printed
    assert "any time, 0.95: never below logging; worst at" in printed
    assert len(whole) == 2 * 2 * 3
    assert [{**again[key], "seconds": 0} for key in whole] == [
        {**result, "seconds": 0} for result in whole.values()
    ]
    assert (out / "genspec.csv").read_text() == table
    rows = list(csv.DictReader(table.splitlines()))
    assert len(rows) == 2 * len(POLICIES) * 4
    assert {row["runs"] for row in rows} == {"6"}
    assert {path.name for path in out.glob("*.svg")} == {
        "genspec-policies.svg", "genspec-bounds.svg", "genspec-bandits.svg",
        "genspec-unseen.svg",
    }  # fmt: skip
    with (out / "genspec-claims.csv").open() as file:
        assert {row["holds"] for row in csv.DictReader(file)} <= {
            "True",
            "False",
            "undecided",
        }


def test_a_query_without_lists_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is read."""
    words = ["reproduce", str(tmp_path), "--table", "genspec", "--impressions", "0"]

    assert main(words) == 2
    assert "at least 1; got 0" in capsys.readouterr().err
