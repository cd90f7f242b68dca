"""The page of reliability names tests that exist, and how each row is held."""

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "reliability.md"
HEAD = "| fault | promise | held | by |"
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)`")


def rows_of(text: str) -> list[list[str]]:
    """Cells of every row below the head of a table."""
    found, is_inside = [], False
    for line in text.splitlines():
        if line == HEAD:
            is_inside = True
        elif not line.startswith("|"):
            is_inside = False
        elif is_inside and not line.startswith("|---"):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def names_in(path: Path) -> set[str]:
    """Tests that a file declares, found without running it."""
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


def faults_of(text: str, root: Path = TESTS) -> list[str]:
    """What is wrong with a page."""
    faults = [
        f"there is no {path}::{name}"
        for path, name in NAMED.findall(text)
        if name not in names_in(root / path)
    ]
    for row in rows_of(text):
        if len(row) != 4 or not all(row):
            faults.append(f"four cells must say something: {row}")
            continue
        fault, _, held, by = row
        tests, left = NAMED.findall(by), "; left: " in by
        is_whole = {
            "yes": bool(tests) and not left,
            "in part": bool(tests) and left,
            "no": not tests,
        }
        if not is_whole.get(held, False):
            faults.append(f"{fault}: {held!r} does not go with {by!r}")
    return faults


def test_every_row_names_tests_that_exist_or_says_why_not() -> None:
    """Whoever renames a test finds the promise that it holds."""
    text = PAGE.read_text(encoding="utf-8")
    assert len(rows_of(text)) > 60
    assert faults_of(text) == []


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("| a | b | yes | `test_one.py::test_is_there` |", ""),
        ("| a | b | yes | `test_one.py::test_is_not_there` |", "there is no"),
        ("| a | b | yes | `test_two.py::test_is_there` |", "there is no"),
        ("| a | b | yes | `test_one.py::test_is_there`; left: more |", "does not go"),
        ("| a | b | in part | `test_one.py::test_is_there` |", "does not go"),
        ("| a | b | no | somebody looks |", ""),
        ("| a | b | yes | somebody looks |", "does not go"),
        ("| a | b | perhaps | somebody looks |", "does not go"),
        ("| a |  | no | somebody looks |", "four cells"),
    ],
)
def test_what_is_wrong_with_a_row_is_found(
    row: str, fault: str, tmp_path: Path
) -> None:
    """A test that has gone, an empty cell, a word that does not fit."""
    (tmp_path / "test_one.py").write_text("def test_is_there():\n    pass\n")
    found = faults_of(f"{HEAD}\n|---|---|---|---|\n{row}\n", tmp_path)
    assert len(found) == bool(fault)
    assert all(fault in each for each in found)
