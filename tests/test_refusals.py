"""The page of refusals has all of them, and no other."""

import re
from pathlib import Path

import pytest

from rankstream.wire.refusal_codes import Code
from tests import refusals
from tests.pages import rows_below
from tests.refusals import (
    OTHERS,
    REFUSING,
    TREE,
    beginning_of,
    exceptions,
)

TEXT = (TREE / "docs" / "refusals.md").read_text(encoding="utf-8")
HEAD = "| says | because | do |"
STATUSES = "| status | of | means | do |"


def test_every_refusal_has_a_row() -> None:
    """And every row a place in the code that says so."""
    said: dict[str, list[str]] = {}
    for each in refusals.refusals():
        said.setdefault(each.beginning, []).append(each.place)
    listed = [row[0] for row in rows_below(HEAD, TEXT)]

    missing = [
        f"| {beginning} | why it is said | what to do |   ({', '.join(places)})"
        for beginning, places in sorted(said.items())
        if beginning not in listed
    ]
    assert not missing, (
        "docs/refusals.md lacks refusals. Add a row to the table that they belong to; "
        "the first cell must be as it is here:\n" + "\n".join(missing)
    )
    gone = sorted(set(listed) - set(said))
    assert not gone, (
        "docs/refusals.md lists what nothing says any more. Take these rows out, or "
        "give them their new words:\n" + "\n".join(gone)
    )
    assert len(listed) == len(set(listed))


def test_every_row_has_a_cause_and_a_remedy() -> None:
    """No cell is empty."""
    for row in rows_below(HEAD, TEXT):
        assert len(row) == 3, row
        assert all(row), row


def test_every_exception_is_a_refusal_or_something_else() -> None:
    """Whoever declares one says which."""
    unknown = exceptions() - REFUSING - set(OTHERS)
    assert not unknown, (
        f"{sorted(unknown)} are neither among REFUSING nor among OTHERS of "
        "tests/refusals.py: put them there"
    )
    assert REFUSING | set(OTHERS) == exceptions() | {"RuntimeError"}


def test_the_page_has_all_codes_of_dead_letters() -> None:
    """As `rankstream/wire/refusal_codes.py` has them, row for row."""
    expected = [[f"`{code}`", code.stage, code.meaning, code.remedy] for code in Code]
    assert rows_below("| code | stage | meaning | remedy |", TEXT) == expected


def test_the_page_has_all_exit_statuses() -> None:
    """Those that the code returns or ends with."""
    numbers = {"EX_CONFIG": 78, "CONFIGURATION_EXIT": 78, "FAILURE_EXIT": 70}
    sources = [
        *(TREE / "rankstream" / "operations" / "commands").rglob("*.py"),
        *(TREE / "rankstream" / "lab" / "commands").rglob("*.py"),
        TREE / "rankstream" / "operations" / "cli.py",
        TREE / "streams" / "kafka" / "app.py",
    ]
    given = set()
    for path in sources:
        text = path.read_text(encoding="utf-8")
        ends = re.findall(r"(?:return|status =|is_final else) (\d+|\w+_EXIT)", text)
        given |= {numbers.get(word, word) for word in ends}
        given |= {numbers[word] for word in numbers if word in text}
    listed = {int(row[0]) for row in rows_below(STATUSES, TEXT)}
    assert {int(each) for each in given} == listed


def test_a_refusal_is_found_by_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised, made by a function, held in a variable, or in two forms."""
    assert beginning_of("a {b} must be: so") == "a {b} must be"
    room = tmp_path / "streams"
    room.mkdir()
    (room / "some.py").write_text(
        "def f(x):\n"
        "    raise StateRefused(f'the state of {x} must be new; it is old')\n"
        "def g():\n"
        "    return 'one thing: do' if 1 else 'another thing'\n"
        "def h(x):\n"
        "    why = f'{x} held'\n"
        "    raise SnapshotError('word', why) from x\n"
        "def i():\n"
        "    raise KafkaRefused(g())\n"
        "def j():\n"
        "    return LogBroken(f'{1} and {2}')\n"
    )
    (tmp_path / "rankstream" / "wire").mkdir(parents=True)
    (tmp_path / "rankstream" / "wire" / "schemas.py").write_text("")
    monkeypatch.setattr(refusals, "TREE", tmp_path)
    found = [each.beginning for each in refusals.refusals()]
    assert found == [
        "the state of … must be new",
        "… held",
        "one thing",
        "another thing",
        "… and …",
    ]
