"""Team draft: rankers take turns to add their best document that is left.

Two rankers or many. A prefix that all rankers agree on credits nobody, and neither
do places below the end of the shortest list: both would pay a ranker for something
else than its documents.

References
----------
Radlinski, Kurup & Joachims (CIKM 2008); Schuth et al. (CIKM 2014).
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.arrays import Floats, Integers
from models.interleaving.method import (
    NOBODY,
    Clicks,
    Combined,
    Shown,
    Traits,
    among_present,
    one_each,
    sampled_exposures,
    signs,
)
from models.interleaving.possible_lists import can_be_drafted
from models.interleaving.rankings import best_left, n_fair_places, n_shared, size_of
from models.kernels.compilation import compiled

N_SAMPLES = 10_000
"""Lists that estimate the exposures of more than two rankers."""


@dataclass(frozen=True)
class TeamDraft:
    """The draft, credited by the sign of who has more clicked places.

    Examples
    --------
    >>> draft = TeamDraft()
    >>> shown = Shown(np.array([[0, 1], [1, 0]]), np.array([1, 0]), np.array([1, 0]))
    >>> draft.infer(shown, np.array([True, False]))
    array([[ 0., -1.],
           [ 1.,  0.]])
    """

    traits: ClassVar[Traits] = Traits(
        is_for_two=False,
        is_fair=True,
        exact_up_to=2,
        shows_one_ranker=False,
        counts_where_silent=True,
        even_shares=(("first picks", "first_places"),),
    )
    needs_assignments: ClassVar[bool] = True

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list, as in `Drawing.combine`."""
        return Combined(*draft(rankings, length, rng))

    def can_draw(self, shown: Shown) -> bool:
        """Whether turns can have made it; see `models.interleaving.possible_lists`."""
        return can_be_drafted(shown)

    def typical_square(self, n_rankers: int) -> float:  # noqa: ARG002  for any number
        """A sign, where somebody is preferred in every other list."""
        return 0.5

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Who has more clicked places; as in `Method.infer`."""
        return among_present(shown.rankings, signs(clicks_by_team(shown, clicks)))

    def bounds(
        self,
        rankings: Integers,
        length: int,  # noqa: ARG002  a sign is a sign
    ) -> Floats:
        """One for every pair: even equal rankings own different places.

        As in `Method.bounds`.
        """
        return one_each(rankings)

    def exposures(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Floats:
        """Exact for two rankers; else counted over `N_SAMPLES` lists.

        As in `Drawing.exposures`.
        """
        if len(rankings) == 2:
            return two_team_exposures(rankings, length)
        return sampled_exposures(self, rankings, length, N_SAMPLES, rng)


def clicks_by_team(shown: Shown, clicks: Clicks) -> Floats:
    """Clicked places of each ranker. [n_rankers], from `clicks` [k].

    Raises
    ------
    ValueError
        Where assignments are missing or name no ranker: whose place it was cannot
        be told from the list.
    """
    teams = shown.assignments
    n_rankers = len(shown.rankings)
    if len(teams) != len(shown.shown):
        raise ValueError(
            f"assignments must name a ranker for each place; got {len(teams)} "
            f"for {len(shown.shown)} places"
        )
    if len(teams) and not NOBODY <= teams.min() <= teams.max() < n_rankers:
        raise ValueError(
            f"assignments must be -1 to {n_rankers - 1}; got {teams.tolist()}"
        )
    counted = clicks & (teams != NOBODY)
    return np.bincount(teams[counted], minlength=n_rankers).astype(np.float64)


@compiled
def draft(
    rankings: Integers, length: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    """The list, and the ranker of each place or `NOBODY`.

    [k] each, of `rankings` [n_rankers, depth].
    """
    n_rankers = rankings.shape[0]
    shown = np.empty(length, np.int64)
    teams = np.full(length, NOBODY, np.int64)
    n_neutral, n_fair = n_shared(rankings), n_fair_places(rankings)
    order = np.arange(n_rankers)
    place = 0
    while place < length:
        before = place
        for turn in range(n_rankers):
            other = turn + int(rng.random() * (n_rankers - turn))
            order[turn], order[other] = order[other], order[turn]
            best = best_left(rankings, order[turn], shown[:place])
            if best < 0:
                continue
            shown[place] = best
            if n_neutral <= place < n_fair:
                teams[place] = order[turn]
            place += 1
            if place in (length, n_neutral):
                break
        if place == before:
            break
    return shown[:place], teams[:place]


def two_team_exposures(rankings: Integers, length: int) -> Floats:
    """P(document at rank) for two rankers, over all states of the draft.

    [n_documents, length], of `rankings` [2, depth].

    What is placed is a prefix of either list, so a state is the pair of what each
    ranker would add next, and whose turn it is.
    """
    exposures = np.zeros((size_of(rankings), length))
    shared = min(n_shared(rankings), length)
    prefix = max(rankings.tolist(), key=lambda row: sum(d >= 0 for d in row))[:shared]
    exposures[prefix, np.arange(shared)] = 1.0
    states = {(frozenset(prefix), -1): 1.0}
    for place in range(shared, length):
        following: dict[tuple[frozenset[int], int], float] = {}
        for (placed, last), probability in states.items():
            for ranker, share in _turns(rankings, placed, last):
                best = _best(rankings[ranker], placed)
                exposures[best, place] += probability * share
                key = (placed | {best}, ranker if last < 0 else -1)
                following[key] = following.get(key, 0.0) + probability * share
        states = following
    return exposures


def _turns(
    rankings: Integers, placed: frozenset[int], last: int
) -> list[tuple[int, float]]:
    """Who may add next, with which probability; who has nothing is passed over."""
    able = [r for r in (0, 1) if _best(rankings[r], placed) >= 0]
    if len(able) < 2:
        return [(r, 1.0) for r in able]
    return [(1 - last, 1.0)] if last >= 0 else [(0, 0.5), (1, 0.5)]


def _best(ranking: Integers, placed: frozenset[int]) -> int:
    return next((d for d in ranking.tolist() if d >= 0 and d not in placed), NOBODY)
