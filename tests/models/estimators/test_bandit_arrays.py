"""Arrays of rounds: shapes, contexts, and what is refused."""

from typing import Any

import numpy as np
import pytest

from models.estimators.bandit_arrays import (
    MOST_DUMMIES,
    BanditArrays,
    bandit_arrays,
    encoded_contexts,
)


def arrays(n_actions: int = 3, **columns: Any) -> BanditArrays:
    """Two rounds, where nothing else is said."""
    found: dict[str, Any] = {
        "action": np.array([0, 2]),
        "position": np.array([0, 1]),
        "reward": np.array([1, 0]),
        "propensity": np.array([0.5, np.nan]),
        "context": np.zeros((2, 1)),
    }
    return bandit_arrays(**(found | columns), n_actions=n_actions)


def test_arrays_have_the_keys_and_kinds_that_obp_asks_for() -> None:
    """Whole numbers from 0, a matrix of contexts, and a row for each action."""
    found = arrays()

    assert [*found._asdict()] == [
        "n_rounds",
        "n_actions",
        "action",
        "position",
        "reward",
        "pscore",
        "context",
        "action_context",
    ]
    assert (found.n_rounds, found.n_actions) == (2, 3)
    assert {each.dtype.kind for each in (found.action, found.position)} == {"i"}
    np.testing.assert_array_equal(found.action_context, np.eye(3))


def test_very_many_items_have_their_number_for_a_context() -> None:
    """A column for each would be larger than the log."""
    found = arrays(n_actions=MOST_DUMMIES + 1)
    assert found.action_context.shape == (MOST_DUMMIES + 1, 1)
    assert found.action_context[7, 0] == 7.0


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"action": np.array([0, 3])}, r"actions must lie in 0\.\.2; got 3 in round 1"),
        ({"action": np.array([-1, 0])}, "actions must lie in"),
        ({"position": np.array([-1, 0])}, "positions must be at least 0"),
        ({"reward": np.array([2, 0])}, "rewards must be 0 or 1"),
        ({"propensity": np.array([0.0, 1.0])}, r"must lie in \(0, 1\]"),
        ({"propensity": np.array([0.5, 1.1])}, r"got 1\.1 in round 1"),
        ({"reward": np.array([1])}, "must be of the same rounds"),
    ],
)
def test_what_is_no_round_is_refused(columns: dict[str, Any], reason: str) -> None:
    """By the number of the round, as obp would stop without one."""
    with pytest.raises(ValueError, match=reason):
        arrays(**columns)


def test_text_in_contexts_becomes_columns() -> None:
    """One for each text but the first; a column with any text is text."""
    found = encoded_contexts([("b", 1.0, "x"), ("c", 2.0, 3.0), ("a", 0.5, "x")])
    np.testing.assert_array_equal(
        found,
        [[1.0, 0.0, 1.0, 1.0], [0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 0.5, 1.0]],
    )
    assert encoded_contexts([]).shape == (0, 0)
    assert encoded_contexts([(), ()]).shape == (2, 0)


def test_contexts_of_several_lengths_are_refused() -> None:
    """No matrix holds them."""
    with pytest.raises(ValueError, match=r"of one length; got \[1, 2\]"):
        encoded_contexts([("a",), ("a", "b")])
