"""Actions of contexts, from what the real fold counts."""

import numpy as np
import pytest

from models.evaluation.bounds.families import Bound
from rankstream.operations.answers.actions import LONGER, actions_of
from rankstream.wire.events import DETERMINISTIC, PLACKETT_LUCE, UNKNOWN
from streams.decisions.refused import Refused
from tests.streams.decisions.shown_lists import GROUPS, ITEMS, Shown, counted

RATES = (0.1, 0.8, 0.3, 0.5, 0.2)
SCORES = (0.0, 1.0, 0.5, -0.5, 0.2)
ODDS = np.exp(SCORES) / np.exp(SCORES).sum()


def rounds(n: int, *, query: int = 0) -> list[Shown]:
    """Lists of one item, drawn by scores."""
    rng = np.random.default_rng(n + query)
    found = []
    for _ in range(n):
        action = int(rng.choice(5, p=ODDS))
        clicked = frozenset([1] if rng.random() < RATES[action] else [])
        group = int(rng.integers(GROUPS))
        found.append(Shown(query, group, [action], clicked, PLACKETT_LUCE, SCORES))
    return found


@pytest.mark.parametrize("bound", [Bound.ANY_TIME, Bound.ONE_LOOK])
def test_what_actions_earn_is_found_again(bound: Bound) -> None:
    """The estimate is the mean of r / p, and the interval has what is true."""
    own = rounds(4_000)
    found = actions_of(counted(own + rounds(300, query=1)), ["q0"], bound=bound)
    assert not found.refused
    assert {one.action for one in found.actions} == {*ITEMS}
    for one in found.actions:
        number = ITEMS.index(one.action)
        x = [bool(y.clicked) / ODDS[number] for y in own if y.order == [number]]
        assert one.lists == 4_000
        assert (one.elsewhere, one.clicks) == (0, sum(map(bool, x)))
        assert np.isclose(one.estimate, sum(x) / 4_000, rtol=1e-5)
        assert 0.0 <= one.lower < RATES[number] < one.upper <= 1.0
    best = found.actions[0]
    assert best.action == "b"
    assert best.lower > max(x.upper for x in found.actions if x.action in "ace")


def test_less_confidence_is_a_narrower_interval() -> None:
    """Of the same figures."""
    statistics = counted(rounds(2_000))
    wide = actions_of(statistics, epsilon=0.99).actions
    narrow = actions_of(statistics, epsilon=0.5).actions
    for one, other in zip(wide, narrow, strict=True):
        assert one.estimate == other.estimate
        assert one.lower <= other.lower < other.upper <= one.upper
        assert other.upper - other.lower < one.upper - one.lower


def test_what_is_no_action_is_left_out_with_its_reason() -> None:
    """Longer lists, lists of unknown policies, and what no policy could show."""
    longer = Shown(0, 1, [0, 1], frozenset([1]), DETERMINISTIC)
    unknown = Shown(0, 2, [1], frozenset([1]), UNKNOWN)
    certain = Shown(0, 3, [2], frozenset(), DETERMINISTIC)
    found = actions_of(counted([longer, unknown, certain, certain]))
    assert found.refused == {str(Refused.UNKNOWN): 1, LONGER: 1}
    first, *others = found.actions
    assert (first.action, first.lists, first.elsewhere) == ("c", 2, 0)
    assert {(one.lists, one.elsewhere) for one in others} == {(0, 2)}
    assert {(one.lower, one.upper) for one in others} == {(0.0, 1.0)}


def test_policies_that_depend_on_more_than_the_context_are_refused() -> None:
    """Where their lists are not kept apart: too many of them for their scope."""
    by_user = [
        Shown(0, 1, [0], frozenset([1]), PLACKETT_LUCE, (0.1 * number, *SCORES[1:]))
        for number in range(6)
    ]
    found = actions_of(counted(by_user, lists=2))
    assert not found.actions
    assert found.refused == {str(Refused.MIXED): 6}
