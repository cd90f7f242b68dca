"""Tables of what one query counted, and of the relevance of its items."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table

from models.estimators.intervals import FEW_CLICKS, FEW_GROUPS
from models.estimators.intervention_aware import LEAST_SUPPORT
from rankstream.operations.answers.relevance import ItemRelevance, QueryRelevance
from rankstream.operations.answers.statistics import DAY_MS, CountedScopes
from rankstream.operations.terminal.bars import bars_of
from rankstream.operations.terminal.words import counted, plain
from streams.statistics.keys import OPEN_SET, OVERFLOW_SET, Counted, ScopeName

SET_DIGITS = 12
"""Of the hexadecimal name of a candidate set: enough to tell them apart."""


SPARE_OF_SCOPES = ("to", "per list", "from")
"""Columns of the table of scopes that a narrow terminal can do without."""

UNDER_EXPOSED = "under-exposed"

_WITHOUT = {FEW_GROUPS: "one group", FEW_CLICKS: "few clicks"}
"""What stands in the place of an interval."""

SPARE_OF_RELEVANCE = ("df", "lists", "clicks")
"""Columns that a narrow terminal can do without."""


def say(console: Console, label: str) -> None:
    """Print a line, if there is one."""
    if label:
        console.print(label, highlight=False)


def scope_title(name: ScopeName, settings: Counted | None) -> str:
    """Which scope it is, but for its query."""
    return (
        f"{_set_label(name.candidate_set)}, "
        f"intervention {plain(name.intervention) or '-'}, "
        f"{era_label(name.era, settings)}"
    )


def directory_of(
    scopes: Mapping[ScopeName, CountedScopes],
    title: str,
    settings: Counted | None,
    limit: int,
) -> Table:
    """A line for each scope, most shown first.

    Parameters
    ----------
    settings
        What they were counted under; None where that is not known.
    limit
        Lines of the table.
    """
    table = Table(title=title)
    clicks, _ = reward_labels(settings)
    table.add_column("candidates", no_wrap=True)
    table.add_column("intervention", overflow="fold")
    for column in ("era", "from", "to"):
        table.add_column(column, no_wrap=True)
    for column in ("lists", clicks, "per list"):
        table.add_column(column, justify="right", no_wrap=True)
    lists = {name: one.cell.total("impressions") for name, one in scopes.items()}
    order = sorted(lists, key=lambda name: (-lists[name], name))
    for name in order[:limit]:
        shown, clicked = lists[name], scopes[name].cell.total("clicks")
        days = era_label(name.era, settings).removeprefix("era ").partition(" to ")
        table.add_row(
            name.candidate_set.hex()[:SET_DIGITS],
            plain(name.intervention) or "-",
            str(name.era),
            *(("-", "-") if settings is None else days[::2]),
            f"{shown:,}",
            f"{clicked:,}",
            f"{clicked / shown:.3f}" if shown else "-",
        )
    if len(order) > limit:
        table.add_row(f"... {len(order) - limit:,} more")
    return table


def table_of(
    found: CountedScopes, title: str, settings: Counted | None, limit: int
) -> Table:
    """Every item and rank of a scope, or of several together.

    Parameters
    ----------
    settings
        What the scope was counted under; None where that is not known.
    limit
        Rows of the table.
    """
    cell = found.cell
    clicks, rate = reward_labels(settings)
    n_clicks = cell.total("clicks")
    clicked = counted(n_clicks, "click")
    if clicks != "clicks":
        clicked = f"{counted(n_clicks, 'place')} with {clicks}"
    caption = f"{counted(cell.total('impressions'), 'list')}, {clicked}"
    table = Table(title=title, caption=caption)
    table.add_column("item", overflow="fold")
    classes = found.classes()
    names = [_class_label(which, settings) for which in classes]
    columns = ("rank", "shown", clicks, rate, *names, "expected\nexposure")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    places = found.places()
    for place in places[:limit]:
        table.add_row(
            plain(place.item),
            str(place.rank),
            f"{place.shown:,}",
            f"{place.clicked:,}",
            f"{place.clicked / place.shown:.3f}" if place.shown else "-",
            *(f"{place.rewards.get(which, 0):,}" for which in classes),
            "-" if place.exposure is None else f"{place.exposure:,.2f}",
        )
    if len(places) > limit:
        table.add_row(f"... {len(places) - limit:,} more")
    return table


def relevance_table(found: QueryRelevance, limit: int) -> Table:
    """A line for each item, the most relevant first; `limit` rows."""
    clicks = round(found.effective_clicks)
    table = Table(
        title="relevance, corrected for position",
        caption=f"as precise as {counted(clicks, 'click')} of equal weight; "
        f"{UNDER_EXPOSED}: exposure below {LEAST_SUPPORT:g}",
    )
    table.add_column("item", overflow="fold")
    for column in ("lists", "clicks", "exposure", "relevance", "95 %", "df", ""):
        table.add_column(column, justify="right", no_wrap=True)
    shown = found.items[:limit]
    numbers = [(row.relevance, row.low, row.high) for row in shown]
    axis, bars = bars_of(numbers, is_from_zero=True)
    table.add_column(axis)
    for row, bar in zip(shown, bars, strict=True):
        table.add_row(
            plain(row.item),
            f"{row.impressions:,}",
            f"{row.clicked:,}",
            f"{row.exposure:,.1f}",
            "-" if math.isnan(row.relevance) else f"{row.relevance:.3f}",
            _interval(row),
            "" if row.reason else str(row.degrees),
            UNDER_EXPOSED if row.is_under_exposed else "",
            bar,
        )
    if len(found.items) > limit:
        table.add_row(f"... {len(found.items) - limit:,} more")
    return table


def _interval(row: ItemRelevance) -> str:
    if row.reason:
        return _WITHOUT.get(row.reason, "-")
    return f"{row.low:.3f} to {row.high:.3f}"


def era_label(era: int, settings: Counted | None) -> str:
    """From when to when an era is (UTC), or its number where its length is not known.

    Examples
    --------
    >>> from streams.statistics.keys import Counted
    >>> days = 90 * 86_400_000
    >>> era_label(226, Counted(20, days, ("click",), "click", 0, {}, 0, 0, 0, 0, 0))
    'era 2025-09-09 to 2025-12-07'
    >>> era_label(9, Counted(20, 3_600_000, ("click",), "click", 0, {}, 0, 0, 0, 0, 0))
    'era 1970-01-01 09:00 to 1970-01-01 09:59'
    >>> era_label(226, None)
    'era 226'
    """
    if settings is None:
        return f"era {era}"
    first, last = era * settings.keep_ms, (era + 1) * settings.keep_ms - 1
    has_days = settings.keep_ms % DAY_MS == 0
    return f"era {_moment(first, has_days)} to {_moment(last, has_days)}"


def reward_labels(settings: Counted | None) -> tuple[str, str]:
    """What the counted action is called, and its rate.

    Examples
    --------
    >>> from streams.statistics.keys import Counted
    >>> reward_labels(Counted(20, 1, ("click", "buy"), "buy", 0, {}, 0, 0, 0, 0, 0))
    ('buy', 'buy rate')
    >>> reward_labels(None)
    ('clicks', 'click rate')
    """
    if settings is None or settings.reward == settings.classes[0]:
        return "clicks", "click rate"
    return plain(settings.reward), f"{plain(settings.reward)} rate"


def _moment(at_ms: int, has_days: bool) -> str:
    try:
        moment = datetime.fromtimestamp(at_ms / 1000, UTC)
        return f"{moment:%Y-%m-%d}" if has_days else f"{moment:%Y-%m-%d %H:%M}"
    except (OverflowError, ValueError, OSError):
        return f"{at_ms:,} ms"


def _set_label(name: bytes) -> str:
    if name == OPEN_SET:
        return "lists without candidates"
    if name == OVERFLOW_SET:
        return "beyond the limits"
    return f"candidates {name.hex()[:SET_DIGITS]}"


def _class_label(which: int, settings: Counted | None) -> str:
    if settings is None or which >= len(settings.classes):
        return f"class {which}"
    return plain(settings.classes[which])
