"""Differences in clicks per list, estimated from lists that were combined.

Interleaving tells who is preferred, not by how many clicks: its outcome can have
the wrong sign where click-through is what counts. Inverse propensity scoring of the
same clicks is unbiased for that, given how likely each rank is to be looked at.

References
----------
Oosterhuis (2020), chapter 8 and its appendix on the bias of interleaving.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Integers
from models.interleaving.method import (
    NO_ONE,
    Clicks,
    Combined,
    Drawing,
    Shown,
    Traits,
    among_present,
    differences,
    largest_gaps,
)
from models.interleaving.rankings import lengths_of, n_documents, ranks_of, size_of


@dataclass(frozen=True)
class Counterfactual:
    """Credits each ranker the clicks that its own list would have had.

    Parameters
    ----------
    logged
        The method that combined the lists.
    examination : [n_ranks]
        P(looked at | rank), fixed before the impressions; 0 below the last.
    length
        Of the lists that were asked for, where one that was shown may be shorter
        than what another draw would have shown; 0: as long as the shown list.
    """

    logged: Drawing
    examination: tuple[float, ...]
    length: int = 0

    def __post_init__(self) -> None:
        if not self.logged.traits.exact_up_to:
            raise ValueError(
                "counterfactual estimates must be of a method whose exposures are "
                f"exact; got {type(self.logged).__name__}"
            )
        if not self.examination or not all(map(_is_chance, self.examination)):
            raise ValueError(
                "examination must be numbers above 0 and at most 1; got "
                f"{self.examination}"
            )

    @property
    def traits(self) -> Traits:
        """Those of the logged method; but fair on its lists, even if its credit is not.

        Rankers that returned nothing have no clicks: nothing has to be left out.
        """
        return self.logged.traits._replace(is_fair=True, counts_where_silent=True)

    @property
    def needs_assignments(self) -> bool:
        """Of A/B lists: else a cut one may look like the whole list of another."""
        return self.logged.traits.shows_one_ranker

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list of the logged method, as in `Drawing.combine`."""
        return self.logged.combine(rankings, length, rng=rng)

    def can_draw(self, shown: Shown) -> bool:
        """What the logged method can."""
        return self.logged.can_draw(shown)

    def typical_square(self, n_rankers: int) -> float:
        """That of the logged method, whatever the options of its own credit."""
        return type(self.logged)().typical_square(n_rankers)

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Differences of the estimated clicks per list; as in `Method.infer`."""
        weights = self.weights(shown, self.length or len(shown.shown))
        return among_present(shown.rankings, differences(weights @ clicks))

    def bounds(self, rankings: Integers, length: int) -> Floats:
        """All gains, or all losses, of one ranker over another.

        As in `Method.bounds`.
        """
        every = Shown(rankings, np.arange(size_of(rankings)), NO_ONE)
        gaps = largest_gaps(self.weights(every, self.length or length), length)
        return among_present(rankings, gaps)

    def exposures(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Floats:
        """Those of the logged method, as in `Drawing.exposures`."""
        return self.logged.exposures(rankings, length, rng=rng)

    def weights(self, shown: Shown, length: int) -> Floats:
        """P(looked at in the ranker's list) / P(looked at), of each document.

        [n_rankers, k], wherever it stands in a list of `length`; 0 for what cannot
        have been shown by the logged method.
        """
        looked, propensities = self._looked_at(shown, length)
        can_be = propensities > 0.0
        weights = np.zeros(looked.shape)
        weights[:, can_be] = looked[:, can_be] / propensities[can_be]
        return weights

    def is_identified(self, rankings: Integers, length: int) -> bool:
        """Whether all that a ranker's own list would have looked at can be shown.

        Else its clicks are unknown, and lists that lack them tell nothing about it.
        A function of `rankings` [n_rankers, depth] alone, so it may be asked before a
        list is drawn.
        """
        every = Shown(rankings, np.arange(size_of(rankings)), NO_ONE)
        looked, propensities = self._looked_at(every, self.length or length)
        return not looked[:, propensities <= 0.0].any()

    def is_whole(self, shown: Shown, length: int) -> bool:
        """Whether all was shown that the logged method drew.

        The propensities are those of whole lists. Clicks below a cut are missing, and
        those above it say nothing of what a whole list would have had.
        """
        whole = n_documents(shown.rankings)
        if self.logged.traits.shows_one_ranker and len(shown.assignments):
            whole = lengths_of(shown.rankings)[shown.assignments[0]]
        return len(shown.shown) >= min(self.length or length, whole)

    def _looked_at(self, shown: Shown, length: int) -> tuple[Floats, Floats]:
        """P(looked at) in each ranker's list [n_rankers, k], and in those drawn [k]."""
        if len(shown.rankings) > self.logged.traits.exact_up_to:
            raise ValueError(
                f"click rates must be of {self.logged.traits.exact_up_to} rankers at "
                f"most from such lists; got {len(shown.rankings)}"
            )
        rng = np.random.default_rng(0)  # exact exposures draw nothing
        exposures = self.logged.exposures(shown.rankings, length, rng=rng)
        examined = np.zeros(length + 1)  # the last is for what is not in a list
        n_known = min(length, len(self.examination))
        examined[:n_known] = self.examination[:n_known]
        known = shown.shown < len(exposures)
        propensities = np.zeros(len(shown.shown))
        propensities[known] = exposures[shown.shown[known]] @ examined[:-1]
        ranks = ranks_of(shown.rankings, shown.shown)
        return examined[np.minimum(ranks, length + 1) - 1], propensities


def _is_chance(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0.0 < value <= 1.0  # of NaN neither holds
