"""Lists that are drawn from scores of their items, by Plackett-Luce.

What a logging policy shows. Which items rankers returned decides who can be shown, not
where rankers put them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from models.arrays import Floats, Integers
from models.interleaving.method import NO_ONE, Combined, Shown, Traits
from models.plackett_luce.placement import placement_batch

Placements = Callable[[Floats, int], Floats]
"""As `models.plackett_luce.placement.placement_batch`, of which there are faster ones
with the same bits."""


@dataclass(frozen=True, eq=False)
class ScoredLists:
    """How lists are drawn; it credits nobody.

    Parameters
    ----------
    scores : [n_documents]
        Log scores of all documents that may be shown, finite; none: each document of
        the rankings is as likely as any other, as before a policy was made.
    placements
        Computes probabilities of ranks.
    """

    scores: Floats | None = None
    placements: Placements = placement_batch
    _known: dict[int, Floats] = field(default_factory=dict, repr=False)
    traits: ClassVar[Traits] = Traits(
        is_for_two=True,
        is_fair=True,
        exact_up_to=math.inf,
        shows_one_ranker=False,
        counts_where_silent=True,
        even_shares=(),
    )

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw by the Gumbel trick, as in `Drawing.combine`."""
        if len(rankings) != 2:
            raise ValueError(
                f"a logging policy must be of two rankers; got {len(rankings)}"
            )
        documents, scores = self._scored(rankings)
        keys = scores - scores.max(initial=-math.inf) + rng.gumbel(size=len(scores))
        chosen = np.argsort(-keys, kind="stable")[:length]
        return Combined(documents[chosen], NO_ONE)

    def can_draw(self, shown: Shown) -> bool:
        """Any list of different documents, of nobody's teams."""
        return not len(shown.assignments)

    def typical_square(self, n_rankers: int) -> float:  # noqa: ARG002  two always
        """A click in every other list, on something that half of the lists show."""
        return 1.0

    def exposures(
        self,
        rankings: Integers,
        length: int,
        *,
        rng: np.random.Generator,  # noqa: ARG002  exact, nothing is drawn
    ) -> Floats:
        """Exact; as in `Drawing.exposures`."""
        documents, scores = self._scored(rankings)
        found = np.zeros((int(documents.max(initial=-1)) + 1, length))
        depth = min(length, len(scores))
        if not depth:
            return found
        if self.scores is None:
            found[documents, :depth] = 1.0 / len(documents)
            return found
        if depth not in self._known:
            # A list is asked for its bounds, then for its credit.
            self._known[depth] = self.placements(scores[None, :], depth)[0]
        found[documents, :depth] = self._known[depth]
        return found

    def _scored(self, rankings: Integers) -> tuple[Integers, Floats]:
        """Documents that may be shown, and their scores."""
        if self.scores is None:
            documents = np.unique(rankings[rankings >= 0])
            return documents, np.zeros(len(documents))
        return np.arange(len(self.scores)), self.scores
