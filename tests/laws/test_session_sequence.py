"""Intervals for sessions to come: the process by quadrature, the rest by simulation."""

import itertools
import math

import numpy as np
import pytest

from models.evaluation.confidence_sequence import half_width, mixture_weights
from models.evaluation.session_sequence import (
    SCALE_WEIGHTS,
    SCALES,
    groups_of_equal_size,
    largest_score,
    log_session_evidence,
    means_within,
    session_intervals,
)
from models.evaluation.sums import N_CLASSES, PreferenceSums, class_of
from tests.session.cases import n_cases
from tests.session_peeking import (
    ALPHA,
    METHODS,
    PLANNED,
    World,
    false_winners,
    fixed_sessions,
    look,
    median_sessions,
    with_difference,
    with_tastes,
)


def mixture(score: float, size: float) -> float:
    """The same mixture, written down again."""
    best = 2 * math.log(1 / ALPHA) + math.log(1 + 2 * math.log(1 / ALPHA))
    g = best * size * SCALES
    return float(SCALE_WEIGHTS @ (np.exp(0.5 * score * g / (1 + g)) / np.sqrt(1 + g)))


def evidence(score: float, size: float) -> float:
    """The mixture of the kernel."""
    return math.exp(log_session_evidence(score, size, ALPHA)[0])


@pytest.mark.parametrize("size", [1e-3, 0.05, 1.0, 40.0])
@pytest.mark.parametrize("scaled", [0.0, 1.0, 3.0])
def test_the_mixture_is_a_martingale_of_brownian_motion(
    size: float, scaled: float
) -> None:
    """Its mean after more time is what it is now, by Gauss-Hermite quadrature.

    So by Ville it ever passes 1 / alpha with probability alpha. Half of the exponent
    more, or the root left out, and the mean moves.
    """
    assert SCALE_WEIGHTS.sum() == pytest.approx(1.0)
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    now = scaled * math.sqrt(size)
    for step in (0.1, 0.5):
        later = now + math.sqrt(step * size) * nodes
        end = size * (1 + step)
        found = [evidence(x * x / end, end) for x in later]

        assert weights @ found == pytest.approx(mixture(scaled**2, size), rel=1e-8)


@pytest.mark.parametrize("size", [1e-4, 0.01, 1.0, 1e3])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 32_640])
def test_a_mean_is_excluded_where_the_evidence_is_one_over_alpha(
    size: float, alpha: float
) -> None:
    """Both sides of a mean together err with alpha; at the plan near the best."""
    largest = largest_score(size, alpha)

    found, slope = log_session_evidence(largest, size, alpha)
    above, _ = log_session_evidence(largest + 1e-4, size, alpha)

    assert found == pytest.approx(-math.log(alpha))
    assert slope == pytest.approx((above - found) / 1e-4, rel=1e-3)
    if size == 1.0 and alpha == 0.05:
        assert mixture(largest, size) == pytest.approx(20.0, rel=1e-6)
        assert 9.2 < largest < 12.0


def test_one_look_errs_with_at_most_alpha_however_few_sessions() -> None:
    """Totals as likely as their opposites: the mean over all signs is at most 1."""
    rng = np.random.default_rng(0)
    for heavy in (0.0, 2.0, 6.0):
        totals = np.exp(heavy * rng.standard_normal(11))
        gains = [
            evidence((np.array(signs) @ totals) ** 2 / (totals @ totals), 0.3)
            for signs in itertools.product((-1, 1), repeat=len(totals))
        ]
        assert np.mean(gains) <= 1.0 + 1e-12


def moments_of(totals: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """As `means_within` takes them."""
    return np.array(
        [
            totals.sum(),
            sizes.sum(),
            totals @ totals,
            totals @ sizes,
            sizes @ sizes,
            np.abs(totals).sum(),
        ]
    )


def test_the_interval_is_all_means_whose_score_is_small_enough() -> None:
    """Against the definition, mean by mean."""
    rng = np.random.default_rng(1)
    for _ in range(50):
        sizes = rng.integers(1, 60, 100).astype(float)
        totals = sizes * rng.normal(0.2, 0.4) + 5 * rng.standard_normal(100)
        low, high = means_within(moments_of(totals, sizes), 10.0)
        for mean in np.linspace(low - 1, high + 1, 201):
            rest = totals - mean * sizes
            assert (rest.sum() ** 2 <= 10.0 * rest @ rest) == (low <= mean <= high)


def test_few_sessions_or_one_that_outweighs_the_others_say_nothing() -> None:
    """Nor few that prefer anybody, though impressions are many."""
    even, one = np.ones(100), np.r_[1e4, np.ones(99)]
    signs = np.where(np.arange(100) % 2, 1.0, -1.0)
    assert np.isfinite(means_within(moments_of(signs, even), 10.0)).all()
    assert means_within(moments_of(one, one), 10.0) == (-math.inf, math.inf)
    assert means_within(moments_of(even[:9], even[:9]), 10.0)[0] == -math.inf
    assert means_within(moments_of(signs[:35], even[:35]), 10.0)[0] == -math.inf
    assert np.isfinite(means_within(moments_of(signs[:36], even[:36]), 10.0)).all()
    assert means_within(moments_of(signs[:40], even[:40]), 50.0)[0] == -math.inf
    rare = np.zeros(100)
    rare[:8] = 1.0
    assert means_within(moments_of(rare, 1e3 * even), 10.0)[0] == -math.inf
    empty = PreferenceSums.empty(3)
    assert np.isinf(session_intervals(empty, 0.05, 100.0)).all()
    assert groups_of_equal_size(empty.impressions) == 0.0


def test_intervals_of_sums_are_those_of_their_groups() -> None:
    """Each pair its own; and the effective number of groups."""
    rng = np.random.default_rng(2)
    sums = PreferenceSums.empty(3)
    for _ in range(600):
        x = np.triu(rng.choice([-1.0, 0.0, 1.0], (3, 3)), 1)
        sums.add(x - x.T, 1.0 - np.eye(3), int(rng.integers(100)))
    sizes = sums.impressions.astype(float)
    largest = largest_score(600 / 5_000, 0.01)
    found = session_intervals(sums, 0.01, 5_000)
    for pair, of_groups in enumerate((sums.totals / 2.0**20).T):
        expected = means_within(moments_of(of_groups, sizes), largest)
        assert found[pair] == pytest.approx(expected)
        assert found[pair, 0] < sums.mean()[pair] < found[pair, 1]
    assert groups_of_equal_size(sums.impressions) == pytest.approx(
        600**2 / (sizes @ sizes)
    )


@pytest.mark.parametrize("method", METHODS)
def test_tastes_of_sessions_make_no_winner(method: str) -> None:
    """Sessions of twenty, looked at after every one of 3,000 impressions.

    `python -m tests.long_run_peeking sessions` is the same with more, longer runs of
    sessions of all lengths. The sequence that is exact for the sessions that came
    excludes 0 meanwhile, rightly: they did prefer somebody.
    """
    world = with_tastes(method, "20")
    n_runs = 80
    came = [look(world, 3_000, seed=s, to_the_end=True).came for s in range(20)]

    assert false_winners(world, n_runs, 3_000) <= 0.05
    assert np.mean(np.array(came) > 0) > (0.05 if method == "ab" else 0.6)


@pytest.mark.parametrize("lengths", ["1", "Pareto", "one session"])
@pytest.mark.parametrize("repeats", [1, 5])
def test_other_sessions_and_repeated_draws_make_no_winner(
    lengths: str, repeats: int
) -> None:
    """A draw that a session sees five times is no evidence five times over."""
    world = with_tastes("team-draft", lengths, repeats=repeats)

    assert false_winners(world, 60, 3_000) <= 0.05


@pytest.mark.parametrize("lengths", ["1", "5", "20"])
def test_a_difference_is_found_in_time(lengths: str) -> None:
    """At most 2.5 times a cluster-robust sample of fixed size, at the median."""
    world = with_difference(0.2, "pairwise-preference", lengths)
    size = fixed_sessions(world, 60_000 // int(lengths), seed=10_000)
    n_runs = n_cases(24, 60)

    assert median_sessions(world, n_runs, int(6 * size) * int(lengths)) <= 2.5 * size


def test_the_difference_of_sessions_to_come_is_covered() -> None:
    """Looked at after each group of ten sessions, unequal ones, with tastes."""
    rng = np.random.default_rng(5)
    erred, n_runs, truth = 0, 150, 0.12
    for _ in range(n_runs):
        totals, sizes = np.zeros(100), np.zeros(100)
        for _ in range(60):
            lengths = 1 + rng.geometric(0.2, 10)
            tastes = rng.choice([-0.6, 0.6], 10) + truth
            groups = rng.integers(100, size=10)
            noise = rng.choice([-0.28, 0.28], 10)
            np.add.at(sizes, groups, lengths)
            np.add.at(totals, groups, lengths * (tastes + noise))
            largest = largest_score(sizes.sum() / PLANNED, ALPHA)
            low, high = means_within(moments_of(totals, sizes), largest)
            if not low <= truth <= high:
                erred += 1
                break
    assert erred <= 0.05 * n_runs


def test_for_the_sessions_that_came_the_draws_alone_decide() -> None:
    """A/B with clicks fixed beforehand: the exact sequence covers their difference.

    The users are those of one world, with tastes; only which list each sees is drawn.
    The difference of their lists is not 0, as that of all users is, and is covered.
    """
    n, n_runs = 2_000, 100
    users = np.random.default_rng(6)
    taste = np.repeat(users.random(n // 20) < 0.5, 20)
    clicks = users.random((n, 2)) < np.where(taste[:, None], [0.7, 0.1], [0.1, 0.7])
    truth = (clicks[:, 0].astype(float) - clicks[:, 1]).cumsum()
    weights = mixture_weights(2_000.0, ALPHA)
    erred = 0
    for run in range(n_runs):
        shows_first = np.random.default_rng(run).random(n) < 0.5
        values = 2.0 * np.where(shows_first, clicks[:, 0], -1.0 * clicks[:, 1])
        sums, squares = values.cumsum(), (values**2).cumsum()
        of_class, possible = np.zeros(N_CLASSES), np.zeros(N_CLASSES, np.int64)
        for i in range(19, n, 20):
            of_class[class_of(2.0)], possible[class_of(2.0)] = squares[i], i + 1
            width = half_width(of_class, possible, weights, ALPHA)
            if abs(sums[i] - truth[i]) > width:
                erred += 1
                break
    assert abs(truth[-1]) > 20
    assert erred <= 0.05 * n_runs


def test_worlds_are_what_they_say() -> None:
    """No difference with tastes; the planted one is there on average."""
    equal: World = with_tastes("team-draft", "1")
    assert (equal.click[0][:, [1, 0, 2, 3]] == equal.click[1]).all()
    better = with_difference(0.1, "team-draft", "5")
    assert better.click.mean(axis=0)[0] == pytest.approx([0.4, 0.3, 0.3, 0.3])
