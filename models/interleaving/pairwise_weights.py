"""How likely two documents are still free together, in a pairwise preference draw.

References
----------
Oosterhuis & de Rijke (CIKM 2017); see `models.interleaving.pairwise_preference`.
"""

import numpy as np

from models.arrays import Integers
from models.interleaving.rankings import ABSENT
from models.kernels.compilation import compiled


@compiled
def first_ranks(rankings: Integers, size: int) -> Integers:
    """Best rank of each document over all rankers; `ABSENT` where none has it.

    [size], from 1, of `rankings` [n_rankers, depth].
    """
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
    |choices(x)| - x + 1 are free whatever was drawn. `first` [n_documents] are those of
    `first_ranks`.
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
def weight_of_ranks(one: int, other: int, sizes: Integers, largest: float) -> float:
    """The weight of documents that can first be shown at these ranks.

    `sizes` [length] are those of `choice_sizes`.
    """
    probability = 1.0
    for x in range(min(one, other), max(one, other)):
        probability *= 1.0 - 1.0 / sizes[x - 1]
    return 1.0 / probability if probability * largest >= 1.0 else 0.0


@compiled
def order_of(a: int, b: int) -> int:
    """1 where rank a is above b, -1 where it is below, 0 where both are absent."""
    return int(a < b) - int(b < a)
