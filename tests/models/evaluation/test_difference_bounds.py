"""Bounds of a difference: formulas by definition, and what they guarantee."""

import itertools
import math

import numpy as np
import pytest

from models.evaluation.bounds.any_time import (
    COSTS,
    RATES,
    largest_excess,
    log_evidence,
    log_weights_of_rates,
    scale,
)
from models.evaluation.bounds.families import (
    SCALED_INTERACTIONS,
    SCALED_SQUARES,
    SCALED_TOTAL,
    SUMS,
    Bound,
    add_row,
    confidence,
    intervals,
    is_above_zero,
    lower_bounds,
    mirrored,
)
from models.evaluation.bounds.one_look import error_at_doubling, half_width
from models.evaluation.bounds.printed import half_width_by_click, half_width_by_item
from models.evaluation.bounds.sea import lower_bounds_apart
from models.evaluation.differences import DifferenceSums
from models.evaluation.promotion_looks import error_of_look
from tests.compared_policies import (
    DISPLAYED,
    FIXED_MEAN,
    N_ITEMS,
    fixed_clicks,
    of_runs,
)
from tests.difference_sums import largest_sum, stacked, sum_differences

LEVELS = (0.0, 0.5, 0.9, 0.95, 0.999)
NONE = np.zeros(0, np.int64)


def one(
    clicks: np.ndarray, weights: np.ndarray = DISPLAYED
) -> tuple[DifferenceSums, np.ndarray]:
    """A comparison of lists of all items, in two groups."""
    groups = np.arange(len(clicks)) % 2
    sums = sum_differences(clicks, groups, weights, len(weights))
    return sums, np.array([0, len(sums.groups)])


def maurer_pontil(values: np.ndarray, extent: float, epsilon: float) -> float:
    """The half width, value by value."""
    n, log = len(values), math.log(2 / (1 - epsilon))
    spread = math.sqrt(2 * np.var(values, ddof=1) * log / n)
    return float(7 * extent * log / (3 * (n - 1)) + spread)


def test_the_golden_half_width() -> None:
    """That of the author's code, of 0 .. 4 twenty times and values up to 10."""
    values = np.tile(np.arange(5.0), 20)

    found = half_width(100.0, values.sum(), (values**2).sum(), 10.0, 0.05)

    assert found == pytest.approx(1.25549716, abs=1e-8)


@pytest.mark.parametrize("epsilon", LEVELS)
def test_bounds_of_a_mean_and_a_variance_are_as_defined(epsilon: float) -> None:
    """From every list, every item of every list, and every click.

    At epsilon 0 the logarithm is that of 2: the formula says so.
    """
    rng = np.random.default_rng(3)
    clicks = fixed_clicks(1, 40, rng)[0]
    sums, starts = one(clicks)
    of_lists, n = clicks @ DISPLAYED, len(clicks)
    of_items = (N_ITEMS * clicks * DISPLAYED).ravel()
    of_clicks = np.concatenate([DISPLAYED[each] for each in clicks])
    mean, largest = of_lists.mean(), np.abs(DISPLAYED).max()
    gain, loss = DISPLAYED[DISPLAYED > 0].sum(), -DISPLAYED[DISPLAYED < 0].sum()
    look_5 = 1 - error_of_look(5, 1 - epsilon) if epsilon > 0 else 1 - 1 / 30
    widths = {
        Bound.ONE_LOOK: maurer_pontil(of_lists, gain + loss, epsilon),
        Bound.DOUBLING_LOOKS: maurer_pontil(of_lists, gain + loss, look_5),
        Bound.PER_ITEM: maurer_pontil(of_items, N_ITEMS * 2 * largest, epsilon),
        Bound.PER_CLICK: len(of_clicks)
        / n
        * maurer_pontil(of_clicks, 2 * largest, epsilon),
    }
    for bound, width in widths.items():
        found = intervals(sums, starts, confidence(bound, epsilon))[0]
        assert found == pytest.approx([mean - width, mean + width])


def test_w_of_one_sign_lies_in_half_the_interval() -> None:
    """An item's value is then between 0 and b."""
    clicks = fixed_clicks(1, 30, np.random.default_rng(4))[0]
    weights = np.abs(DISPLAYED)
    sums, starts = one(clicks, weights)

    low = lower_bounds(sums, starts, confidence(Bound.PER_ITEM, 0.9))[0]

    of_items = (N_ITEMS * clicks * weights).ravel()
    width = maurer_pontil(of_items, N_ITEMS * weights.max(), 0.9)
    assert low == pytest.approx(of_items.mean() - width)


def test_the_fixed_case_tells_the_range_that_is_right() -> None:
    """Shares deployed of 1,000 runs; the larger of two sums is no range."""
    rng = np.random.default_rng(5)
    for n, epsilon, right, wrong, floor in (
        (200, 0.5, 0.21, 0.27, 0.45),
        (1000, 0.95, 0.62, 0.70, 0.80),
    ):
        sums, starts = of_runs(fixed_clicks(1000, n, rng), np.zeros(n, np.int64))
        shares = {
            bound: (lower_bounds(sums, starts, confidence(bound, epsilon)) > 0).mean()
            for bound in (Bound.ANY_TIME, Bound.ONE_LOOK)
        }
        too_little = sums._replace(gains=np.zeros(1000))
        of_wrong = lower_bounds(too_little, starts, confidence(Bound.ONE_LOOK, epsilon))

        assert abs(shares[Bound.ONE_LOOK] - right) <= 0.03
        assert abs((of_wrong > 0).mean() - wrong) <= 0.03
        assert (of_wrong > 0).mean() - shares[Bound.ONE_LOOK] > 0.03
        assert shares[Bound.ANY_TIME] >= floor


@pytest.mark.parametrize("bound", Bound)
@pytest.mark.parametrize("epsilon", [0.5, 0.9, 0.95])
def test_bounds_hold_as_often_as_they_say(bound: Bound, epsilon: float) -> None:
    """On either side of the known mean, for few lists and more."""
    rng = np.random.default_rng(6)
    for n in (16, 128):
        sums, starts = of_runs(fixed_clicks(500, n, rng), np.zeros(n, np.int64))
        found = intervals(sums, starts, confidence(bound, epsilon))
        most = (1 - epsilon) + 2 * math.sqrt(epsilon * (1 - epsilon) / 500)

        assert (found[:, 0] > FIXED_MEAN).mean() <= most
        assert (found[:, 1] < FIXED_MEAN).mean() <= most


def mean_gain(rate: float, cost: float, share: float) -> float:
    """Of a list that shows -c in this share of cases, and 0 on average."""
    values = np.array([-1.0, share / (1 - share)])
    gains = np.exp(rate * values - cost * values**2)
    return float(share * gains[0] + (1 - share) * gains[1])


@pytest.mark.parametrize("share", [1e-4, 0.1, 0.5])
def test_a_rate_gains_nothing_on_average(share: float) -> None:
    """Exactly; at -c the inequality of the cost is an equation, so none can be less."""
    for rate, cost in zip(RATES, COSTS, strict=True):
        assert mean_gain(rate, cost, share) <= 1.0 + 1e-12
        if share == 1e-4 and rate > 0.01:
            assert mean_gain(rate, 0.98 * cost, share) > 1.0


def test_rates_are_relative_to_what_a_list_can_lose() -> None:
    """Whatever a list shows, its gain is at most that of a fair bet, 1 + l X."""
    rng = np.random.default_rng(13)
    for gain, loss in [(0.0, 1.0), (9.0, 0.01), *np.exp(rng.normal(0, 2, (50, 2)))]:
        share = np.linspace(-loss, gain, 101)[:, None] / scale(gain, loss)
        gains = np.exp(RATES * share - COSTS * share**2)

        assert (gains <= 1.0 + RATES * share + 1e-12).all()


def test_the_mixture_is_a_supermartingale_whatever_logs_next() -> None:
    """Every path of three lists, each logged by a policy that the last clicks chose.

    Both policies show a different M-; the later one the larger.
    """
    relevance, gains = np.array([0.9, 0.5]), np.array([1.0, -1.8])
    rho = np.array([[0.8, 0.7], [1.0, 0.25]])
    mean = float(relevance @ gains)
    weights = gains / rho
    outcomes = list(itertools.product((False, True), repeat=2))
    for epsilon in (0.5, 0.95):
        logs = log_weights_of_rates(1 - epsilon, 4.0)
        assert np.exp(logs).sum() == pytest.approx(1.0)
        expected = 0.0
        for path in itertools.product(outcomes, repeat=3):
            policy, chance = 0, 1.0
            totals = np.zeros(SUMS)
            for clicked in path:
                seen = rho[policy] * relevance
                chance *= float(np.where(clicked, seen, 1 - seen).prod())
                row = sum_differences(
                    np.array([clicked]), np.zeros(1, np.int64), weights[policy], 2
                )
                add_row(totals, row, 0)
                policy = int(clicked[0])
            excess = totals[SCALED_TOTAL] - mean * totals[SCALED_INTERACTIONS]
            expected += chance * math.exp(
                log_evidence(excess, totals[SCALED_SQUARES], logs)[0]
            )
        assert 0.5 < expected <= 1.0


def test_the_lower_bound_is_where_the_mixture_passes() -> None:
    """And the derivative is that of the logarithm."""
    rng = np.random.default_rng(7)
    for epsilon in (0.0, 0.5, 0.95, 1 - 1e-8):
        logs = log_weights_of_rates(1 - epsilon, 48.0)
        for squares in (0.0, *np.exp(rng.uniform(-8, 20, 40))):
            root = largest_excess(squares, logs, 1 - epsilon)
            value, slope = log_evidence(root, squares, logs)
            above, _ = log_evidence(root + 1e-6 * (1 + root), squares, logs)

            assert value == pytest.approx(-math.log(1 - epsilon), abs=1e-6)
            assert slope == pytest.approx((above - value) / 1e-6 / (1 + root), rel=1e-3)


@pytest.mark.parametrize("bound", Bound)
def test_a_difference_is_shown_where_its_lower_bound_is_above_zero(
    bound: Bound,
) -> None:
    """Two ways to ask the same, over several policies at once."""
    rng = np.random.default_rng(8)
    n_shown = 0
    for epsilon in (0.0, 0.5, 0.95, 1.0):
        sure = confidence(bound, epsilon)
        for _ in range(200):
            rows = []
            for _ in range(2):
                n = int(rng.integers(1, 200))
                weights = rng.normal(0.5, 1.0, 4)
                clicks = rng.random((n, 4)) < rng.random(4)
                rows.append(sum_differences(clicks, np.zeros(n, np.int64), weights, 4))
            sums, _ = stacked(rows)
            totals = np.zeros(SUMS)
            for row in range(2):
                add_row(totals, sums, row)
            low = lower_bounds(sums, np.array([0, 2]), sure)[0]
            is_shown = is_above_zero(totals, sure)
            n_shown += is_shown

            assert is_shown == (low > 0.0)
    assert 50 < n_shown < 600


@pytest.mark.parametrize(
    "bound", [Bound.ONE_LOOK, Bound.DOUBLING_LOOKS, Bound.PER_ITEM, Bound.PER_CLICK]
)
def test_a_bound_on_the_difference_is_never_wider_than_two_apart(bound: Bound) -> None:
    """Over random policies, propensities and clicks."""
    rng = np.random.default_rng(9)
    sure = confidence(bound, 0.9)
    firsts: list[DifferenceSums] = []
    seconds: list[DifferenceSums] = []
    differences: list[DifferenceSums] = []
    for _ in range(400):
        n_items, n = int(rng.integers(2, 8)), int(rng.integers(2, 100))
        rho = rng.uniform(0.05, 1.0, n_items)
        lambdas = rng.permuted(
            np.tile(1 / np.log2(2 + np.arange(n_items)), (2, 1)), axis=1
        )
        lambdas *= rng.random((2, n_items)) < rng.choice([0.5, 1.0])
        clicks = rng.random((n, n_items)) < rho * rng.random(n_items)
        for into, weights in (
            (firsts, lambdas[0] / rho),
            (seconds, lambdas[1] / rho),
            (differences, (lambdas[0] - lambdas[1]) / rho),
        ):
            into.append(one(clicks, weights)[0])
    first, starts = stacked(firsts)
    apart = lower_bounds_apart(first, stacked(seconds)[0], starts, sure)
    together = lower_bounds(stacked(differences)[0], starts, sure)
    is_told = np.isfinite(apart)

    assert is_told.mean() > 0.5
    assert (together[is_told] >= apart[is_told] - 1e-9).all()
    assert np.median(together[is_told] - apart[is_told]) > 0.1


def test_either_policy_apart_has_a_width_of_its_own() -> None:
    """Not that of the first for both."""
    clicks = fixed_clicks(1, 50, np.random.default_rng(10))[0]
    weights = np.abs(DISPLAYED), np.linspace(0.1, 3.0, N_ITEMS)
    (first, starts), (second, _) = one(clicks, weights[0]), one(clicks, weights[1])

    found = lower_bounds_apart(first, second, starts, confidence(Bound.ONE_LOOK, 0.9))

    values = [clicks @ each for each in weights]
    widths = [
        maurer_pontil(x, w.sum(), 0.9) for x, w in zip(values, weights, strict=True)
    ]
    expected = values[0].mean() - widths[0] - values[1].mean() - widths[1]
    assert found[0] == pytest.approx(expected)
    with pytest.raises(ValueError, match="same lists"):
        lower_bounds_apart(
            first,
            second._replace(interactions=second.interactions + 1),
            starts,
            confidence(Bound.ONE_LOOK, 0.9),
        )


@pytest.mark.parametrize("bound", Bound)
def test_what_never_can_be_certain(bound: Bound) -> None:
    """No list, one list with one click, and epsilon 1 show nothing."""
    sure, certain = confidence(bound, 0.95), confidence(bound, 1.0)
    good = np.abs(DISPLAYED)
    no_list = sum_differences(np.zeros((0, 10), np.bool_), NONE, good, 10)
    one_click = one(np.eye(N_ITEMS, dtype=np.bool_)[:1], good)
    many = one(np.ones((5000, N_ITEMS), np.bool_), good)

    assert intervals(no_list, np.array([0, 0]), sure)[0].tolist() == [-np.inf, np.inf]
    assert lower_bounds(*one_click, sure)[0] < 0.0
    assert lower_bounds(*many, sure)[0] > 0.0
    assert lower_bounds(*many, certain)[0] == -np.inf


def test_nothing_to_lose_is_shown_after_some_clicks_and_no_difference_never() -> None:
    """Where M- is 0, and where both policies are the same."""
    sure = confidence(Bound.ANY_TIME, 0.95)
    gains = np.linspace(0.0, 1.0, N_ITEMS)
    few, enough = (one(np.ones((n, N_ITEMS), np.bool_), gains) for n in (2, 60))
    same = one(np.ones((500, N_ITEMS), np.bool_), np.zeros(N_ITEMS))
    no_clicks = one(np.zeros((500, N_ITEMS), np.bool_))

    assert few[0].losses.max() == 0.0
    assert lower_bounds(*few, sure)[0] < 0.0 < lower_bounds(*enough, sure)[0]
    assert intervals(*same, sure).tolist() == [[0.0, 0.0]]
    for epsilon in (0.0, 0.95):
        assert lower_bounds(*no_clicks, confidence(Bound.ANY_TIME, epsilon))[0] <= 0.0


def test_both_sides_are_one_in_the_mirror() -> None:
    """The upper bound is the lower one of the policies swapped."""
    sums, starts = of_runs(
        fixed_clicks(20, 60, np.random.default_rng(11)), np.zeros(60, np.int64)
    )
    sure = confidence(Bound.ANY_TIME, 0.9)

    found = intervals(sums, starts, sure)
    swapped = intervals(mirrored(sums), starts, sure)

    assert found == pytest.approx(-swapped[:, ::-1])
    assert (found[:, 0] < found[:, 1]).all()


def test_looks_at_doublings_spend_no_more_than_they_have() -> None:
    """One look at each: the first at two lists."""
    looks = [error_at_doubling(float(2**j), 0.1) for j in range(1, 40)]

    assert looks == pytest.approx([error_of_look(j, 0.1) for j in range(1, 40)])
    assert error_at_doubling(1.0, 0.1) == 0.0
    assert error_at_doubling(2047.0, 0.1) == error_at_doubling(1024.0, 0.1)


def test_the_most_of_rows_counts_for_all() -> None:
    """Two policies: the range is from the worst loss to the best gain of either."""
    clicks = fixed_clicks(1, 30, np.random.default_rng(12))[0]
    both, _ = stacked(
        [
            sum_differences(clicks, np.zeros(30, np.int64), weights, N_ITEMS)
            for weights in (DISPLAYED, -DISPLAYED)
        ]
    )
    low = lower_bounds(both, np.array([0, 2]), confidence(Bound.ONE_LOOK, 0.9))[0]

    values = np.concatenate([clicks @ DISPLAYED, -(clicks @ DISPLAYED)])
    extent = 2 * max(largest_sum(DISPLAYED, 10), largest_sum(-DISPLAYED, 10))
    assert low == pytest.approx(values.mean() - maurer_pontil(values, extent, 0.9))


def test_settings_without_meaning_are_refused() -> None:
    """Confidence and what is planned."""
    with pytest.raises(ValueError, match="epsilon"):
        confidence(Bound.ANY_TIME, 1.5)
    with pytest.raises(ValueError, match="planned"):
        confidence(Bound.ANY_TIME, 0.9, planned=0.0)


@pytest.mark.parametrize("bound", Bound)
def test_what_shows_no_difference_decides_nothing(bound: Bound) -> None:
    """However little is asked for, as by one click on policies that do not differ."""
    sure = confidence(bound, 0.0)
    for weights in (np.zeros(3), np.array([-1.0, 0.0, 1.0])):
        sums, starts = one(np.array([[False, True, False]]), weights)
        totals = np.zeros(SUMS)
        for row in range(starts[1]):
            add_row(totals, sums, row)

        assert not is_above_zero(totals, sure)


def row(gains: float, losses: float, largest: float) -> DifferenceSums:
    """One of 100 lists of five items, with 80 clicks, in a group of its own."""
    return DifferenceSums(
        *(np.array([number]) for number in (0, 100, 5, 80)),
        *(np.array([each]) for each in (gains, losses, largest, 40.0, 60.0, 50.0)),
    )


WIDTHS = {
    Bound.ONE_LOOK: half_width(200.0, 80.0, 120.0, 5.0, 0.1),
    Bound.DOUBLING_LOOKS: half_width(
        200.0, 80.0, 120.0, 5.0, error_at_doubling(200.0, 0.1)
    ),
    Bound.PER_ITEM: half_width_by_item(200.0, 1_000.0, 80.0, 100.0, 6.0, 0.1),
    Bound.PER_CLICK: half_width_by_click(200.0, 160.0, 80.0, 100.0, 6.0, 0.1),
}
"""Of 200 lists, where X lies between -2 and 3, and no click counts for more than 3."""


@pytest.mark.parametrize("bound", WIDTHS)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_policies_together_allow_the_most_that_any_of_them_does(
    bound: Bound, order: tuple[int, int]
) -> None:
    """Whichever comes first; one that never speaks against a difference is no limit."""
    rows = row(1.0, 2.0, 1.5), row(3.0, 0.5, 3.0)
    both, _ = stacked([rows[number] for number in order])
    found = lower_bounds(both, np.array([0, 2]), confidence(bound, 0.9))
    assert found.tolist() == pytest.approx([0.4 - WIDTHS[bound]], rel=1e-12)


def test_policies_that_do_not_differ_differ_by_nothing_for_sure() -> None:
    """By the bound at any time, which no list can move."""
    none = row(0.0, 0.0, 0.0)._replace(totals=np.zeros(1), squares=np.zeros(1))
    found = intervals(none, np.array([0, 1]), confidence(Bound.ANY_TIME, 0.95))
    assert found.tolist() == [[0.0, 0.0]]
