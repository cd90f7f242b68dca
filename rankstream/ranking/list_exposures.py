"""P(item at rank) of combined lists in closed form, where they are served.

With it the event says `policy = "logged"`, and the statistics keep exact propensities
while rankers are compared. The same numbers as `models.interleaving`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rankstream.ranking.combining import merged_lists

Floats = npt.NDArray[np.float64]
Lists = list[list[str]]


def list_exposures(
    method: str,
    rankings: Mapping[str, Sequence[str]],
    candidates: Sequence[str],
    length: int,
) -> Floats | None:
    """P(candidate at rank) of the lists that `combining.combine` draws.

    Parameters
    ----------
    candidates
        All items of the rankings, and maybe more.
    length
        Of the lists that are asked for; fewer are shown where there are fewer items.

    Returns
    -------
    [n_candidates, length]
        None where no closed form is known: probabilistic multileaving, and team
        drafts of more than two rankers; and for A/B lists of unequal length, as the
        ranks of a shorter one do not hold what the longer one would have shown.

    Raises
    ------
    ValueError
        Where a ranked item is no candidate.

    References
    ----------
    Pairwise preference: with s_x free choices at rank x and t the item's best rank,
    P(rank = x) = 1/s_x times the product over y = t .. x - 1 of 1 - 1/s_y.
    """
    row_of = {item: row for row, item in enumerate(candidates)}
    lists = [list(dict.fromkeys(rankings[name])) for name in sorted(rankings)]
    unknown = {item for row in lists for item in row} - set(row_of)
    if unknown:
        raise ValueError(f"candidates must name every ranked item; not {min(unknown)}")
    found = np.zeros((len(candidates), length))
    if method == "pairwise-preference":
        _add_pairwise(lists, row_of, found)
    elif method in ("balanced", "debiased-balanced"):
        for first in (0, 1):
            _add(merged_lists(lists, length, first), row_of, 0.5, found)
    elif method == "ab" and _are_as_long(lists, length):
        able = [row for row in lists if row]
        for row in able:
            _add(row[:length], row_of, 1.0 / len(able), found)
    elif method in ("team-draft", "sample-scored") and len(lists) == 2:
        _add_drafts(lists, row_of, found)
    else:
        return None
    return found


def _are_as_long(lists: Lists, length: int) -> bool:
    """Whether all lists that may be shown have the same length."""
    return len({min(length, len(row)) for row in lists if row}) < 2


def _add(
    shown: list[str], row_of: dict[str, int], probability: float, found: Floats
) -> None:
    for place, item in enumerate(shown):
        found[row_of[item], place] += probability


def _add_pairwise(lists: Lists, row_of: dict[str, int], found: Floats) -> None:
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


def _add_drafts(lists: Lists, row_of: dict[str, int], found: Floats) -> None:
    """Over all states of the draft: what is placed, and who placed the last one."""
    present = [row for row in lists if row]
    shortest = min(map(len, present), default=0)
    shared = 0
    while shared < shortest and len({row[shared] for row in present}) == 1:
        shared += 1
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


def _turns(best: list[str], last: int) -> list[tuple[int, float]]:
    """Who may add next, with which probability; who has nothing is passed over."""
    able = [ranker for ranker in (0, 1) if best[ranker]]
    if len(able) < 2:
        return [(ranker, 1.0) for ranker in able]
    return [(1 - last, 1.0)] if last >= 0 else [(0, 0.5), (1, 0.5)]
