"""Rows as text and as HTML: aligned, bounded in number, without markup of others."""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len, set_cell_size

from rankstream.operations.terminal.words import visible

MOST_ROWS = 20
"""Of a table; the rest is in `to_pandas` and its like."""

WIDEST = 72
"""Columns of a terminal that a cell of text has at most."""

_HTML = "<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
_RIGHT = ' style="text-align: right"'


class Shown(NamedTuple):
    """A table as people read it.

    Parameters
    ----------
    title
        What it is of.
    names
        Of the columns.
    rows
        Cells by column.
    remarks
        What must be known of it, the most important first.
    """

    title: str
    names: Sequence[str]
    rows: Sequence[Mapping[str, Any]]
    remarks: Sequence[str] = ()

    def text(self) -> str:
        """In lines, columns aligned."""
        cells = [[_cell(row[name]) for name in self.names] for row in self._first()]
        columns = [*zip(*[[*self.names], *cells], strict=True)]
        widths = [max(map(cell_len, column)) for column in columns]
        numeric = [self._is_numeric(name) for name in self.names]
        lines = [visible(self.title)]
        for place, row in enumerate([[*self.names], *cells]):
            lines.append(_line(row, widths, numeric))
            if not place:
                lines.append("  ".join("-" * width for width in widths))
        lines += [*self._left(), *(f"* {visible(each)}" for each in self.remarks)]
        return "\n".join(line.rstrip() for line in lines)

    def html(self) -> str:
        """As a notebook shows it."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.names)
        body = "".join(
            "<tr>" + "".join(self._html_cells(row)) + "</tr>" for row in self._first()
        )
        title = html.escape(visible(self.title))
        table = _HTML.format(
            caption=f"<caption>{title}</caption>", head=head, body=body
        )
        said = [*self._left(), *map(visible, self.remarks)]
        listed = "".join(f"<li>{html.escape(each)}</li>" for each in said)
        return f"<div>{table}<ul>{listed}</ul></div>" if said else f"<div>{table}</div>"

    def _html_cells(self, row: Mapping[str, Any]) -> Iterable[str]:
        for name in self.names:
            style = _RIGHT if self._is_numeric(name) else ""
            yield f"<td{style}>{html.escape(_cell(row[name]))}</td>"

    def _first(self) -> Sequence[Mapping[str, Any]]:
        return self.rows[:MOST_ROWS]

    def _left(self) -> list[str]:
        n_left = len(self.rows) - MOST_ROWS
        return [f"... {n_left:,} more rows"] if n_left > 0 else []

    def _is_numeric(self, name: str) -> bool:
        return not any(isinstance(row[name], str) for row in self._first())


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    parts = []
    for cell, width, is_number in zip(cells, widths, numeric, strict=True):
        padding = " " * (width - cell_len(cell))
        parts.append(padding + cell if is_number else cell + padding)
    return "  ".join(parts)


def _cell(value: Any) -> str:
    """A value in few characters.

    Examples
    --------
    >>> [_cell(each) for each in (1_000, 0.123456, float("nan"), None, True, "a")]
    ['1,000', '0.1235', '-', '-', 'yes', 'a']
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else "-"
    text = visible(str(value))
    return text if cell_len(text) <= WIDEST else set_cell_size(text, WIDEST - 1) + "…"
