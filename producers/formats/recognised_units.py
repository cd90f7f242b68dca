"""Times in another unit, told by the first rows of a file, before anything is sent."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from producers.formats.adapted import Adapted
from producers.formats.click_tables import Click
from producers.formats.source_file import FileUnreadable
from rankstream.adapters.times import in_ms
from rankstream.wire.input_events import Event
from rankstream.wire.units_of_time import WORDS, unit_of

MOST_LOOKED_AT = 1_000
"""Events of a file whose times are looked at before any is given."""


Taken = TypeVar("Taken", Event, Click | Event)


class OtherUnit(FileUnreadable):
    """Times of a file are in another unit than was said.

    Operator action: name the unit with `--option time_unit`.
    """


def in_one_unit(
    events: Iterable[Taken], path: Path, adapted: Adapted, *, unit: str, part: str = ""
) -> Iterator[Taken]:
    """The same events, if their times are what was said.

    Parameters
    ----------
    adapted
        Counts the times that the reader of these events refuses for their unit.
    unit
        What was said; empty where nothing was.
    part
        Of the option's name, where the log has two tables: `clicks.` or `queries.`.

    Raises
    ------
    OtherUnit
        Where more than half of the first times are in another unit.
    """
    n_before = Counter(adapted.units)
    events = iter(events)
    # Readers say where each is from while they read: that is kept with it.
    first, lines = [], []
    for each in itertools.islice(events, MOST_LOOKED_AT):
        first.append(each)
        lines.append(adapted.line)
    found = Counter(adapted.units)
    found.subtract(n_before)
    expected = unit or "ms"
    good = Counter(unit_of(at_ms) for at_ms in _times(first))
    # A reader that was told the unit refuses all others itself. What is in none is for
    # ingestion to judge.
    found.update({expected: good.total()} if unit else good)
    del found[""]
    n_all = sum(found.values())
    other, n_other = next(iter(found.most_common(1)), (expected, 0))
    if other != expected and 2 * n_other > n_all:
        own = (at_ms for at_ms in _times(first) if unit_of(at_ms) == other)
        number = adapted.odd_times.get(other) or next(own)
        when = datetime.fromtimestamp(in_ms(number, other) / 1_000, UTC)
        both = f", or time_unit={other} for both files" if part else ""
        raise OtherUnit(
            path,
            0,
            f"times must be in {WORDS[expected]}; {n_other:,} of the first "
            f"{n_all:,} are in {WORDS[other]}, such as {number}, which is "
            f"{when:%Y-%m-%d %H:%M:%S} UTC: give --option {part}time_unit={other}"
            f"{both}; nothing was sent",
        )
    last = adapted.line
    for each, adapted.line in zip(first, lines, strict=True):
        yield each
    adapted.line = last
    yield from events


def _times(taken: Iterable[Event | Click]) -> Iterator[int]:
    for each in taken:
        is_refused = isinstance(each, Event) and each.refusal
        if each.at_ms is not None and not is_refused:
            yield each.at_ms
