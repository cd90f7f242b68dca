"""The only reader of schema 1 of the topic `statistics`.

Keys were MessagePack arrays that began with a kind:

    ["cell", query, set, intervention, group]     numbers, see `read_cell`
    ["set", query, set]                           [1, [item, ...]]
    ["row", query, set, intervention, row]        [1, policy, k, material, items]
    ["masks", query, set, intervention, group]    [1, [[shown, mask, count], ...]]
    ["counts"]                                    [1, taken, capped, clipped,
                                                   without_exposure, masks dropped,
                                                   items that left, 0, day]
    ["part", key, i]                              more bytes of a large value
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from rankstream.wire.schemas import decoded, schema_of
from streams.state_pieces import Parts

SCHEMA = 1

NAMES = {"cell": 4, "set": 2, "row": 4, "masks": 4, "counts": 0}
"""Kinds of keys, and how many elements follow each."""

DAY_MS = 86_400_000
"""Of watermarks; items left when one entered a new day."""

N_TOTALS = 6
NAME_BYTES = 16
FLAGS = 7
"""Numbers of a pair that its byte of flags may name."""

_decode = msgspec.msgpack.Decoder().decode


class OldCell(NamedTuple):
    """What one group did in one scope.

    Parameters
    ----------
    row_names
        Of exposure rows, newest first, and
    row_counts
        how many impressions each explains.
    totals : [6]
        As now.
    last_ms
        Latest time shown.
    pairs
        [item, rank, shown, clicked, first_click, shown_to_first, shown_to_last,
        exposure], sorted by item, then rank.
    sums
        [item, plus, minus, inverse, squared_low, squared_high], sorted by item.
    click_pairs
        [place in `pairs`, a later place, count], sorted.
    """

    row_names: list[bytes]
    row_counts: list[int]
    totals: list[int]
    last_ms: int
    pairs: list[list[int]]
    sums: list[list[int]]
    click_pairs: list[list[int]]


class OldCounts(NamedTuple):
    """Of a partition since the beginning of its log; `day` that of its watermark."""

    n_taken: int = 0
    n_capped: int = 0
    n_clipped: int = 0
    n_without_exposure: int = 0
    n_masks_dropped: int = 0
    n_expired: int = 0
    day: int = -1


ScopeName = tuple[str, bytes, str]
"""Query, candidate set, intervention."""


@dataclass
class OldStatistics:
    """Values of schema 1, by what they are of; cells are decoded when asked for."""

    cells: dict[ScopeName, dict[int, bytes]] = field(default_factory=dict)
    sets: dict[tuple[str, bytes], list[str]] = field(default_factory=dict)
    rows: dict[ScopeName, dict[bytes, list[Any]]] = field(default_factory=dict)
    counts: OldCounts = field(default_factory=OldCounts)
    n_masks: int = 0

    def cells_of(self, scope: ScopeName) -> Iterator[tuple[int, OldCell]]:
        """Group and cell of a scope, groups rising."""
        for group, value in sorted(self.cells[scope].items()):
            try:
                yield group, read_cell(value)
            except (ValueError, IndexError) as error:
                raise ConversionRefused(
                    f"a cell of statistics must be readable; {error}, of group {group} "
                    f"in {scope!r:.300}: run the release that wrote it"
                ) from error


def old_values(values: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Those of the values of the topic that are of schema 1."""
    return {key: value for key, value in values.items() if is_old(key)}


def is_old(key: bytes) -> bool:
    """Whether a key of the topic, or what it is a part of, is one of schema 1.

    Keys of sets and rows have one element more now.

    Raises
    ------
    ConversionRefused
        Where it is no key of statistics at all.
    """
    kind, *rest = _key_of(key)
    if kind == "part":
        return is_old(rest[0])
    return NAMES.get(kind) == len(rest)


def read_statistics(values: Mapping[bytes, bytes]) -> OldStatistics:
    """Sort the last value of each key of schema 1; `values` holds no others.

    Raises
    ------
    ConversionRefused
        Where a value is of another schema, or cannot be read.
    """
    found = OldStatistics()
    try:
        whole = Parts().joined(values)
    except KeyError as error:
        raise ConversionRefused(
            f"a large value of statistics must have all its parts; {error} is not "
            "there: run the release that wrote it"
        ) from error
    for key, value in whole.items():
        kind, *rest = _key_of(key)
        _check(kind, key, value)
        if kind == "cell":
            *scope, group = rest
            found.cells.setdefault(_scope_of(scope), {})[group] = value
        elif kind == "set":
            found.sets[rest[0], rest[1]] = _decoded(kind, key, value)[1]
        elif kind == "row":
            *scope, name = rest
            found.rows.setdefault(_scope_of(scope), {})[name] = _decoded(
                kind, key, value
            )[1:]
        elif kind == "masks":
            found.n_masks += 1
        else:
            counts = _decoded(kind, key, value)
            found.counts = OldCounts._make([*counts[1:7], counts[8]])
    return found


def read_cell(value: bytes) -> OldCell:
    """Decode a cell: a byte of the schema, names of rows, then numbers.

    Numbers are LEB128: counts of the rows, six totals, the latest time, the pairs, the
    sums, the click pairs. Items are steps from the item before.

    Raises
    ------
    ValueError, IndexError
        Where it ends too early or too late.
    """
    n_rows, start = _first_number(value)
    end = start + NAME_BYTES * n_rows
    names = [value[at : at + NAME_BYTES] for at in range(start, end, NAME_BYTES)]
    numbers = _numbers(value[end:])
    row_counts = numbers[:n_rows]
    at = n_rows + N_TOTALS
    totals = numbers[n_rows:at]
    last_ms, n_pairs = numbers[at], numbers[at + 1]
    pairs, at = _read_pairs(numbers, at + 2, n_pairs)
    sums, at = _read_sums(numbers, at)
    n_click_pairs = numbers[at]
    last = at + 1 + 3 * n_click_pairs
    if len(numbers) != last:
        raise ValueError(f"it must hold {last} numbers; it holds {len(numbers)}")
    click_pairs = [numbers[i : i + 3] for i in range(at + 1, last, 3)]
    return OldCell(names, row_counts, totals, last_ms, pairs, sums, click_pairs)


def _read_pairs(
    numbers: Sequence[int], at: int, n_pairs: int
) -> tuple[list[list[int]], int]:
    pairs, item = [], 0
    for _ in range(n_pairs):
        item += numbers[at]
        rank, flags = numbers[at + 1], numbers[at + 2]
        at += 3
        row = [0] * FLAGS
        for column in range(FLAGS):
            if flags >> column & 1:
                row[column] = numbers[at]
                at += 1
        shown, clicked, first_click, after_first, to_last, _age, exposure = row
        pairs.append(
            [
                item,
                rank,
                shown,
                clicked,
                first_click,
                shown - after_first,
                to_last,
                exposure,
            ]
        )
    return pairs, at


def _read_sums(numbers: Sequence[int], at: int) -> tuple[list[list[int]], int]:
    sums, item = [], 0
    n_items = numbers[at]
    at += 1
    for _ in range(n_items):
        item += numbers[at]
        sums.append([item, *numbers[at + 1 : at + 6]])
        at += 6
    return sums, at


def _first_number(value: bytes) -> tuple[int, int]:
    """The number behind the schema, and where what follows it begins."""
    end = 1
    while value[end] > 127:
        end += 1
    return _numbers(value[1 : end + 1])[0], end + 1


def _numbers(packed: bytes) -> list[int]:
    """All numbers of some bytes; a byte of flags is a number below 128."""
    numbers = []
    number = shift = 0
    for byte in packed:
        if byte < 128:
            numbers.append(number | byte << shift)
            number = shift = 0
        else:
            number |= (byte & 127) << shift
            shift += 7
    if shift:
        raise ValueError("it must end with a number; it ends in one")
    return numbers


def _scope_of(parts: Sequence[Any]) -> ScopeName:
    query, candidate_set, intervention = parts
    return query, candidate_set, intervention


def _key_of(key: bytes) -> list[Any]:
    try:
        parts = decoded(_decode, key)
    except msgspec.DecodeError:
        parts = None
    if not isinstance(parts, list) or not parts:
        raise ConversionRefused(
            f"a key of statistics must be an array; got {key!r:.200}: something else "
            "wrote to that topic"
        )
    return parts


def _check(kind: str, key: bytes, value: bytes) -> None:
    found = value[0] if kind == "cell" and value else schema_of(value)
    if found != SCHEMA:
        raise ConversionRefused(
            f"a {kind} of statistics must have schema {SCHEMA}; got {found}, at key "
            f"{key!r:.200}: run the release that wrote it"
        )


def _decoded(kind: str, key: bytes, value: bytes) -> list[Any]:
    try:
        found: list[Any] = decoded(_decode, value)
    except msgspec.DecodeError as error:
        raise ConversionRefused(
            f"a {kind} of statistics must be readable; {error}, at key {key!r:.200}: "
            "run the release that wrote it"
        ) from error
    return found


class ConversionRefused(RuntimeError):
    """A state of before that cannot be converted, or not now.

    Operator action: the message names what is needed first.
    """
