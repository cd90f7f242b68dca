"""Old cells as scopes: every sum survives, in the general form of the new records.

Nothing is known of an old cell's lists and of the eras in which they were shown. So a
scope of before, with all its groups, is one of the era of the watermark now, and leaves
with that era. It is flagged: single items may have left it while their exposures
stayed, so estimates with propensities refuse it.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from models.counts.scope_record import (
    CAPPED,
    CONVERTED,
    LONGEST_LIST,
    OVERFLOWED,
    SCHEMA,
    TRUNCATED,
)
from rankstream.operations.conversion.schema1 import (
    ConversionRefused,
    OldCell,
    OldStatistics,
)
from rankstream.settings import Settings
from rankstream.wire.topics import STATISTICS
from streams.stage import Change
from streams.state_pieces import Parts
from streams.statistics import keys
from streams.statistics.keys import Counted

OLD_GROUPS = 20
"""Groups that every cell of before was one of."""

HEAD_BYTES = 1 << 18
"""Of the cells of a scope beyond which each lies in a record of its own."""

Records = dict[bytes, bytes]

_encode = msgspec.msgpack.Encoder().encode


class Situation(NamedTuple):
    """What the old values of a partition do not say.

    `watermark_ms` is -1 where there is none yet; then nothing was counted.
    """

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
    names = _names_of_sets(old)
    for (query, name), new_name in names.items():
        items = old.sets[query, name]
        key = keys.set_key(query, new_name, situation.era)
        records[key] = keys.encode_set(items)
        report.n_sets += 1
    for scope in old.cells:
        query, name, intervention = scope
        new = keys.ScopeName(query, names[query, name], intervention, situation.era)
        cells = dict(old.cells_of(scope))
        rows = old.rows.get(scope, {})
        for key, value in _of_scope(new, cells, rows):
            records[key] = value
        report.n_scopes += 1
        report.n_cells += len(cells)
        report.n_impressions += sum(cell.totals[0] for cell in cells.values())
        report.n_clicks += sum(cell.totals[2] for cell in cells.values())
    report.n_rows = sum(key[1:5] == b"\xa3row" for key in records)
    records[keys.counted_key(situation.partition)] = _counted(old, situation, report)
    report.n_records = len(records)
    return records, report


def split(records: Records) -> Iterator[Change]:
    """The same as they are written: large values in parts."""
    parts = Parts()
    for key, value in records.items():
        for name, piece in parts.split(key, value):
            yield Change(STATISTICS, name, piece)


def _names_of_sets(old: OldStatistics) -> dict[tuple[str, bytes], bytes]:
    """What each set of before is called now, by query and old name."""
    names: dict[tuple[str, bytes], bytes] = {}
    for query, name, _ in old.cells:
        if (query, name) not in old.sets:
            raise _missing("candidate set", (query, name))
        is_growing = name in keys.GROWING_SETS
        items = old.sets[query, name]
        names[query, name] = name if is_growing else set_name(_encode(items))
    return names


def _of_scope(
    scope: keys.ScopeName, cells: Mapping[int, OldCell], rows: Mapping[bytes, list[Any]]
) -> Iterator[tuple[bytes, bytes]]:
    """Head, pieces and exposure rows."""
    numbers = _numbers_of_rows(cells)
    packed = [(group, _encode(_cell(cell, numbers))) for group, cell in cells.items()]
    is_apart = sum(len(cell) for _, cell in packed) > HEAD_BYTES
    within: list[Any] = []
    for group, cell in packed:
        if is_apart:
            head = b"\x92" + bytes((SCHEMA,))
            yield keys.piece_key(scope, group), head + cell
        else:
            within += (group, msgspec.Raw(cell))
    value = [
        SCHEMA,
        _flags(scope, cells),
        max(cell.last_ms for cell in cells.values()),
        [_row_name(scope, name) for name in numbers],
        [],
        within,
        list(cells) if is_apart else [],
        [],
    ]
    yield keys.scope_key(scope), _encode(value)
    for name in numbers:
        if name not in rows:
            raise _missing("exposure row", (*scope, name))
        key = keys.row_key(scope, _row_name(scope, name))
        yield key, _encode([SCHEMA, *rows[name]])


def _row_name(scope: keys.ScopeName, name: bytes) -> bytes:
    """A name that no other scope has: those of before told apart rows of one only."""
    return hashlib.blake2b(_encode([*scope[:3], name]), digest_size=16).digest()


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


def _flags(scope: keys.ScopeName, cells: Mapping[int, OldCell]) -> int:
    flags = CONVERTED
    if scope.candidate_set == keys.OVERFLOW_SET:
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
    is_known = situation.watermark_ms >= 0
    return keys.encode_counted(
        Counted(
            groups=statistics.groups,
            keep_ms=time.keep_ms,
            classes=statistics.classes(),
            reward=statistics.reward,
            watermark_ms=situation.watermark_ms if is_known else None,
            sources={situation.partition: n_taken},
            n_left=n_taken - report.n_impressions,
            oldest=situation.era if old.cells else None,
            capped=counts.n_capped,
            clipped=counts.n_clipped,
            without_exposure=counts.n_without_exposure,
            actions=tuple(sorted(statistics.actions.items())),
        )
    )


def _missing(what: str, name: object) -> ConversionRefused:
    return ConversionRefused(
        f"the {what} of each cell must be there; {name!r:.300} is not: fold the log in "
        "a new --namespace"
    )


# Names of candidate sets are those that the core gives (`streams/native/scopes.c`): a
# converted set has the name that its next list will have, so that it stays one set.
_ALL_BITS = (1 << 64) - 1
_SECRETS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)


def set_name(candidates: bytes) -> bytes:
    """The name of a closed set, 16 bytes, of its sorted items as MessagePack."""
    first, second, _ = _SECRETS
    first = _folded(first ^ _SECRETS[0], len(candidates) ^ _SECRETS[1])
    padded = candidates + bytes(-len(candidates) % 16)
    for left, right in struct.iter_unpack("<2Q", padded):
        first = _folded(left ^ _SECRETS[1], right ^ first)
        second = _folded(left ^ second, right ^ _SECRETS[2])
    return struct.pack("<2Q", first, second ^ first)


def _folded(left: int, right: int) -> int:
    """The halves of the 128-bit product and its factors, one over the other."""
    product = left * right
    return (product >> 64 ^ product ^ left ^ right) & _ALL_BITS
