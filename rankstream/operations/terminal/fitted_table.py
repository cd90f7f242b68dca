"""Tables whose figures are whole and whose names can be copied, on any terminal."""

import os
from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

LONGEST_NAME = 40
"""Columns that a name has at least before it goes over several lines."""

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

    Which ones went is said below.

    Parameters
    ----------
    spare
        Headers of the columns that may go, the first one first.
    """
    gone = []
    for header in spare:
        kept = [one for one in table.columns if one.header != header]
        if _least_width(table) > console.width and len(kept) < len(table.columns):
            table.columns = kept
            gone.append(header)
    title, caption = table.title, table.caption
    if gone:
        said = f"no room for: {', '.join(gone)}"
        caption = f"{caption}\n{said}" if caption else said
    table.title = table.caption = None
    for part, width in (
        (title, PIPE),
        (table, max(console.width, _least_width(table))),
        (caption, PIPE),
    ):
        # Titles within a table would be broken at its width.
        if part is not None:
            Console(width=width).print(part, highlight=False)


def _least_width(table: Table) -> int:
    """Each column has a border and two spaces, and there is one border more."""
    return 1 + sum(3 + max(_widths(column)) for column in table.columns)


def _widths(column: Column) -> Iterator[int]:
    for cell in (column.header, *column.cells):
        text = Text.from_markup(str(cell)).plain
        if column.no_wrap:
            yield from map(cell_len, text.split("\n"))
        else:
            yield from (min(cell_len(word), LONGEST_NAME) for word in text.split())
    yield 1
