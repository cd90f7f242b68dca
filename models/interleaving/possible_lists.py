"""Whether a list can have come from the rankings that were logged with it.

Credit is fair over the lists that a method draws; for one that it cannot have drawn
it says nothing. A list that was cut short is possible: places are drawn from the top.
"""

import numpy as np

from models.arrays import Integers
from models.interleaving.method import NOBODY, Clicks, Method, Shown
from models.interleaving.pairwise_weights import first_ranks
from models.interleaving.rankings import (
    ABSENT,
    best_left,
    lengths_of,
    n_fair_places,
    n_shared,
    size_of,
)
from models.kernels.compilation import compiled


def is_possible(method: Method, shown: Shown) -> bool:
    """Whether the method can have drawn this list, as these teams if any are named.

    Parameters
    ----------
    shown
        With documents of the rankings only; see `without_foreign`.

    Examples
    --------
    >>> from models.interleaving.registry import method_of
    >>> rankings = np.array([[0, 1, 2], [1, 2, 0]])
    >>> nobody = np.empty(0, np.int64)
    >>> balanced = method_of("balanced")
    >>> is_possible(balanced, Shown(rankings, np.array([0, 1, 2]), nobody))
    True
    >>> is_possible(balanced, Shown(rankings, np.array([2, 1, 0]), nobody))
    False
    """
    if len(np.unique(shown.shown)) < len(shown.shown):
        return False
    return method.can_draw(shown)


def can_be_drafted(shown: Shown) -> bool:
    """Whether rankers that take turns make this list, as these teams if any are named.

    Places that credit nobody as the shortest list may have ended are held to be
    possible where they are some ranker's best, whoever's turn it was.
    """
    if len(shown.assignments):
        return bool(_is_draft_of(*shown))
    return _has_teams(shown.rankings, shown.shown)


def is_best_of_some(shown: Shown) -> bool:
    """Whether each document is the best that some ranker has left."""
    rankings, documents, _ = shown
    return all(_able(rankings, documents, place) for place in range(len(documents)))


def without_foreign(shown: Shown, clicks: Clicks) -> tuple[Shown, Clicks]:
    """The list and its clicks without documents that no ranker returned.

    What somebody else put into the list credits nobody and takes no place: what the
    method drew stands where it was drawn. `clicks` [k].
    """
    first = first_ranks(shown.rankings, _size(shown.rankings, shown.shown))
    own = first[shown.shown] != ABSENT
    if own.all():
        return shown, clicks
    teams = shown.assignments[own] if len(shown.assignments) else shown.assignments
    return Shown(shown.rankings, shown.shown[own], teams), clicks[own]


@compiled
def _size(rankings: Integers, documents: Integers) -> int:
    size = size_of(rankings)
    for document in documents:
        size = max(size, document + 1)
    return size


@compiled
def comes_early_enough(rankings: Integers, documents: Integers) -> bool:
    """Whether some ranker puts each document at its place or above.

    `rankings` [n_rankers, depth], `documents` [k].
    """
    first = first_ranks(rankings, _size(rankings, documents))
    for place in range(documents.shape[0]):
        if first[documents[place]] > place + 1:
            return False
    return True


@compiled
def _is_draft_of(rankings: Integers, documents: Integers, teams: Integers) -> bool:
    """Whether each team adds its best document, all once before any twice.

    The prefix that all share, and places where the shortest list may have ended, are
    nobody's; all others are somebody's.
    """
    n_neutral, n_fair = n_shared(rankings), n_fair_places(rankings)
    n_present = (lengths_of(rankings) > 0).sum()
    last_round = np.full(rankings.shape[0], -1, np.int64)
    for place in range(documents.shape[0]):
        is_owned = n_neutral <= place < n_fair
        if (teams[place] != NOBODY) != is_owned:
            return False
        is_best = False
        for ranker in range(rankings.shape[0]):
            if not is_owned or ranker == teams[place]:
                best = best_left(rankings, ranker, documents[:place])
                is_best |= best == documents[place]
        if not is_best:
            return False
        if is_owned:
            this_round = (place - n_neutral) // n_present
            if last_round[teams[place]] == this_round:
                return False
            last_round[teams[place]] = this_round
    return True


def _has_teams(rankings: Integers, documents: Integers) -> bool:
    """Whether some teams could have drafted the list.

    In each round different rankers must have had the documents as their best.
    """
    n_neutral, n_fair = n_shared(rankings), n_fair_places(rankings)
    n_present = int((lengths_of(rankings) > 0).sum())
    places = [_able(rankings, documents, place) for place in range(len(documents))]
    if not all(places):
        return False
    end = min(n_fair, len(documents))
    return all(
        _are_matched(places[start : min(start + n_present, end)])
        for start in range(n_neutral, end, max(1, n_present))
    )


def _able(rankings: Integers, documents: Integers, place: int) -> list[int]:
    """Rankers whose best remaining document stands at this place."""
    return [
        ranker
        for ranker in range(len(rankings))
        if best_left(rankings, ranker, documents[:place]) == documents[place]
    ]


def _are_matched(able: list[list[int]]) -> bool:
    """Whether each place can have a ranker of its own (augmenting paths)."""
    place_of: dict[int, int] = {}

    def finds(place: int, tried: set[int]) -> bool:
        for ranker in able[place]:
            if ranker in tried:
                continue
            tried.add(ranker)
            if ranker not in place_of or finds(place_of[ranker], tried):
                place_of[ranker] = place
                return True
        return False

    return all(finds(place, set()) for place in range(len(able)))
