"""`rankstream statistics convert --local`, on what the old release left in a file."""

import shutil
from pathlib import Path

import pytest

from rankstream.operations.cli import main
from tests.rankstream.operations.conversion.__main__ import STATE
from tests.rankstream.operations.conversion.stored import (
    KEEP_MS,
    expected_tables,
    stored_values,
)
from tests.rankstream.operations.conversion.test_scopes import expected, sorted_tables
from tests.rankstream.operations.conversion.written import Written

ROWS = expected_tables()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What `replay --local --out` left, and settings beside it."""
    shutil.copy(STATE, tmp_path / "statistics.bin")
    settings = f"[time]\nkeep_ms = {KEEP_MS}\n"
    (tmp_path / "rankstream.toml").write_text(settings)
    return tmp_path


def convert(folder: Path, *words: str) -> int:
    """Run the command on a folder."""
    config = ["--config", str(folder / "rankstream.toml")]
    local = ["--local", str(folder)]
    return main(["statistics", "convert", *config, *local, *words])


def test_a_file_is_converted_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With all its sums; a second time there is nothing to do."""
    file = folder / "statistics.bin"

    assert convert(folder) == 0
    said = capsys.readouterr().out
    n_cells = len(ROWS["cells"])
    n_impressions = sum(row[4] for row in ROWS["cells"])
    assert f"{n_cells} cells in " in said
    assert f", {n_impressions} impressions, " in said
    assert "of list masks left out" in said
    latest_ms = max(row[11] for row in ROWS["pairs"])
    written = Written(stored_values(file))
    assert sorted_tables(written.tables()) == expected()
    assert {scope[3] for scope in written.by_kind["scope"]} == {latest_ms // KEEP_MS}

    before = file.read_bytes()
    assert convert(folder) == 0
    assert capsys.readouterr().out == f"{file}: nothing of before\n"
    assert file.read_bytes() == before


def test_a_dry_run_says_as_much_and_changes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its last line says so."""
    assert convert(folder, "--dry-run") == 0
    trial = capsys.readouterr().out
    assert (folder / "statistics.bin").read_bytes() == STATE.read_bytes()

    assert convert(folder) == 0
    assert capsys.readouterr().out + "dry run: nothing was changed\n" == trial


def test_what_cannot_be_converted_is_refused_and_stays(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other groups, and statistics of two releases in one file."""
    file = folder / "statistics.bin"
    monkeypatch.setenv("RANKSTREAM_STATISTICS__GROUPS", "10")
    assert convert(folder) != 0
    assert "statistics.groups must be 20 to convert" in capsys.readouterr().err
    assert file.read_bytes() == STATE.read_bytes()

    monkeypatch.delenv("RANKSTREAM_STATISTICS__GROUPS")
    assert convert(folder) == 0
    both = file.read_bytes() + STATE.read_bytes()
    file.write_bytes(both)
    assert convert(folder) != 0
    assert "statistics must be of one release" in capsys.readouterr().err
    assert file.read_bytes() == both

    file.unlink()
    assert convert(folder) != 0
    assert "--local must be a folder that" in capsys.readouterr().err


def test_classes_of_rewards_are_allowed_with_a_word_of_warning(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Settings cannot change later, and clicks of before are of every action."""
    actions = "{purchase = 'purchase'}"
    monkeypatch.setenv("RANKSTREAM_STATISTICS__ACTIONS", actions)
    assert convert(folder) == 0
    assert "until then clicks include every action" in capsys.readouterr().out
    ((_, _, classes, *_),) = (
        Written(stored_values(folder / "statistics.bin")).by_kind["counted"].values()
    )
    assert classes == ["click", "purchase"]
