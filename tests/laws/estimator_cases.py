"""Small logs of which all that can come is enumerated, for laws of estimators."""

import math
from itertools import product
from typing import NamedTuple

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.estimators.click_log import ClickLog
from tests.laws.logged_clicks import Users, outcomes, placement, plackett_luce

EXACT = 1e-12

POSITION, SELECTION, TRUST = "position", "selection", "trust"


class Listed(NamedTuple):
    """One list to be: who draws it, the number of that policy, and its group."""

    policy: dict
    number: int = 0
    group: int = 0


class Case(NamedTuple):
    """Users, and lists that they are to be shown."""

    users: Users
    lists: list[Listed]

    @property
    def n_items(self):
        """Of the query."""
        return len(self.users.relevance)

    @property
    def curve(self):
        """The true one."""
        return BiasCurve(*self.users.curve())

    @property
    def impressions(self):
        """All lists could have all items: [n_groups, n_policies, n_items]."""
        n_groups = 1 + max(one.group for one in self.lists)
        n_policies = 1 + max(one.number for one in self.lists)
        counted = np.zeros((n_groups, n_policies, self.n_items))
        for one in self.lists:
            counted[one.group, one.number] += 1.0
        return counted


LOOKS, ALL_LOOKS = (1.0, 0.5), (1.0, 1.0)
SURE, TRUSTED = (0.98, 0.9), (0.5, 0.2)


def case_of(*biases):
    """One list of each of two policies; lists are cut where there is selection."""
    n_items = 3 if SELECTION in biases else 2
    users = Users(
        LOOKS if POSITION in biases else ALL_LOOKS,
        SURE if TRUST in biases else (1.0, 1.0),
        TRUSTED if TRUST in biases else (0.0, 0.0),
        (0.8, 0.3, 0.5)[:n_items],
    )
    strengths = (4.0, 1.0, 2.0)[:n_items], (1.0, 0.5, 3.0)[:n_items]
    policies = [plackett_luce(dict(enumerate(each)), 2) for each in strengths]
    return Case(users, [Listed(each, number) for number, each in enumerate(policies)])


class _Rows:
    """The rows of a case, of which only shown and clicked differ by outcome."""

    def __init__(self, case):
        self.keys: list[tuple] = []
        self.expected: list[float] = []
        self.starts: list[int] = []
        n_ranks = len(case.users.examination)
        for one in case.lists:
            self.starts.append(len(self.keys))
            matrix = placement(one.policy, case.n_items, n_ranks)
            for item, row in product(range(case.n_items), range(n_ranks)):
                self.keys.append((one.group, one.number, item, row + 1))
                self.expected.append(matrix[item, row])
        self.n_ranks = n_ranks

    def log(self, found):
        shown, clicked = np.zeros((2, len(self.keys)), np.int64)
        for start, outcome in zip(self.starts, found, strict=True):
            marks = zip(outcome.shown, outcome.clicks, strict=True)
            for row, (item, is_clicked) in enumerate(marks):
                place = start + item * self.n_ranks + row
                shown[place], clicked[place] = 1, is_clicked
        columns = (np.array(column) for column in zip(*self.keys, strict=True))
        expected = np.array(self.expected)
        return ClickLog._make([*columns, shown, clicked, expected, frozenset()])


def logs_of(case):
    """Every log that can come of a case, and its probability."""
    rows = _Rows(case)
    ways = [outcomes(one.policy, case.users) for one in case.lists]
    for found in product(*ways):
        yield rows.log(found), math.prod(one.probability for one in found)


class Enumeration(NamedTuple):
    """Every log of a case at once, each about items of its own.

    Estimators take items one by one, so all logs are valued in one call. `chances`
    [n_logs]; items are those of the first log, then those of the second.
    """

    log: ClickLog
    impressions: np.ndarray
    chances: np.ndarray

    def mean(self, values):
        """Over the logs in which there is a value, [n_items]; `values` as the items."""
        by_log = values.reshape(len(self.chances), -1)
        known = self.chances[:, None] * np.isfinite(by_log)
        total = [math.fsum(x) for x in (known * np.nan_to_num(by_log)).T]
        return np.array(total) / [math.fsum(x) for x in known.T]


def enumerated(case):
    """All that can come of a case."""
    logs, chances = zip(*logs_of(case), strict=True)
    assert abs(math.fsum(chances) - 1.0) < EXACT
    columns = [np.concatenate(column) for column in list(zip(*logs, strict=True))[:7]]
    n_rows, n_logs = len(logs[0].items), len(logs)
    columns[2] = columns[2] + np.repeat(np.arange(n_logs), n_rows) * case.n_items
    impressions = np.tile(case.impressions, n_logs)
    log = ClickLog._make([*columns, frozenset()])
    return Enumeration(log, impressions, np.array(chances))


def mean_if_biased(name, case):
    """What the estimator is on average, from the lists' probabilities alone."""
    return _MEANS[name](case)


def _of_policies(case):
    alpha, beta = case.users.curve()
    relevance = np.array(case.users.relevance)[:, None]
    for one in case.lists:
        matrix = placement(one.policy, case.n_items, len(alpha))
        yield matrix, matrix * (alpha * relevance + beta), alpha + beta


def _naive(case):
    return np.mean([clicks.sum(axis=1) for _, clicks, _ in _of_policies(case)], axis=0)


def _oblivious(case):
    found = [clicks @ (1.0 / theta) for _, clicks, theta in _of_policies(case)]
    return np.mean(found, axis=0)


def _policy_aware(case):
    found = [
        clicks.sum(axis=1) / (matrix @ theta)
        for matrix, clicks, theta in _of_policies(case)
    ]
    return np.mean(found, axis=0)


def _affine(case):
    shown = [matrix.sum(axis=1) for matrix, _, _ in _of_policies(case)]
    return np.mean(shown, axis=0) * case.users.relevance


def _rerank(case):
    """Given each way in which lists can show an item, over all lists that do."""
    alpha, beta = case.users.curve()
    total, known = np.zeros((2, case.n_items))
    for lists in product(*(one.policy.items() for one in case.lists)):
        chance = math.prod(probability for _, probability in lists)
        for item, relevance in enumerate(case.users.relevance):
            rows = [shown.index(item) for shown, _ in lists if item in shown]
            rates = [(alpha[r] * relevance + beta[r]) / (alpha + beta)[r] for r in rows]
            if rates:
                total[item] += chance * np.mean(rates)
                known[item] += chance
    return total / known


_MEANS = {
    "naive": _naive,
    "oblivious": _oblivious,
    "rerank": _rerank,
    "policy-aware": _policy_aware,
    "affine": _affine,
}
