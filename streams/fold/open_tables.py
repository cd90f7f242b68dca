"""Impressions whose window is open, with their clicks, in tables for compiled loops.

The bytes of an element stay as they came, in one array that is compacted when half
of it is dead. What closes leaves as encoded interactions.
"""

from typing import NamedTuple

import numpy as np

from models.counts.count_tables import Int64, enlarged
from models.kernels.compilation import Number, compiled, inlined
from streams.fold.digests import word_at
from streams.fold.identities import (
    Identities,
    no_identities,
    with_room,
)
from streams.fold.messagepack import (
    PADDING,
    Bytes,
    span_at,
)

KNOWN = -1
"""Number of an identity that is known, and not of an open impression."""

AWAITED = -2
"""Number of an impression that is not known, and that clicks are waiting for."""

# Columns of an open impression; fields are places behind its start.
AT_MS, START, LENGTH, FIRST_CLICK, LAST_CLICK, N_ATTACHED = range(6)
SHOWN_FIELD, CANDIDATES_FIELD, NAME, MODEL, HAS_EXTRA = 6, 7, 8, 10, 12
CLICK_BYTES = 13
ROW_WIDTH = 14
# Columns of an attached click.
CLICKED_MS, POSITION, NEXT, CLICK_START, CLICK_LENGTH = range(5)
ACTION_FIELD, ACTION_END, CLICK_NAME = 5, 6, 7
CLICK_WIDTH = 9
# Columns of what is due.
DUE_MS, SERIAL, WHICH = range(3)
# Columns of what was accepted: due time, kind, row of that kind.
ACCEPTED_IMPRESSION, ACCEPTED_CLICK, ACCEPTED_OBJECT = range(3)

# Entries of `sizes`.
N_OPEN, N_SERIALS, N_ACCEPTED, END, N_LIVE_BYTES = range(5)
FREE_IMPRESSION, FREE_CLICK, N_ROWS, N_CLICK_ROWS, N_PLACED = range(5, 10)
N_SIZES = 10

LARGEST_SHARE = 0.6
"""The array of bytes grows when more of it than this would be live."""


class Open(NamedTuple):
    """All that is open in one partition; rows are used again.

    Tables have room for more rows than they hold: `sizes` says how many.

    Parameters
    ----------
    sizes : [N_SIZES]
    impressions : [n_rows, ROW_WIDTH]
        Free rows, as those of clicks, are chained through their first column.
    clicks : [n_click_rows, CLICK_WIDTH]
    heap : [n_open, 3]
        A binary heap by due time, then arrival.
    accepted : [n_accepted, 3]
    arena : [n_bytes]
    """

    sizes: Int64
    impressions: Int64
    clicks: Int64
    heap: Int64
    accepted: Int64
    arena: Bytes
    identities: Identities


def nothing_open() -> Open:
    """Tables without any row."""
    sizes = np.zeros(N_SIZES, np.int64)
    sizes[[FREE_IMPRESSION, FREE_CLICK]] = -1
    return Open(
        sizes,
        np.zeros((64, ROW_WIDTH), np.int64),
        np.zeros((64, CLICK_WIDTH), np.int64),
        np.zeros((64, 3), np.int64),
        np.zeros((64, 3), np.int64),
        np.zeros(1 << 16, np.uint8),
        no_identities(),
    )


def with_space(tables: Open, n_elements: int, n_bytes: int, now_ms: int) -> Open:
    """The tables with room for so many elements of so many bytes in all."""
    sizes = tables.sizes
    arena, accepted = tables.arena, tables.accepted
    if sizes[END] + n_bytes + PADDING > len(arena):
        n_needed = int(sizes[N_LIVE_BYTES]) + n_bytes + PADDING
        is_small = n_needed > LARGEST_SHARE * len(arena)
        # Moving within one array would write over what is still to be read.
        arena = np.empty(2 * n_needed if is_small else len(arena), np.uint8)
        compact(tables, arena)
    if sizes[N_ACCEPTED] + 2 * n_elements > len(accepted):
        forget_decided(tables, now_ms)
        # Twice what is left, so that not every record has to look through it again.
        accepted = enlarged(accepted, 2 * int(sizes[N_ACCEPTED]) + 2 * n_elements)
    return tables._replace(
        impressions=enlarged(tables.impressions, int(sizes[N_ROWS]) + n_elements),
        clicks=enlarged(tables.clicks, int(sizes[N_CLICK_ROWS]) + n_elements),
        heap=enlarged(tables.heap, int(sizes[N_OPEN]) + n_elements),
        accepted=accepted,
        arena=arena,
        identities=with_room(tables.identities, 2 * n_elements),
    )


@compiled
def forget_decided(tables: Open, now_ms: Number) -> None:
    """Drop what was accepted and is due since: no commit needs it."""
    accepted, n_kept = tables.accepted, 0
    for i in range(tables.sizes[N_ACCEPTED]):
        if accepted[i, 0] > now_ms:
            accepted[n_kept] = accepted[i]
            n_kept += 1
    tables.sizes[N_ACCEPTED] = n_kept


@compiled
def compact(tables: Open, arena: Bytes) -> None:
    """Copy what is live into another array, `arena` [n_bytes]."""
    end = 0
    for i in range(tables.sizes[N_OPEN]):
        row = tables.impressions[tables.heap[i, WHICH]]
        arena[end : end + row[LENGTH]] = tables.arena[
            row[START] : row[START] + row[LENGTH]
        ]
        row[START] = end
        end += row[LENGTH]
        click = row[FIRST_CLICK]
        while click >= 0:
            mark = tables.clicks[click]
            length = mark[CLICK_LENGTH]
            arena[end : end + length] = tables.arena[
                mark[CLICK_START] : mark[CLICK_START] + length
            ]
            mark[CLICK_START] = end
            end += length
            click = mark[NEXT]
    tables.sizes[END] = end
    tables.sizes[N_LIVE_BYTES] = end


@inlined
def keep(tables: Open, data: Bytes, start: Number, length: Number) -> Number:
    """Copy bytes of `data` [n_bytes] to the arena's end; where they begin there."""
    at = tables.sizes[END]
    tables.arena[at : at + length] = data[start : start + length]
    tables.sizes[END] = at + length
    tables.sizes[N_LIVE_BYTES] += length
    return at


@inlined
def taken(sizes: Int64, rows: Int64, first_free: Number, n_rows: Number) -> Number:
    """A row that became free, else a new one.

    `sizes` [N_SIZES]; `rows` [n, width], free ones chained by their first column.
    """
    row = sizes[first_free]
    if row >= 0:
        sizes[first_free] = rows[row, 0]
    else:
        row = sizes[n_rows]
        sizes[n_rows] += 1
    return row


@inlined
def accept(tables: Open, due_ms: Number, kind: Number, row: Number) -> None:
    """Note what a commit must hold."""
    entry = tables.accepted[tables.sizes[N_ACCEPTED]]
    entry[0], entry[1], entry[2] = due_ms, kind, row
    tables.sizes[N_ACCEPTED] += 1


@inlined
def is_before(heap: Int64, i: Number, j: Number) -> Number:
    """Whether an entry of the `heap` [n, 3] goes before another."""
    if heap[i, DUE_MS] != heap[j, DUE_MS]:
        return heap[i, DUE_MS] < heap[j, DUE_MS]
    return heap[i, SERIAL] < heap[j, SERIAL]


@inlined
def swap(heap: Int64, i: Number, j: Number) -> None:
    """Let two entries of the `heap` [n, 3] change places."""
    for column in range(3):
        heap[i, column], heap[j, column] = heap[j, column], heap[i, column]


@inlined
def push(tables: Open, due_ms: Number, row: Number) -> None:
    """Add an impression to what will be due."""
    heap, i = tables.heap, tables.sizes[N_OPEN]
    heap[i, DUE_MS], heap[i, SERIAL] = due_ms, tables.sizes[N_SERIALS]
    heap[i, WHICH] = row
    tables.sizes[N_OPEN] += 1
    tables.sizes[N_SERIALS] += 1
    while i > 0 and is_before(heap, i, (i - 1) >> 1):
        swap(heap, i, (i - 1) >> 1)
        i = (i - 1) >> 1


@inlined
def pop(tables: Open) -> Number:
    """Remove the impression that is due first; its row."""
    heap = tables.heap
    row = heap[0, WHICH]
    tables.sizes[N_OPEN] -= 1
    n = tables.sizes[N_OPEN]
    heap[0, DUE_MS], heap[0, SERIAL] = heap[n, DUE_MS], heap[n, SERIAL]
    heap[0, WHICH] = heap[n, WHICH]
    i = 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and is_before(heap, child + 1, child):
            child += 1
        if not is_before(heap, child, i):
            break
        swap(heap, i, child)
        i = child
    return row


@inlined
def name_at(data: Bytes, place: Number) -> tuple[Number, Number]:
    """The identity in a field of `data` [n_bytes], as two numbers."""
    start, _ = span_at(data, place)
    return word_at(data, start), word_at(data, start + 8)


@compiled
def accepted_bytes(
    tables: Open, now_ms: Number, out: Bytes, ends: Int64, due: Int64
) -> Number:
    """Copy accepted elements that are not due yet; how many there are.

    `ends` [n_accepted] gets the end of each in `out` [n_bytes]; of those kept elsewhere
    -1 - their number. `due` [n_accepted] gets when each is due.
    """
    at, n = 0, 0
    for i in range(tables.sizes[N_ACCEPTED]):
        due_ms, kind, row = tables.accepted[i]
        if due_ms <= now_ms:
            continue
        due[n] = due_ms
        if kind == ACCEPTED_OBJECT:
            ends[n] = -1 - row
            n += 1
            continue
        if kind == ACCEPTED_IMPRESSION:
            start = tables.impressions[row, START]
            length = tables.impressions[row, LENGTH]
        else:
            start = tables.clicks[row, CLICK_START]
            length = tables.clicks[row, CLICK_LENGTH]
        out[at : at + length] = tables.arena[start : start + length]
        at += length
        ends[n] = at
        n += 1
    tables.sizes[N_ACCEPTED] = 0
    return n
