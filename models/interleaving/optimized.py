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

from models.arrays import Flags, Floats, Integers
from models.interleaving.allowed_lists import (
    allowed_lists,
    prefix_credits,
    sampled_lists,
)
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
from models.kernels.compilation import compiled

CREDITS = ("inverse", "linear")
"""1 / rank, nothing for a document that is absent; or minus the rank."""

FEASIBLE = 1e-6
"""Violations below it are left to the linear programme to judge."""

TOLERANCE = 1e-12
MAX_ROUNDS = 3


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
        """Draw a list, as in `Drawing.combine`."""
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

        As in `Drawing.exposures`.
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


@compiled
def closest_distribution(rows: Floats) -> tuple[Floats, bool]:
    """Probabilities p for which the sum of p_i * rows_i is shortest.

    Without the sum, minimising |sum p_i rows_i|^2 + (sum p_i - 1)^2 over p >= 0
    gives the same direction: along a direction of length a the best scale leaves
    a / (1 + a), which grows with a. That problem is solved by active sets.

    Parameters
    ----------
    rows : [n, n_equations]

    Returns
    -------
    [n], and whether the search ended by itself.

    References
    ----------
    Lawson & Hanson, "Solving Least Squares Problems" (1974), chapter 23; the form
    with the matrix of products is Bro & de Jong's (1997).
    """
    n = rows.shape[0]
    products = rows @ rows.T + 1.0
    scale = np.diag(products).max()
    solution = np.zeros(n)
    is_free = np.zeros(n, np.bool_)
    for _ in range(MAX_ROUNDS * n + 10):
        gradient = 1.0 - products @ solution
        best = -1
        for i in range(n):
            is_steep = gradient[i] > TOLERANCE * scale
            if (
                not is_free[i]
                and is_steep
                and (best < 0 or gradient[i] > gradient[best])
            ):
                best = i
        if best < 0:
            return solution / solution.sum(), True
        is_free[best] = True
        if not _descend(products, solution, is_free):
            break
    total = solution.sum()
    if total <= 0.0:
        return np.full(n, 1.0 / n), False
    return solution / total, False


@compiled
def _descend(products: Floats, solution: Floats, is_free: Flags) -> bool:
    """Solve on the free set, giving up what turns negative; False if singular."""
    for _ in range(solution.shape[0] + 1):
        free = np.flatnonzero(is_free)
        wanted = np.linalg.solve(_block(products, free), np.ones(free.shape[0]))
        now = solution[free]
        step = 1.0
        for i in range(free.shape[0]):
            if wanted[i] <= 0.0 and now[i] > wanted[i]:
                step = min(step, now[i] / (now[i] - wanted[i]))
        solution[free] = now + step * (wanted - now)
        if step >= 1.0:
            return bool(np.isfinite(wanted).all())
        given_up = free[solution[free] <= TOLERANCE]
        solution[given_up] = 0.0
        is_free[given_up] = False
    return False


@compiled
def _block(products: Floats, rows: Integers) -> Floats:
    """Rows and columns of a matrix; lists of equal credit must not make it singular."""
    size = rows.shape[0]
    block = np.empty((size, size))
    for i in range(size):
        for j in range(size):
            block[i, j] = products[rows[i], rows[j]]
        block[i, i] *= 1.0 + 1e-13
    return block
