"""Impressions whose window has passed: out of the tables, as encoded interactions."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.counts.count_tables import Int32, Int64
from models.kernels.compilation import Number, compiled, inlined
from streams.fold.identities import Names, put
from streams.fold.messagepack import PADDING, Bytes, put_array, put_number
from streams.fold.open_tables import (
    ACTION_END,
    ACTION_FIELD,
    AT_MS,
    CLICK_LENGTH,
    CLICK_NAME,
    CLICK_START,
    CLICKED_MS,
    DUE_MS,
    FIRST_CLICK,
    FREE_CLICK,
    FREE_IMPRESSION,
    HAS_EXTRA,
    KNOWN,
    LENGTH,
    MODEL,
    N_ATTACHED,
    N_LIVE_BYTES,
    N_OPEN,
    N_PLACED,
    NAME,
    NEXT,
    POSITION,
    START,
    Open,
    pop,
)

MOST_MARK_BYTES = 16
"""A click in an interaction takes so many bytes beside its action."""

MOST_HEAD_BYTES = 8
"""And an interaction, beside impression and clicks."""


@compiled
def take_due(
    tables: Open, now_ms: Number, rows: Int32
) -> tuple[Number, Number, Number]:
    """Remove what is due from the heap; how many, their bytes, their clicks.

    Their rows are written to `rows` [n_open].
    """
    n_due, n_bytes, n_clicks = 0, 0, 0
    while tables.sizes[N_OPEN] > 0 and tables.heap[0, DUE_MS] <= now_ms:
        row = pop(tables)
        rows[n_due] = row
        n_due += 1
        n_bytes += tables.impressions[row, LENGTH] + MOST_HEAD_BYTES
        click = tables.impressions[row, FIRST_CLICK]
        while click >= 0:
            n_bytes += tables.clicks[click, CLICK_LENGTH] + MOST_MARK_BYTES
            n_clicks += 1
            click = tables.clicks[click, NEXT]
    return n_due, n_bytes, n_clicks


class Closing(NamedTuple):
    """Where what closes is written.

    Parameters
    ----------
    encoded : [n_bytes]
        The interactions, and padding behind them.
    ends : [n_due]
        Where each ends.
    times : [n_due + n_clicks]
        Closing times of the identities that become known, and
    names : [n_due + n_clicks, 2]
        the identities.
    models : [n_due, 2]
        A digest of each model's name.
    extras : [n_due]
        Whether an impression says more than the statistics read.
    """

    encoded: Bytes
    ends: Int64
    times: Int64
    names: Names
    models: Names
    extras: NDArray[np.bool_]


def room_for(n_due: int, n_bytes: int, n_clicks: int) -> Closing:
    """Arrays for so many impressions, with so many clicks, of so many bytes in all."""
    return Closing(
        np.empty(n_bytes + PADDING, np.uint8),
        np.empty(n_due, np.int64),
        np.empty(n_due + n_clicks, np.int64),
        np.empty((n_due + n_clicks, 2), np.uint64),
        np.empty((n_due, 2), np.uint64),
        np.empty(n_due, np.bool_),
    )


@inlined
def sorted_clicks(tables: Open, impression: Int64) -> Int64:
    """The clicks [n] of an `impression` [ROW_WIDTH] by time, position, and arrival."""
    rows = np.empty(impression[N_ATTACHED], np.int64)
    click = impression[FIRST_CLICK]
    for i in range(rows.shape[0]):
        rows[i] = click
        click = tables.clicks[click, NEXT]
    if rows.shape[0] > 1:
        for column in (POSITION, CLICKED_MS):
            keys = np.empty(rows.shape[0], np.int64)
            for i in range(rows.shape[0]):
                keys[i] = tables.clicks[rows[i], column]
            rows = rows[np.argsort(keys, kind="mergesort")]
    return rows


@inlined
def let_go(tables: Open, row: Number, clicks: Int64) -> None:
    """Give back the rows of an impression and of its `clicks` [n]."""
    sizes = tables.sizes
    for click in clicks:
        mark = tables.clicks[click]
        sizes[N_LIVE_BYTES] -= mark[CLICK_LENGTH]
        sizes[N_PLACED] -= mark[POSITION] > 0
        mark[0] = sizes[FREE_CLICK]
        sizes[FREE_CLICK] = click
    impression = tables.impressions[row]
    sizes[N_LIVE_BYTES] -= impression[LENGTH]
    impression[0] = sizes[FREE_IMPRESSION]
    sizes[FREE_IMPRESSION] = row


@inlined
def remember(closing: Closing, n_known: Number, due_ms: Number, name: Int64) -> None:
    """Note an identity that is known from now on: the first two of `name` [n]."""
    closing.times[n_known] = due_ms
    closing.names[n_known, 0] = np.uint64(name[0])
    closing.names[n_known, 1] = np.uint64(name[1])


@compiled
def close(tables: Open, rows: Int32, window_ms: Number, closing: Closing) -> Number:
    """Write what is due as interactions, and let go of it; the number of clicks.

    `rows` [n_due] are those of `take_due`.
    """
    arena, encoded = tables.arena, closing.encoded
    at, n_known, n_applied = 0, 0, 0
    for i in range(rows.shape[0]):
        impression = tables.impressions[rows[i]]
        start, length = impression[START], impression[LENGTH]
        at = put_array(encoded, at, 2)
        encoded[at : at + length] = arena[start : start + length]
        at += length
        closing.models[i, 0] = np.uint64(impression[MODEL])
        closing.models[i, 1] = np.uint64(impression[MODEL + 1])
        closing.extras[i] = impression[HAS_EXTRA] > 0
        due_ms = impression[AT_MS] + window_ms
        remember(closing, n_known, due_ms, impression[NAME:])
        first, second = closing.names[n_known]
        put(tables.identities, first, second, KNOWN)
        n_known += 1
        clicks = sorted_clicks(tables, impression)
        n_marks = 0
        for click in clicks:
            n_marks += tables.clicks[click, POSITION] > 0
        at = put_array(encoded, at, n_marks)
        n_applied += n_marks
        for click in clicks:
            mark = tables.clicks[click]
            remember(closing, n_known, due_ms, mark[CLICK_NAME:])
            n_known += 1
            if mark[POSITION] > 0:
                at = put_array(encoded, at, 3)
                at = put_number(encoded, at, mark[POSITION])
                at = put_number(encoded, at, mark[CLICKED_MS])
                first_byte = mark[CLICK_START] + mark[ACTION_FIELD]
                n_bytes = mark[ACTION_END] - mark[ACTION_FIELD]
                encoded[at : at + n_bytes] = arena[first_byte : first_byte + n_bytes]
                at += n_bytes
        let_go(tables, rows[i], clicks)
        closing.ends[i] = at
    return n_applied
