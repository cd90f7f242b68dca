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
    log, n_sets, n_groups = queries.log, len(queries.sets), len(queries.impressions)
    placed = np.where(np.isnan(log.expected), log.shown, log.expected)
    order = np.argsort(queries.set_of, kind="stable")
    ends = np.searchsorted(queries.set_of[order], np.arange(n_sets + 1))
    counts = np.zeros((n_sets, n_groups), np.int64)
    np.add.at(counts, (queries.lists[:, 0], queries.lists[:, 1]), queries.lists[:, 3])
    for number, (query, name, is_growing, items) in enumerate(queries.sets):
        own = order[ends[number] : ends[number + 1]]
        of_set, ranks = np.unique(np.concatenate(items)), log.ranks[own]
        table = np.zeros((len(of_set), int(ranks.max(initial=0))))
        at = np.searchsorted(of_set, log.items[own]), ranks - 1
        np.add.at(table, at, placed[own])
        clicks = np.zeros(n_groups, np.int64)
        np.add.at(clicks, log.groups[own], log.clicked[own])
        yield LoggedSet(query, name, is_growing, of_set, counts[number], clicks, table)
