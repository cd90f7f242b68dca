"""`rankstream statistics --local` on files that are broken, old or not its own."""

import random
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from models.counts.definition import ClosedImpression
from rankstream.operations.cli import main
from streams.local import write_changes
from streams.stage import Change
from tests.models.counts.scope_values import ScopeValue
from tests.rankstream.operations.conversion.__main__ import STATE
from tests.streams.statistics.statistics_records import (
    NAME,
    counted_record,
    scope_records,
)

TREE = Path(__file__).parents[4]

ACTIONS = (["list"], ["show", "q"], ["export", "out.parquet"], ["convert"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Statistics of one scope, as a replay leaves them."""
    monkeypatch.chdir(tmp_path)
    value = ScopeValue(("a", "b")).take([ClosedImpression(0, [0, 1])])
    records = [*scope_records(NAME, value), counted_record()]
    changes = [Change("statistics", key, value) for key, value in records]
    write_changes(tmp_path / "statistics.bin", changes)
    return tmp_path


@pytest.mark.parametrize("words", ACTIONS, ids=lambda words: words[0])
@pytest.mark.parametrize("damage", ["noise", "cut", "half", "more"])
def test_a_broken_file_is_no_empty_one(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], damage: str
) -> None:
    """It is refused by name, wherever it was cut but between two values."""
    file = folder / "statistics.bin"
    whole = file.read_bytes()
    noise = random.Random(1).randbytes(4_000)  # noqa: S311  no secret
    first = 4 + int.from_bytes(whole[:4], "little")
    broken = {
        "noise": noise,
        "cut": whole[:-9],
        "half": whole[:first],
        "more": whole + b"\0",
    }
    file.write_bytes(broken[damage])
    assert main(["statistics", *words, "--local", str(folder)]) == 2
    told = capsys.readouterr()
    assert f"{file} must be whole, as `rankstream replay --local --out`" in told.err
    assert told.out == ""
    assert file.read_bytes() == broken[damage]
    assert [each.name for each in folder.iterdir()] == ["statistics.bin"]


def test_an_empty_file_has_no_statistics(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A replay of no events writes one."""
    (folder / "statistics.bin").write_bytes(b"")
    assert main(["statistics", "list", "--local", str(folder)]) == 1
    assert capsys.readouterr().err == "there are no statistics yet\n"


def test_the_refusal_of_an_old_file_says_how_to_convert_a_folder(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And names its key as it is, not as bytes; the old file is kept."""
    shutil.copy(STATE, folder / "statistics.bin")
    assert main(["statistics", "list", "--local", str(folder)]) == 2
    told = capsys.readouterr().err
    assert "`rankstream statistics convert`, with `--local DIR` for a folder" in told
    assert "a value (counts) of statistics" in told
    assert "key ['counts']" in told
    assert main(["statistics", "convert", "--local", str(folder)]) == 0
    assert f"is kept as {folder}/statistics.bin.schema1\n" in capsys.readouterr().out
    assert (folder / "statistics.bin.schema1").read_bytes() == STATE.read_bytes()
    assert main(["statistics", "list", "--local", str(folder)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "or they left one by one before the conversion" in told


@pytest.mark.parametrize("words", ACTIONS[:3], ids=lambda words: words[0])
def test_settings_are_read_also_beside_a_folder(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """A file of settings that is broken is no file to go on with."""
    config = folder / "broken.toml"
    config.write_text("[time\n")
    options = ["--local", str(folder), "--config", str(config)]
    assert main(["statistics", *words, *options]) == 2
    assert str(config) in capsys.readouterr().err


def test_a_full_disk_is_told_of_with_its_place(folder: Path) -> None:
    """Also where all that is printed fits into the buffer."""
    words = ["statistics", "list", "--local", str(folder)]
    no_byte = (resource.RLIMIT_FSIZE, (0, 0))
    with (folder / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "rankstream", *words],
            cwd=TREE,
            stdout=out,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: resource.setrlimit(*no_byte),
            check=False,
            text=True,
        )
    assert done.returncode == 2
    told = "rankstream statistics: standard output must be writable; File too large\n"
    assert done.stderr == told
