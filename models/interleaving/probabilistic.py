"""Probabilistic multileaving: every place from a random ranker's soft ranking.

A ranker is a distribution over documents, proportional to 1 / rank^tau. Each place
belongs to a ranker drawn uniformly, which draws from its distribution over what is
left. Afterwards whose place it was is unknown; the preference is an expectation over
all assignments, computed exactly: assignments of places are independent given the
list, so two rankers' clicks differ by a sum of independent steps.

Any document can come first, so users may see poor lists: the method is fair, but
not considerate.

References
----------
Hofmann, Whiteson & de Rijke (CIKM 2011); Schuth et al. (SIGIR 2015). The sign of the
*expected* clicks, instead of the expected sign, is not fair (Brost et al., 2016).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.interleaving.method import (
    NO_ONE,
    Clicks,
    Combined,
    Shown,
    Traits,
    among_present,
    differences,
    sampled_exposures,
    where_different,
)
from models.interleaving.rankings import n_fair_places, size_of
from models.kernels.compilation import compiled

OUTCOMES = ("sign", "clicks")
"""Expected sign of the difference in clicks, or the expected difference."""

N_SAMPLES = 10_000
"""Lists that estimate exposures."""


@dataclass(frozen=True)
class Probabilistic:
    """Probabilistic multileaving with exact inference.

    Parameters
    ----------
    tau
        Sharpness of the rankings: 3 for many rankers, 4 for two in the literature.
    outcome
        One of `OUTCOMES`.

    Examples
    --------
    >>> shown = Shown(np.array([[0, 1], [1, 0]]), np.array([0, 1]), np.empty(0, int))
    >>> method = Probabilistic(outcome="clicks")
    >>> method.infer(shown, np.array([True, False])).round(4)
    array([[ 0.    ,  0.7778],
           [-0.7778,  0.    ]])
    """

    tau: float = 3.0
    outcome: str = "sign"
    traits: ClassVar[Traits] = Traits(
        is_for_two=False,
        is_fair=True,
        exact_up_to=0,
        shows_one_ranker=False,
        counts_where_silent=True,
        even_shares=(),
    )
    needs_assignments: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise ValueError(f"outcome must be one of {OUTCOMES}; got {self.outcome!r}")
        if not 0.0 < self.tau <= 20.0:
            raise ValueError(f"tau must be above 0 and at most 20; got {self.tau}")

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list, as in `Drawing.combine`."""
        return Combined(draw(rankings, length, self.tau, rng), NO_ONE)

    def can_draw(self, shown: Shown) -> bool:  # noqa: ARG002  soft rankings
        """Every order can come."""
        return True

    def typical_square(self, n_rankers: int) -> float:  # noqa: ARG002  for any number
        """Of expected signs."""
        return 0.3

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Expectation over all assignments that could have made the list.

        As in `Method.infer`.
        """
        if self.outcome == "clicks":
            shares = assignment_shares(shown.rankings, shown.shown, clicks, self.tau)
            return among_present(shown.rankings, differences(shares.sum(axis=0)))
        signs = preferences(shown.rankings, shown.shown, clicks, self.tau)
        return among_present(shown.rankings, signs)

    def bounds(self, rankings: Integers, length: int) -> Floats:
        """One, or the length of the list, where two rankings differ.

        As in `Method.bounds`.
        """
        largest = 1.0 if self.outcome == "sign" else float(length)
        return largest * where_different(rankings)

    def exposures(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Floats:
        """Counted over `N_SAMPLES` lists; as in `Drawing.exposures`."""
        return sampled_exposures(self, rankings, length, N_SAMPLES, rng)


@compiled
def masses_of(depth: int, tau: float) -> Floats:
    """1 / rank^tau. [depth]."""
    return np.arange(1, depth + 1).astype(np.float64) ** -tau


@compiled
def draw(
    rankings: Integers, length: int, tau: float, rng: np.random.Generator
) -> Integers:
    """A list [k]; who has nothing left is not drawn. `rankings` [n_rankers, depth]."""
    n_rankers, depth = rankings.shape
    masses = masses_of(depth, tau)
    is_placed = np.zeros(size_of(rankings) + 1, np.bool_)
    is_placed[-1] = True  # so that what fills rankings up is never drawn
    shown = np.empty(length, np.int64)
    rests = np.empty(n_rankers)
    for place in range(length):
        for ranker in range(n_rankers):
            rests[ranker] = _mass_left(rankings[ranker], masses, is_placed)
        able = np.flatnonzero(rests > 0.0)
        if able.shape[0] == 0:
            return shown[:place]
        ranker = able[int(rng.random() * able.shape[0])]
        target = rng.random() * rests[ranker]
        shown[place] = _drawn(rankings[ranker], masses, is_placed, target)
        is_placed[shown[place]] = True
    return shown


@compiled
def _mass_left(ranking: Integers, masses: Floats, is_placed: Flags) -> float:
    rest = 0.0
    for i in range(ranking.shape[0]):
        if not is_placed[ranking[i]]:
            rest += masses[i]
    return rest


@compiled
def _drawn(ranking: Integers, masses: Floats, is_placed: Flags, target: float) -> int:
    """The document at a place between 0 and what is left."""
    chosen = -1
    for i in range(ranking.shape[0]):
        if not is_placed[ranking[i]]:
            chosen = ranking[i]
            target -= masses[i]
            if target < 0.0:
                break
    return int(chosen)


@compiled
def assignment_shares(
    rankings: Integers, shown: Integers, wanted: Clicks, tau: float
) -> Floats:
    """P(ranker added the document | the list) at each wanted place.

    A place where no ranker can have added the document, or where one may have run
    out of documents, is nobody's: its row is zero. What is left of a ranking is
    summed again at each place; taking away what was placed would cancel.

    Parameters
    ----------
    rankings : [n_rankers, depth]
    shown, wanted : [k]
        Documents, and the places that are asked for.

    Returns
    -------
    [n_wanted, n_rankers]
    """
    n_rankers, depth = rankings.shape
    masses = masses_of(depth, tau)
    n_fair = n_fair_places(rankings)
    size = size_of(rankings)
    for document in shown:
        size = max(size, document + 1)
    is_placed = np.zeros(size + 1, np.bool_)
    is_placed[-1] = True
    row = 0
    shares = np.zeros((wanted.sum(), n_rankers))
    for place in range(shown.shape[0]):
        if wanted[place]:
            if place < n_fair:
                for ranker in range(n_rankers):
                    shares[row, ranker] = _share(
                        rankings[ranker], masses, is_placed, shown[place]
                    )
                total = shares[row].sum()
                if total > 0.0:
                    shares[row] /= total
            row += 1
        is_placed[shown[place]] = True
    return shares


@compiled
def _share(ranking: Integers, masses: Floats, is_placed: Flags, document: int) -> float:
    """P(document next | ranker)."""
    own, rest = 0.0, 0.0
    for i in range(ranking.shape[0]):
        if not is_placed[ranking[i]]:
            rest += masses[i]
            if ranking[i] == document:
                own = masses[i]
    return own / rest if own > 0.0 else 0.0


@compiled
def preferences(
    rankings: Integers, shown: Integers, clicks: Clicks, tau: float
) -> Floats:
    """Expected signs of a list and its clicks. [n_rankers, n_rankers].

    `rankings` [n_rankers, depth]; `shown`, `clicks` [k].
    """
    return expected_signs(assignment_shares(rankings, shown, clicks, tau))


@compiled
def expected_signs(shares: Floats) -> Floats:
    """E[sign(clicks of n - clicks of m)] for every pair, exactly.

    Parameters
    ----------
    shares : [n_clicks, n_rankers]

    Returns
    -------
    [n_rankers, n_rankers]
    """
    n_clicks, n_rankers = shares.shape
    signs = np.zeros((n_rankers, n_rankers))
    chances = np.empty(2 * n_clicks + 3)
    of_rankers = np.ascontiguousarray(shares.T)
    for n in range(n_rankers):
        for m in range(n):
            sign = _expected_sign(of_rankers[n], of_rankers[m], chances)
            signs[n, m] = sign
            signs[m, n] = -sign
    return signs


@compiled
def _expected_sign(ups: Floats, downs: Floats, chances: Floats) -> float:
    """E[sign] of a sum of independent steps 1, -1 or 0.

    The distribution of the sum is built step by step, in O(steps^2), where
    enumeration takes 3^steps. `chances` [2 n + 3] is scratch.
    """
    n_steps = ups.shape[0]
    centre = n_steps + 1
    chances[:] = 0.0
    chances[centre] = 1.0
    for i in range(n_steps):
        up, down = ups[i], downs[i]
        stay = max(0.0, 1.0 - up - down)
        below = 0.0
        for place in range(centre - i - 1, centre + i + 2):
            now = chances[place]
            chances[place] = now * stay + below * up + chances[place + 1] * down
            below = now
    sign = 0.0
    for step in range(1, n_steps + 1):
        sign += chances[centre + step] - chances[centre - step]
    return sign
