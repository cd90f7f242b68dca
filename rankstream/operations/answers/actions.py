"""What each action of a context earns, by lists of one item, with bounds."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from models.decisions.action_sums import action_sums
from models.estimators.bias_curve import position_curve
from models.estimators.splits import Splits
from models.evaluation.bounds.families import Bound, confidence, intervals
from rankstream.operations.answers.as_builtins import Answer
from streams.decisions.evidence import evidence_of
from streams.statistics.reader import Statistics

LONGER = "lists of several items, which are no actions"

FIRST_RANK = position_curve(np.ones(2))
"""What an item is shown with at the first rank; by the second, longer lists show."""


@dataclass(frozen=True)
class Action(Answer):
    """Of one context.

    Parameters
    ----------
    query, candidate_set
        The context: a query, in its segment, and the name of its candidates.
    estimate
        Mean reward of a list that shows the action; NaN where none could.
    lower, upper
        Bounds on it, in [0, 1], each with the confidence asked for.
    lists
        Those that could show it.
    elsewhere
        Those of the same context that could not.
    clicks
        On it.
    """

    query: str
    candidate_set: bytes
    action: str
    estimate: float
    lower: float
    upper: float
    lists: int
    elsewhere: int
    clicks: int


@dataclass(frozen=True)
class Actions(Answer):
    """Those of all contexts that were asked for.

    Parameters
    ----------
    actions
        By context, the best estimate first.
    refused
        Lists that were left out, by reason.
    """

    actions: list[Action]
    refused: Mapping[str, int]


def actions_of(
    statistics: Statistics,
    queries: Iterable[str] | None = None,
    *,
    bound: Bound = Bound.ANY_TIME,
    epsilon: float = 0.95,
) -> Actions:
    """Estimate them.

    Parameters
    ----------
    queries
        As statistics are kept by them; all where not given.
    epsilon
        Confidence of each bound by itself, in [0, 1].

    Raises
    ------
    ValueError
    """
    sure = confidence(bound, epsilon)
    if not statistics.counted:
        return Actions([], {})
    # Nothing is fitted here, so all groups judge.
    n_groups = statistics.counted[0].groups
    splits = Splits(n_groups, (), (), tuple(range(n_groups)), 0.0)
    evidence = evidence_of(statistics, splits, FIRST_RANK, np.ones(1), queries=queries)
    sets = evidence.sets
    found = action_sums(evidence.policies, evidence.selection, sets.starts)
    bounds = np.clip(intervals(found.sums, found.starts, sure), 0.0, 1.0)
    lists = found.by_action(found.sums.interactions)
    clicks = found.by_action(found.sums.clicks)
    estimates = found.by_action(found.sums.totals) / np.maximum(lists, 1)
    refused = {str(why): n for why, n in evidence.refused.items() if n}
    if n_longer := int(found.longer.sum()):
        refused[LONGER] = n_longer
    actions = []
    for number, items in enumerate(sets.items):
        first = int(sets.starts[number])
        for place, item in enumerate(items, first):
            n_lists, n_elsewhere = int(lists[place]), int(found.unsupported[place])
            if not n_lists and not n_elsewhere:
                continue
            lower, upper = bounds[place].tolist()
            actions.append(
                Action(
                    sets.queries[number],
                    sets.names[number],
                    item,
                    float(estimates[place]) if n_lists else float("nan"),
                    lower,
                    upper,
                    n_lists,
                    n_elsewhere,
                    int(clicks[place]),
                )
            )
    return Actions(sorted(actions, key=_rank_of), refused)


def _rank_of(one: Action) -> tuple[str, bytes, bool, float]:
    is_unknown = not one.lists
    return (
        one.query, one.candidate_set, is_unknown, 0.0 if is_unknown else -one.estimate
    )  # fmt: skip
