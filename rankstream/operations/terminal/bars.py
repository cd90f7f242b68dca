"""Bars with whiskers beside numbers of a table, where a terminal has room for them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

LEAST, MOST = 12, 48
"""Columns of a bar."""

BAR, WHISKER, ENDS = "█", "─", ("├", "┤")

KNOWN, WITHOUT = "●", "○"
"""Where a number is: with an interval, and without one that it ought to have."""

REFERENCE, CROSSING = "│", "┼"
"""Where the reference is, beside whiskers and under them."""

Numbers = tuple[float, float, float]
"""A number and the ends of its interval; NaN is what is not known."""


@dataclass(frozen=True)
class Scale:
    """From which number to which one a bar goes, and what it is seen against.

    Parameters
    ----------
    is_filled
        Whether bars begin at the low end, which then is 0.
    reference
        A number on the scale that is marked; None: none.
    """

    low: float
    high: float
    is_filled: bool = False
    reference: float | None = None

    def place(self, number: float, width: int) -> int:
        """The column of a number, from 0 to `width` - 1."""
        share = (number - self.low) / (self.high - self.low)
        return round(min(1.0, max(0.0, share)) * (width - 1))


@dataclass(frozen=True)
class Axis:
    """What stands above bars: both ends of their scale."""

    scale: Scale

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Draw it as wide as the column is."""
        ends = f"{self.scale.low:.3g}", f"{self.scale.high:.3g}"
        yield Text(ends[0] + ends[1].rjust(options.max_width - len(ends[0])), "dim")


@dataclass(frozen=True)
class Bar:
    """A number with its whiskers."""

    numbers: Numbers
    scale: Scale

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Draw it as wide as the column is."""
        yield self.drawn(options.max_width)

    def drawn(self, width: int) -> Text:
        """It on so many columns; nothing where there is no number."""
        value, low, high = self.numbers
        if not math.isfinite(value):
            return Text()
        scale, cells = self.scale, [" "] * width
        at = scale.place(value, width)
        if scale.reference is not None:
            marked = scale.place(scale.reference, width)
            cells[marked] = REFERENCE
        if scale.is_filled:
            cells[:at] = [BAR] * at
        has_interval = math.isfinite(low) and math.isfinite(high)
        if has_interval:
            first, last = scale.place(low, width), scale.place(high, width)
            cells[first : last + 1] = [WHISKER] * (last + 1 - first)
            cells[first], cells[last] = ENDS
            if scale.reference is not None and first < marked < last:
                cells[marked] = CROSSING
        cells[at] = KNOWN if has_interval else WITHOUT
        text = Text("".join(cells).rstrip(), "cyan")
        text.stylize("bold", at, at + 1)
        return text


def bars_of(
    rows: Sequence[Numbers],
    *,
    is_from_zero: bool = False,
    reference: float | None = None,
) -> tuple[Axis, list[Bar]]:
    """The head of a column of bars, and a cell for each row, all on one scale.

    `rankstream.operations.terminal.fitted_table.print_fitted` leaves the column out
    where there is no room for it.

    Parameters
    ----------
    is_from_zero
        Whether bars are filled from 0 on; where a number is below, 0 is marked.
    """
    known = [x for row in rows for x in row if math.isfinite(x)]
    is_filled = is_from_zero and min(known, default=0.0) >= 0.0
    marked = 0.0 if is_from_zero and not is_filled else reference
    seen = [
        *known,
        *([0.0] if is_filled else []),
        *([] if marked is None else [marked]),
    ]
    low, high = min(seen, default=0.0), max(seen, default=1.0)
    scale = Scale(low, high if high > low else low + 1.0, is_filled, marked)
    return Axis(scale), [Bar(row, scale) for row in rows]


def has_bars(console: Console) -> bool:
    """Whether it is a terminal that shows them: neither a pipe nor without Unicode."""
    return (
        console.is_terminal
        and not console.is_dumb_terminal
        and not console.legacy_windows
        and console.encoding.startswith("utf")
    )
