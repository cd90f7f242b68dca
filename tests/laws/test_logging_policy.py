"""The variance of a logging policy and its gradients, by all lists and all clicks."""

import itertools

import numpy as np
import pytest

from models.arrays import Floats
from models.logging_policy.compared_query import ComparedQuery
from models.logging_policy.drawn_pairs import add_pairs_of
from models.logging_policy.exact_pairs import MOST_ITEMS, add_exact_pairs
from models.logging_policy.sampled_gradient import add_gradient_of
from models.logging_policy.second_moment import second_moment
from models.losses.placement_gradient import add_expected_worth
from tests.laws.enumerated_lists import (
    clicks_of,
    lists_of,
    mean_square,
    propensities_of,
)

STEP = 1e-5


def query_of(n: int, k: int, rng: np.random.Generator) -> ComparedQuery:
    """Differences either way; one item that is never clicked, and one that tells 0."""
    relevance, differences = rng.random(n), rng.normal(size=n)
    if n > 3:
        relevance[0], differences[1] = 0.0, 0.0
    return ComparedQuery(relevance, differences, np.sort(rng.random(k))[::-1].copy())


@pytest.mark.parametrize(
    ("n", "k", "spread"),
    [(1, 1, 0.0), (2, 2, 1.0), (4, 3, 0.5), (5, 1, 2.0), (5, 3, 1.0), (4, 4, 1.5)],
)
def test_both_parts_and_their_gradient_are_those_of_all_clicks(
    n: int, k: int, spread: float
) -> None:
    """E[x^2] by definition, and its central differences."""
    rng = np.random.default_rng(10 * n + k)
    query, scores = query_of(n, k, rng), spread * rng.normal(size=n)
    found = second_moment(scores, query)
    rises = [
        mean_square(scores + by, query) - mean_square(scores - by, query)
        for by in STEP * np.eye(n)
    ]
    rho = propensities_of(scores, query.examination)
    items = float((query.relevance * query.differences**2 / rho).sum())

    assert found.propensities == pytest.approx(rho, abs=1e-10)
    assert found.items == pytest.approx(items, rel=1e-9)
    assert found.value == pytest.approx(mean_square(scores, query), rel=1e-9)
    assert found.gradient == pytest.approx(
        np.array(rises) / (2.0 * STEP), rel=1e-6, abs=1e-6 * found.value
    )


def test_the_squared_error_differs_from_it_by_a_constant() -> None:
    """Whatever the policy: so the policy of one least is that of the other."""
    rng = np.random.default_rng(3)
    query = query_of(4, 2, rng)
    for scores in (np.zeros(4), rng.normal(size=4)):
        error = mean_square(scores, query, query.difference)
        moment = second_moment(scores, query).value
        assert error == pytest.approx(moment - query.difference**2, rel=1e-9)


def exact_pairs(
    scores: Floats, weights: Floats, examination: Floats
) -> tuple[float, Floats, Floats]:
    """The pairs' part, by scores and by weights."""
    slopes, by_weight = np.zeros(len(scores)), np.zeros(len(scores))
    pairs = add_exact_pairs(scores, weights, examination, slopes, by_weight)
    return pairs, slopes, by_weight


@pytest.mark.parametrize("spread", [0.1, 3.0, 40.0])
def test_pairs_of_drawn_lists_are_those_of_all_sets_in_expectation(
    spread: float,
) -> None:
    """Over every two lists that may be drawn, each with the other as its baseline."""
    rng = np.random.default_rng(4)
    scores, weights = spread * rng.normal(size=4), rng.normal(size=4)
    examination = np.array([1.0, 0.6, 0.5])
    every = list(lists_of(scores, 3))
    slopes, by_weight, pairs = np.zeros(4), np.zeros(4), 0.0
    for one, other in itertools.product(every, every):
        own, own_weight = np.zeros(4), np.zeros(4)
        chance = one.chance * other.chance
        lists = np.stack([one.rows, other.rows])
        value = add_pairs_of(scores, weights, examination, lists, own, own_weight)
        slopes, by_weight = slopes + chance * own, by_weight + chance * own_weight
        pairs += chance * value
    exact = exact_pairs(scores, weights, examination)

    assert pairs == pytest.approx(exact[0], rel=1e-9, abs=1e-12)
    assert slopes == pytest.approx(exact[1], rel=1e-9, abs=1e-12)
    assert by_weight == pytest.approx(exact[2], rel=1e-9, abs=1e-12)


def test_long_lists_are_drawn_without_bias() -> None:
    """At one item more than sets are taken of, against sets of them all the same."""
    rng = np.random.default_rng(5)
    n = MOST_ITEMS + 1
    query, scores = query_of(n, 3, rng), 0.5 * rng.normal(size=n)
    found = [second_moment(scores, query, n_lists=100, rng=rng) for _ in range(60)]
    rho = found[0].propensities
    weights = query.relevance * query.differences / rho
    pairs = exact_pairs(scores, weights, query.examination)
    by_rho = -weights * (query.differences + pairs[2]) / rho
    slopes = pairs[1].copy()
    order = np.empty(n, np.int64)
    add_expected_worth(scores, by_rho, query.examination, order, slopes)

    values = np.array([each.pairs for each in found])
    error = values.std(ddof=1) / np.sqrt(len(found))
    assert values.mean() == pytest.approx(pairs[0], abs=4.5 * error)
    gradients = np.array([each.gradient for each in found])
    errors = gradients.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(gradients.mean(axis=0) - slopes) < 4.5 * errors + 1e-9).all()
    assert errors.max() < 0.05 * np.abs(slopes).max()


@pytest.mark.parametrize("difference", [0.0, 0.3])
def test_the_sampled_gradient_is_the_exact_one_in_expectation(
    difference: float,
) -> None:
    """Over every two lists and all clicks on both, whatever difference is known."""
    rng = np.random.default_rng(6)
    query = ComparedQuery(rng.random(3), rng.normal(size=3), np.array([1.0, 0.5]))
    scores = rng.normal(size=3)
    rho = second_moment(scores, query).propensities
    every = [
        (each.rows, clicks, each.chance * chance)
        for each in lists_of(scores, 2)
        for clicks, chance in clicks_of(each.rows, query)
    ]
    total = np.zeros(3)
    for one, other in itertools.product(every, every):
        own = np.zeros(3)
        add_gradient_of(
            scores, query.differences, query.examination, difference, rho,
            np.stack([one[0], other[0]]), np.stack([one[1], other[1]]), own,
        )  # fmt: skip
        total += one[2] * other[2] * own

    assert total == pytest.approx(second_moment(scores, query).gradient, rel=1e-8)


def test_lists_without_clicks_count_by_the_known_difference() -> None:
    """Each as it comes more often, by the square of its error."""
    query, scores = query_of(3, 2, np.random.default_rng(7)), np.array([0.0, 1.0, 0.5])
    every = list(lists_of(scores, 2))[:4]
    found = np.zeros(3)
    add_gradient_of(
        scores, query.differences, query.examination, 0.3, np.full(3, 0.5),
        np.stack([each.rows for each in every]), np.zeros((4, 2), bool), found,
    )  # fmt: skip

    expected = 0.3**2 * np.mean([each.slopes for each in every], axis=0)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("spread", [0.1, 1.0, 5.0, 20.0, 50.0, 100.0])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (5, 3), (6, 4)])
def test_the_gradient_of_propensities_is_that_of_all_lists(
    n: int, k: int, spread: float
) -> None:
    """Near ties and far apart, within 1e-9 of the largest worth.

    And within 1e-6 of the largest entry, where that is more than 1e-6 itself.
    """
    rng = np.random.default_rng(int(10 * spread) + n)
    scores, values = spread * rng.normal(size=n), rng.normal(size=n)
    worths, slopes, exact = rng.random(k), np.zeros(n), np.zeros(n)
    add_expected_worth(scores, values, worths, np.empty(n, np.int64), slopes)
    for each in lists_of(scores, k):
        exact += each.chance * float(worths @ values[each.rows]) * each.slopes
    largest = float(np.abs(exact).max())
    worst = float(np.abs(slopes - exact).max())

    assert worst < 1e-9 * np.abs(values).max() * worths.max()
    assert largest < 1e-6 or worst < 1e-6 * largest
