"""Tables that leave columns out where a terminal has no room for them."""

from collections.abc import Iterator, Sequence

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text


class Fitted:
    """A table, and which of its columns may go, the first one first."""

    def __init__(self, table: Table, spare: Sequence[str]) -> None:
        self._table = table
        self._spare = spare

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """The table, and which columns are left out."""
        table, gone = self._table, []
        for heading in self._spare:
            if _least_width(table) <= options.max_width:
                break
            table.columns = [each for each in table.columns if each.header != heading]
            gone.append(heading.replace("\n", " "))
        yield table
        if gone:
            yield Text(f"no room for: {', '.join(gone)}", style="dim")


def _least_width(table: Table) -> int:
    """Each column has a space beside it; only those that may be broken give way."""
    return sum(1 + max(_widths(column)) for column in table.columns)


def _widths(column: Column) -> Iterator[int]:
    for cell in (column.header, *column.cells):
        lines = str(cell).split("\n" if column.no_wrap else None)
        yield from map(cell_len, lines)
