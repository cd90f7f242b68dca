"""Optimized multileaving: lists drawn so that no ranker is favoured.

A click on a document gives each ranker a credit by the rank that it gives it. A
linear programme finds probabilities of the allowed lists for which every prefix
gives, in expectation, all rankers the same credit where relevance plays no part,
and which otherwise separate them best. Where no such probabilities exist, those
whose squared violations are least take their place; the method is not fair then.

References
----------
Radlinski & Craswell (WSDM 2013), two rankers; Schuth et al. (CIKM 2014), many. The
same credit is used in the constraint and in the outcome: with two different ones
the lists are balanced for another method.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.arrays import Floats, Integers
from models.interleaving.allowed_lists import (
    allowed_lists,
    prefix_credits,
    sampled_lists,
)
from models.interleaving.least_squares import closest_distribution
from models.interleaving.method import (
    NOBODY,
    Clicks,
    Combined,
    Shown,
    Traits,
    among_present,
    differences,
    largest_gaps,
)
from models.interleaving.possible_lists import is_best_of_some
from models.interleaving.rankings import ABSENT, lengths_of, ranks_of, size_of

CREDITS = ("inverse", "linear")
"""1 / rank, nothing for a document that is absent; or minus the rank."""

FEASIBLE = 1e-6
"""Violations below it are left to the linear programme to judge."""


@dataclass(frozen=True)
class Optimized:
    """Optimized multileaving over at most `n_lists` lists.

    Parameters
    ----------
    credit
        One of `CREDITS`.
    n_lists
        All allowed lists where they are no more than this, else so many draws.
    published
        As the software behind the published tables did: the whole list is not a
        prefix, and the mean credit is divided by the number of lists once more.
    failures
        Share of the relaxed searches that end without an answer, as that software's
        solver does: a uniform draw of a list, which credits nobody.
    """

    credit: str = "inverse"
    n_lists: int = 100
    published: bool = False
    failures: float = 0.0
    needs_assignments: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.credit not in CREDITS:
            raise ValueError(f"credit must be one of {CREDITS}; got {self.credit!r}")
        if self.n_lists < 1:
            raise ValueError(f"n_lists must be 1 or more; got {self.n_lists}")
        if not 0.0 <= self.failures < 1.0:
            raise ValueError(f"failures must be 0 to below 1; got {self.failures}")

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list, as in `Method.combine`."""
        lists, chances, is_exact = self.distribution(rankings, length, rng=rng)
        fails = not is_exact and rng.random() < self.failures
        bounds = np.cumsum(np.ones(len(lists)) if fails else chances)
        row = int(np.searchsorted(bounds, rng.random() * bounds[-1], side="right"))
        shown = lists[min(row, len(lists) - 1)]
        return Combined(shown, np.full(len(shown) if fails else 0, NOBODY, np.int64))

    def distribution(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> tuple[Integers, Floats, bool]:
        """The allowed lists, their probabilities, and whether these are fair.

        Lists [n_lists, k] and probabilities [n_lists], of
        `rankings` [n_rankers, depth].
        """
        n_documents = size_of(rankings)
        if not n_documents:
            return np.empty((1, 0), np.int64), np.ones(1), True
        present = rankings[lengths_of(rankings) > 0]
        if self.published:
            lists = sampled_lists(present, length, self.n_lists, rng)
        else:
            lists = allowed_lists(present, length, self.n_lists, rng)
        credit = self.credit_of(present, np.arange(n_documents))
        sums = prefix_credits(lists, credit)
        constrained = sums[:, :-1] if self.published else sums
        rows = np.ascontiguousarray(constrained).reshape(len(lists), -1)
        chances, _ = closest_distribution(rows)
        is_fair = bool(np.abs(chances @ rows).max(initial=0.0) < FEASIBLE)
        if is_fair:
            spread = _spread(sums[:, -1], lists, credit, published=self.published)
            chances = _programme(rows, spread, chances)
        return lists, chances, is_fair

    def credit_of(self, rankings: Integers, documents: Integers) -> Floats:
        """What a click on each document gives. [n_rankers, n_documents].

        `rankings` [n_rankers, depth], `documents` [n_documents].
        """
        ranks = ranks_of(rankings, documents)
        if self.credit == "inverse":
            inverse: Floats = np.where(ranks == ABSENT, 0.0, 1.0 / ranks)
            return inverse
        lowest = rankings.shape[1] + 1
        return np.asarray(-np.minimum(ranks, lowest), np.float64)

    @property
    def traits(self) -> Traits:
        """Fair where its programme has a solution, but not as it was published."""
        return Traits(
            is_for_two=False,
            is_fair=not self.published,
            exact_up_to=0,
            shows_one_ranker=False,
            counts_where_silent=True,
            even_shares=(),
        )

    def can_draw(self, shown: Shown) -> bool:
        """Whether each document is some ranker's best that is left."""
        return is_best_of_some(shown)

    def typical_square(self, n_rankers: int) -> float:  # noqa: ARG002  for any number
        """Of differences of inverse ranks."""
        return 0.3

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Differences of the clicked documents' credits; as in `Method.infer`."""
        if len(shown.assignments) and (shown.assignments == NOBODY).all():
            return np.zeros((len(shown.rankings),) * 2)
        weights = self.credit_of(shown.rankings, shown.shown)
        return among_present(shown.rankings, differences(weights @ clicks))

    def bounds(self, rankings: Integers, length: int) -> Floats:
        """All gains, or all losses, of one ranker over another.

        As in `Method.bounds`.
        """
        credit = self.credit_of(rankings, np.arange(size_of(rankings)))
        return among_present(rankings, largest_gaps(credit, length))

    def exposures(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Floats:
        """Exact, given the lists that the same `rng` makes `combine` choose from.

        As in `Method.exposures`.
        """
        lists, chances, _ = self.distribution(rankings, length, rng=rng)
        exposures = np.zeros((size_of(rankings), length))
        for place in range(lists.shape[1]):
            np.add.at(exposures[:, place], lists[:, place], chances)
        return exposures


def _spread(
    totals: Floats, lists: Integers, credit: Floats, *, published: bool
) -> Floats:
    """How differently a list would credit the rankers if all were clicked."""
    if not published:
        return np.asarray((totals**2).sum(axis=1))
    means = credit.mean(axis=0)[lists].sum(axis=1)
    off = totals + (means - means / len(lists))[:, None]
    return np.asarray((off**2).sum(axis=1))


def _programme(rows: Floats, spread: Floats, otherwise: Floats) -> Floats:
    """Probabilities of least spread that fulfil every equation."""
    equations = np.vstack([rows.T, np.ones(len(rows))])
    sides = np.zeros(len(equations))
    sides[-1] = 1.0
    # Takes .4 s to load, of every start of a worker, and few experiments need it.
    from scipy.optimize import linprog  # noqa: PLC0415

    found = linprog(spread, A_eq=equations, b_eq=sides, method="highs")
    if found.status != 0:
        return otherwise
    chances = np.maximum(found.x, 0.0)
    return np.asarray(chances / chances.sum())
