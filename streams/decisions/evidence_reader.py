"""Reads batches of scopes into lists, clicks and pairs of clicks by logging policy."""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats
from models.counts.fixed_point import Int64
from models.counts.group_tables import summed_rows
from models.counts.list_form import ListCounts, list_click_pairs
from models.counts.placements import DETERMINISTIC, TAIL_SHUFFLE, WITHOUT_EXPOSURE
from models.counts.scope_record import LONGEST_LIST
from models.decisions.click_sums import ClickSums, LoggingPolicies
from models.estimators.bias_curve import BiasCurve
from models.estimators.splits import Splits
from streams.decisions.closed_sets import CandidateSets, ClosedSets
from streams.decisions.general_parts import GeneralParts, general_parts
from streams.decisions.logging_policies import (
    Placements,
    PolicyTable,
    joined,
    placed_by_lists,
)
from streams.decisions.refused import Refused
from streams.statistics.placed_rows import PlacedRows
from streams.statistics.scopes import STRIDE, ScopeBatch, SortedItems

TRAINING, SELECTION = range(2)
"""Sides of a part; see `streams.decisions.general_parts`."""


class _Entries(NamedTuple):
    """Lists by cell with the policy that logged them, in rows that may repeat.

    `policies` (-1 where it counts for nothing), `cells`, `lists` [n].
    """

    policies: Int64
    cells: Int64
    lists: Int64


class EvidenceReader:
    """Takes batches in the order of the statistics.

    Parameters
    ----------
    splits
        Which groups are on which side.
    curve
        Of bias.
    weights : [n_ranks]
        lambda by rank.
    """

    def __init__(self, splits: Splits, curve: BiasCurve, weights: Floats) -> None:
        self._n_ranks = curve.n_ranks
        self._side_of = np.full(STRIDE, -1)
        self._side_of[[*splits.training]] = TRAINING
        self._side_of[[*splits.selection]] = SELECTION
        self._table = PolicyTable(curve, weights)
        self._rows = PlacedRows()
        self._closed = ClosedSets()
        # Policy, group, and lists; item, clicks; item, other item, clicks on both.
        self._counted: dict[tuple[int, int], list[Int64]] = {
            (side, width): [np.empty((0, width), np.int64)]
            for side in (TRAINING, SELECTION)
            for width in (3, 4, 5)
        }

    def take(self, batch: ScopeBatch) -> None:
        """Add the scopes of a batch."""
        # Cells that lie apart come behind the others of their scope.
        totals = batch.general.totals
        totals = totals[np.argsort(totals[:, 0])]
        batch = batch._replace(general=batch.general._replace(totals=totals))
        by_id = batch.sorted_items()
        sets = self._closed.take(batch, by_id)
        parts = _Parts(sets, self._side_of)
        general = general_parts(
            batch.general, parts.of(batch.general.totals[:, 0]), batch.n_items()
        )
        self._count_refused(batch, parts)
        is_mixed = np.zeros(2 * len(sets), np.bool_)
        is_mixed[general.parts[~general.is_told & ~general.is_unknown]] = True
        of_lists, of_parts = self._policies(batch, by_id, sets, general)
        self._take_lists(batch, by_id, parts, of_lists, is_mixed)
        self._take_general(batch, by_id, parts, general, of_parts)

    def _count_refused(self, batch: ScopeBatch, parts: "_Parts") -> None:
        """Lists of scopes that are refused whole."""
        lists, totals = batch.lists, batch.general.totals
        cells = np.concatenate((lists.groups, totals[:, 0]))
        shown = np.concatenate((lists.shown, totals[:, 1]))
        is_used = parts.sides(cells) >= 0
        scopes, n = cells[is_used] // STRIDE, len(batch.names)
        by_scope = np.bincount(scopes, shown[is_used], n).astype(np.int64)
        self._closed.refuse(batch, parts.sets, by_scope)

    def _policies(
        self,
        batch: ScopeBatch,
        by_id: SortedItems,
        sets: Int64,
        general: GeneralParts,
    ) -> tuple[Int64, Int64]:
        """The policy of each list, and of each part of the general form; -1 of none."""
        is_row = sets[batch.row_scopes] >= 0
        placed = self._rows.of(batch, by_id)
        owners = np.repeat(np.arange(len(is_row)), np.diff(placed.starts))
        listed = np.flatnonzero(
            np.isin(batch.lists.rows, (-1 - DETERMINISTIC, -1 - TAIL_SHUFFLE))
            & (sets[batch.list_scopes] >= 0)
        )
        scopes_of_parts = general.parts[general.listed] // 2
        of_parts = general.placed
        of_parts = of_parts._replace(
            items=by_id.renumbered(scopes_of_parts[of_parts.owners], of_parts.items)
        )
        scopes = np.concatenate(
            (batch.row_scopes[is_row], batch.list_scopes[listed], scopes_of_parts)
        )
        n_ranks = np.array([row.n_ranks for row in batch.rows], np.int64)[is_row]
        lengths = np.diff(batch.lists.starts)[listed]
        numbers = self._table.numbers(
            sets[scopes],
            batch.n_items()[scopes],
            np.concatenate((n_ranks, lengths, general.n_ranks)),
            joined(
                [
                    Placements(owners, *placed[1:]).of(is_row),
                    placed_by_lists(batch, by_id, listed),
                    of_parts,
                ],
                [len(n_ranks), len(listed), len(scopes_of_parts)],
            ),
        )
        by_row = np.full(len(is_row) + 1, -1)  # the last one is of no row
        by_row[:-1][is_row] = numbers[: len(n_ranks)]
        of_lists = by_row[np.maximum(batch.lists.rows, -1)]
        of_lists[listed] = numbers[len(n_ranks) :][: len(listed)]
        of_general = by_row[general.rows]
        of_general[general.listed] = numbers[len(n_ranks) + len(listed) :]
        return of_lists, of_general

    def _take_lists(
        self,
        batch: ScopeBatch,
        by_id: SortedItems,
        parts: "_Parts",
        policies: Int64,
        is_mixed: Flags,
    ) -> None:
        lists = batch.lists
        part = parts.of(lists.groups)
        unknown = np.isin(lists.rows, [-1 - policy for policy in WITHOUT_EXPOSURE])
        is_unknown = (part >= 0) & unknown[lists.owners]
        is_gone = (part >= 0) & ~is_unknown & is_mixed[part]
        self._closed.add(Refused.UNKNOWN, int(lists.shown[is_unknown].sum()))
        self._closed.add(Refused.MIXED, int(lists.shown[is_gone].sum()))
        own = np.where((part < 0) | is_unknown | is_gone, -1, policies[lists.owners])
        entries = _Entries(own, lists.groups, lists.shown)
        # Clicks at ranks that the curve does not have are left out with the ranks.
        n_ranks = min(self._n_ranks, LONGEST_LIST)
        counted = lists._replace(
            groups=np.arange(len(own)), masks=lists.masks & ((1 << n_ranks) - 1)
        )
        clicked = ListCounts(counted).clicked
        entry, rank = np.nonzero(clicked)
        places = lists.starts[lists.owners[entry]] + rank
        scopes = lists.groups // STRIDE
        items = by_id.renumbered(scopes[entry], lists.items[places])
        clicks = np.column_stack((entry, items, clicked[entry, rank]))
        pairs = list_click_pairs(counted)[:, [0, 1, 3, 5]]
        for column in (1, 2):
            pairs[:, column] = by_id.renumbered(scopes[pairs[:, 0]], pairs[:, column])
        pairs[:, 1:3] = np.sort(pairs[:, 1:3], axis=1)
        self._add(entries, parts, clicks, pairs)

    def _take_general(
        self,
        batch: ScopeBatch,
        by_id: SortedItems,
        parts: "_Parts",
        general: GeneralParts,
        policies: Int64,
    ) -> None:
        refused = ~general.is_told
        unknown = general.is_unknown
        self._closed.add(Refused.UNKNOWN, int(general.lists[unknown].sum()))
        self._closed.add(Refused.MIXED, int(general.lists[refused & ~unknown].sum()))
        totals = batch.general.totals
        part = parts.of(totals[:, 0])
        of_part = np.full(2 * len(parts.sets) + 1, -1)  # the last one is of no part
        of_part[general.parts] = np.where(refused, -1, policies)
        entries = _Entries(of_part[part], totals[:, 0], totals[:, 1])
        pairs, together = batch.general.pairs, batch.general.click_pairs
        pairs = pairs[(pairs[:, 4] > 0) & (pairs[:, 2] <= self._n_ranks)]
        together = together[(together[:, [2, 4]] <= self._n_ranks).all(axis=1)]
        tables = []
        for table, items in ((pairs[:, [0, 1, 4]], 1), (together[:, [0, 1, 3, 5]], 2)):
            scopes = table[:, 0] // STRIDE
            table[:, 0] = np.searchsorted(totals[:, 0], table[:, 0])
            for column in range(1, 1 + items):
                table[:, column] = by_id.renumbered(scopes, table[:, column])
            table[:, 1 : 1 + items] = np.sort(table[:, 1 : 1 + items], axis=1)
            tables.append(table)
        self._add(entries, parts, *tables)

    def _add(
        self, entries: _Entries, parts: "_Parts", clicks: Int64, pairs: Int64
    ) -> None:
        """Add lists and clicks; those name their entry first, which is replaced."""
        sides, groups = parts.sides(entries.cells), entries.cells % STRIDE
        lists = np.column_stack((np.arange(len(sides)), entries.lists))
        for side in (TRAINING, SELECTION):
            is_own = (entries.policies >= 0) & (sides == side)
            # What a policy is made of asks for clicks alone.
            for table in (lists, clicks, pairs)[: 2 + side]:
                own = table[is_own[table[:, 0]]]
                entry = own[:, 0]
                group = groups[entry] * (side == SELECTION)
                columns = np.column_stack((entries.policies[entry], group, own[:, 1:]))
                width = columns.shape[1]
                self._counted[side, width].append(summed_rows(columns, width - 1))

    def sets(self) -> CandidateSets:
        """All candidate sets that came."""
        return self._closed.sets()

    def refused(self) -> dict[Refused, int]:
        """Lists that were left out, by reason."""
        return self._closed.refused()

    def sums(self) -> tuple[LoggingPolicies, ClickSums, ClickSums]:
        """Policies that logged; lists and clicks of training and of selection."""
        tables = [
            [np.concatenate(self._counted[side, width]) for width in (3, 4, 5)]
            for side in (TRAINING, SELECTION)
        ]
        used = np.concatenate([of_side[0][:, 0] for of_side in tables])
        policies, numbers = self._table.sorted(used)
        training, selection = (_sums(of_side, numbers) for of_side in tables)
        return policies, training, selection


def _sums(tables: list[Int64], numbers: Int64) -> ClickSums:
    """Sums of rows that may repeat, given the new numbers of their policies."""
    for table in tables:
        table[:, 0] = numbers[table[:, 0]]
    rows, clicks, pairs = (summed_rows(x, x.shape[1] - 1) for x in tables)
    keys = rows[:, 0] * STRIDE + rows[:, 1]
    at_clicks, at_pairs = (
        np.searchsorted(keys, table[:, 0] * STRIDE + table[:, 1])
        for table in (clicks, pairs)
    )
    policies, groups, lists = np.ascontiguousarray(rows.T)
    return ClickSums(
        policies,
        groups,
        lists,
        np.column_stack((at_clicks, clicks[:, 2:])),
        np.column_stack((at_pairs, pairs[:, 2:])),
    )


class _Parts(NamedTuple):
    """Which part cells are of; `sets` [n_scopes] is -1 where a scope is refused."""

    sets: Int64
    side_of: Int64

    def sides(self, cells: Int64) -> Int64:
        """-1 where a group is of neither side."""
        return self.side_of[cells % STRIDE]

    def of(self, cells: Int64) -> Int64:
        """-1 where a cell counts for nothing."""
        scopes, sides = cells // STRIDE, self.sides(cells)
        return np.where((self.sets[scopes] >= 0) & (sides >= 0), 2 * scopes + sides, -1)
