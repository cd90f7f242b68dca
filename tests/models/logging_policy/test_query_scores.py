"""Scores of a query that is known: less variance, and what matters is looked at."""

import itertools

import numpy as np
import pytest

from models.arrays import Floats
from models.logging_policy.compared_query import ComparedQuery, compared_query
from models.logging_policy.floor import floored, highest_floor
from models.logging_policy.query_scores import ScoresPlan, optimised_scores
from models.logging_policy.second_moment import second_moment

THETA = 1.0 / np.arange(1.0, 6.0)


def query_of(n: int, rng: np.random.Generator) -> ComparedQuery:
    """Two random rankings."""
    rankings = np.stack([rng.permutation(n), rng.permutation(n)])
    return compared_query(rankings, 0.1 + 0.9 * rng.random(n), THETA)


def least(scores: Floats, query: ComparedQuery) -> float:
    """P(looked at) of what matters least seen."""
    found = second_moment(scores, query, rng=np.random.default_rng(1))
    return float(found.propensities[query.differences != 0.0].min())


def test_of_one_rank_it_is_the_policy_that_is_known_to_be_best() -> None:
    """P(first) in proportion to the size of lambda times the root of zeta."""
    query = ComparedQuery(
        np.array([0.9, 0.4, 0.1]), np.array([1.0, -0.6, -0.4]), np.ones(1)
    )
    scores = optimised_scores(query, ScoresPlan(300), rng=np.random.default_rng(1))
    shares = np.abs(query.differences) * np.sqrt(query.relevance)

    chances = np.exp(scores) / np.exp(scores).sum()
    assert chances == pytest.approx(shares / shares.sum(), abs=0.005)


def test_of_three_items_no_policy_of_a_grid_is_better() -> None:
    """Where two clicks on a list count too."""
    query = ComparedQuery(
        np.array([0.9, 0.5, 0.8]), np.array([0.5, 0.2, -0.7]), np.array([1.0, 0.5])
    )
    scores = optimised_scores(query, ScoresPlan(300), rng=np.random.default_rng(1))
    grid = np.linspace(-4.0, 4.0, 17)
    others = [
        second_moment(np.array([0.0, one, other]), query).value
        for one, other in itertools.product(grid, grid)
    ]

    assert second_moment(scores, query).value < min(others) + 1e-4


@pytest.mark.parametrize("n", [5, 20])
def test_it_is_better_than_any_order_and_the_same_again(n: int) -> None:
    """From one seed, lists that are drawn included."""
    rng = np.random.default_rng(n)
    query = query_of(n, rng)
    found = [
        optimised_scores(query, ScoresPlan(), rng=np.random.default_rng(seed))
        for seed in (1, 1, 2)
    ]
    moments = [
        second_moment(scores, query, n_lists=2_000, rng=rng).value
        for scores in (found[0], np.zeros(n))
    ]

    assert moments[0] < 0.7 * moments[1]
    assert found[0].tobytes() == found[1].tobytes()
    assert (found[0].tobytes() == found[2].tobytes()) == (n == 5)


def test_where_rankers_are_equal_nothing_is_drawn() -> None:
    """And one candidate can only be ranked alike."""
    rng = np.random.default_rng(1)
    for n in (1, 12):
        lists = np.stack([np.arange(n)] * 2)
        query = compared_query(lists, np.full(n, 0.5), THETA)
        assert not optimised_scores(query, ScoresPlan(), rng=rng).any()
        assert floored(np.arange(float(n)), query, 0.5).tolist() == list(range(n))
    assert rng.random() == np.random.default_rng(1).random()


@pytest.mark.parametrize("floor", [0.05, 0.2, 0.36])
def test_what_matters_is_looked_at_as_often_as_is_asked(floor: float) -> None:
    """No less, and not much more than has to be."""
    query = query_of(5, np.random.default_rng(2))
    query = query._replace(examination=THETA[:3])
    steep = np.linspace(0.0, 9.0, 5)
    assert least(steep, query) < 0.05
    found = floored(steep, query, floor)

    assert floor <= least(found, query) < floor + 0.001
    assert floored(found, query, 0.5 * floor) is found


def test_the_highest_floor_is_met_and_no_higher_one() -> None:
    """By showing what matters alone, in any order."""
    lists = np.array([[0, 1, 2, 3, 4, 5], [1, 0, 2, 3, 4, 5]])
    query = compared_query(lists, np.full(6, 0.5), THETA)
    highest = highest_floor(query)

    assert highest == pytest.approx(0.75)
    assert least(floored(np.arange(6.0), query, 0.7499), query) >= 0.7499
    with pytest.raises(ValueError, match=r"at most 0.75 for 2 items.*no policy meets"):
        floored(np.arange(6.0), query, 0.7501)


@pytest.mark.parametrize(
    "words", [{"steps": 0}, {"n_lists": 1}, {"learning_rate": 0.0}, {"floor": 1.0}]
)
def test_plans_that_cannot_be_followed_are_refused(words: dict[str, float]) -> None:
    """Whatever is outside its range."""
    with pytest.raises(ValueError, match="must"):
        ScoresPlan(**words)  # type: ignore[arg-type]
