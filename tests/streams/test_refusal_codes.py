"""Codes of dead letters: one table; `tests/test_refusals.py` has the page."""

import ast
from pathlib import Path

import pytest

from rankstream.operations.cli import main
from rankstream.wire.refusal_codes import Code

TREE = Path(__file__).parents[2]


def codes_written(source: str) -> set[str]:
    """Texts that stand under the key `code` of a dictionary."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                names = isinstance(key, ast.Constant) and key.value == "code"
                if names and isinstance(value, ast.Constant):
                    found.add(str(value.value))
    return found


def test_every_reason_has_a_code_of_the_table():
    """Stages write no other."""
    sources = sorted((TREE / "streams").rglob("*.py"))
    written = {
        code
        for path in sources
        for code in codes_written(path.read_text(encoding="utf-8"))
    }
    assert written <= set(Code)


def test_a_code_in_a_reason_is_found():
    """The search above sees what it must see."""
    assert codes_written('f({"stage": "join", "code": "odd"})') == {"odd"}


def test_the_command_lists_the_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """And refuses others: no letter has them."""
    with pytest.raises(SystemExit):
        main(["dlq", "--help"])
    helped = "".join(capsys.readouterr().out.split())
    assert all(code.replace(" ", "") in helped for code in Code)
    with pytest.raises(SystemExit):
        main(["dlq", "list", "--code", "no-root"])
    assert "invalid choice: 'no-root'" in capsys.readouterr().err
