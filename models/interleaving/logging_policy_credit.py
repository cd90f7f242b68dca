"""Differences in clicks per list, from lists of logging policies that change.

Each list is credited under the policy that drew it: clicks count lambda / rho, where
lambda is how much more likely one ranker's list has the item looked at than the
other's, and rho how likely the list's own policy had it. Given all before a list, that
is the difference on average, whatever policies were chosen from clicks before. Pooled
propensities of several policies do not have this: see
`models.estimators.intervention_aware`.

Policies are fitted on clicks of some groups of users. Lists of the others alone are
credited, so that each policy is fixed for those whom it is judged by, and no stretch of
the lists was chosen for their clicks.

References
----------
Oosterhuis & de Rijke (ICTIR 2020), equation 7 for the estimate, section 4.4 for
policies that are updated; Oosterhuis (PhD thesis, 2020), chapter 9.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from models.arrays import Floats
from models.interleaving.counterfactual import Counterfactual
from models.interleaving.method import Clicks, Drawing, Shown, Traits
from models.interleaving.rankings import ranks_of
from models.interleaving.scored_lists import Placements, ScoredLists
from models.plackett_luce.placement import placement_batch


@dataclass(frozen=True)
class LoggingPolicy(Counterfactual):
    """Two rankers, from lists that a policy of neither draws.

    Parameters
    ----------
    logged
        How lists are drawn: `ScoredLists` of the policy in force.
    examination : [n_ranks]
        P(looked at | rank), fixed before the impressions.
    length
        Of the lists that were asked for; 0: as long as the shown list.
    groups
        Of users: policies are fitted on the first ones, lists of the last `selection`
        are credited. 0: all lists are, as policies are fixed beforehand.
    selection
        At least 1 and less than `groups`; without groups it says nothing.
    floor
        Least P(looked at) of an item that rankers differ in, under any policy; in
        (0, 1).
    model
        Whose versions the policies are.

    Raises
    ------
    ValueError
        Where a number is outside its range.
    """

    logged: Drawing = field(default_factory=ScoredLists)
    examination: tuple[float, ...] = (1.0,)
    length: int = 0
    groups: int = 20
    selection: int = 4
    floor: float = 0.01
    model: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.groups < 0 or (self.groups and not 1 <= self.selection < self.groups):
            raise ValueError(
                "groups must be 0, or more than selection, which is 1 or more; got "
                f"{self.groups} groups with a selection of {self.selection}"
            )
        if not 0.0 < self.floor < 1.0:
            raise ValueError(f"floor must lie between 0 and 1; got {self.floor}")

    @property
    def traits(self) -> Traits:
        """As of its lists; no other method is scored on them."""
        return self.logged.traits._replace(exact_up_to=0)

    def under(
        self, scores: Floats, placements: Placements = placement_batch
    ) -> "LoggingPolicy":
        """The same where lists are drawn by some scores.

        Parameters
        ----------
        scores : [n_documents]
        placements
            Computes probabilities of ranks.
        """
        return replace(self, logged=ScoredLists(scores, placements))

    def slopes(self, shown: Shown, clicks: Clicks) -> Floats:
        """How the credit of the first ranker over the other changes with theta.

        Derivatives of `infer` by each P(looked at | rank), [n_ranks], through lambda
        and rho. With these a difference follows, to first order, under another curve,
        such as one that is refitted without some of its clicks. A multiple of theta
        changes nothing: `slopes @ examination` is 0.

        Parameters
        ----------
        shown
            As of `Method.infer`.
        clicks : [k]
            Of the shown documents.
        """
        length = self.length or len(shown.shown)
        n_ranks = min(length, len(self.examination))
        theta = np.array(self.examination[:n_ranks])
        rng = np.random.default_rng(0)  # exact exposures draw nothing
        exposures = self.logged.exposures(shown.rankings, length, rng=rng)
        clicked = shown.shown[clicks]
        placed = exposures[clicked, :n_ranks]
        ranks = ranks_of(shown.rankings, clicked)
        is_at = ranks[:, :, None] == np.arange(1, n_ranks + 1)
        gaps = is_at[0].astype(np.float64) - is_at[1]
        propensities = (placed @ theta)[:, None]
        by_rho = (gaps @ theta)[:, None] * placed / propensities
        return np.asarray(((gaps - by_rho) / propensities).sum(axis=0))

    def judging(self, unit: int) -> int | None:
        """What is left of the hash of a session, to tell groups of sessions apart by.

        Parameters
        ----------
        unit
            The hash; `unit % groups` is the group of the statistics.

        Returns
        -------
        int
            None where policies were fitted on the session's clicks.
        """
        if not self.groups:
            return unit
        if unit % self.groups < self.groups - self.selection:
            return None
        return unit // self.groups
