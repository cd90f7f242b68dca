"""Lists with their clicks, one by one, as tools take them that know no sums.

Clicks are drawn as sums of documents. Users look at each rank by itself, so that any
division of a document's clicks among the lists that it was on is as likely as any
other. Lists of the same documents with the same clicks are one, with how often it was.
A list without a click, or with nothing else, says nothing of an order, and is left out.
"""

import itertools
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Integers
from rankstream.lab.reproduction.top_k.clicks import ClickSums, Shown


class ClickLists(NamedTuple):
    """Distinct lists end to end.

    Parameters
    ----------
    offsets : [n_lists + 1]
        List i is at offsets[i] : offsets[i + 1].
    documents, ranks : [n_rows]
        Rows of the documents that are shown, and their ranks from 1.
    clicked : [n_rows]
    times : [n_lists]
        How often each was shown and clicked so.
    """

    offsets: Integers
    documents: Integers
    ranks: Integers
    clicked: Flags
    times: Integers


class _Patterns(NamedTuple):
    """Of lists of one query: who is last, who is clicked, and how many they are.

    `last`, `times` [n_patterns]; `clicked` [n_patterns, n_shown].
    """

    last: Integers
    clicked: Flags
    times: Integers

    def clicked_at(
        self, place: int, n_clicks: int, which: Integers, rng: np.random.Generator
    ) -> "_Patterns":
        """The same after `n_clicks` on a place of some of them, `which` [n_chosen]."""
        is_clicked = np.zeros(len(self.times), np.int64)
        is_clicked[which] = rng.multivariate_hypergeometric(
            self.times[which], n_clicks, method="marginals"
        )
        marked = self.clicked.copy()
        marked[:, place] = True
        both = _Patterns(
            np.concatenate([self.last, self.last]),
            np.concatenate([self.clicked, marked]),
            np.concatenate([self.times - is_clicked, is_clicked]),
        )
        return both.at(np.flatnonzero(both.times))

    def at(self, which: Integers) -> "_Patterns":
        """Some of them, `which` [n_chosen]."""
        return _Patterns(self.last[which], self.clicked[which], self.times[which])


def click_lists(
    clicks: ClickSums, shown: Shown, offsets: Integers, *, rng: np.random.Generator
) -> ClickLists:
    """Lists of which the clicks are the sums.

    Parameters
    ----------
    clicks, shown
        Of all queries.
    offsets : [n_queries + 1]
        Of documents, from 0.
    """
    documents, ranks, clicked, times, sizes = [], [], [], [], []
    for query, (begin, end) in enumerate(itertools.pairwise(offsets.tolist())):
        n_lists = int(clicks.impressions[query])
        if not n_lists:
            continue
        chances = shown.chances[begin:end]
        always = begin + np.flatnonzero(chances == 1.0)
        always = always[np.argsort(shown.ranks[always])]
        drawn = begin + np.flatnonzero((chances > 0.0) & (chances < 1.0))
        drawn = drawn[clicks.shown[drawn] > 0]
        found = _of_query(clicks, always, drawn, n_lists, rng)
        n_clicked = found.clicked.sum(axis=1)
        n_shown = found.clicked.shape[1]
        found = found.at(np.flatnonzero((n_clicked > 0) & (n_clicked < n_shown)))
        rows = np.tile(always, (len(found.times), 1))
        if len(drawn):
            rows = np.column_stack([rows, found.last])
        documents.append(rows.ravel())
        ranks.append(shown.ranks[rows].ravel())
        clicked.append(found.clicked.ravel())
        times.append(found.times)
        sizes.append(np.full(len(found.times), n_shown))
    return ClickLists(
        np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64),
        *map(np.concatenate, (documents, ranks, clicked, times)),
    )


def _of_query(
    clicks: ClickSums,
    always: Integers,
    drawn: Integers,
    n_lists: int,
    rng: np.random.Generator,
) -> _Patterns:
    last = drawn if len(drawn) else np.array([-1])
    times = clicks.shown[drawn] if len(drawn) else np.array([n_lists])
    n_shown = len(always) + bool(len(drawn))
    found = _Patterns(last, np.zeros((len(last), n_shown), np.bool_), times)
    for place, document in enumerate(always.tolist()):
        every = np.arange(len(found.times))
        found = found.clicked_at(place, int(clicks.clicked[document]), every, rng)
    for document in drawn.tolist():
        which = np.flatnonzero(found.last == document)
        found = found.clicked_at(-1, int(clicks.clicked[document]), which, rng)
    return found
