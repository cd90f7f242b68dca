"""Click rates of a ranker are estimated only where all of its list can be shown."""

import numpy as np
import pytest

from models.interleaving.balanced import merged
from models.interleaving.counterfactual import Counterfactual
from models.interleaving.method import NO_ONE, Shown
from models.interleaving.registry import method_of
from tests.interleaving_cases import as_rankings, draft_lists, pairwise_lists


def drawn(name: str, rankings: np.ndarray, length: int) -> list[np.ndarray]:
    """Every list of the method, by enumeration."""
    if name == "pairwise-preference":
        return [each.shown for _, each in pairwise_lists(rankings, length)]
    if name == "team-draft":
        return [each.shown for _, each in draft_lists(rankings, length)]
    if name == "ab":
        return [row[row >= 0][:length] for row in rankings]
    return [merged(rankings, length, first) for first in (0, 1)]


@pytest.mark.parametrize(
    "name", ["pairwise-preference", "ab", "team-draft", "balanced", "debiased-balanced"]
)
def test_what_is_identified_is_what_some_list_shows(name: str) -> None:
    """Every document of a top where users look, at a rank where they look."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(100):
        rows = [rng.permutation(5)[: rng.integers(0, 6)].tolist() for _ in range(2)]
        rankings = as_rankings(rows)
        length, depth = (int(rng.integers(1, 5)) for _ in range(2))
        method = method_of(f"counterfactual:{name}", {"examination": [0.5] * depth})
        assert isinstance(method, Counterfactual)
        lists = drawn(name, rankings, length)
        seen = {int(d) for each in lists for d in each[:depth]}
        wanted = {d for row in rows for d in row[: min(length, depth)]}
        found.append(method.is_identified(rankings, length))
        assert found[-1] == (wanted <= seen)
    always = name in ("pairwise-preference", "ab")
    assert all(found) if always else 10 < sum(found) < 90


def test_a_list_that_is_never_shown_whole_would_win_for_certain() -> None:
    """The sign of the difference is wrong in expectation, so nothing is estimated."""
    theta, clicks = np.array([1.0, 0.9]), np.array([0.5, 0.05, 0.3, 0.9])
    rankings = np.array([[2, 3], [0, 1]])
    method = method_of("counterfactual:team-draft", {"examination": theta.tolist()})
    assert isinstance(method, Counterfactual)
    expected = 0.0
    for probability, shown in draft_lists(rankings, 2):
        weights = method.weights(Shown(rankings, shown.shown, NO_ONE), 2)
        of_each = weights @ (theta * clicks[shown.shown])
        expected += probability * (of_each[0] - of_each[1])

    assert (clicks[rankings] @ theta).tolist() == pytest.approx([1.11, 0.545])
    assert expected == pytest.approx(-0.2)
    assert not method.is_identified(rankings, 2)
