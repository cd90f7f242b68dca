"""Estimates on real rows of Open Bandit data, against sums over the same rows.

115 clicks say little of 34 items at three places; that the two agree is all that is
checked here. Published, of all rows of this campaign: .51 % clicks under the uniform
policy, .67 % under the other.
"""

import math
from collections import defaultdict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from models.estimators.bias_curve import position_curve
from models.estimators.click_log import ClickLog
from models.estimators.doubly_robust import doubly_robust
from models.estimators.item_estimates import UNKNOWN
from models.estimators.policy_reward import click_weights_of
from models.estimators.registry import ESTIMATORS
from streams.statistics.reader import Statistics
from tests.policies_in_memory import policy_reward, without_unknown
from tests.producers.formats.bandit_rows import BanditRow

EXACT = pytest.approx
CURVE = position_curve([1.0])
UNIFORM = float(np.float32(1 / 34))
"""As the log holds it."""

Floats = npt.NDArray[np.float64]


class Counted(NamedTuple):
    """What the statistics have, as estimators take it."""

    log: ClickLog
    impressions: Floats
    items: list[tuple[str, str]]


class ByItem(NamedTuple):
    """Sums over rows, by query and item; lists by query."""

    shown: dict[tuple[str, str], int]
    clicked: dict[tuple[str, str], int]
    lists: dict[str, int]


@pytest.fixture(scope="session")
def counted(bandit_statistics: Statistics) -> Counted:
    """The statistics as places; policies are bts and random, in this order."""
    items: dict[tuple[str, str], int] = {}
    rows: list[tuple[int, int, int, int, int, float]] = []
    lists: list[tuple[int, int, list[int], int]] = []
    for chunk in bandit_statistics.columns():
        numbers = [
            [items.setdefault((name.query, item), len(items)) for item in names]
            for name, names in zip(chunk.names, chunk.items, strict=True)
        ]
        is_random = [name.intervention == "random" for name in chunk.names]
        for scope, group, n, *_ in chunk.cells.tolist():
            lists.append((group, is_random[scope], numbers[scope], n))
        clicked = chunk.by_class[chunk.reward]
        columns = (chunk.scope, chunk.group, chunk.item, chunk.shown, clicked)
        for expected, (scope, group, item, n_shown, n_clicked) in zip(
            chunk.expected.tolist(), np.column_stack(columns).tolist(), strict=True
        ):
            known = expected if is_random[scope] else np.nan
            place = group, is_random[scope], numbers[scope][item]
            rows.append((*place, n_shown, n_clicked, known))
    impressions = np.zeros((20, 2, len(items)))
    for group, policy, numbers_of, n in lists:
        impressions[group, int(policy), numbers_of] += n
    groups, policies, owners, shown, clicks, sums = zip(*rows, strict=True)
    log = ClickLog(
        np.array(groups),
        np.array(policies, np.int64),
        np.array(owners),
        np.ones(len(rows), np.int64),
        np.array(shown),
        np.array(clicks),
        np.array(sums),
    )
    return Counted(log, impressions, [*items])


def summed(rows: list[BanditRow], policies: set[str]) -> ByItem:
    """Sums over the rows of some policies."""
    found = ByItem(defaultdict(int), defaultdict(int), defaultdict(int))
    for row in rows:
        if row.policy in policies:
            found.shown[row.query, row.item] += 1
            found.clicked[row.query, row.item] += row.clicked
            found.lists[row.query] += 1
    return found


@pytest.mark.parametrize("name", ["naive", "oblivious", "affine", "rerank"])
def test_estimates_that_need_no_placements(
    name: str, counted: Counted, bandit_rows: list[BanditRow]
) -> None:
    """Of both policies: clicks over lists, or over those that showed the item."""
    found = ESTIMATORS[name].estimator(counted.log, counted.impressions, CURVE)
    rows = summed(bandit_rows, {"bts", "random"})
    for value, (query, item) in zip(found.values, counted.items, strict=True):
        shown = rows.shown[query, item]
        below = shown if name == "rerank" else rows.lists[query]
        by_hand = rows.clicked[query, item] / below if below else math.nan
        assert value == EXACT(by_hand, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize(
    "name",
    ["policy-aware", "intervention-oblivious", "intervention-aware", "self-normalised"],
)
def test_estimates_that_need_placements(
    name: str, counted: Counted, bandit_rows: list[BanditRow]
) -> None:
    """None of lists of a policy that did not log them all; else c / (n p)."""
    estimator = ESTIMATORS[name].estimator
    whole = estimator(counted.log, counted.impressions, CURVE)
    assert np.isnan(whole.values).all()
    assert {*whole.reasons} == {UNKNOWN}

    log, impressions, left_out = without_unknown(counted.log, counted.impressions)
    found = estimator(log, impressions, CURVE)
    rows = summed(bandit_rows, {"random"})
    for value, (query, item) in zip(found.values, counted.items, strict=True):
        below = rows.lists[query] * UNIFORM
        if name == "self-normalised":
            below = rows.shown[query, item]
        by_hand = rows.clicked[query, item] / below
        assert value == EXACT(by_hand, abs=1e-12)
    of_other = summed(bandit_rows, {"bts"}).lists
    assert left_out.tolist() == [of_other[query] for query, _ in counted.items]


def test_a_fixed_regression_is_corrected(
    counted: Counted, bandit_rows: list[BanditRow]
) -> None:
    """By what clicks say against it: r + (c - shown r) / (n p)."""
    guess = np.linspace(0.001, 0.009, len(counted.items))
    log, impressions, _ = without_unknown(counted.log, counted.impressions)
    found = doubly_robust(log, impressions, CURVE, regression=guess)
    rows = summed(bandit_rows, {"random"})
    triples = zip(found.values, counted.items, guess, strict=True)
    for value, (query, item), r in triples:
        against = rows.clicked[query, item] - rows.shown[query, item] * r
        by_hand = r + against / (rows.lists[query] * UNIFORM)
        assert value == EXACT(by_hand, abs=1e-12)


def test_the_reward_of_the_policy_that_logged_is_its_click_rate(
    counted: Counted, bandit_rows: list[BanditRow]
) -> None:
    """46 clicks on 10,000 lists; so also by the values of what it showed."""
    log, impressions, _ = without_unknown(counted.log, counted.impressions)
    values = ESTIMATORS["intervention-aware"].estimator(log, impressions, CURVE)
    rows = summed(bandit_rows, {"random"})
    shares = np.array([rows.lists[query] / 10_000 for query, _ in counted.items])
    placements = np.full((len(counted.items), 1), UNIFORM)
    found = policy_reward(values, placements, click_weights_of(CURVE), shares)

    assert sum(rows.clicked.values()) == 46
    assert found.value == EXACT(46 / 10_000, abs=1e-12)
    assert found.unsupported == 0.0
    assert found.effective_clicks == EXACT(46, abs=1e-6)
