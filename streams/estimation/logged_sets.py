"""Candidate sets of gathered queries: where items were, and were to be expected."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from models.counts.fixed_point import Floats, Int64
from streams.statistics.logged_queries import LoggedQueries


class LoggedSet(NamedTuple):
    """Lists of one candidate set of a query, of all policies and eras.

    Parameters
    ----------
    query
        Number of its query.
    name
        Of the set.
    is_growing
        Whether candidates are those of each list: it has what any of them had.
    items : [n_items_of_set]
        Numbers of its items, ascending.
    lists, clicked : [n_groups]
        Lists, and clicks on them.
    placed : [n_items_of_set, n_ranks]
        How often items were to be expected at ranks; where that is not known, how
        often they were there, which has the same mean. As many ranks as some list has.
    """

    query: int
    name: bytes
    is_growing: bool
    items: Int64
    lists: Int64
    clicked: Int64
    placed: Floats


def sets_of(queries: LoggedQueries) -> Iterator[LoggedSet]:
    """Candidate sets of the queries, in their order."""
    log, n_groups = queries.log, len(queries.impressions)
    placed = np.where(np.isnan(log.expected), log.shown, log.expected)
    items: dict[tuple[int, bytes, bool], list[Int64]] = {}
    numbers: dict[tuple[int, bytes, bool], int] = {}
    of_scopes = []
    firsts = np.searchsorted(queries.owners, np.arange(len(queries.queries)))
    for name, owner, own_items in zip(*queries.scopes, strict=True):
        key = owner, name.candidate_set, name.is_growing
        of_scopes.append(numbers.setdefault(key, len(numbers)))
        items.setdefault(key, []).append(own_items + firsts[owner])
    set_of = np.array(of_scopes, np.int64)
    counts = np.zeros((len(numbers), n_groups), np.int64)
    np.add.at(
        counts, (set_of[queries.lists[:, 0]], queries.lists[:, 1]), queries.lists[:, 3]
    )
    of_rows = set_of[queries.scope_of]
    order = np.argsort(of_rows, kind="stable")
    ends = np.searchsorted(of_rows[order], np.arange(len(numbers) + 1))
    for (query, set_name, is_growing), number in numbers.items():
        own = order[ends[number] : ends[number + 1]]
        of_set = np.unique(np.concatenate(items[query, set_name, is_growing]))
        ranks = log.ranks[own]
        table = np.zeros((len(of_set), int(ranks.max(initial=0))))
        at = np.searchsorted(of_set, log.items[own]), ranks - 1
        np.add.at(table, at, placed[own])
        clicks = np.zeros(n_groups, np.int64)
        np.add.at(clicks, log.groups[own], log.clicked[own])
        yield LoggedSet(
            query, set_name, is_growing, of_set, counts[number], clicks, table
        )
