"""Where documents were shown and clicked, from columns, as curves of bias need it.

One pass, in bounded memory: where very many documents tell something, those of an even
sample of queries are kept.

Items may be classes, of no query: ids equal before a mark are one item. Of a log
without ids of documents a curve of bias is fitted on classes, each seen at many ranks;
see `models.estimators.item_classes`.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.bias.logged_views import Views
from models.counts.fixed_point import Int64
from models.estimators.item_classes import class_of
from streams.statistics.columns import Columns, counted_scopes

MOST_CLASSES = 1 << 12
"""All are held, with their counts by rank; no sample of queries makes them fewer."""


class TooManyClasses(ValueError):
    """Items have too many classes for all of them to be held.

    Operator action: do without classes; ids of documents have none.
    """


def columns_by_class(chunks: Iterable[Columns]) -> Iterator[Columns]:
    """The same rows, whose items are numbers of classes, all of one query.

    Interventions, groups and ranks stay as they were.

    Parameters
    ----------
    chunks
        In their order; see `streams.statistics.columns`.

    Raises
    ------
    TooManyClasses
        Where not all of them can be held.
    """
    numbers: dict[str, int] = {}
    for chunk in chunks:
        n_items = np.array([len(items) for items in chunk.items], np.int64)
        found = [
            numbers.setdefault(class_of(item), len(numbers))
            for items in chunk.items
            for item in items
        ]
        if len(numbers) > MOST_CLASSES:
            raise TooManyClasses(
                f"classes of items must be few, {MOST_CLASSES:,} at most, as all are "
                f"held; got more, such as {next(reversed(numbers))!r}: do without "
                "classes where ids have none"
            )
        starts = np.cumsum(n_items) - n_items
        item = np.array(found, np.int64)[starts[chunk.scope] + chunk.item]
        nothing: tuple[str, ...] = ()
        yield chunk._replace(
            names=tuple(name._replace(query="") for name in chunk.names),
            items=(nothing,) * len(chunk.items),
            item=item,
        )


MOST_ROWS = 1 << 19
"""Pairs of document and rank that an estimate is made of."""

DOCUMENT, POLICY, RANK, COUNTS = range(4)
"""Columns of views; from `COUNTS` on how often shown, and clicked, part by part."""

CLICKED = -1
"""The last part has all others."""


class ViewsAsked(NamedTuple):
    """What an estimator asks of views.

    Parameters
    ----------
    n_ranks
        Rows of further ranks are left out.
    is_by_policy
        Whether items of different interventions are different ones.
    keeps_unclicked
        Whether documents that nobody clicked say something.
    has_classes
        Whether items of one class count as one document, over all queries; see
        `models.estimators.item_classes`.
    """

    n_ranks: int
    is_by_policy: bool = False
    keeps_unclicked: bool = False
    has_classes: bool = False


def every(intervention: str) -> bool:
    """Lists of any intervention."""
    del intervention
    return True


class Part(NamedTuple):
    """Some lists.

    Parameters
    ----------
    groups
        Whose they are, of the statistics.
    takes
        Whether lists of an intervention are among them.
    """

    groups: Sequence[int]
    takes: Callable[[str], bool] = every


class CurveViews:
    """Rows of documents that were shown at two ranks or more, and sums of the others.

    Parameters
    ----------
    asked
        By the estimator.
    parts
        Each is counted by itself; the last one has all lists of the others.
    """

    def __init__(self, asked: ViewsAsked, parts: Sequence[Part]) -> None:
        self._asked = asked
        self._parts = parts
        self._documents: dict[tuple[str, tuple[str, ...]], int] = {}
        self._policies: dict[str, int] = {}
        self._n_sets = 0
        self._waiting: list[Int64] = []
        self._n_waiting = 0
        self._hashes: list[tuple[int, int]] = []  # first document, hash of its query
        self._kept: list[tuple[npt.NDArray[np.uint64], Int64]] = []
        self._n_kept = 0
        self._n_halved = 0
        self._rest = np.zeros((asked.n_ranks, 2 * len(parts)), np.int64)
        self.interventions: set[str] = set()
        """Names under which lists were logged."""

    def take(self, chunk: Columns) -> None:
        """Add columns that follow those of before."""
        # A closed set numbers its items alike in each era and intervention.
        sets = np.array([self._number(*x) for x in _sets_of(chunk)], np.int64)
        policies = np.array([self._policy(x.intervention) for x in chunk.names])
        self.interventions.update(x.intervention for x in chunk.names)
        last = chunk.names[-1].query
        self._documents = {x: n for x, n in self._documents.items() if x[0] == last}
        is_there = (chunk.rank <= self._asked.n_ranks) & (chunk.shown > 0)
        is_there &= np.isin(chunk.group, self._parts[-1].groups)
        rank, shown = chunk.rank[is_there], chunk.shown[is_there]
        clicked = chunk.by_class[chunk.reward][is_there]
        group, scope = chunk.group[is_there], chunk.scope[is_there]
        document = (sets[scope] << 32) + chunk.item[is_there]
        views = [document, policies[scope], rank]
        for part in self._parts:
            takes = np.array([part.takes(x.intervention) for x in chunk.names])
            is_some = np.isin(group, part.groups) & takes[scope]
            views += [shown * is_some, clicked * is_some]
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

    def _policy(self, intervention: str) -> int:
        if not self._asked.is_by_policy:
            return 0
        return self._policies.setdefault(intervention, len(self._policies))

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
        table = table[is_whole]
        tells = _tells(table, self._asked.keeps_unclicked)
        np.add.at(self._rest, table[~tells, RANK] - 1, table[~tells, COUNTS:])
        table = table[tells]
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

    def views(self, part: int) -> Views:
        """Rows of documents shown at two ranks or more, those that a part showed."""
        nothing = np.empty((0, COUNTS + self._rest.shape[1]), np.int64)
        table = np.concatenate([nothing, *(table for _, table in self._kept)])
        queries = np.concatenate(
            [np.empty(0, np.uint64), *(hashes for hashes, _ in self._kept)]
        )
        first = COUNTS + 2 * part
        is_shown = table[:, first] > 0
        table, queries = table[is_shown], queries[is_shown]
        _, numbers = np.unique(queries, return_inverse=True)
        return Views(
            numbers.astype(np.int64), table[:, POLICY], table[:, DOCUMENT],
            table[:, RANK], table[:, first], table[:, first + 1],
        )  # fmt: skip

    def others(self, part: int) -> Views:
        """All other documents, rank by rank, each rank as one item that was only there.

        They tell no ratio, but that a rank was shown, and clicked.
        """
        shown, clicked = self._rest[:, 2 * part], self._rest[:, 2 * part + 1]
        ranks = np.flatnonzero(shown) + 1
        names, none = -ranks, np.zeros(len(ranks), np.int64)
        return Views(names, none, names, ranks, shown[ranks - 1], clicked[ranks - 1])

    def sampled(self) -> str:
        """What is to be said of a sample."""
        if not self._n_halved:
            return ""
        return f", of one in {1 << self._n_halved} queries"


def views_of(
    chunks: Iterable[Columns], asked: ViewsAsked, parts: Sequence[Part]
) -> CurveViews:
    """The views of columns, in their order; see `CurveViews`.

    Raises
    ------
    TooManyClasses
        See `streams.training.curves.curve_views`.
    """
    views = CurveViews(asked, parts)
    counted = counted_scopes(chunks)
    for chunk in columns_by_class(counted) if asked.has_classes else counted:
        views.take(chunk)
    views.settle()
    return views


def _sets_of(chunk: Columns) -> Iterable[tuple[str, tuple[str, ...]]]:
    return (
        (name.query, items)
        for name, items in zip(chunk.names, chunk.items, strict=True)
    )


def _hash(query: str) -> int:
    digest = hashlib.blake2b(query.encode(), digest_size=8, person=b"curve")
    return int.from_bytes(digest.digest(), "big")


def _added_up(table: Int64) -> Int64:
    """Rows of the same document, policy and rank as one, sorted."""
    order = np.lexsort((table[:, RANK], table[:, POLICY], table[:, DOCUMENT]))
    table = table[order]
    is_first = np.ones(len(table), np.bool_)
    is_first[1:] = (np.diff(table[:, :COUNTS], axis=0) != 0).any(axis=1)
    starts = np.flatnonzero(is_first)
    if not len(starts):
        return table
    sums = np.add.reduceat(table[:, COUNTS:], starts, axis=0)
    return np.column_stack((table[starts, :COUNTS], sums))


def _tells(table: Int64, keeps_unclicked: bool) -> npt.NDArray[np.bool_]:
    """Rows of documents that one policy showed at two ranks or more; table is sorted.

    Where one that nobody clicked says nothing it must have been clicked, too.
    """
    is_first = np.ones(len(table), np.bool_)
    is_first[1:] = (np.diff(table[:, :RANK], axis=0) != 0).any(axis=1)
    numbers = np.cumsum(is_first) - 1
    tells = np.bincount(numbers) > 1
    if not keeps_unclicked:
        tells &= np.bincount(numbers, table[:, CLICKED]) > 0
    return np.asarray(tells[numbers])
