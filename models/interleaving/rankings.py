"""What several rankers would have shown, as one array.

Documents are numbers from 0. Ranks are 1-based. Lists may differ in length; a row
is filled up with -1.
"""

import numpy as np
import numpy.typing as npt

from models.arrays import Integers
from models.kernels.compilation import compiled

ABSENT = np.iinfo(np.int64).max
"""Rank of a document that a ranker did not return: below all that it did."""


def checked(rankings: npt.NDArray[np.integer]) -> Integers:
    """The same rankings, as integers in one piece.

    `rankings` [n_rankers, depth].

    Raises
    ------
    ValueError
        Where there are fewer than two rankings, or one repeats a document or goes on
        behind its end.
    """
    values = np.ascontiguousarray(rankings, np.int64)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(
            f"rankings must be of two rankers or more; got shape {values.shape}"
        )
    faulty = first_faulty(values)
    if faulty >= 0:
        raise ValueError(
            "a ranking must hold each document once, and nothing after its end; "
            f"ranker {faulty} gave {values[faulty].tolist()}"
        )
    return values


@compiled
def first_faulty(rankings: Integers) -> int:
    """The first ranker whose row repeats a document or goes on after -1; else -1.

    `rankings` [n_rankers, depth].
    """
    n_documents = size_of(rankings)
    seen = np.full(n_documents, -1, np.int64)
    for ranker in range(rankings.shape[0]):
        has_ended = False
        for document in rankings[ranker]:
            if document < 0:
                has_ended = True
                if document != -1:
                    return ranker
            elif has_ended or seen[document] == ranker:
                return ranker
            else:
                seen[document] = ranker
    return -1


@compiled
def size_of(rankings: Integers) -> int:
    """One more than the largest document of `rankings` [n_rankers, depth]."""
    return int(rankings.max() + 1) if rankings.size else 0


@compiled
def n_documents(rankings: Integers) -> int:
    """How many different documents all rankers returned: no list is longer.

    `rankings` [n_rankers, depth].
    """
    is_known = np.zeros(size_of(rankings), np.bool_)
    for row in rankings:
        for document in row:
            if document >= 0:
                is_known[document] = True
    return int(is_known.sum())


@compiled
def lengths_of(rankings: Integers) -> Integers:
    """How many documents each ranker returned. [n_rankers].

    `rankings` [n_rankers, depth].
    """
    lengths = np.zeros(rankings.shape[0], np.int64)
    for ranker in range(rankings.shape[0]):
        for document in rankings[ranker]:
            lengths[ranker] += document >= 0
    return lengths


@compiled
def n_fair_places(rankings: Integers) -> int:
    """Places from the top at which no ranker can have run out of documents.

    Each shown document is at most one of a ranker's, so up to the length of the
    shortest list everybody has something to add, whatever was drawn. Below that a
    longer list would be paid for its length: those places credit nobody. Rankers
    that returned nothing take no part and shorten nothing.
    `rankings` [n_rankers, depth].
    """
    shortest = 0
    for length in lengths_of(rankings):
        if length > 0 and (shortest == 0 or length < shortest):
            shortest = length
    return shortest


@compiled
def n_shared(rankings: Integers) -> int:
    """Length of the prefix that all rankers agree on; empty lists have no say.

    `rankings` [n_rankers, depth].
    """
    lengths = lengths_of(rankings)
    first = -1
    for ranker in range(rankings.shape[0]):
        if lengths[ranker] > 0:
            first = ranker
            break
    if first < 0:
        return 0
    for place in range(rankings.shape[1]):
        for ranker in range(rankings.shape[0]):
            differs = rankings[ranker, place] != rankings[first, place]
            if lengths[ranker] > 0 and (differs or rankings[ranker, place] < 0):
                return place
    return int(rankings.shape[1])


@compiled
def best_left(rankings: Integers, ranker: int, placed: Integers) -> int:
    """The ranker's best document that is not placed yet, or -1.

    `rankings` [n_rankers, depth]; `placed` [n_placed] documents.
    """
    for document in rankings[ranker]:
        if document < 0:
            return -1
        is_placed = False
        for other in placed:
            is_placed |= other == document
        if not is_placed:
            return int(document)
    return -1


@compiled
def ranks_of(rankings: Integers, shown: Integers) -> Integers:
    """Rank of each shown document by each ranker; `ABSENT` where it has none.

    Parameters
    ----------
    rankings : [n_rankers, depth]
    shown : [k]

    Returns
    -------
    [n_rankers, k]
    """
    n_rankers, k = rankings.shape[0], shown.shape[0]
    size = size_of(rankings)
    for document in shown:
        size = max(size, document + 1)
    place_of = np.full(size, -1, np.int64)
    for place in range(k):
        place_of[shown[place]] = place
    ranks = np.full((n_rankers, k), ABSENT, np.int64)
    for ranker in range(n_rankers):
        for i in range(rankings.shape[1]):
            document = rankings[ranker, i]
            if document >= 0 and place_of[document] >= 0:
                ranks[ranker, place_of[document]] = i + 1
    return ranks
