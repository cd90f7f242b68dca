"""Closed impressions into the columns that counting takes, without decoding them.

A place is found by 128 bits made of all that decides it: query, intervention,
candidates, policy, and what the exposure row follows from.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.counts.count_tables import Int32, Int64, enlarged
from models.kernels.compilation import Number, compiled, inlined
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
)
from streams.fold import elements as e
from streams.fold.closed_impressions import Closed
from streams.fold.digests import folded, hashed, word_at
from streams.fold.identities import (
    ABSENT,
    Identities,
    Names,
    drop,
    no_identities,
    number_of,
    put,
    with_room,
)
from streams.fold.messagepack import (
    PADDING,
    TRUE,
    Bytes,
    after,
    array_at,
    number_at,
    span_at,
)
from streams.fold.statistics_keys import OPEN, PlaceKey

# Where the parts of an impression lie.
SHOWN_AT, CANDIDATES_AT, EXPOSURES_AT, EXPOSURES_END, CLICKS_AT, CODE_IS = range(6)
N_PARTS = 6


class PlaceTable(NamedTuple):
    """Numbers of places by name, the name of each, and those that are free.

    `names` [n_places, 2], `free` [n_places]; `sizes` [2] holds how many there ever
    were, and how many are free.
    """

    numbers: Identities
    names: Names
    free: Int32
    sizes: Int64


class Columns(NamedTuple):
    """What is known of each of n impressions.

    Parameters
    ----------
    places, groups, times_ms, lengths, n_clicks : [n]
    new : [n]
        Marks the first at a new place.
    parts : [n, N_PARTS]
        Columns are `SHOWN_AT` to `CODE_IS`.
    spans : [n, 8]
        Starts and ends of what names its place: query, intervention, candidates,
        material.
    """

    places: Int32
    groups: Int32
    times_ms: Int64
    lengths: Int64
    n_clicks: Int64
    new: Int32
    parts: Int64
    spans: Int64


class Lists(NamedTuple):
    """What was shown and clicked, one behind the other.

    `items` [n_shown]; `click_owners`, `click_ranks`, `click_probabilities` [n_clicks].
    """

    items: NDArray[np.uint16]
    click_owners: Int32
    click_ranks: Int32
    click_probabilities: NDArray[np.float64]


def no_places() -> PlaceTable:
    """A table without any place."""
    return PlaceTable(
        no_identities(),
        np.zeros((64, 2), np.uint64),
        np.zeros(64, np.int32),
        np.zeros(2, np.int64),
    )


def with_places(table: PlaceTable, n_more: int) -> PlaceTable:
    """The table with room for so many new places."""
    n_rows = int(table.sizes[0]) + n_more
    return table._replace(
        numbers=with_room(table.numbers, n_more),
        names=enlarged(table.names, n_rows),
        free=enlarged(table.free, n_rows),
    )


@inlined
def take_number(table: PlaceTable, first: Number, second: Number) -> Number:
    """Give a name a number of its own."""
    if table.sizes[1] > 0:
        table.sizes[1] -= 1
        number = table.free[table.sizes[1]]
    else:
        number = np.int32(table.sizes[0])
        table.sizes[0] += 1
    put(table.numbers, first, second, number)
    table.names[number, 0], table.names[number, 1] = first, second
    return number


@compiled
def let_go(table: PlaceTable, places: Int32) -> None:
    """Forget `places` [n]; their numbers are used again."""
    for place in places:
        drop(table.numbers, table.names[place, 0], table.names[place, 1])
        table.free[table.sizes[1]] = place
        table.sizes[1] += 1


@inlined
def name_of(
    data: Bytes, spans: Int64, code: Number, length: Number
) -> tuple[Number, Number]:
    """What names a place: spans of query, intervention, candidates and material.

    `data` [n_bytes]; `spans` [8]: start and end of each.
    """
    kind = folded(
        np.uint64(code + 1) * np.uint64(0x9E3779B97F4A7C15),
        np.uint64(length + 1) * np.uint64(0xC2B2AE3D27D4EB4F),
    )
    name = (kind, np.uint64(0x165667B19E3779F9))
    for i in range(4):
        name = hashed(data, spans[2 * i], spans[2 * i + 1], name)
    return name


@compiled
def number_named(
    table: PlaceTable, data: Bytes, spans: Int64, code: Number, length: Number
) -> Number:
    """The number of a place, made if it is not there. Arrays as in `name_of`."""
    first, second = name_of(data, spans, code, length)
    number = number_of(table.numbers, first, second)
    if number == ABSENT:
        number = take_number(table, first, second)
    return number


def number_of_key(table: PlaceTable, key: PlaceKey) -> int:
    """The number of a place, made if it is not there; the table must have room."""
    query, candidates, intervention, code, length, material = key
    parts = (query.encode(), intervention.encode(), candidates, material)
    ends = np.cumsum([len(part) for part in parts])
    spans = np.stack([np.concatenate(([0], ends[:-1])), ends], axis=1).reshape(-1)
    data = np.frombuffer(b"".join(parts) + bytes(PADDING), np.uint8).copy()
    return int(number_named(table, data, spans.astype(np.int64), code, length))


@inlined
def fill_spans(data: Bytes, places: Int64, policy: Number, spans: Int64) -> None:
    """The spans that name the place of an impression.

    `data` [n_bytes] holds it, its fields at `places` [WIDTH]; `spans` [8] is filled.
    """
    spans[0], spans[1] = span_at(data, places[e.QUERY])
    spans[2], spans[3] = span_at(data, places[e.INTERVENTION])
    spans[4], spans[5] = span_at(data, places[e.CANDIDATES])
    spans[6] = spans[7] = 0
    if policy in (DETERMINISTIC, TAIL_SHUFFLE):
        spans[6], spans[7] = span_at(data, places[e.SHOWN])
        if policy == TAIL_SHUFFLE:
            spans[7] -= 2
    elif policy == LOGGED:
        spans[6], spans[7] = span_at(data, places[e.EXPOSURES])
    elif policy == PLACKETT_LUCE:
        spans[6], spans[7] = span_at(data, places[e.SCORES])


@compiled
def find_places(
    data: Bytes, starts: Int64, n_groups: Number, table: PlaceTable, columns: Columns
) -> None:
    """Read what decides the place of each of n interactions.

    `data` [n_bytes]; `starts` [n + 1] has where each begins, and the end of the last.
    """
    places = np.empty(e.WIDTH, np.int64)
    for i in range(columns.places.shape[0]):
        # Behind the head of the interaction, an array of two.
        end = e.find_fields(data, starts[i] + 1, starts[i + 1], places)
        policy = number_at(data, places[e.POLICY])
        spans = columns.spans[i]
        fill_spans(data, places, policy, spans)
        code = policy + (OPEN if data[places[e.IS_OPEN_SET]] == TRUE else 0)
        shown_at, shown_end = span_at(data, places[e.SHOWN])
        length = shown_end - shown_at
        first, second = name_of(data, spans, code, length)
        number = number_of(table.numbers, first, second)
        columns.new[i] = number == ABSENT
        if number == ABSENT:
            number = take_number(table, first, second)
        columns.places[i] = number
        unit = np.uint64(number_at(data, places[e.UNIT]))
        columns.groups[i] = np.int32(unit % np.uint64(n_groups))
        columns.times_ms[i] = number_at(data, places[e.AT_MS])
        columns.lengths[i] = length // 2
        columns.n_clicks[i], clicks_at = array_at(data, end)
        parts = columns.parts[i]
        parts[SHOWN_AT], parts[CLICKS_AT] = shown_at, clicks_at
        parts[CANDIDATES_AT], _ = span_at(data, places[e.CANDIDATES])
        start, end = span_at(data, places[e.EXPOSURES])
        parts[EXPOSURES_AT], parts[EXPOSURES_END] = start, end
        parts[CODE_IS] = code


@inlined
def float_at(data: Bytes, at: Number) -> Number:
    """A little-endian float32 of `data` [n_bytes]."""
    bits = np.empty(4, np.uint8)
    bits[:] = data[at : at + 4]
    return float(bits.view(np.float32)[0])


@inlined
def exposure_at(data: Bytes, parts: Int64, n_cells: Number, cell: Number) -> Number:
    """A logged exposure, of either form that `rankstream.wire.exposures` writes.

    `data` [n_bytes]; `parts` [N_PARTS] of its impression.
    """
    start = parts[EXPOSURES_AT]
    n_bytes = parts[EXPOSURES_END] - start
    if n_bytes == 4 * n_cells:
        return float_at(data, start + 4 * cell)
    for at in range(start, start + n_bytes // 2, 4):
        found = word_at(data, at) & np.uint64(0xFFFFFFFF)
        if found == np.uint64(cell):
            return float_at(data, at + n_bytes // 2)
    return 0.0


@inlined
def probability_of(data: Bytes, parts: Int64, n_shown: Number, rank: Number) -> Number:
    """P(item at rank) of what was shown there; 0 if unknown, -1 if it comes later.

    `data` [n_bytes]; `parts` [N_PARTS] of the impression.
    """
    policy = parts[CODE_IS] & 7
    if policy == DETERMINISTIC:
        return 1.0
    if policy == PLACKETT_LUCE:
        return -1.0
    if rank < 1 or rank > n_shown:
        return 0.0
    if policy == LOGGED:
        at = parts[SHOWN_AT] + 2 * rank - 2
        row = np.int64(data[at]) + 256 * np.int64(data[at + 1])
        cell = row * n_shown + rank - 1
        n_candidates, _ = array_at(data, parts[CANDIDATES_AT])
        return exposure_at(data, parts, n_candidates * n_shown, cell)
    if policy == TAIL_SHUFFLE:
        n_items, _ = array_at(data, parts[CANDIDATES_AT])
        return 1.0 if rank < n_shown else 1.0 / (n_items - n_shown + 1)
    return 0.0


@compiled
def read_lists(data: Bytes, columns: Columns, lists: Lists) -> None:
    """Read what was shown and clicked from `data` [n_bytes]."""
    n_items, n_clicks = 0, 0
    for i in range(columns.places.shape[0]):
        at, n_shown = columns.parts[i, SHOWN_AT], columns.lengths[i]
        for rank in range(n_shown):
            low, high = data[at + 2 * rank], data[at + 2 * rank + 1]
            lists.items[n_items + rank] = np.uint16(low) | np.uint16(high) << 8
        n_items += n_shown
        at = columns.parts[i, CLICKS_AT]
        for _ in range(columns.n_clicks[i]):
            # A mark is an array of position, time and action.
            rank = number_at(data, at + 1)
            lists.click_owners[n_clicks] = i
            lists.click_ranks[n_clicks] = rank
            lists.click_probabilities[n_clicks] = probability_of(
                data, columns.parts[i], n_shown, rank
            )
            n_clicks += 1
            at = after(data, at, data.shape[0])


def new_places(closed: Closed, columns: Columns) -> Iterator[tuple[int, PlaceKey]]:
    """Number and key of each new place, in the order in which they came."""
    rows = np.flatnonzero(columns.new)
    if not len(rows):
        return
    data = closed.encoded.tobytes()
    for place, code, length, spans in zip(
        columns.places[rows].tolist(),
        columns.parts[rows, CODE_IS].tolist(),
        columns.lengths[rows].tolist(),
        columns.spans[rows].tolist(),
        strict=True,
    ):
        query, _, intervention, _, candidates, _, material, _ = spans
        yield (
            place,
            (
                data[query : spans[1]].decode(),
                data[candidates : spans[5]],
                data[intervention : spans[3]].decode(),
                code,
                2 * length,
                data[material : spans[7]],
            ),
        )


def columns_of(
    closed: Closed, table: PlaceTable, n_groups: int
) -> tuple[Columns, Lists]:
    """Columns of closed impressions; the table must have room for a place of each."""
    n = len(closed)
    columns = Columns(
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        np.empty(n, np.int32),
        np.empty((n, N_PARTS), np.int64),
        np.empty((n, 8), np.int64),
    )
    starts = np.concatenate((np.zeros(1, np.int64), closed.ends))
    find_places(closed.encoded, starts, n_groups, table, columns)
    n_items, n_clicks = int(columns.lengths.sum()), int(columns.n_clicks.sum())
    lists = Lists(
        np.empty(n_items, np.uint16),
        np.empty(n_clicks, np.int32),
        np.empty(n_clicks, np.int32),
        np.empty(n_clicks, np.float64),
    )
    read_lists(closed.encoded, columns, lists)
    return columns, lists
