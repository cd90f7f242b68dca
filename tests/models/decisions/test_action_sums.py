"""Sums of r / p: their mean is what an action earns, by enumeration."""

import itertools
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.decisions.action_sums import action_sums
from models.decisions.click_sums import ClickSums, LoggingPolicies

REWARDS = np.array([0.3, 0.9, 0.6])
CHANCES = np.array([[0.5, 0.3, 0.2], [0.1, 0.9, 0.0]])
"""Of two policies; the second never shows the third action."""


class Round(NamedTuple):
    """A list of one item."""

    policy: int
    group: int
    action: int
    reward: int


def policies(chances: Floats = CHANCES, length: int = 1) -> LoggingPolicies:
    """Those that logged, of one set of candidates."""
    n, n_items = chances.shape
    return LoggingPolicies(
        sets=np.zeros(n, np.int64),
        starts=np.arange(n + 1) * n_items,
        propensities=chances.ravel(),
        anyway=np.zeros(chances.size),
        worths=chances.ravel(),
        lengths=np.full(n, length, np.int64),
    )


def sums_of(rounds: list[Round]) -> ClickSums:
    """As the reader of statistics leaves them."""
    rows = sorted({(one.policy, one.group) for one in rounds})
    lists = [sum((x.policy, x.group) == row for x in rounds) for row in rows]
    clicks: dict[tuple[int, int], int] = {}
    for one in rounds:
        place = rows.index((one.policy, one.group)), one.action
        clicks[place] = clicks.get(place, 0) + one.reward
    table = [(*place, n) for place, n in sorted(clicks.items()) if n]
    return ClickSums(
        policies=np.array([row[0] for row in rows], np.int64),
        groups=np.array([row[1] for row in rows], np.int64),
        interactions=np.array(lists, np.int64),
        clicks=np.array(table, np.int64).reshape(-1, 3),
        pairs=np.zeros((0, 4), np.int64),
    )


def test_the_mean_of_r_over_p_is_the_reward() -> None:
    """Over all that two lists, one of either policy, may show and earn."""
    expected, squares = np.zeros(3), np.zeros(3)
    for actions in itertools.product(range(3), repeat=2):
        for rewards in itertools.product((0, 1), repeat=2):
            rounds = [
                Round(policy, 0, action, reward)
                for policy, (action, reward) in enumerate(
                    zip(actions, rewards, strict=True)
                )
            ]
            odds = np.prod([CHANCES[x.policy, x.action] for x in rounds])
            for one in rounds:
                rate = REWARDS[one.action]
                odds *= rate if one.reward else 1.0 - rate
            if odds == 0.0:
                continue
            found = action_sums(policies(), sums_of(rounds), np.array([0, 3]))
            lists = found.by_action(found.sums.interactions)
            assert lists.tolist() == [2, 2, 1]
            expected += odds * found.by_action(found.sums.totals) / lists
            squares += odds * found.by_action(found.sums.squares)
    assert np.abs(expected - REWARDS).max() < 1e-12
    # E[(r / p)^2] = rate / p of each list that could show it.
    safe = np.where(CHANCES > 0.0, CHANCES, np.inf)
    assert np.abs(squares - (REWARDS / safe).sum(axis=0)).max() < 1e-12


def test_sums_are_those_of_the_rounds_one_by_one() -> None:
    """Of random rounds in random groups, and of what a list can show at most."""
    rng = np.random.default_rng(3)
    rounds = []
    for _ in range(200):
        policy, group = int(rng.integers(2)), int(rng.integers(3))
        action = int(rng.choice(3, p=CHANCES[policy]))
        rounds.append(Round(policy, group, action, int(rng.random() < 0.5)))
    found = action_sums(policies(), sums_of(rounds), np.array([0, 3]))
    for action in range(3):
        rows = slice(*found.starts[action : action + 2])
        one = [column[rows] for column in found.sums]
        for row, (group, lists) in enumerate(zip(one[0], one[1], strict=True)):
            weight = found.sums.gains[rows][row]
            policy = int(np.argmin(np.abs(CHANCES[:, action] - 1.0 / weight)))
            own = [x for x in rounds if (x.policy, x.group) == (policy, group)]
            x = [(y.action == action) * y.reward * weight for y in own]
            assert lists == len(own)
            assert np.isclose(found.sums.totals[rows][row], sum(x))
            assert np.isclose(found.sums.squares[rows][row], sum(np.square(x)))
        assert (found.sums.losses[rows] == 0.0).all()
    second = sum(x.policy == 1 for x in rounds)
    assert found.unsupported.tolist() == [0, 0, second]


def test_lists_of_several_items_are_no_actions() -> None:
    """They are counted, and enter no sum; those of one item beside them do."""
    both = policies()._replace(lengths=np.array([2, 1]))
    rounds = [Round(0, 0, 0, 1), Round(0, 1, 1, 1), Round(1, 0, 1, 1)]
    found = action_sums(both, sums_of(rounds), np.array([0, 3]))
    assert found.longer.tolist() == [2]
    alone = action_sums(policies(), sums_of(rounds[2:]), np.array([0, 3]))
    for mine, other in zip(found.sums, alone.sums, strict=True):
        assert mine.tolist() == other.tolist()
    assert alone.longer.tolist() == [0]
