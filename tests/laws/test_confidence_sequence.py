"""Intervals and bets that hold whoever peeks: by enumeration, and in simulation."""

import math

import numpy as np
import pytest

from models.evaluation.conclusion import (
    clustered_half_widths,
    fixed_half_widths,
    log_e_values,
)
from models.evaluation.confidence_sequence import (
    RATES,
    half_width,
    half_widths,
    log_mixture,
    mixture_weights,
)
from models.evaluation.sums import (
    LARGEST_BET,
    LARGEST_BOUND,
    N_CLASSES,
    PreferenceSums,
    class_bounds,
    class_of,
)
from tests.peeking import (
    World,
    fixed_size,
    look,
    rotated,
    with_difference,
    without_relevance,
)
from tests.session.cases import n_cases


def a_distribution(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Values in [-1, 1] and their probabilities, of mean zero."""
    values = rng.uniform(-1, 1, int(rng.integers(2, 6)))
    values[:2] = -1.0, rng.uniform(0.01, 1.0)
    chances = rng.dirichlet(np.ones(len(values)))
    mean = chances @ values
    # Move probability between the ends until the mean is zero.
    other = 0 if mean > 0 else int(values.argmax())
    share = mean / (mean - values[other])
    chances = (1 - share) * chances
    chances[other] += share
    return values, chances


def factor(value: np.ndarray, rate: float, bound: float, of_cost: float) -> np.ndarray:
    """What one impression multiplies the process by, from the kernel itself."""
    row = class_of(bound)
    bounds, found = class_bounds(), []
    for x in value:
        squares, possible = np.zeros(N_CLASSES), np.zeros(N_CLASSES, np.int64)
        possible[row] = 1
        squares[row] = of_cost * x * x
        logs = np.where(rate == RATES, 0.0, -1e6)
        found.append(math.exp(log_mixture(float(x), squares, possible, bounds, logs)))
    return np.array(found)


def test_one_impression_never_gains_on_average() -> None:
    """The supermartingale, by enumeration; with half the cost it is none."""
    rng = np.random.default_rng(0)
    broken = 0
    for _ in range(300):
        values, chances = a_distribution(rng)
        for rate in (0.5, 0.25, 0.03125):
            gain = chances @ factor(values, rate, 1.0, 1.0)
            broken += chances @ factor(values, rate, 1.0, 0.5) > 1 + 1e-9

            assert gain <= 1 + 1e-12
    assert broken > 100


def test_a_rate_leaves_with_the_first_bound_that_forbids_it() -> None:
    """Clicked or not: what could have been decides, not what was."""
    squares, possible = np.zeros(N_CLASSES), np.zeros(N_CLASSES, np.int64)
    weights = mixture_weights(100.0, 0.05)
    possible[class_of(1.0)], squares[class_of(1.0)] = 1_000, 100.0
    narrow = half_width(squares, possible, weights, 0.05)
    possible[class_of(512.0)] = 1

    assert half_width(squares, possible, weights, 0.05) > 1.5 * narrow


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 3])
def test_an_interval_ends_where_the_mixture_passes_two_over_alpha(alpha: float) -> None:
    """Each side errs with half of alpha, so both together with all of it."""
    squares, possible = np.zeros(N_CLASSES), np.zeros(N_CLASSES, np.int64)
    possible[class_of(1.0)], squares[class_of(1.0)] = 1_000, 400.0
    weights = mixture_weights(500.0, alpha)
    width = half_width(squares, possible, weights, alpha)
    logs, bounds = np.log(weights), class_bounds()
    found = math.exp(log_mixture(width, squares, possible, bounds, logs))

    assert found == pytest.approx(2.0 / alpha, rel=1e-6)


def test_the_clustered_interval_is_that_of_totals_around_their_mean() -> None:
    """By hand, for a mean that is not 0: 100 groups, of totals 2 or 4 by turns.

    Around the mean each is 1 off, so the variance of their sum is 100 times 100 / 99;
    t of 99 degrees of freedom is 1.98422. Around 0 they would be 3.2 times as far off.
    """
    sums = PreferenceSums.empty(2)
    for i in range(200):
        x = 1.0 + i % 2
        sums.add(np.array([[0.0, x], [-x, 0.0]]), 2.0 - 2.0 * np.eye(2), i % 100)
    width = clustered_half_widths(sums, 0.05)[0]

    assert sums.mean()[0] == 1.5
    assert width == pytest.approx(1.984217 * 10.0 * math.sqrt(100 / 99) / 200, rel=1e-5)


def test_a_bet_never_gains_on_average() -> None:
    """Wealth under a mean of zero, whatever the distribution; rounded down."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        values, chances = a_distribution(rng)
        sums = [PreferenceSums.empty(2, 1) for _ in values]
        for one, x in zip(sums, values, strict=True):
            bound = np.array([[0.0, 1.0], [1.0, 0.0]])
            one.add(np.array([[0.0, x], [-x, 0.0]]), bound, 0)
        wealth = np.exp([one.wealth[0] / 2.0**32 for one in sums])

        assert (np.tensordot(chances, wealth, 1) <= 1 + 1e-12).all()
    assert LARGEST_BET <= 0.5


def test_evidence_grows_for_the_better_ranker_only() -> None:
    """Nine of ten for the first: strong evidence for it, none against."""
    sums = PreferenceSums.empty(2, 1)
    bound = np.array([[0.0, 1.0], [1.0, 0.0]])
    for i in range(100):
        x = 1.0 if i % 10 else -1.0
        sums.add(np.array([[0.0, x], [-x, 0.0]]), bound, 0)
    logs = log_e_values(sums)

    assert logs[0, 1] > math.log(1e6)
    assert logs[1, 0] < 0


def test_sums_add_up_in_any_order_to_the_last_bit() -> None:
    """Split over partitions at random, merged in any order."""
    rng = np.random.default_rng(2)
    whole = PreferenceSums.empty(3, 4)
    parts = [PreferenceSums.empty(3, 4) for _ in range(3)]
    total = np.zeros((3, 3))
    for _ in range(500):
        x = rng.standard_normal((3, 3))
        x -= x.T
        bounds = np.abs(x) * (1 + rng.random()) + 1e-3
        np.fill_diagonal(bounds, 0.0)
        bounds = np.maximum(bounds, bounds.T)
        group = int(rng.integers(4))
        whole.add(x, bounds, group)
        parts[int(rng.integers(3))].add(x, bounds, group)
        total += x
    for order in ([0, 1, 2], [2, 0, 1]):
        merged = PreferenceSums.empty(3, 4)
        for i in order:
            merged.merge(parts[i])
        for ours, theirs in zip(merged.arrays(), whole.arrays(), strict=True):
            assert (ours == theirs).all()
    assert whole.matrix() == pytest.approx(total / 500, abs=1e-6)
    with pytest.raises(ValueError, match="same rankers"):
        whole.merge(PreferenceSums.empty(2, 4))


def test_squares_are_never_too_small_and_hardly_too_large() -> None:
    """Exact to the rounding, over many sizes of values and bounds."""
    sums = PreferenceSums.empty(2, 1)
    exact = 0.0
    for x in (1e-3, 0.3, 1.0, 7.0, 300.0, 2.0**14):
        bounds = np.array([[0.0, 1.5 * x], [1.5 * x, 0.0]])
        sums.add(np.array([[0.0, x], [-x, 0.0]]), bounds, 0)
        exact += x * x
    found = sums.squares_by_class().sum()

    assert exact <= found < exact * (1 + 1e-8)
    beyond = np.array([[0.0, 2 * LARGEST_BOUND], [2 * LARGEST_BOUND, 0.0]])
    assert not sums.add(np.zeros((2, 2)), beyond, 0)
    assert sums.impressions.sum() == 6


def test_fixed_and_clustered_intervals_cover_as_they_say() -> None:
    """Sessions of five that agree: only the clustered interval is honest."""
    rng = np.random.default_rng(3)
    covered = np.zeros(2)
    n_runs = n_cases(150, 400)
    for _ in range(n_runs):
        sums = PreferenceSums.empty(2)
        for session in range(300):
            x = float(rng.choice([-1.0, 1.0]))
            for _ in range(5):
                y = x if rng.random() < 0.8 else 0.0
                sums.add(
                    np.array([[0.0, y], [-y, 0.0]]), 1.0 - np.eye(2), session % 100
                )
        for i, of in enumerate((fixed_half_widths, clustered_half_widths)):
            covered[i] += abs(sums.mean()[0]) <= of(sums, 0.05)[0]

    assert covered[1] / n_runs > 0.92
    assert covered[0] / n_runs < 0.8


SMALL = n_cases(60, 120)


@pytest.mark.parametrize("kind", ["different", "rotated", "sessions", "learns"])
def test_peeking_does_no_harm(kind: str) -> None:
    """A/A with different lists, looked at every hundred of 3,000 impressions.

    `python -m tests.long_run_peeking` is the same with 2,000 times 10,000.
    """
    world = without_relevance(30, 10, seed=4)
    world = {
        "different": world,
        "rotated": rotated(10),
        "sessions": World(world.rankings, world.click, session=5),
        "learns": World(world.rankings, world.click, learns=True),
    }[kind]
    seen = look(world, SMALL, 3_000, truth=0.0, planned_squares=1.5e5, seed=5)

    assert seen.sequence_erred <= 0.06 * SMALL
    assert seen.fixed_erred > 0.15 * SMALL
    if kind != "rotated":
        assert seen.outcome_share >= 0.9


@pytest.mark.parametrize("strength", (0.2, 0.1, 0.05)[: n_cases(2, 3)])
def test_known_differences_are_covered_and_found_soon(strength: float) -> None:
    """At most three times the impressions of a sample of fixed size, at the median."""
    world = with_difference(strength)
    long = look(
        world, 10, n_cases(30_000, 100_000), truth=0.0, planned_squares=1.5e5, seed=6
    )
    size = fixed_size(long.mean, long.variance)
    seen = look(
        world, 60, int(5 * size), truth=long.mean, planned_squares=1.5e5, seed=7
    )

    assert seen.sequence_erred <= 0.06 * 60
    assert np.median(seen.decisions) <= 3 * size


def test_half_widths_shrink_with_the_root_of_the_sample() -> None:
    """Near the plan at most twice as wide as the fixed interval."""
    sums = PreferenceSums.empty(2)
    bounds = 1.0 - np.eye(2)
    rng = np.random.default_rng(8)
    for i in range(4_000):
        x = float(rng.choice([-1.0, 0.0, 1.0]))
        sums.add(np.array([[0.0, x], [-x, 0.0]]), bounds, i % 100)
    sequence = half_widths(sums, 0.05, planned_squares=2_000.0)[0]

    assert fixed_half_widths(sums, 0.05)[0] < sequence
    assert sequence < 2.0 * fixed_half_widths(sums, 0.05)[0]
