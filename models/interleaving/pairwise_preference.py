"""Pairwise preference multileaving (PPM): the method that is fair and considerate.

Each place of the list is drawn uniformly from the documents that some ranker puts
there or above, so nobody sees a document higher than a ranker would show it. A pair
of documents counts where both were still free when the second of them could first
be placed: from there on the draw treats them alike. Pairs that seldom survive so
long weigh more, by the inverse of their probability.

References
----------
Oosterhuis & de Rijke (CIKM 2017); "Learning from User Interactions with Rankings"
(2020), section 3.4. Two of its lines are not followed, as enumeration contradicts
them: the factor of the weight is 1 - 1/(|choices(x)| - x + 1) with 1-based x, and a
pair adds the *difference* of the two rankers' scores, as the equation says and the
listing does not.
"""

from dataclasses import dataclass

import numpy as np

from models.compilation import compiled
from models.interleaving.method import (
    NO_ONE,
    Clicks,
    Combined,
    Shown,
    where_different,
)
from models.interleaving.rankings import (
    ABSENT,
    Floats,
    Integers,
    lengths_of,
    ranks_of,
    size_of,
)
from models.preferences import n_compared

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
    published
        Divide by twice the number of pairs that count, as the software behind the
        published tables does: less variance, but clicks that ignore relevance give
        preferences.

    Examples
    --------
    >>> rankings = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> shown = Shown(rankings, np.array([1, 0, 3, 2]), np.empty(0, np.int64))
    >>> PairwisePreference().infer(shown, np.array([False, True, False, False]))
    array([[ 0.,  6.],
           [-6.,  0.]])
    """

    largest_weight: float = LARGEST_WEIGHT
    published: bool = False
    needs_assignments: bool = False

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list; see `models.interleaving.method.Method`."""
        return Combined(draw(rankings, length, rng), NO_ONE)

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Differences of how well each ranker orders the preferred pairs."""
        return preferences(
            shown.rankings,
            shown.shown,
            clicks,
            self.largest_weight,
            self.published,
        )

    def bounds(self, rankings: Integers, length: int) -> Floats:
        """The same for all pairs that differ; see `largest_preference`."""
        largest = largest_preference(rankings, length, self.largest_weight)
        return largest * where_different(rankings)

    def exposures(
        self,
        rankings: Integers,
        length: int,
        *,
        rng: np.random.Generator,  # noqa: ARG002  exact, nothing is drawn
    ) -> Floats:
        """Exact; see `placements`."""
        return placements(rankings, length)


@compiled
def first_ranks(rankings: Integers, size: int) -> Integers:
    """Best rank of each document over all rankers; `ABSENT` where none has it."""
    first = np.full(size, ABSENT, np.int64)
    for ranker in range(rankings.shape[0]):
        for place in range(rankings.shape[1]):
            document = rankings[ranker, place]
            if document >= 0:
                first[document] = min(first[document], place + 1)
    return first


@compiled
def choice_sizes(first: Integers, length: int) -> Integers:
    """Documents that the draw of each place has to choose from. [length].

    Everything placed above rank x is among the choices of rank x, so that
    |choices(x)| - x + 1 are free whatever was drawn.
    """
    sizes = np.zeros(length, np.int64)
    for rank in first:
        if rank <= length:
            sizes[rank - 1] += 1
    total = 0
    for place in range(length):
        total += sizes[place]
        sizes[place] = max(1, total - place)  # 1 beyond the last document
    return sizes


@compiled
def draw(rankings: Integers, length: int, rng: np.random.Generator) -> Integers:
    """A list, each place uniform over its free choices."""
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
    """
    later = max(first_of[a], first_of[b])
    if later == ABSENT or a + 1 < later:
        return 0.0
    return _weight_of_ranks(first_of[a], first_of[b], sizes, largest)


@compiled
def _weight_of_ranks(one: int, other: int, sizes: Integers, largest: float) -> float:
    """The weight of documents that can first be shown at these ranks."""
    probability = 1.0
    for x in range(min(one, other), max(one, other)):
        probability *= 1.0 - 1.0 / sizes[x - 1]
    return 1.0 / probability if probability * largest >= 1.0 else 0.0


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
                credit[ranker] += weight * _order(ranks[ranker, a], ranks[ranker, b])
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

    [n_rankers, n_rankers].
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
def _order(a: int, b: int) -> int:
    """1 where rank a is above b, -1 where it is below, 0 where both are absent."""
    return int(a < b) - int(b < a)


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
def largest_preference(rankings: Integers, length: int, largest: float) -> float:
    """No list of this length and no clicks prefer one ranker to another by more.

    c clicked documents meet length - c others, each pair once, with a difference of
    at most twice its weight; the weight depends on the first ranks only. So with c
    clicks no more is possible than the c documents with the largest sums of their
    length - c heaviest pairs.
    """
    first = first_ranks(rankings, size_of(rankings))
    sizes = choice_sizes(first, length)
    n_new = np.zeros(length, np.int64)  # documents by first rank, from 1
    for rank in first:
        if rank < length:  # both of a pair must come at the later rank or below
            n_new[rank] += 1
    heaviest = np.zeros((length, length + 1))
    for rank in range(1, length):
        if n_new[rank] > 0:
            _fill_heaviest(rank, n_new, sizes, largest, heaviest[rank])
    bound = 0.0
    for n_clicks in range(1, length):
        sums = heaviest[:, length - n_clicks].copy()
        total, left = 0.0, n_clicks
        while left > 0:
            best = np.argmax(sums)
            if sums[best] <= 0.0:
                break
            n_taken = min(left, n_new[best])
            total += n_taken * sums[best]
            sums[best] = 0.0
            left -= n_taken
        bound = max(bound, 2.0 * total)
    return bound


@compiled
def _fill_heaviest(
    rank: int, n_new: Integers, sizes: Integers, largest: float, sums: Floats
) -> None:
    """Sums of the 1, 2, .. heaviest pairs of a document with this first rank.

    The further away the other's first rank is, the heavier the pair.
    """
    low, high, n = 1, n_new.shape[0] - 1, 0
    while low <= high and n < sums.shape[0] - 1:
        below = _weight_of_ranks(low, rank, sizes, largest)
        above = _weight_of_ranks(rank, high, sizes, largest)
        if low < rank and (high <= rank or below >= above):
            other, weight = low, below
            low += 1
        else:
            other, weight = high, above
            high -= 1
        for _ in range(n_new[other] - (other == rank)):
            if n < sums.shape[0] - 1 and weight > 0.0:  # 0: too heavy to count
                sums[n + 1] = sums[n] + weight
                n += 1
    for rest in range(n + 1, sums.shape[0]):
        sums[rest] = sums[n]


@compiled
def placements(rankings: Integers, length: int) -> Floats:
    """P(document at rank) of the lists that `draw` draws, in closed form.

    With s_x free choices at rank x and t the document's best rank,
    P(rank = x) = 1/s_x times the product over y = t .. x - 1 of 1 - 1/s_y.

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
