"""Events as they come: impressions that open, clicks that find theirs."""

import numpy as np

from models.counts.count_tables import Int64
from models.kernels.compilation import Number, compiled, inlined
from streams.fold import elements as e
from streams.fold.digests import hashed
from streams.fold.identities import ABSENT, number_of, put_at, slot_in
from streams.fold.messagepack import Bytes, array_at, number_at, span_at
from streams.fold.open_tables import (
    ACCEPTED_CLICK,
    ACCEPTED_IMPRESSION,
    ACTION_END,
    ACTION_FIELD,
    AT_MS,
    CANDIDATES_FIELD,
    CLICK_BYTES,
    CLICK_LENGTH,
    CLICK_NAME,
    CLICK_START,
    CLICKED_MS,
    FIRST_CLICK,
    FREE_CLICK,
    FREE_IMPRESSION,
    HAS_EXTRA,
    KNOWN,
    LAST_CLICK,
    LENGTH,
    MODEL,
    N_ATTACHED,
    N_CLICK_ROWS,
    N_PLACED,
    N_ROWS,
    NAME,
    NEXT,
    POSITION,
    SHOWN_FIELD,
    START,
    Open,
    accept,
    keep,
    name_at,
    push,
    taken,
)


@inlined
def open_impression(
    tables: Open, data: Bytes, places: Int64, slot: Number, due_ms: Number
) -> Number:
    """Make an impression one that is open, at the slot of its identity; its row.

    `data` [n_bytes] holds its element, the fields at `places` [WIDTH].
    """
    row = taken(tables.sizes, tables.impressions, FREE_IMPRESSION, N_ROWS)
    start, length = places[e.TAG], places[e.N_FIELDS] - places[e.TAG]
    impression = tables.impressions[row]
    impression[AT_MS] = number_at(data, places[e.AT_MS])
    impression[START] = keep(tables, data, start, length)
    impression[LENGTH] = length
    impression[FIRST_CLICK] = impression[LAST_CLICK] = -1
    impression[N_ATTACHED] = impression[CLICK_BYTES] = 0
    impression[SHOWN_FIELD] = places[e.SHOWN] - start
    impression[CANDIDATES_FIELD] = places[e.CANDIDATES] - start
    first, second = name_at(data, places[e.IDENTITY])
    put_at(tables.identities, slot, first, second, row)
    impression[NAME], impression[NAME + 1] = np.int64(first), np.int64(second)
    begin, end = span_at(data, places[e.MODEL])
    first, second = hashed(data, begin, end, (np.uint64(1), np.uint64(2)))
    impression[MODEL], impression[MODEL + 1] = np.int64(first), np.int64(second)
    begin, end = span_at(data, places[e.EXTRA])
    impression[HAS_EXTRA] = end > begin
    push(tables, due_ms, row)
    return row


@inlined
def attach(
    tables: Open,
    row: Number,
    data: Bytes,
    places: Int64,
    slot: Number,
    position: Number,
) -> Number:
    """Attach a click to an open impression, behind those that came before.

    `data` [n_bytes] holds its element, the fields at `places` [WIDTH].
    """
    click = taken(tables.sizes, tables.clicks, FREE_CLICK, N_CLICK_ROWS)
    start, length = places[e.TAG], places[e.N_FIELDS] - places[e.TAG]
    mark = tables.clicks[click]
    mark[CLICKED_MS] = number_at(data, places[e.CLICK_AT_MS])
    mark[POSITION] = position
    mark[CLICK_START] = keep(tables, data, start, length)
    mark[CLICK_LENGTH] = length
    mark[ACTION_FIELD] = places[e.CLICK_ACTION] - start
    mark[ACTION_END] = places[e.CLICK_ACTION + 1] - start
    mark[NEXT] = -1
    impression = tables.impressions[row]
    if impression[FIRST_CLICK] < 0:
        impression[FIRST_CLICK] = click
    else:
        tables.clicks[impression[LAST_CLICK], NEXT] = click
    impression[LAST_CLICK] = click
    impression[N_ATTACHED] += 1
    impression[CLICK_BYTES] += length
    first, second = name_at(data, places[e.IDENTITY])
    put_at(tables.identities, slot, first, second, KNOWN)
    mark[CLICK_NAME], mark[CLICK_NAME + 1] = np.int64(first), np.int64(second)
    if position > 0:
        tables.sizes[N_PLACED] += 1
    return click


@inlined
def has_room(
    tables: Open, row: Number, places: Int64, limits: tuple[Number, Number]
) -> Number:
    """Whether an impression may have another click, by their number and bytes.

    The click's fields are at `places` [WIDTH].
    """
    impression = tables.impressions[row]
    n_bytes = impression[CLICK_BYTES] + places[e.N_FIELDS] - places[e.TAG]
    return impression[N_ATTACHED] < limits[0] and n_bytes <= limits[1]


@compiled
def has_room_for(
    tables: Open, row: Number, places: Int64, limits: tuple[Number, Number]
) -> Number:
    """As in `has_room`, for one click."""
    return has_room(tables, row, places, limits)


@inlined
def row_of_item(data: Bytes, candidates: Number, other: Bytes, item: Number) -> Number:
    """The row of an item among the candidates of an impression, or -1.

    Candidates lie in `data` [n_bytes], the item in `other` [n_bytes].
    """
    start, end = span_at(other, item)
    at, _ = span_at(data, candidates)
    n_items, at = array_at(data, at)
    for row in range(n_items):
        first, last = span_at(data, at)
        at = last
        if last - first != end - start:
            continue
        i = 0
        while i < end - start and data[first + i] == other[start + i]:
            i += 1
        if i == end - start:
            return row
    return -1


@inlined
def position_of(tables: Open, row: Number, data: Bytes, places: Int64) -> Number:
    """The 1-based position that a click is about, 0 if the list has no such place.

    `data` [n_bytes] holds the click, its fields at `places` [WIDTH].
    """
    impression, arena = tables.impressions[row], tables.arena
    start, end = span_at(arena, impression[START] + impression[SHOWN_FIELD])
    n_shown = (end - start) // 2
    position = number_at(data, places[e.CLICK_POSITION])
    if position > n_shown or position < 0:
        return 0
    first, last = span_at(data, places[e.CLICK_ITEM])
    if first == last:
        return position
    candidates = impression[START] + impression[CANDIDATES_FIELD]
    item = row_of_item(arena, candidates, data, places[e.CLICK_ITEM])
    if item < 0:
        return 0
    for rank in range(1, n_shown + 1):
        at = start + 2 * rank - 2
        if arena[at] == item & 255 and arena[at + 1] == item >> 8:
            return rank if position in (0, rank) else 0
    return 0


@compiled
def place_of_click(tables: Open, row: Number, data: Bytes, places: Int64) -> Number:
    """As in `position_of`, for one click."""
    return position_of(tables, row, data, places)


@compiled
def attach_click(
    tables: Open, row: Number, data: Bytes, places: Int64, position: Number
) -> Number:
    """As in `attach`, for one click."""
    first, second = name_at(data, places[e.IDENTITY])
    slot = slot_in(tables.identities, first, second)
    return attach(tables, row, data, places, slot, position)


@compiled
def open_one(tables: Open, data: Bytes, places: Int64, window_ms: Number) -> Number:
    """As in `open_impression`, for one impression."""
    first, second = name_at(data, places[e.IDENTITY])
    slot = slot_in(tables.identities, first, second)
    due_ms = number_at(data, places[e.AT_MS]) + window_ms
    return open_impression(tables, data, places, slot, due_ms)


@compiled
def take_plain(  # noqa: C901, PLR0911
    tables: Open,
    elements: tuple[Bytes, e.Tags, Int64],
    first: Number,
    window_ms: Number,
    now_ms: Number,
    limits: tuple[Number, Number],
) -> Number:
    """Take elements up to the first that is not plain; its number.

    Plain are new impressions that nothing waits for, and clicks on a place of an open
    impression that has room for them.

    Parameters
    ----------
    elements : [n_bytes], [n_elements], [n_elements, WIDTH]
        `data`, `tags` and `places` of `streams.fold.elements.Elements`.
    """
    data, tags, places = elements
    for i in range(first, tags.shape[0]):
        if tags[i] == e.FRONTIER:
            return i
        name, second = name_at(data, places[i, e.IDENTITY])
        slot = slot_in(tables.identities, name, second)
        if tables.identities.numbers[slot] != ABSENT:
            return i
        if tags[i] == e.IMPRESSION:
            due_ms = number_at(data, places[i, e.AT_MS]) + window_ms
            if due_ms <= now_ms:
                return i
            row = open_impression(tables, data, places[i], slot, due_ms)
            accept(tables, due_ms, ACCEPTED_IMPRESSION, row)
            continue
        name, second = name_at(data, places[i, e.CLICK_IMPRESSION])
        row = number_of(tables.identities, name, second)
        if row < 0:
            return i
        due_ms = tables.impressions[row, AT_MS] + window_ms
        if number_at(data, places[i, e.CLICK_AT_MS]) > due_ms:
            return i
        if not has_room(tables, row, places[i], limits):
            return i
        position = position_of(tables, row, data, places[i])
        if position == 0:
            return i
        click = attach(tables, row, data, places[i], slot, position)
        accept(tables, due_ms, ACCEPTED_CLICK, click)
    return int(tags.shape[0])
