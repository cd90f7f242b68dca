"""A difference under a curve that was estimated: by recomputation, and its interval."""

from typing import NamedTuple

import numpy as np
import pytest

from models.arrays import Floats
from models.evaluation.refitted_difference import (
    CreditedDifference,
    refitted_difference,
)
from models.interleaving.logging_policy_credit import LoggingPolicy
from models.interleaving.method import NO_ONE, Shown

RANKINGS = np.array([[0, 1, 2, 3], [2, 3, 0, 1]])
RELEVANCE = np.array([0.9, 0.4, 0.3, 0.6])
THETA = np.array([0.9, 0.45, 0.18])
SCORES = np.array([[0.0, 0.0, 0.0, 0.0], [1.0, -0.5, 0.5, 0.0]])
"""Of two policies, each of which draws every other list."""

GAPS = np.array([0.3, -0.2, 0.4])


def method_of(theta: Floats) -> LoggingPolicy:
    """Credits by a curve."""
    return LoggingPolicy(examination=(*theta.tolist(),), length=3)


class Lists(NamedTuple):
    """Shown lists and their clicks, [n, 3] each."""

    rows: np.ndarray
    clicks: np.ndarray


def drawn(n: int, rng: np.random.Generator) -> Lists:
    """Lists of both policies in turn, clicked by who looks as `THETA` says."""
    keys = SCORES[np.arange(n) % 2] + rng.gumbel(size=(n, 4))
    rows = np.argsort(-keys, axis=1)[:, :3]
    return Lists(rows, rng.random((n, 3)) < THETA * RELEVANCE[rows])


def credits_of(lists: Lists, theta: Floats) -> tuple[Floats, Floats]:
    """What each list says under a curve, [n], and the slopes, [n, 3]."""
    under = [method_of(theta).under(scores) for scores in SCORES]
    values, slopes = np.zeros(len(lists.rows)), np.zeros((len(lists.rows), 3))
    for number, (rows, clicks) in enumerate(zip(*lists, strict=True)):
        shown, policy = Shown(RANKINGS, rows, NO_ONE), under[number % 2]
        values[number] = policy.infer(shown, clicks)[0, 1]
        slopes[number] = policy.slopes(shown, clicks)
    return values, slopes


def test_slopes_are_finite_differences_of_the_credit() -> None:
    """Rank by rank; and multiples of a curve change nothing."""
    lists, step = drawn(20, np.random.default_rng(1)), 1e-6
    values, slopes = credits_of(lists, THETA)
    for rank in range(3):
        up, down = (
            credits_of(lists, THETA + sign * step * np.eye(3)[rank])[0]
            for sign in (1.0, -1.0)
        )
        assert slopes[:, rank] == pytest.approx((up - down) / (2 * step), abs=1e-5)
    assert np.abs(slopes @ THETA).max() < 1e-9
    assert np.ptp(values) > 1.0
    assert np.abs(slopes).max() > 1.0


def test_the_estimate_under_a_refit_follows_from_slopes() -> None:
    """All lists credited again: apart by the square of the change of the curve.

    Half of a curve is the same curve.
    """
    lists = drawn(400, np.random.default_rng(2))
    values, slopes = credits_of(lists, THETA)
    mean, errors = float(values.mean()), []
    for size in (0.04, 0.02):
        moved = THETA * (1.0 + size * GAPS)
        again, _ = credits_of(lists, moved)
        credited = CreditedDifference(mean, 0.1, THETA, slopes.mean(axis=0))
        found = refitted_difference(credited, 0.5 * moved, [THETA, THETA], 0.05)
        assert abs(found.moved) > 20.0 * abs(found.mean - again.mean())
        errors.append(abs(found.mean - again.mean()))
    assert errors[1] == pytest.approx(errors[0] / 4.0, rel=0.1)


def test_its_error_is_that_of_all_lists_credited_under_each_refit() -> None:
    """A jackknife of the whole estimate over the groups of the curve."""
    rng = np.random.default_rng(3)
    lists = drawn(400, rng)
    values, slopes = credits_of(lists, THETA)
    without = [THETA * (1.0 + 0.02 * rng.normal(size=3)) for _ in range(8)]
    whole = np.array([credits_of(lists, refit)[0].mean() for refit in without])
    expected = np.sqrt(7 / 8 * ((whole - whole.mean()) ** 2).sum())
    credited = CreditedDifference(float(values.mean()), 0.0, THETA, slopes.mean(axis=0))
    found = refitted_difference(credited, 0.5 * THETA, without, 0.05)

    assert found.moved == pytest.approx(0.0, abs=1e-12)
    assert found.curve_error == pytest.approx(expected, rel=0.03)
    # 2.36462 is what Student's t with 7 degrees of freedom passes in .025.
    half = 2.36462 * found.curve_error
    assert found.high - found.low == pytest.approx(2 * half, rel=1e-5)


def by_item(theta: Floats) -> tuple[Floats, Floats]:
    """Credit of a click on each item of uniform lists, [4], and its slopes, [4, 3]."""
    policy, clicked = method_of(theta).under(np.zeros(4)), np.ones(1, np.bool_)
    each = [Shown(RANKINGS, np.array([item]), NO_ONE) for item in range(4)]
    told = [policy.infer(shown, clicked)[0, 1] for shown in each]
    return np.array(told), np.stack([policy.slopes(x, clicked) for x in each])


def test_intervals_hold_only_with_the_error_of_the_curve() -> None:
    """Of curves from ten groups of other users, with few clicks each.

    A standard error of the share is .013.
    """
    rng, n, n_runs, held = np.random.default_rng(5), 1_500, 300, np.zeros(2)
    looked = np.append(THETA, 0.0)
    ranks = np.argsort(RANKINGS, axis=1)
    truth = float(RELEVANCE @ (looked[ranks[0]] - looked[ranks[1]]))
    for _ in range(n_runs):
        groups = rng.binomial(40, 0.5 * THETA, (10, 3))
        curve, *without = (
            kept.sum(axis=0) / kept[:, 0].sum()
            for kept in [groups, *(np.delete(groups, g, 0) for g in range(10))]
        )
        rows = rng.permuted(np.tile(np.arange(4), (n, 1)), axis=1)[:, :3]
        clicks = rng.random((n, 3)) < THETA * RELEVANCE[rows]
        told, slopes = by_item(curve)
        values = (told[rows] * clicks).sum(axis=1)
        counts = np.bincount(rows[clicks], minlength=4) / n
        half = 1.95996 * float(values.std(ddof=1)) / np.sqrt(n)
        credited = CreditedDifference(
            float(values.mean()), half, curve, counts @ slopes
        )
        found = refitted_difference(credited, curve, without, 0.05)
        held += (
            found.low <= truth <= found.high,
            found.mean - half <= truth <= found.mean + half,
        )
    assert abs(held[0] / n_runs - 0.95) < 0.039
    assert held[1] / n_runs < 0.88


def test_one_group_tells_no_error() -> None:
    """It says how many there are."""
    with pytest.raises(ValueError, match="without two groups or more; got 1"):
        refitted_difference(
            CreditedDifference(0.0, 0.1, THETA, THETA), THETA, [THETA], 0.05
        )
