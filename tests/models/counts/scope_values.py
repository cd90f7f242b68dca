"""Records of scopes from plain impressions, as a fold would write them.

Lists and masks are grouped here with dictionaries; what does not go to the list form
is counted by `models.counts.definition`.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from models.counts.cells import CellSummary, merge
from models.counts.definition import ClosedImpression, count
from models.counts.placements import PLACKETT_LUCE, WITH_ROW
from models.counts.scope_record import (
    CAPPED,
    LONGEST_LIST,
    OVERFLOWED,
    SCHEMA,
    TRUNCATED,
)

_encode = msgspec.msgpack.Encoder().encode


@dataclass
class ScopeValue:
    """A scope that takes impressions one by one.

    With `most_lists` 0 all are counted in the general form. With `piece_lists` lists
    lie apart, so many in a piece.
    """

    items: Sequence[str]
    reward: int = 0
    exposure_rows: int = 16
    most_lists: int = 64
    most_masks: int = 64
    is_growing: bool = False
    is_capped: bool = False
    last_ms: int = 0
    flags: int = 0
    pieces: Collection[int] = ()
    piece_lists: int = 0
    rows: list[bytes] = field(default_factory=list)
    lists: dict[tuple[int, tuple[int, ...]], dict[int, Counter[int]]] = field(
        default_factory=dict
    )
    general: list[ClosedImpression] = field(default_factory=list)
    listed: list[ClosedImpression] = field(default_factory=list)

    def take(self, impressions: Collection[ClosedImpression]) -> "ScopeValue":
        """Count impressions, in closing order."""
        for one in impressions:
            if not self._take_list(one):
                self.general.append(one)
        if self.is_capped:
            self.flags |= CAPPED
        return self

    def head(self) -> bytes:
        """The scope's own record."""
        cells = self._cells()
        within: list[Any] = []
        for group in sorted(cells.keys() - set(self.pieces)):
            within += [group, cells[group]]
        apart = sorted(cells.keys() & set(self.pieces))
        return _encode(
            [
                SCHEMA,
                self.flags,
                self.last_ms,
                self.rows,
                len(self.list_values()) or self._lists(),
                within,
                apart,
                self._rewards(),
            ]
        )

    def piece_values(self) -> dict[int, bytes]:
        """Records of the cells that lie apart, by group."""
        cells = self._cells()
        apart = cells.keys() & set(self.pieces)
        return {group: _encode([SCHEMA, cells[group]]) for group in apart}

    def list_values(self) -> dict[int, bytes]:
        """Records of the lists that lie apart, by number."""
        flat, step = self._lists(), 3 * self.piece_lists
        starts = range(0, len(flat), step) if step else ()
        return {
            number: _encode([SCHEMA, flat[start : start + step]])
            for number, start in enumerate(starts)
        }

    def _take_list(self, one: ClosedImpression) -> bool:
        row = self._row(one)
        if self.is_capped or row is None or one.policy == PLACKETT_LUCE:
            return False
        if len(one.shown) > LONGEST_LIST:
            self.flags |= TRUNCATED
            return False
        key = row, tuple(one.shown)
        mask = sum(1 << (rank - 1) for rank in set(one.clicks.get(self.reward, ())))
        masks = self.lists.get(key, {}).get(one.group, Counter())
        is_new_mask = mask and mask not in masks
        n_masks = len([m for m in masks if m])
        if (key not in self.lists and len(self.lists) >= self.most_lists) or (
            is_new_mask and n_masks >= self.most_masks
        ):
            self.flags |= OVERFLOWED
            return False
        self.lists.setdefault(key, {}).setdefault(one.group, Counter())[mask] += 1
        self.listed.append(one)
        return True

    def _row(self, one: ClosedImpression) -> int | None:
        """Number of the exposure row, -1 - policy, or None where it is not kept."""
        if one.policy not in WITH_ROW:
            return -1 - one.policy
        if self.is_capped:
            return None
        if one.row not in self.rows:
            if len(self.rows) >= self.exposure_rows:
                self.flags |= OVERFLOWED
                return None
            self.rows.append(one.row)
        return self.rows.index(one.row)

    def _lists(self) -> list[Any]:
        flat: list[Any] = []
        for (row, items), groups in self.lists.items():
            counts: list[Any] = []
            for group, masks in sorted(groups.items()):
                pairs = [
                    n for mask in sorted(masks) if mask for n in (mask, masks[mask])
                ]
                counts += [group, sum(masks.values()), pairs]
            flat += [row, list(items), counts]
        return flat

    def _cells(self) -> dict[int, list[Any]]:
        parts: dict[int, list[CellSummary]] = defaultdict(list)
        is_kept = [one.row in self.rows for one in self.general]
        for kept, limit in ((True, 1 << 30), (False, 0)):
            chosen = [
                o for o, k in zip(self.general, is_kept, strict=True) if k == kept
            ]
            for group, cell in self._counted(chosen, limit).items():
                parts[group].append(cell)
        numbers = {item: number for number, item in enumerate(self.items)}
        return {
            group: cell_value(merge(cells), numbers, self.rows)
            for group, cells in parts.items()
        }

    def _rewards(self) -> list[int]:
        numbers = {item: number for number, item in enumerate(self.items)}
        rows = []
        counted = self._counted([*self.general, *self.listed], 0)
        for group, cell in counted.items():
            for which, item, rank, number in cell.rewards.tolist():
                rows.append([group, which, numbers[cell.items[item]], rank, number])
        return [number for row in sorted(rows) for number in row]

    def _counted(
        self, impressions: Sequence[ClosedImpression], exposure_rows: int
    ) -> dict[int, CellSummary]:
        return count(
            impressions,
            self.items,
            reward=self.reward,
            exposure_rows=exposure_rows,
            is_growing=self.is_growing,
            is_capped=self.is_capped,
        )


def cell_value(
    cell: CellSummary, numbers: Mapping[str, int], rows: Sequence[bytes]
) -> list[Any]:
    """The general form of a cell, of items by number and of kept rows."""
    number = [numbers[item] for item in cell.items]
    pairs = sorted([number[p[0]], *p[1:]] for p in cell.pairs.tolist())
    place = {(item, rank): i for i, (item, rank, *_) in enumerate(pairs)}
    together = []
    for a, rank, b, other, times in cell.click_pairs.tolist():
        one, two = sorted([place[number[a], rank], place[number[b], other]])
        together.append([one, two, times])
    named = zip(cell.row_names, cell.row_counts.tolist(), strict=True)
    return [
        cell.totals.tolist(),
        _flat(sorted([rows.index(name), times] for name, times in named)),
        _flat(pairs),
        _flat(sorted([number[s[0]], *s[1:]] for s in cell.sums.tolist())),
        _flat(sorted(together)),
    ]


def _flat(rows: list[list[int]]) -> list[int]:
    return [number for row in rows for number in row]
