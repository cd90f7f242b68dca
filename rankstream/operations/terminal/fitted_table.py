"""Tables whose figures are whole and whose names can be copied, on any terminal."""

import os
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from rankstream.operations.terminal.bars import LEAST, MOST, Axis, has_bars

LONGEST_NAME = 40
"""Columns that a name has at least before it goes over several lines."""

BORDERS = 3
"""Columns of a border and two spaces."""

PIPE = 1 << 16
"""Columns of what is no terminal."""


def wide_console() -> Console:
    """As wide as the terminal, or as COLUMNS says; a pipe has no width."""
    console = Console()
    if console.is_terminal or os.environ.get("COLUMNS"):
        return console
    return Console(width=PIPE)


def print_fitted(console: Console, table: Table, spare: Sequence[str] = ()) -> None:
    """Print a table; where it is too wide, columns go, and then it overhangs.

    Which ones went is said below. A column of bars is there where there is room for it
    beside those that may not go.

    Parameters
    ----------
    spare
        Headers of the columns that may go, the first one first.
    """
    bars = [one for one in table.columns if isinstance(one.header, Axis)]
    kept = [one for one in table.columns if not isinstance(one.header, Axis)]
    needed = [one for one in kept if one.header not in spare]
    of_bars = BORDERS + LEAST
    is_drawn = (
        bool(bars)
        and has_bars(console)
        and _full_width(needed) + of_bars <= console.width
    )
    gone = []
    for header in spare:
        is_wide = _least_width(kept) > console.width
        is_wide |= is_drawn and _full_width(kept) + of_bars > console.width
        left = [one for one in kept if one.header != header]
        if is_wide and len(left) < len(kept):
            kept = left
            gone.append(header)
    least = _least_width(kept)
    if is_drawn:
        (column,) = bars
        column.width = min(console.width - _full_width(kept) - BORDERS, MOST)
        kept.append(column)
    table.columns = kept
    title, caption = table.title, table.caption
    if gone:
        said = f"no room for: {', '.join(gone)}"
        caption = f"{caption}\n{said}" if caption else said
    table.title = table.caption = None
    for part, width in (
        (title, PIPE),
        (table, max(console.width, least)),
        (caption, PIPE),
    ):
        # Titles within a table would be broken at its width.
        if part is not None:
            Console(width=width).print(part, highlight=False)


def _least_width(columns: Sequence[Column]) -> int:
    """Each column has its borders, and there is one border more."""
    return 1 + sum(BORDERS + max(_widths(column)) for column in columns)


def _full_width(columns: Sequence[Column]) -> int:
    """The same where no name goes over several lines, unless it is longer than most."""
    lines = (
        [
            cell_len(line) if column.no_wrap else min(cell_len(line), LONGEST_NAME)
            for cell in (column.header, *column.cells)
            for line in Text.from_markup(str(cell)).plain.split("\n")
        ]
        for column in columns
    )
    return 1 + sum(BORDERS + max(each, default=0) for each in lines)


def _widths(column: Column) -> Iterator[int]:
    for cell in (column.header, *column.cells):
        text = Text.from_markup(str(cell)).plain
        if column.no_wrap:
            yield from map(cell_len, text.split("\n"))
        else:
            yield from (min(cell_len(word), LONGEST_NAME) for word in text.split())
    yield 1
