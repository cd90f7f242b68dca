"""A/B: each user sees the list of one ranker, drawn uniformly."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.arrays import Floats, Integers
from models.interleaving.method import (
    NO_ONE,
    Clicks,
    Combined,
    Shown,
    Traits,
    among_present,
    differences,
    one_each,
)
from models.interleaving.rankings import lengths_of, size_of


@dataclass(frozen=True)
class Split:
    """The A/B comparison: an unbiased estimate of differences in clicks per list.

    A click counts as many times as there are rankers, as each is shown that seldom.
    Rankers that returned nothing are not shown. The weights follow from the rankings,
    so intervals of it may be looked at any time.

    Parameters
    ----------
    most_clicks
        Of one list; further ones from the top are not counted. It makes intervals
        that hold at any time narrower. 0: all are.
    """

    most_clicks: int = 0
    traits: ClassVar[Traits] = Traits(
        is_for_two=False,
        is_fair=True,
        exact_up_to=math.inf,
        shows_one_ranker=True,
        counts_where_silent=False,
        even_shares=(("sample ratio", "lists"),),
    )
    needs_assignments: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.most_clicks < 0:
            raise ValueError(f"most_clicks must be 0 or more; got {self.most_clicks}")

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a ranker and its list, as in `Drawing.combine`."""
        lengths = lengths_of(rankings)
        able = np.flatnonzero(lengths)
        if not len(able):
            return Combined(NO_ONE, NO_ONE)
        ranker = able[int(rng.random() * len(able))]
        shown = rankings[ranker, : min(length, lengths[ranker])]
        return Combined(shown.copy(), np.full(len(shown), ranker, np.int64))

    def can_draw(self, shown: Shown) -> bool:
        """Whether it is the top of a ranker's list, of the named one if any is."""
        rankings, documents, teams = shown
        k = len(documents)
        if not k:
            return True
        if k > rankings.shape[1] or (teams != teams[:1]).any() or (teams < 0).any():
            return False
        able = rankings[teams[:1]] if len(teams) else rankings
        return bool((able[:, :k] == documents).all(axis=1).any())

    def typical_square(self, n_rankers: int) -> float:
        """A click in every other list, times the number of rankers."""
        return 0.5 * n_rankers * n_rankers

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Clicks of the ranker that was shown, over its probability.

        As in `Method.infer`.
        """
        if self.most_clicks:
            clicks = clicks & (np.cumsum(clicks) <= self.most_clicks)
        return among_present(shown.rankings, differences(self._weights(shown) @ clicks))

    def bounds(self, rankings: Integers, length: int) -> Floats:
        """Every place of the longer list clicked, whichever list is drawn.

        As in `Method.bounds`.
        """
        most = min(length, self.most_clicks or length)
        places = np.minimum(lengths_of(rankings), most)
        n_able = int((places > 0).sum())
        return n_able * np.maximum.outer(places, places) * one_each(rankings)

    def exposures(
        self,
        rankings: Integers,
        length: int,
        *,
        rng: np.random.Generator,  # noqa: ARG002  exact, nothing is drawn
    ) -> Floats:
        """Exact: the mixture of all lists; as in `Drawing.exposures`."""
        exposures = np.zeros((size_of(rankings), length))
        lengths = lengths_of(rankings)
        for ranker in np.flatnonzero(lengths):
            top = rankings[ranker, : min(length, lengths[ranker])]
            exposures[top, np.arange(len(top))] += 1.0 / (lengths > 0).sum()
        return exposures

    @staticmethod
    def _weights(shown: Shown) -> Floats:
        if len(shown.assignments) != len(shown.shown):
            raise ValueError(
                "assignments must name the ranker of each place; got "
                f"{len(shown.assignments)} for {len(shown.shown)} places"
            )
        n_able = int((lengths_of(shown.rankings) > 0).sum())
        places = np.arange(len(shown.shown))
        weights = np.zeros((len(shown.rankings), len(shown.shown)))
        owned = shown.assignments >= 0
        weights[shown.assignments[owned], places[owned]] = n_able
        return weights
