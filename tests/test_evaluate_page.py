"""The page of `rankstream evaluate` has an example that runs, and its figures."""

import json
import re
import shlex
from pathlib import Path

import pytest

from rankstream.operations.answers.values import WEIGHTS
from rankstream.operations.cli import main
from tests.pages import rows_below

TEXT = (Path(__file__).parents[1] / "docs" / "evaluate.md").read_text("utf-8")
PROGRAM = re.compile(r"^```python\n(.*?)```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^    rankstream (evaluate best.*)$", re.MULTILINE)
HEAD = (
    "| policy | reward | 95 % | less logged | 95 % | unseen | largest click | "
    "effective clicks | |"
)
OPTION = re.compile(r"--[a-z]+")


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command of the example, where its program has run."""
    monkeypatch.chdir(tmp_path)
    (program,) = PROGRAM.findall(TEXT)
    exec(compile(program, "docs/evaluate.md", "exec"), {})  # noqa: S102  our own page
    (command,) = COMMAND.findall(TEXT)
    return shlex.split(command)


def short(number: float | None, sign: str = "") -> str:
    """As pages write shares and rates."""
    return f"{number:{sign}.4f}".replace("0.", ".")


def test_its_figures_are_those_of_the_example(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the estimator that is taken, and of the naive one."""
    assert main([*words, "--json"]) == 0
    logged, best = json.loads(capsys.readouterr().out)["policies"]
    rows = rows_below(HEAD, TEXT)
    assert [row[0] for row in rows] == ["logged", "best"]
    for row, found in zip(rows, (logged, best), strict=True):
        assert row[1] == short(found["reward"])
        assert row[2] == f"{short(found['low'])} to {short(found['high'])}"
        assert row[7] == f"{found['effective_clicks']:,.0f}"
        assert row[8] == found["verdict"]
    low, high = (short(best[x], "+") for x in ("difference_low", "difference_high"))
    assert rows[1][3:5] == [short(best["difference"], "+"), f"{low} to {high}"]
    assert best["low"] < 0.7 < best["high"]
    assert main([*words, "--json", "--estimator", "naive"]) == 0
    naive = json.loads(capsys.readouterr().out)["policies"][1]
    told = f"{short(naive['reward'])}, from {short(naive['low'])} to "
    assert told + short(naive["high"]) in TEXT.replace("\n", " ")


def test_the_table_has_the_columns_of_the_page(
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In their order, where there is room for all of them."""
    monkeypatch.setenv("COLUMNS", "200")
    assert main(words) == 0
    head = capsys.readouterr().out.splitlines()[2]
    columns = [cell.strip() for cell in re.split("[┃]", head)[1:-1]]
    assert columns == [cell.strip() for cell in HEAD.strip("|").split("|")]


def test_every_option_of_the_page_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    """Of this command, and its examples are in the help."""
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    told = capsys.readouterr().out
    table = [row[0] for row in rows_below("| option | |", TEXT)]
    assert {*OPTION.findall(" ".join(table))} - {*OPTION.findall(told)} == set()
    for name in WEIGHTS:
        assert f"`{name}`" in TEXT
