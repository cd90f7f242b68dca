"""The curve of bias that clicks tell, from groups that nothing else is fitted on.

One pass over columns, in bounded memory: where there are very many documents, it is
estimated from those of an even sample of queries.
"""

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.bias.examination import ExaminationCurve, estimate_examination
from models.counts.fixed_point import Int64
from models.estimators.bias_curve import BiasCurve
from models.estimators.splits import LEAST_TO_SPLIT, Shares, split_groups
from streams.fold.statistics_columns import Columns
from streams.training.used_cells import counted_scopes

N_RANKS = 10
"""Ranks that are estimated, as by the monitor."""

MOST_ROWS = 1 << 19
"""Pairs of document and rank that an estimate is made of."""

OF_VALIDATION = "estimated from clicks of the validation groups"

OF_BOTH = "estimated from clicks of the training and validation groups"


class EstimatedCurve(NamedTuple):
    """A curve, None where clicks cannot tell it, and what it is from.

    Parameters
    ----------
    curve
        Examination relative to rank 1, up to the first rank without a ratio.
    source
        In words.
    groups
        Whose clicks it was estimated from.
    warning
        Ranks whose examination is not well known, as the monitor says it; else empty.
    """

    curve: BiasCurve | None
    source: str
    groups: tuple[int, ...]
    warning: str = ""


def estimated_curve(
    chunks: Iterable[Columns], n_groups: int, shares: Shares
) -> EstimatedCurve:
    """The curve of what was counted, from the validation groups where there are some.

    Where these have too few clicks it is from those of the training groups too, and the
    source says so. Never from those of the selection groups: who is trained under the
    curve, and all that come after, could then be judged by nobody. Groups that are too
    few to be split are taken together.

    Parameters
    ----------
    chunks
        In their order; see `streams.fold.statistics_columns`.
    n_groups
        `statistics.groups` of the statistics.
    """
    everybody = tuple(range(n_groups))
    if n_groups < LEAST_TO_SPLIT:
        told = f"{n_groups} group{'' if n_groups == 1 else 's'}"
        source = f"estimated from all clicks, as {told} cannot be split"
        views = _views_of(chunks, everybody, everybody)
        return _estimated(views.examination(), source + views.sampled(), everybody)
    splits = split_groups(n_groups, shares)
    validation, wider = splits.validation, (*splits.training, *splits.validation)
    views = _views_of(chunks, validation, wider)
    source = f"{OF_VALIDATION}, {validation[0]} to {validation[-1]}"
    found = _estimated(views.examination(), source + views.sampled(), validation)
    if found.curve is not None:
        return found
    source = f"{OF_BOTH}, as those of the validation groups do not tell it"
    whole = views.examination(is_wider=True)
    return _estimated(whole, source + views.sampled(), wider)


def curve_of_groups(
    chunks: Iterable[Columns], groups: Sequence[int]
) -> BiasCurve | None:
    """The curve of what these groups clicked, and nobody else; see `estimated_curve`.

    As of all but one of those that a curve is from, which tells how far it may be off.
    """
    views = _views_of(chunks, groups, groups)
    return _estimated(views.examination(), "", tuple(groups)).curve


def _estimated(
    found: ExaminationCurve, source: str, groups: tuple[int, ...]
) -> EstimatedCurve:
    """The curve up to the first rank without a ratio, where there are two ranks."""
    n_known = int(np.cumprod(~np.isnan(found.ratios)).sum())
    if n_known < 2:
        return EstimatedCurve(None, source, groups)
    known = found.ratios[:n_known]
    curve = BiasCurve(known, np.zeros(n_known), is_ratio_only=True)
    return EstimatedCurve(curve, source, groups, found.warning())


def _views_of(
    chunks: Iterable[Columns], groups: Sequence[int], wider: Sequence[int]
) -> "_Views":
    views = _Views(groups, wider)
    for chunk in counted_scopes(chunks):
        views.take(chunk)
    views.settle()
    return views


DOCUMENT, RANK, SOME_SHOWN, SOME_CLICKED, SHOWN, CLICKED = range(6)
"""Columns of views: of some groups, and of these with others."""


class _Views:
    """How often documents were shown and clicked at ranks, [n, 6], and by whom."""

    def __init__(self, groups: Sequence[int], wider: Sequence[int]) -> None:
        self._groups = groups
        self._wider = wider
        self._documents: dict[tuple[str, tuple[str, ...]], int] = {}
        self._n_sets = 0
        self._waiting: list[Int64] = []
        self._n_waiting = 0
        self._hashes: list[tuple[int, int]] = []  # first document, hash of its query
        self._kept: list[tuple[npt.NDArray[np.uint64], Int64]] = []
        self._n_kept = 0
        self._n_halved = 0

    def take(self, chunk: Columns) -> None:
        """Add columns that follow those of before."""
        # A closed set numbers its items alike in each era and intervention.
        sets = np.array([self._number(*x) for x in _sets_of(chunk)], np.int64)
        last = chunk.names[-1].query
        self._documents = {x: n for x, n in self._documents.items() if x[0] == last}
        is_there = (chunk.rank <= N_RANKS) & (chunk.shown > 0)
        is_there &= np.isin(chunk.group, self._wider)
        rank, shown = chunk.rank[is_there], chunk.shown[is_there]
        clicked = chunk.by_class[chunk.reward][is_there]
        is_some = np.isin(chunk.group[is_there], self._groups)
        document = (sets[chunk.scope[is_there]] << 32) + chunk.item[is_there]
        views = (document, rank, shown * is_some, clicked * is_some, shown, clicked)
        table = _added_up(np.column_stack(views))
        self._waiting.append(table)
        self._n_waiting += len(table)
        if self._n_waiting > MOST_ROWS // 2:
            self._settle(min(self._documents.values()) << 32)

    def _number(self, query: str, items: tuple[str, ...]) -> int:
        place = query, items
        if place not in self._documents:
            if not self._hashes or self._hashes[-1][1] != _hash(query):
                self._hashes.append((self._n_sets << 32, _hash(query)))
            self._documents[place] = self._n_sets
            self._n_sets += 1
        return self._documents[place]

    def settle(self) -> None:
        """Take what waits, too; nothing follows."""
        self._settle(self._n_sets << 32)

    def _settle(self, end: int) -> None:
        """Keep what tells something, of documents below a number: those are whole."""
        if not self._waiting:
            return
        table = _added_up(np.concatenate(self._waiting))
        is_whole = table[:, DOCUMENT] < end
        self._waiting = [table[~is_whole]]
        self._n_waiting = len(self._waiting[0])
        table = _telling(table[is_whole])
        firsts = np.array([first for first, _ in self._hashes], np.int64)
        hashes = np.array([each for _, each in self._hashes], np.uint64)
        at = np.searchsorted(firsts, table[:, DOCUMENT], "right") - 1
        self._kept.append((hashes[at], table))
        self._hashes = self._hashes[max(int(np.searchsorted(firsts, end)) - 1, 0) :]
        self._n_kept += len(table)
        self._thin(is_new_only=True)
        while self._n_kept > MOST_ROWS:
            self._n_halved += 1
            self._thin(is_new_only=False)

    def _thin(self, *, is_new_only: bool) -> None:
        """Leave rows of queries whose hash is small enough."""
        limit = np.uint64((1 << (64 - self._n_halved)) - 1)
        first = len(self._kept) - 1 if is_new_only else 0
        self._kept[first:] = [
            (hashes[hashes <= limit], table[hashes <= limit])
            for hashes, table in self._kept[first:]
        ]
        self._n_kept = sum(len(table) for _, table in self._kept)

    def examination(self, *, is_wider: bool = False) -> ExaminationCurve:
        """Examination relative to rank 1, as the monitor estimates it."""
        tables = [table for _, table in self._kept]
        table = np.concatenate([np.empty((0, 6), np.int64), *tables])
        first = SHOWN if is_wider else SOME_SHOWN
        columns = (table[:, DOCUMENT], table[:, RANK], *table[:, first : first + 2].T)
        return estimate_examination(*columns, n_ranks=N_RANKS)

    def sampled(self) -> str:
        """What is to be said of a sample."""
        if not self._n_halved:
            return ""
        return f", of one in {1 << self._n_halved} queries"


def _sets_of(chunk: Columns) -> Iterable[tuple[str, tuple[str, ...]]]:
    return (
        (name.query, items)
        for name, items in zip(chunk.names, chunk.items, strict=True)
    )


def _hash(query: str) -> int:
    digest = hashlib.blake2b(query.encode(), digest_size=8, person=b"curve")
    return int.from_bytes(digest.digest(), "big")


def _added_up(table: Int64) -> Int64:
    """Rows of the same document and rank as one, sorted."""
    order = np.lexsort((table[:, RANK], table[:, DOCUMENT]))
    table = table[order]
    is_first = np.ones(len(table), np.bool_)
    is_first[1:] = (np.diff(table[:, :2], axis=0) != 0).any(axis=1)
    starts = np.flatnonzero(is_first)
    if not len(starts):
        return table
    sums = np.add.reduceat(table[:, SOME_SHOWN:], starts, axis=0)
    return np.column_stack((table[starts, :2], sums))


def _telling(table: Int64) -> Int64:
    """Rows of documents that were clicked, and shown at two ranks or more.

    No others say anything of ratios; table is sorted.
    """
    _, numbers = np.unique(table[:, DOCUMENT], return_inverse=True)
    n_ranks = np.bincount(numbers)
    clicked = np.bincount(numbers, table[:, CLICKED])
    return (
        table[(n_ranks > 1)[numbers] & (clicked > 0)[numbers]] if len(table) else table
    )
