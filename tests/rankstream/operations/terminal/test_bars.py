"""Bars in terminals: where their ends are, and where there are none."""

import io
import math
import os
import pty
import subprocess
import sys
from collections.abc import Sequence

import pytest
from rich.console import Console
from rich.table import Table

from rankstream.operations.terminal.bars import LEAST, MOST, Numbers, bars_of, has_bars
from rankstream.operations.terminal.fitted_table import print_fitted

NAN = math.nan


def drawn(
    rows: list[Numbers], width: int = 11, **how: float | bool | None
) -> list[str]:
    """The bars as text."""
    _, bars = bars_of(rows, **how)  # type: ignore[arg-type]
    return [bar.drawn(width).plain for bar in bars]


def test_a_bar_ends_at_its_number_and_whiskers_at_its_interval() -> None:
    """Eleven columns of a scale from 0 to 1 are its tenths."""
    rows = [(0.5, 0.3, 0.8), (1.0, 0.9, 1.0), (0.2, NAN, NAN), (NAN, NAN, NAN)]
    assert drawn(rows, is_from_zero=True) == [
        "███├─●──┤", "█████████├●", "██○", ""
    ]  # fmt: skip


def test_what_is_below_zero_is_seen_against_it() -> None:
    """No bar is filled then; whiskers that cross it show where."""
    rows = [(-0.3, -0.5, -0.1), (0.1, -0.1, 0.5), (0.3, 0.2, 0.4), (0.5, NAN, NAN)]
    expected = ["├─●─┤│", "    ├┼●───┤", "     │ ├●┤", "     │    ○"]
    assert drawn(rows, reference=0.0) == expected
    assert drawn(rows, is_from_zero=True) == expected


@pytest.mark.parametrize("value", [0.0, 0.7, -2.0])
def test_one_number_alone_has_a_place(value: float) -> None:
    """Its scale is not empty."""
    for how in ({}, {"is_from_zero": True}, {"reference": 0.0}):
        (found,) = drawn([(value, value, value)], **how)
        assert found.count("●") == 1
        assert len(found) <= 11
    assert drawn([]) == []


def table_of(rows: list[Numbers], spare: Sequence[str] = ()) -> Table:
    """A table of a name, a number, what may go, and bars."""
    table = Table()
    table.add_column("item", overflow="fold")
    table.add_column("value", no_wrap=True)
    for name in spare:
        table.add_column(name)
    axis, bars = bars_of(rows, is_from_zero=True)
    table.add_column(axis)
    for row, bar in zip(rows, bars, strict=True):
        table.add_row("red shoes", f"{row[0]:.3f}", *("7" for _ in spare), bar)
    table.add_row("... 5 more")
    return table


@pytest.mark.parametrize(
    ("width", "room"), [(36, 0), (37, LEAST), (50, 25), (99, MOST)]
)
def test_bars_are_as_wide_as_there_is_room(
    width: int, room: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """And what is beside them is whole; the table is never wider than the terminal."""
    console = Console(width=width, force_terminal=True)
    print_fitted(console, table_of([(0.5, 0.4, 1.0)]))
    printed = capsys.readouterr().out.splitlines()

    assert max(map(len, printed)) <= width
    assert any("red shoes" in line for line in printed)
    (row,) = (line for line in printed if "red shoes" in line)
    (head,) = (line for line in printed if "value" in line)
    assert row.count("├") == (room > 0)
    if room:
        # From 0 to the largest number.
        assert head.rstrip(" ┃").endswith("1")
        assert len(row.split("│")[3]) == room + 2


@pytest.mark.parametrize(
    ("width", "gone"), [(60, ""), (50, "lists"), (42, "lists, clicks"), (30, "")]
)
def test_bars_come_before_columns_that_may_go(
    width: int, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unless there would be no room without these either."""
    table = table_of([(0.5, 0.4, 1.0)], ["clicks", "lists"])
    console = Console(width=width, force_terminal=True)
    print_fitted(console, table, ["lists", "clicks"])
    printed = capsys.readouterr().out

    assert ("●" in printed) == (width > 30)
    assert printed.rstrip().endswith(f"no room for: {gone}") == bool(gone)
    assert ("clicks" in printed.splitlines()[1]) == ("clicks" not in gone)


def test_there_are_none_where_nobody_would_see_them() -> None:
    """In a pipe, whatever COLUMNS says; without Unicode; in a dumb terminal."""
    latin = io.TextIOWrapper(io.BytesIO(), "latin-1")
    assert has_bars(Console(force_terminal=True))
    assert not has_bars(Console(file=io.StringIO(), width=200))
    assert not has_bars(Console(file=latin, force_terminal=True))
    dumb = {"TERM": "dumb"}
    assert not has_bars(Console(force_terminal=True, _environ=dumb))


PROGRAM = """
from tests.rankstream.operations.terminal.test_bars import table_of
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
print_fitted(wide_console(), table_of([(0.5, 0.4, 1.0), (0.2, float("nan"), 1.0)]))
"""


@pytest.mark.parametrize(
    ("columns", "is_plain"), [(30, False), (80, False), (120, True)]
)
def test_a_terminal_of_its_own_shows_them(columns: int, is_plain: bool) -> None:
    """With colours, unless NO_COLOR is set; a narrow one has none."""
    ours, theirs = pty.openpty()
    environment = os.environ | {
        "COLUMNS": str(columns),
        "TERM": "xterm",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "NO_COLOR": "1" if is_plain else "",
    }
    try:
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            check=True, stdout=theirs, stdin=subprocess.DEVNULL, env=environment,
        )  # fmt: skip
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(theirs)
        os.close(ours)

    assert ("●" in shown) == ("○" in shown) == (columns > 30)
    assert ("\x1b[36m" in shown) == (columns > 30 and not is_plain)
