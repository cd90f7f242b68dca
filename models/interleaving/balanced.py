"""Balanced interleaving of two rankers, plain and debiased.

A coin decides who begins; then both lists are merged, so that every prefix holds as
much of one as of the other, but for one document.

References
----------
Joachims (KDD 2002 and 2003). The debiased form keeps this merge and makes the credit
unbiased, as Bi et al. (CIKM 2022) set out to do; its way is a control variate: of
each place's credit the mean over both lists is taken away, so that clicks which
ignore relevance give nothing in expectation, place by place.
"""

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
    largest_gaps,
    where_different,
)
from models.interleaving.rankings import ABSENT, lengths_of, ranks_of, size_of


@dataclass(frozen=True)
class Balanced:
    """Plain balanced interleaving: known to be unfair, kept for comparison."""

    traits: ClassVar[Traits] = Traits(
        is_for_two=True,
        is_fair=False,
        exact_up_to=math.inf,
        shows_one_ranker=False,
        counts_where_silent=True,
        even_shares=(),
    )
    needs_assignments: ClassVar[bool] = False

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list, as in `Drawing.combine`."""
        _check_two(rankings)
        first = int(rng.random() < 0.5)
        return Combined(merged(rankings, length, first), NO_ONE)

    def can_draw(self, shown: Shown) -> bool:
        """The merges are two."""
        k = len(shown.shown)
        merges = (merged(shown.rankings, k, first) for first in (0, 1))
        return any(np.array_equal(shown.shown, merge) for merge in merges)

    def typical_square(self, n_rankers: int) -> float:  # noqa: ARG002  for any number
        """A sign, where somebody is preferred in every other list."""
        return 0.5

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Whose top, as deep as it takes to hold the lowest click, has more clicks.

        Arrays as in `Method.infer`.
        """
        _check_two(shown.rankings)
        counts = np.zeros(2)
        ranks = ranks_of(shown.rankings, shown.shown)
        if clicks.any():
            lowest = np.flatnonzero(clicks)[-1]
            depth = min(ranks[:, lowest].min(), lengths_of(shown.rankings).min())
            counts = ((ranks <= depth) & clicks).sum(axis=1).astype(np.float64)
        return among_present(shown.rankings, np.sign(differences(counts)))

    def bounds(
        self,
        rankings: Integers,
        length: int,  # noqa: ARG002  a sign is a sign
    ) -> Floats:
        """One, unless both lists are the same; as in `Method.bounds`."""
        _check_two(rankings)
        return where_different(rankings)

    def exposures(
        self,
        rankings: Integers,
        length: int,
        *,
        rng: np.random.Generator,  # noqa: ARG002  exact, nothing is drawn
    ) -> Floats:
        """Exact: one half for each of the two lists; as in `Drawing.exposures`."""
        exposures = np.zeros((size_of(rankings), length))
        for first in (0, 1):
            shown = merged(rankings, length, first)
            exposures[shown, np.arange(len(shown))] += 0.5
        return exposures


@dataclass(frozen=True)
class DebiasedBalanced(Balanced):
    """Balanced interleaving with credits that favour nobody at any place.

    A click gives each ranker 1 / rank of the document, less what the document at
    this place gives on the mean of both lists.
    """

    traits: ClassVar[Traits] = Balanced.traits._replace(is_fair=True)

    def typical_square(self, n_rankers: int) -> float:  # noqa: ARG002  for any number
        """Of differences of inverse ranks."""
        return 0.3

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Differences of the centred credits."""
        return among_present(shown.rankings, differences(self._weights(shown) @ clicks))

    def bounds(self, rankings: Integers, length: int) -> Floats:
        """All gains, or all losses, of one ranker over the other, in either list."""
        found = np.zeros((2, 2))
        for first in (0, 1):
            shown = Shown(rankings, merged(rankings, length, first), NO_ONE)
            gaps = largest_gaps(self._weights(shown), length)
            found = np.maximum(found, gaps)
        return among_present(rankings, found)

    @staticmethod
    def _weights(shown: Shown) -> Floats:
        _check_two(shown.rankings)
        k = len(shown.shown)
        weights = _inverse_ranks(shown.rankings, shown.shown)
        for first in (0, 1):
            expected = merged(shown.rankings, k, first)
            weights[:, : len(expected)] -= 0.5 * _inverse_ranks(
                shown.rankings, expected
            )
        return weights


def merged(rankings: Integers, length: int, first: int) -> Integers:
    """The merge [k] that `first` begins, of `rankings` [2, depth]."""
    shown: list[int] = []
    known: set[int] = set()
    for place in range(rankings.shape[1]):
        for ranker in (first, 1 - first):
            document = int(rankings[ranker, place])
            if document >= 0 and document not in known and len(shown) < length:
                known.add(document)
                shown.append(document)
    return np.array(shown, np.int64)


def _inverse_ranks(rankings: Integers, documents: Integers) -> Floats:
    ranks = ranks_of(rankings, documents)
    inverse: Floats = np.where(ranks == ABSENT, 0.0, 1.0 / ranks)
    return inverse


def _check_two(rankings: Integers) -> None:
    if len(rankings) != 2:
        raise ValueError(
            f"balanced interleaving must compare two rankers; got {len(rankings)}"
        )
