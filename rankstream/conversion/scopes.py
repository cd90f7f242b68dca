"""Old cells as scopes: every sum survives, in the general form of the new records.

Nothing is known of an old cell's lists and of the eras in which they were shown. So a
scope of before, with all its groups, is one of the era of the watermark now, and leaves
with that era. It is flagged: single items may have left it while their exposures
stayed, so estimates with propensities refuse it.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from rankstream.conversion.refusal import ConversionRefused
from rankstream.conversion.schema1 import OldCell, OldStatistics, ScopeName
from rankstream.sections import Settings
from rankstream.wire.topics import STATISTICS
from streams.fold.statistics_keys import counted_key
from streams.stage import Change
from streams.state_pieces import Parts

SCHEMA = 2
"""Of what is written."""

CAPPED, OVERFLOWED, TRUNCATED, CONVERTED = 1, 2, 4, 8
"""Flags of a scope."""

OVERFLOW_SET = b"\xff" * 16
LONGEST_LIST = 32

OLD_GROUPS = 20
"""Groups that every cell of before was one of."""

HEAD_BYTES = 1 << 18
"""Of the cells of a scope beyond which each lies in a record of its own."""

Records = dict[bytes, bytes]

_encode = msgspec.msgpack.Encoder().encode


class Situation(NamedTuple):
    """What the old values of a partition do not say."""

    partition: int
    watermark_ms: int
    settings: Settings

    @property
    def era(self) -> int:
        """The era of the watermark."""
        return self.watermark_ms // self.settings.time.keep_ms


@dataclass
class Report:
    """How much was converted, and when (in event time) it leaves."""

    n_cells: int = 0
    n_scopes: int = 0
    n_sets: int = 0
    n_rows: int = 0
    n_impressions: int = 0
    n_clicks: int = 0
    n_masks: int = 0
    n_records: int = 0
    leaves_ms: int = 0


def check_settings(settings: Settings) -> None:
    """Refuse settings under which the old sums would mean something else.

    Raises
    ------
    ConversionRefused
        Where there are other groups, or another reward.
    """
    statistics = settings.statistics
    if statistics.groups != OLD_GROUPS:
        raise ConversionRefused(
            f"statistics.groups must be {OLD_GROUPS} to convert, as users were divided "
            f"so; got {statistics.groups}: correct it, or fold the log in a new "
            "--namespace"
        )
    if statistics.reward != statistics.classes()[0]:
        raise ConversionRefused(
            f"statistics.reward must be {statistics.classes()[0]!r} to convert, as "
            f"every action counted as one; got {statistics.reward!r}: correct it, or "
            "fold the log in a new --namespace"
        )


def converted(old: OldStatistics, situation: Situation) -> tuple[Records, Report]:
    """The new value of each new key, none split yet.

    Raises
    ------
    ConversionRefused
        Where an old value is broken, or misses what it refers to.
    """
    records: Records = {}
    leaves_ms = (situation.era + 2) * situation.settings.time.keep_ms
    report = Report(n_masks=old.n_masks, leaves_ms=leaves_ms)
    for scope in old.cells:
        cells = dict(old.cells_of(scope))
        for key, value in _of_scope(scope, cells, old, situation.era):
            records[key] = value
        report.n_scopes += 1
        report.n_cells += len(cells)
        report.n_impressions += sum(cell.totals[0] for cell in cells.values())
        report.n_clicks += sum(cell.totals[2] for cell in cells.values())
    for query, name in dict.fromkeys(scope[:2] for scope in old.cells):
        if (query, name) not in old.sets:
            raise _missing("candidate set", (query, name))
        key = _encode(["set", query, name, situation.era])
        records[key] = _encode([SCHEMA, old.sets[query, name]])
        report.n_sets += 1
    report.n_rows = sum(key[1:5] == b"\xa3row" for key in records)
    records[counted_key(situation.partition)] = _counted(old, situation, report)
    report.n_records = len(records)
    return records, report


def split(records: Records) -> Iterator[Change]:
    """The same as they are written: large values in parts."""
    parts = Parts()
    for key, value in records.items():
        for name, piece in parts.split(key, value):
            yield Change(STATISTICS, name, piece)


def _of_scope(
    scope: ScopeName, cells: Mapping[int, OldCell], old: OldStatistics, era: int
) -> Iterator[tuple[bytes, bytes]]:
    """Head, pieces and exposure rows."""
    numbers = _numbers_of_rows(cells)
    packed = [(group, _encode(_cell(cell, numbers))) for group, cell in cells.items()]
    is_apart = sum(len(cell) for _, cell in packed) > HEAD_BYTES
    within: list[Any] = []
    for group, cell in packed:
        if is_apart:
            head = b"\x92" + bytes((SCHEMA,))
            yield _encode(["piece", *scope, era, group]), head + cell
        else:
            within += (group, msgspec.Raw(cell))
    last_ms = max(cell.last_ms for cell in cells.values())
    pieces = list(cells) if is_apart else []
    value = [
        SCHEMA,
        _flags(scope, cells),
        last_ms,
        [_row_name(scope, name) for name in numbers],
        [],
        within,
        pieces,
        [],
    ]
    yield _encode(["scope", *scope, era]), _encode(value)
    rows = old.rows.get(scope, {})
    for name in numbers:
        if name not in rows:
            raise _missing("exposure row", (*scope, name))
        key = _encode(["row", *scope, era, _row_name(scope, name)])
        yield key, _encode([SCHEMA, *rows[name]])


def _row_name(scope: ScopeName, name: bytes) -> bytes:
    """A name that no other scope has: those of before told apart rows of one only."""
    return hashlib.blake2b(_encode([*scope, name]), digest_size=16).digest()


def _numbers_of_rows(cells: Mapping[int, OldCell]) -> dict[bytes, int]:
    """Each exposure row's number: group by group, oldest first."""
    numbers: dict[bytes, int] = {}
    for cell in cells.values():
        for name in reversed(cell.row_names):
            numbers.setdefault(name, len(numbers))
    return numbers


def _cell(cell: OldCell, numbers: Mapping[bytes, int]) -> list[list[int]]:
    """The general form: totals, row counts, pairs, sums, click pairs, each flat."""
    names = (numbers[name] for name in cell.row_names)
    row_counts = sorted(zip(names, cell.row_counts, strict=True))
    return [
        cell.totals,
        [number for row in row_counts for number in row],
        [number for row in cell.pairs for number in row],
        [number for row in cell.sums for number in row],
        [number for row in cell.click_pairs for number in row],
    ]


def _flags(scope: ScopeName, cells: Mapping[int, OldCell]) -> int:
    flags = CONVERTED
    if scope[1] == OVERFLOW_SET:
        flags |= CAPPED
    for cell in cells.values():
        for _, rank, *_, exposure in cell.pairs:
            if exposure:
                flags |= OVERFLOWED
            if rank > LONGEST_LIST:
                flags |= TRUNCATED
    return flags


def _counted(old: OldStatistics, situation: Situation, report: Report) -> bytes:
    """What the columns hold; impressions of cells that expired count as gone."""
    time, statistics = situation.settings.time, situation.settings.statistics
    counts = old.counts
    n_taken = max(counts.n_taken, report.n_impressions)
    return _encode(
        [
            SCHEMA,
            statistics.groups,
            time.keep_ms,
            statistics.classes(),
            statistics.reward,
            situation.watermark_ms,
            [[situation.partition, n_taken]],
            [
                n_taken - report.n_impressions,
                situation.era if old.cells else None,
                counts.n_capped,
                counts.n_clipped,
                counts.n_without_exposure,
            ],
        ]
    )


def _missing(what: str, name: object) -> ConversionRefused:
    return ConversionRefused(
        f"the {what} of each cell must be there; {name!r:.300} is not: fold the log in "
        "a new --namespace"
    )
