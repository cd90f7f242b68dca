"""A scope's record as bytes, read into arrays.

A *scope* is a query, a candidate set, an intervention and an era, with all its
groups. Its record is a MessagePack array:

    [2, flags, last_ms, rows, lists, cells, pieces, rewards]

`lists` is the list form (see `models.counts.list_form`): [row, items, counts, ...],
with counts [group, n, masks, ...] and masks [mask, count, ...]; or the number of
pieces in which they lie, [2, lists], one behind the other. `cells` is the general
form: [group, cell, ...], with cell [totals, row_counts, pairs, sums, click_pairs].
Cells of the groups in `pieces` lie in records of their own, [2, cell]. All lists are
flat, and in a fixed order that this decoder checks.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np

from models.counts.fixed_point import Int64
from models.counts.group_tables import GroupTables
from models.counts.placements import WITH_ROW

SCHEMA = 2
"""First element of a scope and of its pieces."""

LONGEST_LIST = 32
"""Lists of more items are counted in the general form only."""

CAPPED, OVERFLOWED, TRUNCATED, CONVERTED = 1, 2, 4, 8
"""Flags of a scope."""

_LEAST_ROW = -6  # -1 - policy, of the last policy

_WIDTHS = (6, 2, 8, 6, 3)
_CELL_PARTS = ("totals", "row_counts", "pairs", "sums", "click_pairs")

_Flat = list[int]
_Cell = tuple[_Flat, _Flat, _Flat, _Flat, _Flat]
_Lists = list[int | list[int | list[int]]]
_Cells = list[int | _Cell]
_Head = tuple[int, int, int, list[bytes], int | _Lists, _Cells, _Flat, _Flat]

_decode_head = msgspec.msgpack.Decoder(_Head).decode
_decode_piece = msgspec.msgpack.Decoder(tuple[int, _Cell]).decode
_decode_lists = msgspec.msgpack.Decoder(tuple[int, _Lists]).decode


class Lists(NamedTuple):
    """The list form, all lists one after another.

    An *entry* is a list in a group. Items, entries and masks stand in the order of
    their lists, masks in the order of their entries.

    Parameters
    ----------
    rows : [n_lists]
        Number of the exposure row, or -1 - policy.
    starts : [n_lists + 1]
        Items of list i stand from `starts[i]` to `starts[i + 1]`.
    items : [n_places]
        Numbers of the items at ranks 1, 2, ...
    owners, groups, shown : [n_entries]
        List, group, and number of impressions.
    mask_owners, masks, mask_counts : [n_masks]
        Entry, clicked ranks (bit r - 1 for rank r), number of impressions.
    """

    rows: Int64
    starts: Int64
    items: Int64
    owners: Int64
    groups: Int64
    shown: Int64
    mask_owners: Int64
    masks: Int64
    mask_counts: Int64


@dataclass(frozen=True)
class ScopeRecord:
    """A scope as it is stored.

    Parameters
    ----------
    flags
        Sum of `CAPPED`, `OVERFLOWED`, `TRUNCATED`, `CONVERTED`.
    last_ms
        Latest time of an impression.
    rows
        16-byte names of exposure rows, by number.
    lists
        The list form.
    general
        The general form, and the rewards of other classes.
    pieces
        Groups whose cell lies apart.
    n_list_pieces
        In how many pieces its lists lie apart; 0 where they do not.
    """

    flags: int
    last_ms: int
    rows: tuple[bytes, ...]
    lists: Lists
    general: GroupTables
    pieces: tuple[int, ...]
    n_list_pieces: int


def flags_of(value: bytes) -> int:
    """The flags of a scope's record, which stand third; nothing else is decoded."""
    return value[2]


def decode_scope(
    value: bytes, pieces: Mapping[int, bytes], list_pieces: Mapping[int, bytes]
) -> ScopeRecord:
    """A scope, of its record and of the records of its pieces by number.

    Parameters
    ----------
    pieces
        Cells that lie apart, by group.
    list_pieces
        Lists that lie apart, by the number of the piece.

    Raises
    ------
    ValueError
        If a piece that it names is not there, or something has another shape.
    """
    head = _read_head(value)
    missing = [group for group in head[6] if group not in pieces]
    if missing:
        raise ValueError(
            "a scope of statistics must have all pieces that it names; those of "
            f"groups {missing} are missing: read the topic from its "
            "beginning, or replay into the folder again"
        )
    apart = {group: _read_piece(pieces[group]) for group in head[6]}
    return _scope_of(head, apart, _joined_lists(head[4], list_pieces))


def _joined_lists(lists: Any, pieces: Mapping[int, bytes]) -> Any:
    """The flat lists of a head, or of all pieces that it counts."""
    if not isinstance(lists, int):
        return lists
    missing = next((number for number in range(lists) if number not in pieces), None)
    if missing is not None:
        raise ValueError(
            f"a scope of statistics must have all {lists} pieces of its lists; piece "
            f"{missing} is missing: read the topic from its beginning, or replay "
            "into the folder again"
        )
    return [*chain.from_iterable(_read_lists(pieces[i]) for i in range(lists))]


def _read_lists(value: bytes) -> Any:
    return _read("a piece", _decode_lists, value)[1]


def _read_head(value: bytes) -> Any:
    return _read("a scope", _decode_head, value)


def _read_piece(value: bytes) -> Any:
    return _read("a piece", _decode_piece, value)[1]


def _read(what: str, decode: Any, value: bytes) -> Any:
    try:
        decoded = decode(value)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{what} of statistics must be whole; {error}") from error
    if decoded[0] != SCHEMA:
        raise ValueError(f"schema of {what} must be {SCHEMA}; got {decoded[0]}")
    return decoded


def _scope_of(head: Any, apart: Mapping[int, Any], lists: Any) -> ScopeRecord:
    scope: ScopeRecord = _checked("a scope", _scope, head, apart, lists)
    return scope


def _checked(what: str, build: Any, *parts: Any) -> Any:
    """What `build` makes; numbers where lists belong, or too large, are refused."""
    try:
        return build(*parts)
    except (TypeError, OverflowError) as error:
        raise ValueError(
            f"{what} of statistics must be well formed; {error}"
        ) from error


def _scope(head: Any, apart: Mapping[int, Any], flat_lists: Any) -> ScopeRecord:
    _, flags, last_ms, names, lists, flat_cells, pieces, rewards = head
    n_list_pieces = lists if isinstance(lists, int) else 0
    _require(n_list_pieces >= 0, "pieces of lists are not fewer than none")
    _require(all(len(name) == 16 for name in names), "names of rows have 16 bytes")
    _require(len(flat_cells) % 2 == 0, "cells are pairs of group and cell")
    within = dict(zip(flat_cells[::2], flat_cells[1::2], strict=True))
    _require(len(within) * 2 == len(flat_cells), "groups of cells rise")
    _require(_is_rising(_array(flat_cells[::2], 1), 1), "groups of cells rise")
    _require(_is_rising(_array(pieces, 1), 1), "groups of pieces rise")
    _require(not within.keys() & set(pieces), "a cell lies in the head or apart")
    cells = {**within, **apart}
    groups = sorted(cells)
    general = _general(groups, [cells[group] for group in groups], len(names))
    rewarded = _array(rewards, 5)
    _require(_is_rising(rewarded, 4), "rewards are sorted")
    _require(bool((rewarded >= 0).all()), "rewards are not negative")
    return ScopeRecord(
        flags,
        last_ms,
        tuple(names),
        _lists(flat_lists, len(names)),
        general._replace(rewards=rewarded),
        tuple(pieces),
        n_list_pieces,
    )


def _lists(flat: Any, n_rows: int) -> Lists:
    _require(len(flat) % 3 == 0, "lists are row, items, counts")
    rows, items, counts = _array(flat[::3], 1)[:, 0], flat[1::3], flat[2::3]
    lengths = _lengths(items)
    entries = list(chain.from_iterable(counts))
    n_entries = _lengths(counts)
    _require(not (n_entries % 3).any(), "counts are group, n, masks")
    masks = entries[2::3]
    n_masks = _lengths(masks)
    _require(not (n_masks % 2).any(), "masks are mask, count")
    pairs = _array(list(chain.from_iterable(masks)), 2)
    lists = Lists(
        rows,
        np.concatenate(([0], np.cumsum(lengths))),
        _array(list(chain.from_iterable(items)), 1)[:, 0],
        np.repeat(np.arange(len(rows)), n_entries // 3),
        _array(entries[::3], 1)[:, 0],
        _array(entries[1::3], 1)[:, 0],
        np.repeat(np.arange(len(masks)), n_masks // 2),
        pairs[:, 0],
        pairs[:, 1],
    )
    _check_lists(lists, lengths, n_rows)
    return lists


def _check_lists(lists: Lists, lengths: Int64, n_rows: int) -> None:
    is_policy = (lists.rows < 0) & (lists.rows >= _LEAST_ROW)
    for policy in WITH_ROW:
        is_policy &= lists.rows != -1 - policy
    is_row = lists.rows >= 0
    is_row &= lists.rows < n_rows
    _require(bool((is_row | is_policy).all()), "rows of lists are there")
    is_listed = (lengths > 0) & (lengths <= LONGEST_LIST)
    _require(bool(is_listed.all()), f"lists have 1 to {LONGEST_LIST} items")
    _require(bool((lists.items >= 0).all()), "items have numbers")
    entries = np.column_stack((lists.owners, lists.groups))
    _require(_is_rising(entries, 2), "groups of a list rise")
    is_counted = (lists.shown > 0).all() and (lists.groups >= 0).all()
    _require(bool(is_counted), "lists are counted where shown")
    masks = np.column_stack((lists.mask_owners, lists.masks))
    _require(_is_rising(masks, 2), "masks of a list rise")
    limits = np.int64(1) << lengths[lists.owners[lists.mask_owners]]
    is_mask = (lists.masks > 0) & (lists.masks < limits) & (lists.mask_counts > 0)
    _require(bool(is_mask.all()), "masks have clicks in their list")
    clicked = np.zeros(len(lists.shown), np.int64)
    np.add.at(clicked, lists.mask_owners, lists.mask_counts)
    _require(
        bool((clicked <= lists.shown).all()), "lists are not clicked more than shown"
    )


def _general(groups: list[int], cells: list[Any], n_rows: int) -> GroupTables:
    """Cells of groups as tables; the places of click pairs become items and ranks."""
    if not groups:
        return GroupTables(*(np.empty((0, n), np.int64) for n in (7, 3, 9, 7, 6, 5)))
    tables, lengths = [], []
    by_group = _array(groups, 1)
    _require(bool((by_group >= 0).all()), "groups are not negative")
    for i, (name, width) in enumerate(zip(_CELL_PARTS, _WIDTHS, strict=True)):
        parts = [cell[i] for cell in cells]
        n_numbers = _lengths(parts)
        _require(not (n_numbers % width).any(), f"{name} have {width} numbers each")
        rows = _array(list(chain.from_iterable(parts)), width)
        _require(bool((rows >= 0).all()), f"{name} are not negative")
        lengths.append(n_numbers // width)
        tables.append(np.column_stack((np.repeat(by_group, lengths[-1]), rows)))
    totals, rows, pairs, sums, places = tables
    for name, table, n_keys in zip(_CELL_PARTS, tables, (1, 2, 3, 2, 3), strict=True):
        _require(_is_rising(table, n_keys), f"{name} are sorted")
    _require(bool((lengths[0] == 1).all()), "a cell has totals")
    _require(bool((rows[:, 1] < n_rows).all()), "rows of cells are there")
    return GroupTables(
        totals,
        rows,
        pairs,
        sums,
        _placed(places, pairs, lengths[2], lengths[4]),
        np.empty((0, 5), np.int64),
    )


def _placed(places: Int64, pairs: Int64, n_pairs: Int64, n_click_pairs: Int64) -> Int64:
    """Click pairs by item and rank, of places [n, 4] (group, a, b, count)."""
    first = np.repeat(np.cumsum(n_pairs) - n_pairs, n_click_pairs)
    is_there = (places[:, 1] < places[:, 2]) & (
        places[:, 2] < np.repeat(n_pairs, n_click_pairs)
    )
    _require(bool(is_there.all()), "click pairs are of places in pairs")
    one, other = pairs[first + places[:, 1]], pairs[first + places[:, 2]]
    return np.column_stack((one[:, :3], other[:, 1:3], places[:, 3]))


def _lengths(lists: Iterable[Any]) -> Int64:
    return np.fromiter(map(len, lists), np.int64)


def _array(numbers: list[Any], width: int) -> Int64:
    """Flat numbers as rows [n, width]."""
    _require(len(numbers) % width == 0, f"numbers come in rows of {width}")
    _require(list not in set(map(type, numbers)), "numbers are no lists")
    return np.array(numbers, np.int64).reshape(-1, width)


def _is_rising(rows: Int64, n_keys: int) -> bool:
    """Whether the first columns of `rows` [n, n_columns] rise strictly."""
    if len(rows) < 2:
        return True
    is_less = rows[:-1, n_keys - 1] < rows[1:, n_keys - 1]
    for column in range(n_keys - 2, -1, -1):
        here, there = rows[:-1, column], rows[1:, column]
        is_less = (here < there) | ((here == there) & is_less)
    return bool(is_less.all())


def _require(is_so: bool, rule: str) -> None:
    if not is_so:
        raise ValueError(f"in a scope of statistics {rule}; it is not so here")
