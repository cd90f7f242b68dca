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
    Clicks,
    Combined,
    Shown,
    among_present,
    differences,
)
from models.interleaving.rankings import ABSENT, Floats, Integers, ranks_of, size_of
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

    Examples
    --------
    >>> rankings = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    >>> shown = Shown(rankings, np.array([1, 0, 3, 2]), np.empty(0, np.int64))
    >>> PairwisePreference().infer(shown, np.array([False, True, False, False]))
    array([[ 0.,  6.],
           [-6.,  0.]])
    """

    largest_weight: float = LARGEST_WEIGHT
    needs_assignments: bool = False

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list; see `models.interleaving.method.Method`."""
        return Combined(draw(rankings, length, rng), np.empty(0, np.int64))

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Differences of how well each ranker orders the preferred pairs."""
        credit = agreement(shown.rankings, shown.shown, clicks, self.largest_weight)
        return among_present(shown, differences(credit))

    def bounds(self, shown: Shown) -> Floats:
        """What clicks give that prefer, of every pair, whatever separates most."""
        bounds = largest_differences(shown.rankings, shown.shown, self.largest_weight)
        return among_present(shown, bounds)

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
        sizes[place] = total - place
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
    earlier, later = first_of[a], first_of[b]
    if earlier > later:
        earlier, later = later, earlier
    if later == ABSENT or a + 1 < later:
        return 0.0
    probability = 1.0
    for x in range(earlier, later):
        probability *= 1.0 - 1.0 / sizes[x - 1]
    return 1.0 / probability if probability * largest >= 1.0 else 0.0


@compiled
def agreement(
    rankings: Integers, shown: Integers, clicks: Clicks, largest: float
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
    for a in range(n_read):
        for b in range(a + 1, n_read):
            if clicks[a] == clicks[b]:
                continue
            weight = pair_weight(first_of, sizes, a, b, largest)
            if clicks[b]:
                weight = -weight
            for ranker in range(n_rankers):
                credit[ranker] += weight * _order(ranks[ranker, a], ranks[ranker, b])
    return credit


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
def largest_differences(rankings: Integers, shown: Integers, largest: float) -> Floats:
    """Sum over all pairs that count of how far apart two rankers score them."""
    n_rankers, k = rankings.shape[0], shown.shape[0]
    bounds = np.zeros((n_rankers, n_rankers))
    first_of, sizes, ranks = _places(rankings, shown)
    order = np.empty(n_rankers, np.int64)
    for a in range(k):
        for b in range(a + 1, k):
            weight = pair_weight(first_of, sizes, a, b, largest)
            if weight == 0.0:
                continue
            for ranker in range(n_rankers):
                order[ranker] = _order(ranks[ranker, a], ranks[ranker, b])
            for n in range(n_rankers):
                for m in range(n_rankers):
                    bounds[n, m] += weight * abs(order[n] - order[m])
    return bounds


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
