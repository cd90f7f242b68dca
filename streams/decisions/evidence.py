"""Statistics as evidence of which policy is better, candidate set by candidate set.

Of both forms of a scope come the same numbers: lists of each logging policy by group,
how often each item was clicked, and how often each two together. Those of training
groups are what a policy of one query is made of; those of selection groups are what it
is judged by, and nothing else is made of them. Left out, and counted, is what would
make a judgement unsound; see `Refused`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.decisions.click_sums import ClickSums, LoggingPolicies
from models.estimators.bias_curve import BiasCurve
from models.estimators.splits import Splits
from streams.decisions.closed_sets import CandidateSets
from streams.decisions.evidence_reader import EvidenceReader
from streams.decisions.refused import Refused
from streams.statistics.keys import ScopeName
from streams.statistics.reader import Statistics


class Evidence(NamedTuple):
    """What statistics tell of policies.

    Parameters
    ----------
    sets
        Whose lists were counted.
    policies
        Those that logged.
    training, selection
        Lists and clicks of the groups of either side; those of training are one group,
        0, without pairs.
    refused
        Lists of these groups that were left out, by reason.
    splits
        Which groups are whose.
    weights : [n_ranks]
        lambda by rank.
    """

    sets: CandidateSets
    policies: LoggingPolicies
    training: ClickSums
    selection: ClickSums
    refused: Mapping[Refused, int]
    splits: Splits
    weights: Floats

    def lists(self) -> Integers:
        """Lists of both sides that count, [n_sets]."""
        found = np.zeros(len(self.sets.queries), np.int64)
        for side in (self.training, self.selection):
            np.add.at(found, self.policies.sets[side.policies], side.interactions)
        return found


def evidence_of(
    statistics: Statistics,
    splits: Splits,
    curve: BiasCurve,
    weights: Floats,
    *,
    queries: Iterable[str] | None = None,
    is_wanted: Callable[[ScopeName], bool] = lambda _: True,
) -> Evidence:
    """Read statistics as evidence.

    Parameters
    ----------
    splits
        Which groups are for training, and which for selection.
    curve
        Of bias. Ranks that it does not have are left out, clicks and exposures alike.
    weights : [n_ranks]
        lambda, what relevance at a rank is worth; ranks beyond are worth nothing.
    queries
        Those that are read; all if not given.
    is_wanted
        Whether a scope is, as of chosen interventions.

    Raises
    ------
    ValueError
        Where the statistics have other groups, or are spoilt.
    """
    for counted in statistics.counted:
        if counted.groups != splits.n_groups:
            raise ValueError(
                "groups must be split as they were counted; statistics have "
                f"{counted.groups}, and the split is of {splits.n_groups}: take "
                "`statistics.groups` of the settings that they were counted under"
            )
    reader = EvidenceReader(splits, curve, weights)
    for batch in statistics.batches(queries, is_wanted=is_wanted):
        reader.take(batch)
    return Evidence(reader.sets(), *reader.sums(), reader.refused(), splits, weights)
