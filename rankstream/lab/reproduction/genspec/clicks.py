"""Clicks on whole lists of a ranker that always shows the same one.

Users look at rank r by chance 1 / r, at each rank by itself, and click what they look
at by chance .2 + slope * grade. Each list is kept to train by, or to decide by.

Of the lists that train it is enough how often each item was clicked. Bounds ask for
squares of sums over clicked items, so of lists that decide each pair of items is
counted: with w of items, and n_de lists with clicks on both d and e,

    sum over lists of (sum over clicked d of w_d)^2 = sum over d, e of w_d w_e n_de

for any w, also of a policy that is trained later.

References
----------
Oosterhuis (PhD thesis, 2020), section 8.4.1; Oosterhuis & de Rijke (WWW 2021).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers, Singles
from models.evaluation.differences import DifferenceSums
from rankstream.lab.reproduction.genspec.plan import HIGHEST, NOISE, SELECTED


class QueryClicks(NamedTuple):
    """Of all lists so far.

    Parameters
    ----------
    training_lists, selection_lists : [n_queries]
        How many lists train, and how many decide.
    training : [n_items]
        Lists that train on which an item was clicked.
    pairs : [n_queries] of [n_items, n_items]
        Lists that decide on which two items of the query were clicked; on the diagonal,
        on which one was.
    """

    training_lists: Integers
    selection_lists: Integers
    training: Floats
    pairs: Sequence[Floats]

    @property
    def selection(self) -> Floats:
        """Lists that decide on which an item was clicked, [n_items]."""
        return np.concatenate([np.diagonal(each) for each in self.pairs])

    def sums(self, weights: Floats, offsets: Integers) -> DifferenceSums:
        """Evidence of lists that decide, a row for each query.

        Parameters
        ----------
        weights : [n_items]
            What a click on an item counts.
        offsets : [n_queries + 1]
            Of items.
        """
        clicked = self.selection
        by_query = np.split(weights, offsets[1:-1])
        gained = np.maximum(weights, 0.0)
        lost = np.maximum(-weights, 0.0)

        def summed(of_item: Floats) -> Floats:
            return np.add.reduceat(of_item, offsets[:-1])

        squares = [w @ n @ w for w, n in zip(by_query, self.pairs, strict=True)]
        return DifferenceSums(
            groups=np.zeros(len(by_query), np.int64),
            interactions=self.selection_lists,
            lengths=np.diff(offsets),
            clicks=summed(clicked).astype(np.int64),
            # Lists are whole, so any items of a query may be clicked together.
            gains=summed(gained),
            losses=summed(lost),
            largest=np.maximum.reduceat(np.abs(weights), offsets[:-1]),
            totals=summed(weights * clicked),
            squares=np.array(squares),
            click_squares=summed(weights**2 * clicked),
        )


def click_chances(labels: Integers, largest_label: int, slope: float) -> Floats:
    """P(click | looked at), [n_items].

    Parameters
    ----------
    labels : [n_items]
        From 0 to `largest_label`, which becomes grade 4.
    """
    return np.asarray(NOISE + slope * HIGHEST * labels / largest_label)


def drawn_clicks(
    chances: Floats,
    offsets: Integers,
    counts: Sequence[int],
    *,
    rng: np.random.Generator,
) -> Iterator[QueryClicks]:
    """Clicks after so many lists of each query; later ones hold those before.

    Parameters
    ----------
    chances : [n_items]
        P(click), of items at the ranks at which they are shown.
    offsets : [n_queries + 1]
        Of items.
    counts
        Rising.
    """
    by_query = np.split(chances.astype(np.float32), offsets[1:-1])
    clicks = QueryClicks(
        np.zeros(len(by_query), np.int64),
        np.zeros(len(by_query), np.int64),
        np.zeros(len(chances)),
        [np.zeros((len(each), len(each))) for each in by_query],
    )
    for n_new in np.diff(counts, prepend=0).tolist():
        drawn = [_drawn(each, n_new, rng) for each in by_query]
        n_selected = np.array([each.n_selected for each in drawn])
        clicks = QueryClicks(
            clicks.training_lists + n_new - n_selected,
            clicks.selection_lists + n_selected,
            clicks.training + np.concatenate([each.training for each in drawn]),
            [
                before + each.pairs
                for before, each in zip(clicks.pairs, drawn, strict=True)
            ],
        )
        yield clicks


class _Drawn(NamedTuple):
    n_selected: int
    training: Floats
    pairs: Floats


def _drawn(chances: Singles, n_lists: int, rng: np.random.Generator) -> _Drawn:
    """Lists of one query."""
    shape = n_lists, len(chances)
    clicked = (rng.random(shape, np.float32) < chances).astype(np.float32)
    n_selected = int(rng.binomial(n_lists, SELECTED))
    # Lists are alike, so the first ones are as good as any.
    selected = clicked[:n_selected]
    return _Drawn(
        n_selected,
        clicked[n_selected:].sum(axis=0, dtype=np.float64),
        (selected.T @ selected).astype(np.float64),
    )
