"""P(item at rank) of combined lists, one function a method that has a closed form.

Each takes the rankings, the row of each item and the exposures [n_items, length], all
zero, which it fills. It says whether it could; otherwise they mean nothing.
"""

import numpy as np
import numpy.typing as npt

from rankstream.ranking.draws import Lists, merged_lists, n_agreed

Floats = npt.NDArray[np.float64]
Rows = dict[str, int]


def _are_as_long(lists: Lists, length: int) -> bool:
    """Whether all lists that may be shown have the same length."""
    return len({min(length, len(row)) for row in lists if row}) < 2


def _add(shown: list[str], row_of: Rows, probability: float, found: Floats) -> None:
    for place, item in enumerate(shown):
        found[row_of[item], place] += probability


def exposures_of_pairwise(lists: Lists, row_of: Rows, found: Floats) -> bool:
    """Pairwise preference, for any number of rankers.

    Parameters
    ----------
    row_of : [n_items]
        Row of each item in `found`.
    found : [n_items, length]
        All zero; it is filled.

    References
    ----------
    With s_x free choices at rank x and t the item's best rank, P(rank = x) = 1/s_x
    times the product over y = t .. x - 1 of 1 - 1/s_y.
    """
    length = found.shape[1]
    first: dict[str, int] = {}
    for row in lists:
        for place, item in enumerate(row[:length]):
            first[item] = min(first.get(item, place), place)
    counts = np.bincount(list(first.values()), minlength=length)
    sizes = np.maximum(np.cumsum(counts) - np.arange(length), 1)
    for item, place in first.items():
        rest = 1.0
        for rank in range(place, length):
            found[row_of[item], rank] = rest / sizes[rank]
            rest *= 1.0 - 1.0 / sizes[rank]
    return True


def exposures_of_draft(lists: Lists, row_of: Rows, found: Floats) -> bool:
    """Of two rankers, over all states: what is placed, and who placed the last one.

    Arrays as in `exposures_of_pairwise`.
    """
    if len(lists) != 2:
        return False
    present = [row for row in lists if row]
    shared = n_agreed(present, min(map(len, present), default=0))
    length = found.shape[1]
    prefix = present[0][: min(shared, length)] if present else []
    _add(prefix, row_of, 1.0, found)
    states = {(frozenset(prefix), -1): 1.0}
    for place in range(len(prefix), length):
        following: dict[tuple[frozenset[str], int], float] = {}
        for (placed, last), probability in states.items():
            best = [
                next((item for item in row if item not in placed), "") for row in lists
            ]
            for ranker, share in _turns(best, last):
                found[row_of[best[ranker]], place] += probability * share
                key = (placed | {best[ranker]}, ranker if last < 0 else -1)
                following[key] = following.get(key, 0.0) + probability * share
        states = following
    return True


def _turns(best: list[str], last: int) -> list[tuple[int, float]]:
    """Who may add next, with which probability; who has nothing is passed over."""
    able = [ranker for ranker in (0, 1) if best[ranker]]
    if len(able) < 2:
        return [(ranker, 1.0) for ranker in able]
    return [(1 - last, 1.0)] if last >= 0 else [(0, 0.5), (1, 0.5)]


def exposures_of_balanced(lists: Lists, row_of: Rows, found: Floats) -> bool:
    """One half for each of the two lists; as in `exposures_of_pairwise`."""
    for first in (0, 1):
        _add(merged_lists(lists, found.shape[1], first), row_of, 0.5, found)
    return True


def exposures_of_split(lists: Lists, row_of: Rows, found: Floats) -> bool:
    """Each ranker's own list, if all that may be shown are as long as each other.

    Arrays as in `exposures_of_pairwise`.
    """
    length = found.shape[1]
    if not _are_as_long(lists, length):
        return False
    able = [row for row in lists if row]
    for row in able:
        _add(row[:length], row_of, 1.0 / len(able), found)
    return True
