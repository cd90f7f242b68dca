"""The program of the page of curves fits one, of the log that another page makes."""

import math
from pathlib import Path

import pytest

from tests.documented_blocks import TREE, blocks_of


def programs_of(page: str) -> list[str]:
    """Of a page in `docs/`."""
    return [x.text for x in blocks_of(f"docs/{page}") if x.language == "python"]


def test_its_program_prints_the_curve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rank 1 is what the others are in units of; they are looked at less."""
    monkeypatch.chdir(tmp_path)
    (settings,) = (x for x in blocks_of("docs/curves.md") if x.language == "toml")
    asked = settings.text.replace("ranks = 10", "ranks = 3")
    Path("eyes.toml").write_text(asked, encoding="utf-8")
    (makes_the_log,) = programs_of("evaluate.md")
    exec(compile(makes_the_log, "docs/evaluate.md", "exec"), {})  # noqa: S102  our own
    capsys.readouterr()

    (program,) = programs_of("curves.md")
    exec(compile(program, str(TREE / "docs/curves.md"), "exec"), {})  # noqa: S102

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    first, second, third = (float(row[1]) for row in rows)
    assert math.isclose(first, 1.0)
    assert third < second < first
