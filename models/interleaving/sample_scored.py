"""Sample-scored-only multileaving: rankers judged on the documents that were shown.

The list is that of a team draft. A click gives each ranker a credit by how high it
puts the document among those shown; the preference is the sign of who has more.
It is *not* fair: clicks that ignore relevance but fall with the rank give
preferences, as rankers that agree place their common favourites first more often.

References
----------
Brost et al. (CIKM 2016); Oosterhuis (2020), section 2.4.4, has the counter-example.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from models.arrays import Floats, Integers
from models.interleaving.method import (
    Clicks,
    Combined,
    Shown,
    Traits,
    among_present,
    signs,
    where_different,
)
from models.interleaving.rankings import ABSENT, n_fair_places, ranks_of
from models.interleaving.team_draft import TeamDraft
from models.kernels.compilation import compiled

POWER = 3.0
"""Credit of a click is 1 / rank^POWER among the shown documents."""

_draft = TeamDraft()


@dataclass(frozen=True)
class SampleScored:
    """Credits by rank among the shown documents; none for what a ranker has not.

    Nor for places where the shortest list may have ended.
    """

    traits: ClassVar[Traits] = Traits(
        is_for_two=False,
        is_fair=False,
        exact_up_to=TeamDraft.traits.exact_up_to,
        shows_one_ranker=False,
        counts_where_silent=True,
        even_shares=(),
    )
    needs_assignments: ClassVar[bool] = False

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw the list of a team draft; the teams are not needed.

        As in `Drawing.combine`.
        """
        return _draft.combine(rankings, length, rng=rng)

    def can_draw(self, shown: Shown) -> bool:
        """What the draft can."""
        return _draft.can_draw(shown)

    def typical_square(self, n_rankers: int) -> float:  # noqa: ARG002  for any number
        """A sign, where somebody is preferred in every other list."""
        return 0.5

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Who puts the clicked documents higher among the shown ones.

        As in `Method.infer`.
        """
        return among_present(shown.rankings, signs(credits_of_places(shown) @ clicks))

    def bounds(
        self,
        rankings: Integers,
        length: int,  # noqa: ARG002  a sign is a sign
    ) -> Floats:
        """One where two rankings differ; as in `Method.bounds`."""
        return where_different(rankings)

    def exposures(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Floats:
        """Those of the team draft, as in `Drawing.exposures`."""
        return _draft.exposures(rankings, length, rng=rng)


def credits_of_places(shown: Shown) -> Floats:
    """What a click at each place gives to each ranker. [n_rankers, k]."""
    return place_credits(shown.rankings, shown.shown)


@compiled
def place_credits(rankings: Integers, shown: Integers) -> Floats:
    """1 / rank^POWER among the shown documents. [n_rankers, k].

    `rankings` [n_rankers, depth], `shown` [k].
    """
    ranks = ranks_of(rankings, shown)
    credit = np.zeros(ranks.shape)
    for ranker in range(ranks.shape[0]):
        for place in range(min(n_fair_places(rankings), shown.shape[0])):
            rank = ranks[ranker, place]
            if rank != ABSENT:
                within = 1 + (ranks[ranker] < rank).sum()
                credit[ranker, place] = float(within) ** -POWER
    return credit
