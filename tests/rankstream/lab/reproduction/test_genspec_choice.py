"""Who is served: what is planted, what lists do not count for, and how sure one is."""

import itertools

import numpy as np
import pytest

from models.arrays import Floats, Integers
from models.decisions.meta_policy import GENERAL, LOGGING, SPECIALISED
from models.evaluation.bounds.families import Bound, intervals
from models.evaluation.bounds.families import confidence as sureness
from rankstream.lab.reproduction.genspec.choice import (
    TESTS_BY_NAME,
    Comparison,
    Evidence,
    Policies,
)
from rankstream.lab.reproduction.genspec.clicks import QueryClicks, drawn_clicks
from rankstream.lab.reproduction.genspec.plan import (
    BOUNDS,
    CLOSED,
    CONFIDENCES,
    KEPT,
    ONE_LOOK,
    PRINTED,
    SEA,
    TESTS,
    UNBOUNDED,
    bounded,
)
from rankstream.lab.reproduction.genspec.policies import expected_discounts

OFFSETS = np.array([0, 3, 6, 9])
RANKS = np.array([1, 2, 3, 1, 2, 3, 1, 2, 3])
RELEVANCE = np.array([0.1, 0.2, 0.9, 0.5, 0.4, 0.2, 0.5, 0.2, 0.4])
"""The list that is logged is the worst one of the first query, the best of the second,
and of the third it is better than that of the general policy."""

POLICIES = Policies(
    logging=expected_discounts(-RANKS.astype(float), OFFSETS),
    general=expected_discounts(np.array([0.0, 2, 1, 1, 2, 0, 0, 1, 2]), OFFSETS),
    special=expected_discounts(RELEVANCE, OFFSETS),
)


def expected(n_lists: int) -> QueryClicks:
    """As many clicks of lists that decide as are expected."""
    chances = RELEVANCE / RANKS
    pairs = []
    for own in np.split(chances, 3):
        both = np.outer(own, own)
        np.fill_diagonal(both, own)
        pairs.append(n_lists * both)
    return QueryClicks(np.zeros(3, int), np.full(3, n_lists), np.zeros(9), pairs)


@pytest.mark.parametrize("name", TESTS)
def test_with_many_lists_all_are_right(name: str) -> None:
    """And the rules differ where the list that was logged is the best already."""
    chosen = Evidence(expected(10**7), POLICIES, RANKS, OFFSETS).chosen(
        TESTS_BY_NAME[name]
    )

    assert {rule: each.is_general for rule, each in chosen.items()} == dict.fromkeys(
        (KEPT, CLOSED, PRINTED), True
    )
    assert chosen[KEPT].of_queries.tolist() == [SPECIALISED, LOGGING, SPECIALISED]
    assert chosen[CLOSED].of_queries.tolist() == [SPECIALISED, GENERAL, SPECIALISED]
    assert chosen[PRINTED].of_queries.tolist() == [SPECIALISED, LOGGING, SPECIALISED]
    assert chosen[KEPT].is_special.tolist() == [True, False, True]
    shown = chosen[KEPT].shown(POLICIES, OFFSETS)
    np.testing.assert_array_equal(shown, POLICIES.special)


@pytest.mark.parametrize("name", [each for each in TESTS if each != UNBOUNDED])
def test_two_lists_prove_nothing(name: str) -> None:
    """At a confidence of half and more the list that was logged stays."""
    chosen = Evidence(expected(2), POLICIES, RANKS, OFFSETS).chosen(TESTS_BY_NAME[name])
    if not name.endswith(" 0.01"):
        for each in chosen.values():
            assert not each.is_general
            assert each.of_queries.tolist() == [LOGGING] * 3


@pytest.mark.parametrize("bound", [each for each in BOUNDS if each != SEA])
def test_over_all_queries_who_is_sure_waits(bound: str) -> None:
    """1,000 lists of each are enough for half a confidence, and not for .95."""
    evidence = Evidence(expected(1_000), POLICIES, RANKS, OFFSETS)
    found = [
        evidence.chosen(TESTS_BY_NAME[bounded(bound, each)])[CLOSED].is_general
        for each in CONFIDENCES
    ]

    assert found == [True, True, False]


def test_estimates_alone_choose_by_their_sign() -> None:
    """After two lists as after many."""
    few, many = (
        Evidence(expected(n), POLICIES, RANKS, OFFSETS).chosen(TESTS_BY_NAME[UNBOUNDED])
        for n in (2, 10**7)
    )
    for rule, each in few.items():
        assert each.of_queries.tolist() == many[rule].of_queries.tolist()


def test_lists_that_train_prove_nothing() -> None:
    """Other clicks of theirs leave all that is chosen from fixed policies."""
    clicks = expected(5_000)
    evidence = Evidence(clicks, POLICIES, RANKS, OFFSETS)
    other = clicks._replace(training=np.arange(9.0), training_lists=np.full(3, 9))
    again = Evidence(other, POLICIES, RANKS, OFFSETS)
    for test in TESTS_BY_NAME.values():
        one, two = evidence.chosen(test), again.chosen(test)
        for rule in one:
            np.testing.assert_array_equal(one[rule].of_queries, two[rule].of_queries)


def random_comparison(rng: np.random.Generator, n_queries: int) -> Comparison:
    """Two random policies on clicks of random users."""
    offsets = np.arange(0, 4 * n_queries + 1, 4)
    ranks = np.tile(np.arange(1, 5), n_queries)
    chances = rng.random(len(ranks)) / ranks
    *_, clicks = drawn_clicks(chances, offsets, [3_000], rng=rng)
    one, other = (
        expected_discounts(rng.random(len(ranks)), offsets) * ranks for _ in range(2)
    )
    return Comparison(
        *(clicks.sums(each, offsets) for each in (one - other, one, other))
    )


def test_surer_bounds_choose_fewer_and_apart_fewer_still() -> None:
    """Of 200 comparisons some; and two bounds none that the one on lists does not."""
    comparison = random_comparison(np.random.default_rng(5), 200)
    starts = np.arange(201)
    found = {name: test(comparison, starts) for name, test in TESTS_BY_NAME.items()}
    for bound in BOUNDS:
        few = [found[UNBOUNDED], *(found[bounded(bound, each)] for each in CONFIDENCES)]
        for less, more in itertools.pairwise(few):
            assert not (more & ~less).any()
        assert few[0].sum() > few[-1].sum()
    assert len({tuple(found[bounded(bound, 0.95)]) for bound in BOUNDS}) == len(BOUNDS)
    for confidence in CONFIDENCES:
        apart, together = (
            found[bounded(bound, confidence)] for bound in (SEA, ONE_LOOK)
        )
        assert not (apart & ~together).any()
        assert together.sum() > apart.sum()


@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_two_bounds_of_a_pair_are_those_of_three_policies(confidence: float) -> None:
    """Each has one interval, whatever it is compared with: pairs say the same."""
    rng, n_queries = np.random.default_rng(7), 100
    offsets = np.arange(0, 4 * n_queries + 1, 4)
    ranks = np.tile(np.arange(1, 5), n_queries)
    likes = rng.random(len(ranks))
    *_, clicks = drawn_clicks(likes / ranks, offsets, [20_000], rng=rng)
    # Of some queries each policy is the best one.
    near = [likes * rng.choice((-1, 1), n_queries).repeat(4) for _ in range(3)]
    policies = Policies(*(expected_discounts(each, offsets) for each in near))
    sure = sureness(Bound.ONE_LOOK, confidence)

    def ends(starts: Integers) -> tuple[Floats, Floats]:
        sums = (clicks.sums(each * ranks, offsets) for each in policies)
        low, high = np.array([intervals(x, starts, sure) for x in sums]).transpose(
            2, 0, 1
        )
        return low, high

    low, high = ends(np.arange(n_queries + 1))
    all_low, all_high = ends(np.array([0, n_queries]))
    is_general = bool(all_low[GENERAL] > all_high[LOGGING])
    default = np.full(n_queries, GENERAL if is_general else LOGGING)
    default[low[LOGGING] > high[GENERAL]] = LOGGING
    is_special = (low[SPECIALISED] > high[:SPECIALISED]).all(axis=0)

    evidence = Evidence(clicks, policies, ranks, offsets)
    found = evidence.chosen(TESTS_BY_NAME[bounded(SEA, confidence)])[KEPT]
    assert found.is_general == is_general
    expected_ones = np.where(is_special, SPECIALISED, default)
    np.testing.assert_array_equal(found.of_queries, expected_ones)
    assert 0 < is_special.sum() < n_queries


def test_the_other_way_round_is_the_other_one() -> None:
    """By no test both are better."""
    comparison = random_comparison(np.random.default_rng(6), 50)
    starts = np.arange(51)
    turned = comparison.turned()
    np.testing.assert_array_equal(turned.difference.totals, -comparison[0].totals)
    for name, test in TESTS_BY_NAME.items():
        assert not (test(comparison, starts) & test(turned, starts)).any(), name
        assert test(turned, starts).any() or name.startswith(SEA), name
