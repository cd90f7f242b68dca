"""Tables of what one query counted, scope by scope or all together."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from rich.table import Table

from models.counts.cells import CellSummary
from models.counts.scope_record import CAPPED, CONVERTED, OVERFLOWED, TRUNCATED
from rankstream.operations.commands.statistics_scopes import (
    DAY_MS,
    Place,
    ShownScope,
    Together,
)
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.plain_text import plain
from streams.statistics.keys import OPEN_SET, OVERFLOW_SET, Counted, ScopeName
from streams.statistics.reader import Statistics

_FLAGS = {
    CAPPED: "beyond the limits on sets and interventions: only shown and clicked "
    "are counted",
    OVERFLOWED: "more lists, masks or exposure rows than `limits` keeps apart: sums "
    "are exact, lists are not all kept",
    TRUNCATED: "some lists have more than 32 items: their masks are not kept",
    CONVERTED: "converted from an earlier release: exposures are refused",
}

SET_DIGITS = 12
"""Of the hexadecimal name of a candidate set: enough to tell them apart."""


SPARE_OF_SCOPES = ("to", "per list", "from")
"""Columns of the table of scopes that a narrow terminal can do without."""


def scope_title(name: ScopeName, settings: Counted | None) -> str:
    """Which scope it is, but for its query."""
    return (
        f"{_set_label(name.candidate_set)}, "
        f"intervention {plain(name.intervention) or '-'}, "
        f"{era_label(name.era, settings)}"
    )


def directory_of(
    scopes: Sequence[ShownScope], title: str, settings: Counted | None, limit: int
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
    order = sorted(scopes, key=lambda one: (-one.cell.total("impressions"), one.name))
    for name, _, cell, _ in order[:limit]:
        shown, clicked = cell.total("impressions"), cell.total("clicks")
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


def remarks_on(found: ShownScope | Together) -> list[str]:
    """What must be known about a scope, or about some of several."""
    if isinstance(found, ShownScope):
        return [words for flag, words in _FLAGS.items() if found.flags & flag]
    return [
        f"in {found.flags[flag]:,} of {found.n_scopes:,} scopes: {words}"
        for flag, words in _FLAGS.items()
        if found.flags[flag]
    ]


def table_of(
    found: ShownScope | Together, title: str, settings: Counted | None, limit: int
) -> Table:
    """Every item and rank of a scope, or of several together.

    Parameters
    ----------
    settings
        What the scope was counted under; None where that is not known.
    limit
        Rows of the table.
    """
    cell, exposures = found.cell, found.exposures
    clicks, rate = reward_labels(settings)
    n_clicks = cell.total("clicks")
    clicked = counted(n_clicks, "click")
    if clicks != "clicks":
        clicked = f"{counted(n_clicks, 'place')} with {clicks}"
    caption = f"{counted(cell.total('impressions'), 'list')}, {clicked}"
    table = Table(title=title, caption=caption)
    table.add_column("item", overflow="fold")
    classes = np.unique(cell.rewards[:, 0]).tolist()
    names = [_class_label(which, settings) for which in classes]
    columns = ("rank", "shown", clicks, rate, *names, "expected\nexposure")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    counts = _counts_of(cell)
    rewards = _rewards_of(cell)
    places = sorted(
        counts.keys() | exposures.keys() | rewards.keys(),
        key=lambda place: (place[1], -counts.get(place, (0, 0))[0], place[0]),
    )
    for place in places[:limit]:
        n_shown, n_clicked = counts.get(place, (0, 0))
        exposure = exposures.get(place)
        table.add_row(
            plain(place[0]),
            str(place[1]),
            f"{n_shown:,}",
            f"{n_clicked:,}",
            f"{n_clicked / n_shown:.3f}" if n_shown else "-",
            *(f"{rewards[place].get(which, 0):,}" for which in classes),
            "-" if exposure is None else f"{exposure:,.2f}",
        )
    if len(places) > limit:
        table.add_row(f"... {len(places) - limit:,} more")
    return table


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


def left_label(statistics: Statistics) -> str:
    """How much is not in the counts any more; empty where all is."""
    share = statistics.share_left()
    if not share:
        return ""
    before = ", or they left one by one before the conversion"
    return (
        f"{share:.1%} of all interactions that were counted have left: their era "
        "ended more than `time.keep_ms` ago"
        f"{before if statistics.n_converted() else ''}"
    )


def missing_label(n_missing: int, one: str, several: str) -> str:
    """That something is not in the topic any more; empty where all of it is."""
    if n_missing < 1:
        return ""
    are = "is" if n_missing == 1 else "are"
    return (
        f"{counted(n_missing, one, several)} {are} missing: records left the topic "
        "that should be there; `rankstream recount` says which"
    )


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


def _counts_of(cell: CellSummary) -> dict[Place, tuple[int, int]]:
    return {
        (cell.items[item], rank): (n_shown, n_clicked)
        for item, rank, n_shown, n_clicked in cell.pairs[:, :4].tolist()
    }


def _rewards_of(cell: CellSummary) -> dict[Place, dict[int, int]]:
    rewards: dict[Place, dict[int, int]] = defaultdict(dict)
    for which, item, rank, number in cell.rewards.tolist():
        rewards[cell.items[item], rank][which] = number
    return rewards
