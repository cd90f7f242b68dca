"""Two rankers of one query: what they differ in, and what is refused."""

import numpy as np
import pytest

from models.logging_policy.compared_query import compared_query
from models.logging_policy.second_moment import N_LISTS, second_moment

THETA = np.array([1.0, 0.5, 0.25])


def test_what_one_list_lacks_is_looked_at_in_the_other_only() -> None:
    """Rankers may share no item, and a candidate may be in no list."""
    rankings = np.array([[0, 1], [2, 3]])
    query = compared_query(rankings, np.full(5, 0.5), THETA)

    assert query.differences.tolist() == [1.0, 0.5, -1.0, -0.5, 0.0]
    assert query.matters.tolist() == [True] * 4 + [False]
    assert query.difference == 0.0
    assert second_moment(np.zeros(5), query).value > 0.0


def test_ranks_that_nobody_looks_at_make_no_difference() -> None:
    """Lists are as long as users look, and not longer than there are candidates."""
    rankings = np.array([[0, 1, 2, 3], [0, 1, 2, 4]])
    query = compared_query(rankings, np.full(5, 0.5), THETA)
    short = compared_query(rankings[:, :2], np.full(2, 0.5), THETA)

    assert not query.matters.any()
    assert second_moment(np.zeros(5), query).value == 0.0
    assert short.examination.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    ("rankings", "relevance", "theta", "told"),
    [
        ([[0], [0], [0]], [1.0], THETA, "two rankers; got 3"),
        ([[0, 1], [1, 0]], [1.0], THETA, "got 1 for items up to 1"),
        ([[0], [0]], [], THETA, "got 0 for items"),
        ([[0], [0]], [1.5], THETA, r"relevance must lie in \[0, 1\]; got \[1.5\]"),
        ([[0], [0]], [1.0], np.array([np.nan]), r"examination must lie in \[0, 1\]"),
        ([[0], [0]], [1.0], np.array([0.0, 1.0]), "above 0 at the first rank"),
    ],
)
def test_what_is_no_comparison_is_refused(
    rankings: list[list[int]], relevance: list[float], theta: np.ndarray, told: str
) -> None:
    """It says what, and what it got."""
    with pytest.raises(ValueError, match=told):
        compared_query(np.array(rankings), np.array(relevance), theta)


def test_scores_that_have_no_policy_are_refused() -> None:
    """Not finite, too far apart, too few; and long lists without a generator."""
    query = compared_query(np.array([[0, 1], [1, 0]]), np.full(2, 0.5), THETA)
    for scores in ([0.0], [0.0, np.inf]):
        with pytest.raises(ValueError, match="finite, of 2 items"):
            second_moment(np.array(scores), query)
    with pytest.raises(ValueError, match="within 700; got 701"):
        second_moment(np.array([0.0, 701.0]), query)
    longer = compared_query(np.arange(40).reshape(2, 20), np.full(40, 0.5), THETA)
    with pytest.raises(ValueError, match=f"got {N_LISTS} and no generator"):
        second_moment(np.zeros(40), longer)


def test_what_can_never_be_shown_has_no_variance_to_speak_of() -> None:
    """A click on it would be worth infinitely much."""
    query = compared_query(np.array([[0], [1]]), np.full(3, 0.5), THETA[:1])

    assert second_moment(np.array([0.0, 200.0, 100.0]), query).value == np.inf
