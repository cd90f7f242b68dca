"""The named checks of `rankstream validate`, and what each has found."""

import itertools
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from rankstream.wire.refusal_codes import Code

MOST_EXAMPLES = 10
"""Of a check; the count has all."""

SHARE = 0.5
"""More than this share of the events, and a warning is a failure: no such log is merely
untidy."""


class Status(StrEnum):
    """What a check says; `NONE` where there was nothing to judge."""

    NONE = "NONE"
    PASS = "PASS"  # noqa: S105  it is none
    WARN = "WARN"
    FAIL = "FAIL"


class Check(NamedTuple):
    """A rule that a file of events is held to.

    Parameters
    ----------
    rule
        What must be so.
    remedy
        What to do where it is not.
    of
        What is counted: a check that only warns fails where more than half of these
        break it.
    is_lost
        Whether what breaks it is not counted at all: then the check fails.
    """

    name: str
    rule: str
    remedy: str
    of: str = "events"
    is_lost: bool = True


READABLE = "readable"
ADAPTED = "adapted"
EPOCH_UNIT = "epoch-unit"
FIELDS = "fields"
ORDINALS = "ordinals-from-1"
TIME_AHEAD = "time-not-ahead"
TIME_ORDER = "time-order"
HAS_LIST = "click-has-list"
IN_LIST = "click-in-its-list"
AFTER_LIST = "click-after-its-list"
IN_TIME = "in-time"
DUPLICATES = "no-duplicates"
CLICKS_OF_LIST = "clicks-of-a-list"
BOTH_KINDS = "lists-and-clicks"

CHECKS = (
    Check(
        READABLE,
        "files can be read to their end, and lines are JSON",
        "correct what wrote the file",
        "lines",
    ),
    Check(
        ADAPTED,
        "documents are of the format, with all that an event needs",
        "give the --format that they have, or correct what wrote them",
        "documents",
    ),
    Check(
        EPOCH_UNIT,
        "times are milliseconds since 1970, or in foreign formats ISO 8601 with a zone",
        "send these; where numbers are in another unit, say which with --option "
        "time_unit=s, us or ns",
    ),
    Check(
        FIELDS,
        "fields are those of docs/events.md, within the limits",
        "see the code in docs/refusals.md",
    ),
    Check(
        ORDINALS,
        "positions count from 1",
        "count from 1, or say that the format counts from 0: --option ordinal_base=0",
        "clicks",
    ),
    Check(
        TIME_AHEAD,
        "no event is more than time.ahead_ms ahead of now",
        "set the client's clock, or its time zone",
    ),
    Check(
        TIME_ORDER,
        "no event comes more than time.disorder_ms behind a later one",
        "`rankstream replay` sorts; `feed` does not, and such events may be late",
        is_lost=False,
    ),
    Check(
        BOTH_KINDS,
        "there are lists and clicks",
        "give the files of both in one call; where both are there, see which column, "
        "action or field says that an item was clicked",
        is_lost=False,
    ),
    Check(
        HAS_LIST,
        "each click names a list that is there",
        "compare the ids of the first examples with those of the lists",
        "clicks",
        is_lost=False,
    ),
    Check(
        IN_LIST,
        "each click is on an item and a position of its list",
        "compare the click with its list; see ordinals-from-1; where pages count on "
        "over several lists, --option ordinals=false goes by the item alone",
        "clicks",
    ),
    Check(
        AFTER_LIST,
        "no click is earlier than its list",
        "compare the clocks, and time zones, of what logs lists and clicks",
        "clicks",
        is_lost=False,
    ),
    Check(
        IN_TIME,
        "no event comes when its window has closed",
        "raise time.click_window_ms in a new namespace if such clicks matter",
        is_lost=False,
    ),
    Check(
        DUPLICATES,
        "no event comes twice",
        "nothing: a repeat is counted once; look for a sender that repeats",
        is_lost=False,
    ),
    Check(
        CLICKS_OF_LIST,
        "no list has more clicks than limits.clicks and limits.click_bytes",
        "look for robots",
        "clicks",
    ),
)
"""In the order in which they are told."""

CHECK_OF_CODE: dict[str, str] = {
    Code.NOT_JSON: READABLE,
    Code.EMPTY: READABLE,
    Code.NOT_ADAPTED: ADAPTED,
    Code.TIME: EPOCH_UNIT,
    Code.TIME_FUTURE: TIME_AHEAD,
    Code.NOT_SHOWN: IN_LIST,
    Code.TOO_MANY_CLICKS: CLICKS_OF_LIST,
}
"""Where a dead letter of a code is told; all others are of `FIELDS`."""


CHECK_OF_REASON = {
    "not-json": READABLE,
    "time": EPOCH_UNIT,
    "ordinal": ORDINALS,
    "not-joined": HAS_LIST,
}
"""Where a reason of an adapter is told; all others are of `ADAPTED`."""


class Example(NamedTuple):
    """What broke a rule: the number of its document, if it is one's, and why."""

    document: int | None
    why: str
    code: str = ""


@dataclass
class Found:
    """How much broke a rule, by code where there are any, and the first of each."""

    n: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    _first: dict[str, list[Example]] = field(default_factory=dict)

    def add(self, document: int | None, why: str, code: str = "") -> None:
        """Count one more."""
        self.n += 1
        if code:
            self.codes[code] += 1
        first = self._first.setdefault(code, [])
        if len(first) < MOST_EXAMPLES:
            first.append(Example(document, why, code))

    @property
    def examples(self) -> list[Example]:
        """Some of each code, the most frequent code first; `MOST_EXAMPLES` or more."""
        by_count = sorted(self._first, key=lambda code: -self.codes[code])
        rounds = itertools.zip_longest(*(self._first[code] for code in by_count))
        in_turn = [each for one in rounds for each in one if each is not None]
        chosen = set(in_turn[: max(MOST_EXAMPLES, len(by_count))])
        return [
            each for code in by_count for each in self._first[code] if each in chosen
        ]


def status_of(check: Check, n_found: int, n_of: int) -> Status:
    """What a check says of so many out of so many.

    Examples
    --------
    >>> duplicates = next(each for each in CHECKS if each.name == DUPLICATES)
    >>> [str(status_of(duplicates, n, 100)) for n in (0, 50, 51)]
    ['PASS', 'WARN', 'FAIL']
    """
    if not n_found:
        return Status.PASS
    if check.is_lost or n_found > SHARE * n_of:
        return Status.FAIL
    return Status.WARN
