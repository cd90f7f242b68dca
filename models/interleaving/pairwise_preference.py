"""Pairwise preference multileaving (PPM): the method that is fair and considerate.

Each place of the list is drawn uniformly from the documents that some ranker puts
there or above, so nobody sees a document higher than a ranker would show it. A pair
of documents counts where both were still free when the second of them could first
be placed: from there on the draw treats them alike. Pairs that seldom survive so
long weigh more, by the inverse of their probability.

References
----------
Oosterhuis & de Rijke (CIKM 2017); "Learning from User Interactions with Rankings"
(2020), section 2.5. Two of its lines are not followed, as enumeration contradicts
them: the factor of the weight is 1 - 1/(|choices(x)| - x + 1) with 1-based x, and a
pair adds the *difference* of the two rankers' scores, as the equation says and the
listing does not.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.arrays import Floats, Integers
from models.click_preferences import n_compared
from models.interleaving.method import (
    NO_ONE,
    Clicks,
    Combined,
    Shown,
    Traits,
)
from models.interleaving.pairwise_bounds import largest_preferences
from models.interleaving.pairwise_weights import (
    choice_sizes,
    first_ranks,
    order_of,
    weight_of_ranks,
)
from models.interleaving.possible_lists import comes_early_enough
from models.interleaving.rankings import (
    ABSENT,
    lengths_of,
    n_documents,
    ranks_of,
    size_of,
)
from models.kernels.compilation import compiled

BOUNDED_SPREAD = 64.0
"""Largest squared preference over the mean one to plan for, where it is declared."""

LARGEST_WEIGHT = 2.0**14
"""Pairs that weigh more are left out: they survive once in so many lists."""


@dataclass(frozen=True)
class PairwisePreference:
    """PPM; every ranking's order of the pair counts, absent documents being last.

    Parameters
    ----------
    largest_weight
        Pairs above it are left out, whatever the clicks: that keeps the
        preferences of clicks that ignore relevance at zero.
    largest_preference
        Impressions whose rankings allow a larger preference count for less, so that
        none prefers by more: what is estimated is then a weighted mean. The weights
        follow from the rankings and how long the list was, so clicks that ignore
        relevance still give nothing in expectation. 0: all impressions count alike.
    published
        Divide by twice the number of pairs that count, as the software behind the
        published tables does: less variance, but clicks that ignore relevance give
        preferences.

    Examples
    --------
    Document 0 is clicked, and preferred to 1 and to 3. The pair with 1 counts once, as
    both are free at the first place; 3 first comes at the third, when 0 has gone. The
    first ranker has 1 for it and the second -1.

    >>> rankings = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> shown = Shown(rankings, np.array([1, 0, 3, 2]), np.empty(0, np.int64))
    >>> PairwisePreference().infer(shown, np.array([False, True, False, False]))
    array([[ 0.,  2.],
           [-2.,  0.]])
    """

    largest_weight: float = LARGEST_WEIGHT
    largest_preference: float = 0.0
    published: bool = False
    needs_assignments: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.largest_weight >= 1.0:
            raise ValueError(
                f"largest_weight must be 1 or more; got {self.largest_weight}"
            )
        if not self.largest_preference >= 0.0:
            raise ValueError(
                f"largest_preference must be 0 or more; got {self.largest_preference}"
            )

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list, as in `Drawing.combine`."""
        return Combined(draw(rankings, length, rng), NO_ONE)

    @property
    def traits(self) -> Traits:
        """Fair but as it was published."""
        return Traits(
            is_for_two=False,
            is_fair=not self.published,
            exact_up_to=math.inf,
            shows_one_ranker=False,
            counts_where_silent=True,
            even_shares=(),
        )

    def can_draw(self, shown: Shown) -> bool:
        """Whether some ranker puts each document at its place or above."""
        return bool(comes_early_enough(shown.rankings, shown.shown))

    def typical_square(self, n_rankers: int) -> float:  # noqa: ARG002  for any number
        """Of pairs that are weighted, as large as is declared at most."""
        largest = self.largest_preference
        return min(50.0, largest * largest / BOUNDED_SPREAD) if largest else 50.0

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Differences of how well each ranker orders the preferred pairs.

        As in `Method.infer`.
        """
        found = preferences(
            shown.rankings,
            shown.shown,
            clicks,
            self.largest_weight,
            self.published,
        )
        if self.largest_preference and found.any():
            found *= self._shares(self._largest(shown.rankings, len(shown.shown)))
        return found

    def bounds(self, rankings: Integers, length: int) -> Floats:
        """What pairs allow that the rankers order differently.

        As in `Method.bounds`.
        """
        largest = self._largest(rankings, min(length, n_documents(rankings)))
        return largest * self._shares(largest) if self.largest_preference else largest

    def _largest(self, rankings: Integers, length: int) -> Floats:
        return largest_preferences(rankings, length, self.largest_weight)

    def _shares(self, largest: Floats) -> Floats:
        """What impressions count for that may prefer by so much."""
        return self.largest_preference / np.maximum(largest, self.largest_preference)

    def exposures(
        self,
        rankings: Integers,
        length: int,
        *,
        rng: np.random.Generator,  # noqa: ARG002  exact, nothing is drawn
    ) -> Floats:
        """Exact; see `placements`. Arrays as in `Drawing.exposures`."""
        return placements(rankings, length)


@compiled
def draw(rankings: Integers, length: int, rng: np.random.Generator) -> Integers:
    """A list [k], each place uniform over its free choices.

    `rankings` [n_rankers, depth]; k is `length`, or all there are.
    """
    depth = rankings.shape[1]
    is_known = np.zeros(size_of(rankings), np.bool_)
    free = np.empty(is_known.shape[0], np.int64)
    shown = np.empty(length, np.int64)
    n_free = place = 0
    while place < length:
        row = rankings[:, place] if place < depth else rankings[:, :0].ravel()
        for document in row:
            if document >= 0 and not is_known[document]:
                is_known[document] = True
                free[n_free] = document
                n_free += 1
        if n_free == 0:
            break
        chosen = int(rng.random() * n_free)
        shown[place] = free[chosen]
        n_free -= 1
        free[chosen] = free[n_free]
        place += 1
    return shown[:place]


@compiled
def pair_weight(
    first_of: Integers, sizes: Integers, a: int, b: int, largest: float
) -> float:
    """1 / P(both documents are free at the later of their first ranks).

    0 where the pair does not count: one of them is in no ranking, or was shown
    above that rank, or the weight is too large. Places `a` < `b` are 0-based.

    Parameters
    ----------
    first_of : [k]
        First rank of each shown document, or `ABSENT`.
    sizes : [k]
        Of the choices of each place; see `choice_sizes`.
    """
    later = max(first_of[a], first_of[b])
    if later == ABSENT or a + 1 < later:
        return 0.0
    return weight_of_ranks(first_of[a], first_of[b], sizes, largest)


@compiled
def agreement(
    rankings: Integers,
    shown: Integers,
    clicks: Clicks,
    largest: float,
    is_averaged: bool,
) -> Floats:
    """Sum over the preferred pairs of each ranker's score: the equation's phi.

    Every clicked document is preferred to every unclicked one down to the place
    after the last click. The preference of n over m is the difference of theirs.

    Parameters
    ----------
    rankings : [n_rankers, depth]
    shown, clicks : [k]

    Returns
    -------
    [n_rankers]
    """
    n_rankers = rankings.shape[0]
    credit = np.zeros(n_rankers)
    n_read = n_compared(clicks)
    if n_read == 0:
        return credit
    first_of, sizes, ranks = _places(rankings, shown)
    n_counted = 0
    for a in range(n_read):
        for b in range(a + 1, n_read):
            if clicks[a] == clicks[b]:
                continue
            weight = pair_weight(first_of, sizes, a, b, largest)
            n_counted += weight > 0.0
            if clicks[b]:
                weight = -weight
            for ranker in range(n_rankers):
                credit[ranker] += weight * order_of(ranks[ranker, a], ranks[ranker, b])
    if is_averaged and n_counted > 0:
        credit /= 2.0 * n_counted
    return credit


@compiled
def preferences(
    rankings: Integers,
    shown: Integers,
    clicks: Clicks,
    largest: float,
    is_averaged: bool,
) -> Floats:
    """Differences of `agreement`, none for or against an empty list.

    [n_rankers, n_rankers]; arrays as in `agreement`.
    """
    n_rankers = rankings.shape[0]
    credit = agreement(rankings, shown, clicks, largest, is_averaged)
    matrix = np.zeros((n_rankers, n_rankers))
    lengths = lengths_of(rankings)
    for n in range(n_rankers):
        for m in range(n):
            if lengths[n] > 0 and lengths[m] > 0:
                matrix[n, m] = credit[n] - credit[m]
                matrix[m, n] = -matrix[n, m]
    return matrix


@compiled
def _places(rankings: Integers, shown: Integers) -> tuple[Integers, Integers, Integers]:
    """First rank of each shown document, sizes of the choices, ranks by ranker."""
    size = size_of(rankings)
    for document in shown:
        size = max(size, document + 1)
    first = first_ranks(rankings, size)
    sizes = choice_sizes(first, shown.shape[0])
    return first[shown], sizes, ranks_of(rankings, shown)


@compiled
def placements(rankings: Integers, length: int) -> Floats:
    """P(document at rank) of the lists that `draw` draws, in closed form.

    With s_x free choices at rank x and t the document's best rank,
    P(rank = x) = 1/s_x times the product over y = t .. x - 1 of 1 - 1/s_y.

    `rankings` [n_rankers, depth].

    Returns
    -------
    [n_documents, length]
    """
    size = size_of(rankings)
    first = first_ranks(rankings, size)
    sizes = choice_sizes(first, length)
    exposures = np.zeros((size, length))
    for document in range(size):
        if first[document] > length:
            continue
        rest = 1.0
        for place in range(first[document] - 1, length):
            exposures[document, place] = rest / sizes[place]
            rest *= 1.0 - 1.0 / sizes[place]
            if rest <= 0.0:
                break
    return exposures
