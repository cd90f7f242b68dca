"""The rule for sessions: what it asks, and how seldom it errs."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from models.evaluation.bounds.families import (
    INTERACTIONS,
    SUMS,
    TOTAL,
    Bound,
    confidence,
    lower_bounds,
)
from models.evaluation.bounds.several_queries import (
    lower_bound_over_queries,
    sums_of_classes,
)
from models.evaluation.confidence_sequence import (
    CLASS_BOUNDS,
    log_mixture,
    mixture_weights,
)
from models.evaluation.differences import DifferenceSums
from models.evaluation.session_rule import (
    ASKED_FROM,
    N_PARTS,
    Rule,
    are_better,
    log_one_sided_evidence,
    standing_over_queries,
    standings,
    stands_for_sessions_to_come,
)
from models.evaluation.session_sequence import SCALE_WEIGHTS, SCALES
from tests.compared_policies import (
    DISPLAYED,
    LABELS,
    N_ITEMS,
    SAME,
    Stream,
    click_if_seen,
    first_decision,
    fixed_clicks,
    of_runs,
    with_tastes,
)
from tests.difference_sums import stacked, sum_differences

GOOD = np.abs(DISPLAYED)


def kept(sums: DifferenceSums, rows: np.ndarray) -> DifferenceSums:
    """Some of the rows."""
    return DifferenceSums._make(column[rows] for column in sums)


@pytest.mark.parametrize("bound", [Bound.ANY_TIME, Bound.ONE_LOOK])
def test_a_difference_stands_without_each_group_and_quarter(bound: Bound) -> None:
    """Against the bound itself, of what is left."""
    rng = np.random.default_rng(0)
    rule, sure = Rule(bound, 0.5), confidence(bound, 0.5)
    sums, starts = of_runs(fixed_clicks(150, 150, rng), np.arange(150) % 6)
    # One group has more to say than the others.
    sums.totals[::6] *= 1.5
    sums.squares[::6] *= 1.5

    found = standings(sums, starts, rule)

    left_out = [np.arange(6) == group for group in range(6)]
    left_out += [np.arange(6) % N_PARTS == part for part in range(N_PARTS)]
    for i in range(150):
        rows = np.arange(starts[i], starts[i + 1])
        stands = [
            lower_bounds(part, np.array([0, len(part.groups)]), sure)[0] > 0.0
            for part in (
                kept(sums, rows[~out]) for out in [np.zeros(6, bool), *left_out]
            )
        ]
        assert found.is_bound[i] == stands[0]
        assert found.is_spread[i] == all(stands)
    assert 0 < found.is_spread.sum() < found.is_bound.sum()
    assert np.array_equal(are_better(sums, starts, rule), found.is_to_come)
    alone = rule._replace(is_by_session=False)
    assert np.array_equal(are_better(sums, starts, alone), found.is_bound)


def test_a_group_is_left_out_without_what_speaks_against_it() -> None:
    """Group 4 is in the quarter of group 0, and hides there what group 0 adds."""
    sums, starts = of_runs(np.ones((1, 240, N_ITEMS), np.bool_), np.arange(240) % 8)
    sums.totals[:] = [60.0, 8.0, 8.0, 8.0, -40.0, 8.0, 8.0, 8.0]
    sums.squares[:] = [20.0, 0.1, 0.1, 0.1, 10.0, 0.1, 0.1, 0.1]

    found = standings(
        sums._replace(losses=np.ones(8), gains=np.ones(8)), starts, Rule()
    )

    assert found.is_bound.all()
    assert not found.is_spread.any()


def test_one_user_who_asks_all_decides_nothing() -> None:
    """However many lists; nor where all others say nothing."""
    many = np.ones((2000, N_ITEMS), np.bool_)
    alone = sum_differences(many, np.zeros(2000, np.int64), GOOD, N_ITEMS)
    others = sum_differences(
        np.zeros((60, N_ITEMS), np.bool_), 1 + np.arange(60) % 3, GOOD, N_ITEMS
    )
    all_users, _ = stacked([alone, others])

    for sums in (alone, all_users):
        found = standings(sums, np.array([0, len(sums.groups)]), Rule())
        assert found.is_bound.all()
        assert not found.is_spread.any()
        assert not found.is_to_come.any()
    assert found.effective_groups[0] == pytest.approx(2060**2 / (2000**2 + 3 * 20**2))


@pytest.mark.parametrize(("size", "error"), [(0.01, 0.5), (1.0, 0.05), (30.0, 1e-6)])
def test_the_evidence_is_a_mixture_over_rates_above_zero(
    size: float, error: float
) -> None:
    """By quadrature over half a normal distribution, of a sum of variance 1."""
    best = -2 * math.log(error) + math.log(1 - 2 * math.log(error))
    for score in (0.0, 4.0, 20.0):
        expected = 0.0
        for weight, scale in zip(SCALE_WEIGHTS, SCALES, strict=True):
            spread = math.sqrt(best * size * scale)

            def at(
                rate: float, spread: float = spread, total: float = score**0.5
            ) -> float:
                gain = math.exp(rate * total - 0.5 * rate * rate)
                return float(2 * norm.pdf(rate, scale=spread) * gain)

            expected += weight * quad(at, 0.0, min(12 * spread, score**0.5 + 12))[0]
        found = log_one_sided_evidence(score, size, error)
        assert math.exp(found) == pytest.approx(expected, rel=1e-5)


def of_groups(totals: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """As the rule takes them."""
    found = np.zeros((len(totals), SUMS))
    found[:, TOTAL], found[:, INTERACTIONS] = totals, sizes
    return found


def test_sessions_to_come_are_asked_for_where_groups_are_enough() -> None:
    """Every mean of 0 or less is excluded, mean by mean; few groups are not asked."""
    rng = np.random.default_rng(1)
    n_asked = n_stand = 0
    for _ in range(300):
        sizes = rng.integers(1, 40, int(rng.integers(4, 60))).astype(float)
        totals = sizes * rng.normal(0.3, 0.5) + 4 * rng.standard_normal(len(sizes))
        stands = stands_for_sessions_to_come(of_groups(totals, sizes), 0.05, 1000.0)
        n = sizes.sum()
        if len(sizes) <= ASKED_FROM:
            assert stands
            continue
        means = -np.concatenate([[0.0], np.geomspace(1e-3, 1e4, 200)])
        rest = totals - means[:, None] * sizes
        scores = rest.sum(axis=1) ** 2 / (rest**2).sum(axis=1)
        least = min(log_one_sided_evidence(s, n / 1000.0, 0.05) for s in scores)
        n_asked += 1
        n_stand += stands
        assert stands == (totals.sum() > 0 and least > -math.log(0.05))
    assert 20 < n_stand < n_asked - 20


def ever_wrong(stream: Stream, n: int, n_runs: int, epsilon: float = 0.95) -> float:
    """Share of runs without a difference where the first is ever found better."""
    sure = confidence(Bound.ANY_TIME, epsilon)
    return sum(first_decision(stream, sure, n, i) <= n for i in range(n_runs)) / n_runs


def median(stream: Stream, bound: Bound, epsilon: float) -> float:
    """Lists until the better policy of the fixed case is found."""
    sure = confidence(bound, epsilon)
    return float(np.median([first_decision(stream, sure, 8192, i) for i in range(60)]))


@pytest.mark.parametrize("epsilon", [0.5, 0.9])
def test_looks_after_each_list_with_feedback_err_seldom(epsilon: float) -> None:
    """What is logged depends on what was decided; some runs do err."""
    stream = Stream(click_if_seen(SAME)[None])
    n_runs = 200

    found = ever_wrong(stream, 2000, n_runs, epsilon)

    most = (1 - epsilon) + 2 * math.sqrt(epsilon * (1 - epsilon) / n_runs)
    assert 0.0 < found <= most


@pytest.mark.parametrize("epsilon", [0.5, 0.95])
def test_looks_at_any_time_decide_in_half_of_the_lists(epsilon: float) -> None:
    """Of those at doublings; .6 with the rule for sessions."""
    stream = Stream(click_if_seen(LABELS)[None])

    doubling = median(stream._replace(is_doubling=True), Bound.DOUBLING_LOOKS, epsilon)

    assert median(stream, Bound.ANY_TIME, epsilon) <= 0.5 * doubling
    by_session = stream._replace(is_by_session=True)
    assert median(by_session, Bound.ANY_TIME, epsilon) <= 0.6 * doubling


def test_users_of_two_tastes_need_the_rule() -> None:
    """Sessions of 20 lists that are alike: without it errors are too many."""
    without = ever_wrong(with_tastes(20), 2048, 150)
    with_rule = ever_wrong(with_tastes(20, is_by_session=True), 2048, 150)

    assert without > 0.12
    assert with_rule <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 150)


def several_queries(
    n_queries: int, rng: np.random.Generator, shift: Callable[[int], float]
) -> tuple[DifferenceSums, float]:
    """Lists of queries whose differences differ, and the mean over them."""
    parts, means = [], []
    for query in range(n_queries):
        weights = DISPLAYED * (1.0 + 3.0 * (query % 2)) + shift(query)
        click = click_if_seen(LABELS) / np.arange(1, N_ITEMS + 1)
        clicks = rng.random((40, N_ITEMS)) < click
        groups = rng.integers(0, 5, 40)
        parts.append(sum_differences(clicks, groups, weights, N_ITEMS))
        means.append(float(click @ weights))
    return stacked(parts)[0], float(np.mean(means))


def test_over_queries_the_mean_of_all_lists_is_bounded() -> None:
    """Means that differ, lowest where M- is large; and decided at last."""
    rng = np.random.default_rng(2)

    def worse(query: int) -> float:
        return -0.6 if query % 2 else 0.05

    errors = 0
    for _ in range(100):
        sums, mean = several_queries(20, rng, worse)
        errors += lower_bound_over_queries(sums_of_classes(sums), 0.9) > mean
    assert errors <= 10 + 2 * math.sqrt(9)

    better, mean = several_queries(60, rng, lambda _: 0.1)
    low = lower_bound_over_queries(sums_of_classes(better), 0.95)
    assert 0.0 < low < mean
    assert standing_over_queries(better, Rule()).is_to_come.all()
    alone = better._replace(groups=0 * better.groups)
    assert standing_over_queries(alone, Rule()).is_bound.all()
    assert not standing_over_queries(alone, Rule()).is_spread.any()
    assert not standing_over_queries(better, Rule(epsilon=1.0)).is_bound.any()
    one_look = Rule(Bound.ONE_LOOK, 0.9)
    assert np.array_equal(
        standing_over_queries(better, one_look),
        standings(better, np.array([0, len(better.groups)]), one_look),
    )


def of_equal_lists(totals: np.ndarray) -> DifferenceSums:
    """Groups of 40 lists of one policy, by their sums of X."""
    n = len(totals)
    ones = np.ones(n)
    return DifferenceSums(
        np.arange(n), np.full(n, 40), np.full(n, 5), np.full(n, 20), ones, ones, ones,
        totals, np.full(n, 20.0), np.full(n, 20.0),
    )  # fmt: skip


OVER_QUERIES = {
    "nothing": (np.full(24, 10.0), (True, True, True)),
    # Its quarter is no better for it: without all of that the others are enough.
    "one group": (
        np.where(np.arange(24) == 0, 600.0, np.where(np.arange(24) % 4, 6.0, -100.0)),
        (True, False, False),
    ),
    "one quarter": (np.where(np.arange(24) % 4, -1.0, 22.0), (True, False, False)),
    "sessions to come": (
        np.where(np.arange(24) // 4 % 2, -14.0, 28.0),
        (True, True, False),
    ),
}
"""What a difference over all lists does not stand without; bound, spread, to come."""


@pytest.mark.parametrize(("totals", "wanted"), OVER_QUERIES.values(), ids=OVER_QUERIES)
def test_over_queries_each_part_of_the_rule_is_asked(
    totals: np.ndarray, wanted: tuple[bool, bool, bool]
) -> None:
    """By sums that pass all parts but one."""
    found = standing_over_queries(of_equal_lists(totals), Rule())
    assert (found.is_bound[0], found.is_spread[0], found.is_to_come[0]) == wanted


def test_over_queries_the_bound_is_where_one_side_passes() -> None:
    """The mixture there is 1 / (1 - epsilon)."""
    sums, _ = several_queries(8, np.random.default_rng(5), lambda _: 0.1)
    classes = sums_of_classes(sums)
    n = int(sums.interactions.sum())
    for epsilon in (0.5, 0.95):
        low = lower_bound_over_queries(classes, epsilon, 1e3)
        passed = log_mixture(
            float(sums.totals.sum()) - n * low,
            classes.squares.sum(axis=0),
            classes.interactions.sum(axis=0),
            CLASS_BOUNDS,
            np.log(mixture_weights(1e3, 2 * (1 - epsilon))),
        )
        assert passed == pytest.approx(-math.log(1 - epsilon), abs=1e-5)


def test_over_queries_lists_that_lose_too_much_are_refused() -> None:
    """With what to do about it."""
    sums, _ = several_queries(2, np.random.default_rng(3), lambda _: 0.0)
    with pytest.raises(ValueError, match="leave out items"):
        sums_of_classes(sums._replace(losses=sums.losses * 1e6))


def test_a_rule_without_meaning_is_refused() -> None:
    """What is planned must be positive, and groups have numbers from 0."""
    sums, starts = of_runs(
        fixed_clicks(1, 5, np.random.default_rng(4)), np.zeros(5, np.int64)
    )
    with pytest.raises(ValueError, match="planned_interactions"):
        standings(sums, starts, Rule(planned_interactions=0.0))
    with pytest.raises(ValueError, match="from 0"):
        standings(sums._replace(groups=sums.groups - 1), starts, Rule())
