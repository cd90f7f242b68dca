"""Policies valued on a log that others made: rewards, and what these rest on.

A few queries at a time are held. Of each, values of items are estimated from all
groups and without each of them, the curve fitted anew, and policies are valued by
these. What queries add is weighed by their lists and added up: the figures are those
of `models.estimators.policy_comparison`, of a log that need not fit into memory.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats
from models.estimators.click_log import ClickLog, of_groups
from models.estimators.item_estimates import ItemEstimates
from models.estimators.jackknife import Jackknife, jackknife
from models.estimators.policy_comparison import PolicyComparison, compared
from models.estimators.policy_reward import (
    NO_REWARD,
    RewardSums,
    reward_sums,
)
from models.estimators.registry import BY_GROUP, Estimator, estimator_of
from models.training.largest_loss import Fall, fall_of
from streams.estimation.left_out_groups import LeftOutGroups
from streams.estimation.logged_sets import LoggedSet, sets_of
from streams.estimation.pooled_classes import PooledClasses, Worth
from streams.estimation.question import LOGGED, Question
from streams.estimation.targets import Candidates, Placed, Target
from streams.statistics.columns import Columns
from streams.statistics.logged_queries import (
    LoggedQueries,
    QueryGatherer,
)

ROUNDING = 1e-9
"""By how much fits of a curve may differ that are of the same clicks."""


class Coverage(NamedTuple):
    """How much of the log the figures are of.

    Parameters
    ----------
    n_queries, n_lists, n_clicks
        Of candidate sets that each policy ranks.
    n_all
        Lists of the groups, of all sets.
    lacking
        Lists of sets that a policy says nothing of, by its name.
    n_left_out
        Lists that were left out, as some beside them are of unknown policies.
    n_beyond
        Clicks at ranks that the curve does not have.
    mixed
        Interventions under which a query had several placements, sorted.
    n_classes
        Of items, where these count as one; else 0.
    n_as_shown
        Lists beside unknown policies that were taken as they were shown.
    n_beside
        Of these: lists of known policies that are not told apart from the others.
    shorter
        Lists that have more ranks than a policy fills, by its name.
    """

    n_queries: int
    n_lists: int
    n_clicks: int
    n_all: int
    lacking: Mapping[str, int]
    n_left_out: int
    n_beyond: int
    mixed: tuple[str, ...]
    n_classes: int = 0
    n_as_shown: int = 0
    n_beside: int = 0
    shorter: Mapping[str, int] = {}


class Evaluation(NamedTuple):
    """What policies are worth on a log.

    Parameters
    ----------
    comparison
        Policies side by side; None where none of the log is covered.
    coverage
        How much of it is.
    falls
        How far each could fall behind the base, whatever users like, by its name: mean
        over lists; see `models.training.largest_loss`.
    """

    comparison: PolicyComparison | None
    coverage: Coverage
    falls: Mapping[str, Fall] = {}


def evaluated(
    chunks: Iterable[Columns],
    targets: Mapping[str, Target],
    question: Question,
    on_queries: Callable[[int], object] = lambda _: None,
) -> Evaluation:
    """Value policies on a log.

    Intervals are of 95 %, from groups left out one at a time: those of values, and
    those that the curve was fitted on. They hold where policies were fixed before the
    clicks, or chosen from those of other groups.

    Parameters
    ----------
    chunks
        Columns of the log, in their order, with scopes marked that are mixed.
    targets
        Policies by name; `LOGGED` comes first and need not be among them.
    on_queries
        Is told how many queries were read; what it raises ends all.

    Raises
    ------
    ValueError
        Where a name is not known, or a policy or the log is spoilt.
    """
    if LOGGED in targets:
        raise ValueError(f"no policy may be named {LOGGED!r}, which is what was shown")
    if question.base not in (LOGGED, *targets):
        raise ValueError(
            f"what policies are compared with must be one of "
            f"{', '.join((LOGGED, *targets))}; got {question.base!r}"
        )
    entry = estimator_of(question.estimator)
    sums = _Sums(targets, question, entry.estimator)
    every = np.arange(question.n_groups)
    gathering = QueryGatherer(
        np.where(np.isin(every, [*question.groups]), every, -1),
        question.n_groups,
        question.choice.unknown,
        cells_at_once=1 if question.estimator in BY_GROUP else question.cells_at_once,
    )
    n_queries = 0
    for queries in gathering.of(chunks):
        sums.take(queries)
        n_queries += len(queries.queries)
        on_queries(n_queries)
    return sums.evaluation()


class _Sums:
    """What queries add, so far."""

    def __init__(
        self, targets: Mapping[str, Target], question: Question, estimator: Estimator
    ) -> None:
        self._targets = targets
        self._question = question
        self._estimator = estimator
        self._names = (LOGGED, *targets)
        groups = {*question.groups, *question.curve.without}
        self._units = sorted(groups)
        self._points = dict.fromkeys(self._names, NO_REWARD)
        self._without = np.zeros((len(self._units), len(self._names)))
        self._clicks_without = np.zeros(self._without.shape)
        self._lists, self._clicked = np.zeros((2, question.n_groups))
        self._lacking = dict.fromkeys(targets, 0)
        self._shorter = dict.fromkeys(targets, 0)
        self._mixed: set[str] = set()
        self._n_queries = self._n_all = self._n_left_out = self._n_beyond = 0
        self._n_as_shown = self._n_beside = 0
        self._falls = dict.fromkeys(targets, Fall(0.0, np.inf))
        self._pool = None
        if question.has_classes:
            self._pool = PooledClasses(question.n_groups, question.curve.curve.n_ranks)

    def take(self, queries: LoggedQueries) -> None:
        """Add some queries."""
        log, n_ranks = queries.log, self._question.curve.curve.n_ranks
        self._n_left_out += queries.n_left_out
        self._n_as_shown += queries.n_as_shown
        self._n_beside += queries.n_beside
        self._n_beyond += int(log.clicked[log.ranks > n_ranks].sum())
        self._mixed.update(queries.interventions[policy] for policy in log.mixed)
        policies = self._policies(queries)
        if self._pool is not None:
            self._pool.take(queries, policies or {})
        elif policies is not None:
            self._add(log, queries.impressions, policies)

    def _add(
        self, log: ClickLog, impressions: Floats, policies: dict[str, Worth]
    ) -> None:
        """Add what policies are worth, by values of these items."""
        if self._pool is None:
            self._add_falls(policies)
        values = self._values(log, impressions)
        for name, own in self._rewards(policies, values(None), None).items():
            self._points[name] = self._points[name].plus(own)
        for row, group in enumerate(self._units):
            rewards = self._rewards(policies, values(group), group)
            self._without[row] += [own.value for own in rewards.values()]
            self._clicks_without[row] += [own.clicks for own in rewards.values()]

    def _add_falls(self, policies: dict[str, Worth]) -> None:
        """Add the most that policies lose in these queries: items keep their likes."""
        looked = self._question.weights_of(self._question.curve.curve).relevant
        before = policies[self._question.base].expected @ looked
        for name, known in self._falls.items():
            own = fall_of(before, policies[name].expected @ looked)
            self._falls[name] = Fall(
                known.largest_loss + own.largest_loss,
                min(known.least_ratio, own.least_ratio),
            )

    def _rewards(
        self, policies: dict[str, Worth], found: ItemEstimates, group: int | None
    ) -> dict[str, RewardSums]:
        """What policies are worth, given values without a group."""
        question = self._question
        weights = question.weights_of(question.curve.without_group(group))
        return {
            name: reward_sums(found, policy.expected, weights, policy.absent)
            for name, policy in policies.items()
        }

    def _values(
        self, log: ClickLog, impressions: Floats
    ) -> Callable[[int | None], ItemEstimates]:
        """Values of items without the clicks of a group, or of all."""
        question = self._question
        summed = None
        if question.estimator not in BY_GROUP:
            summed = LeftOutGroups(log, impressions)

        def values(group: int | None) -> ItemEstimates:
            if summed is not None:
                left = summed.without(group)
            else:
                kept = np.arange(question.n_groups) != group
                left = of_groups(log, impressions, kept)
            return self._estimator(*left, question.curve.without_group(group))

        return values

    def _policies(self, queries: LoggedQueries) -> dict[str, Worth] | None:
        """Where policies put items of sets that each of them ranks; None of none."""
        shape = len(queries.items), self._question.curve.curve.n_ranks
        policies = {
            name: Worth(np.zeros(shape), np.zeros(shape[1])) for name in self._names
        }
        covered = set()
        of_queries = _items_by_query(queries)
        for one in sets_of(queries):
            n_lists = int(one.lists.sum())
            self._n_all += n_lists
            if not n_lists:
                continue
            placed = self._placed(queries, one, n_lists, of_queries)
            if placed is None:
                continue
            covered.add(one.query)
            self._lists += one.lists
            self._clicked += one.clicked
            for name, (items, absent) in placed.items():
                n_ranks = min(items.shape[1], shape[1])
                own = policies[name]
                own.expected[one.items, :n_ranks] += n_lists * items[:, :n_ranks]
                own.absent[:n_ranks] += n_lists * absent[:n_ranks]
        self._n_queries += len(covered)
        return policies if covered else None

    def _placed(
        self,
        queries: LoggedQueries,
        one: LoggedSet,
        n_lists: int,
        of_queries: Sequence[frozenset[str]],
    ) -> dict[str, Placed] | None:
        """Where each policy puts items of a set; None where one says nothing of it."""
        n_ranks = one.placed.shape[1]
        asked = Candidates(
            queries.queries[one.query],
            one.name,
            one.is_growing,
            [queries.items[item] for item in one.items.tolist()],
            min(n_ranks, self._question.n_ranks or n_ranks),
            of_queries[one.query],
        )
        placed = {LOGGED: Placed(one.placed / n_lists, np.zeros(n_ranks))}
        is_whole = True
        for name, target in self._targets.items():
            found = target.placed(asked)
            if found is None:
                self._lacking[name] += n_lists
                is_whole = False
            else:
                placed[name] = found
                is_shorter = found.items.shape[1] < asked.n_ranks
                self._shorter[name] += n_lists * is_shorter
        return placed if is_whole else None

    def evaluation(self) -> Evaluation:
        """All of it."""
        n_lists = int(self._lists.sum())
        n_classes = 0
        if self._pool is not None:
            n_classes = self._pool.n_classes
            if n_lists:
                self._add(*self._pool.together())
        coverage = Coverage(
            self._n_queries,
            n_lists,
            int(self._clicked.sum()),
            self._n_all,
            {name: n for name, n in self._lacking.items() if n},
            self._n_left_out,
            self._n_beyond,
            tuple(sorted(self._mixed)),
            n_classes,
            self._n_as_shown,
            self._n_beside,
            {name: n for name, n in self._shorter.items() if n},
        )
        if not n_lists:
            return Evaluation(None, coverage)
        falls = {
            name: fall._replace(largest_loss=fall.largest_loss / n_lists)
            for name, fall in self._falls.items()
        }
        return Evaluation(self._comparison(n_lists), coverage, falls)

    def _comparison(self, n_lists: int) -> PolicyComparison:
        return compared(
            self._names,
            self._question.base,
            tuple(self._points[name].per_list(n_lists) for name in self._names),
            self._jackknife(n_lists),
            np.asarray((self._clicks_without > 0.0).all(axis=0)),
            self._clicked,
        )

    def _jackknife(self, n_lists: int) -> Jackknife:
        base = self._names.index(self._question.base)
        all_of_it = np.array([self._points[name].value for name in self._names])
        row_of = {group: row for row, group in enumerate(self._units)}
        units = self._telling()

        def figures(kept: Flags) -> Floats:
            gone = np.flatnonzero(units & ~kept).tolist()
            values = self._without[row_of[gone[0]]] if gone else all_of_it
            lists = self._lists[kept].sum()
            naive = self._clicked[kept].sum() / lists if lists else np.nan
            rewards = values / n_lists
            return np.array([*rewards, *(rewards - rewards[base]), naive])

        return jackknife(figures, units)

    def _telling(self) -> Flags:
        """Groups that say anything, [n_groups]: of lists, or of the curve.

        Groups of nobody are all alike: with them few users would seem many.
        """
        curve = self._question.curve
        units = self._lists > 0.0
        for group, without in curve.without.items():
            moved = without.alpha - curve.curve.alpha, without.beta - curve.curve.beta
            units[group] |= np.abs(moved).max() > ROUNDING
        return np.asarray(units)


def _items_by_query(queries: LoggedQueries) -> list[frozenset[str]]:
    """Ids that lists of each query could show."""
    ends = np.searchsorted(queries.owners, np.arange(len(queries.queries) + 1))
    return [
        frozenset(queries.items[start:end]) for start, end in pairwise(ends.tolist())
    ]
