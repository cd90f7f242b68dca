"""Regret of bandits: exact where lists are uniform, small where they learn."""

import numpy as np
import pytest

from models.arrays import Floats
from models.bandits.position_pie import SHARE
from rankstream.lab.closed_loops.bandit_loop import (
    cascade_regret,
    hotfix_regret,
    pie_regret,
)

RATES = np.array([0.2, 0.7, 0.5, 0.1, 0.3])
EXAMINATION = np.array([0.9, 0.6, 0.3])
UNIFORM = (0.9 * 0.7 + 0.6 * 0.5 + 0.3 * 0.3) - EXAMINATION.sum() * RATES.mean()
"""What a list of tied items loses, in clicks: each item is anywhere alike."""


def means(regrets: list[Floats]) -> tuple[Floats, Floats]:
    """Over runs, with standard errors."""
    runs = np.array(regrets)
    return runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))


@pytest.mark.parametrize("share", [SHARE, 0.0])
def test_before_the_first_look_all_items_are_tied(share: float) -> None:
    """So that PIE's lists lose what uniform ones do, on average."""
    points = np.array([1, 200])
    mean, error = means(
        [
            pie_regret(RATES, EXAMINATION, points, 200, share, np.random.default_rng(s))
            for s in range(40)
        ]
    )
    assert (np.abs(mean - UNIFORM * points) < 4.0 * error).all()


def test_cascade_lists_are_uniform_before_the_first_look_too() -> None:
    """Each three items are as likely, and their order does not matter."""
    triples = [
        1.0 - np.prod(1.0 - RATES[[a, b, c]])
        for a in range(5)
        for b in range(a)
        for c in range(b)
    ]
    points = np.array([200])
    mean, error = means(
        [
            cascade_regret(RATES, 3, points, 200, np.random.default_rng(s))
            for s in range(40)
        ]
    )
    assert abs(mean[0] / 200 - (max(triples) - np.mean(triples))) < 4.0 * error[0] / 200


def test_pie_learns_and_without_its_slot_it_may_not() -> None:
    """Over six times as many lists regret hardly grows; else it grows with them."""
    points = np.array([10_000, 60_000])

    def regret(share: float) -> Floats:
        return means(
            [
                pie_regret(
                    RATES, EXAMINATION, points, 1, share, np.random.default_rng(s)
                )
                for s in range(8)
            ]
        )[0]

    pie, greedy = regret(SHARE), regret(0.0)
    assert pie[1] < 1.6 * pie[0]
    assert greedy[1] > 5.5 * greedy[0]
    assert pie[1] < 0.2 * greedy[1]


def test_who_looks_late_loses_what_came_before() -> None:
    """At least what uniform lists lose until the first look, and learns then."""
    points = np.array([1_000, 10_000])
    mean, _ = means(
        [
            pie_regret(
                RATES, EXAMINATION, points, 1_000, SHARE, np.random.default_rng(s)
            )
            for s in range(8)
        ]
    )
    assert abs(mean[0] / (1_000 * UNIFORM) - 1.0) < 0.05
    assert mean[1] < 2.0 * mean[0]


def test_kl_ucb_learns_from_first_clicks() -> None:
    """Over five times as many lists regret grows by far less, and is small."""
    points = np.array([2_000, 10_000])
    mean, _ = means(
        [
            cascade_regret(RATES, 3, points, 1, np.random.default_rng(s))
            for s in range(2)
        ]
    )
    assert mean[1] < 2.5 * mean[0]
    assert mean[1] < 0.02 * 10_000


def test_hotfix_never_shows_what_it_has_learned() -> None:
    """Its lists lose as much as ever, while its order gets better."""
    points = np.array([20, 2_000, 20_000])
    runs = [
        hotfix_regret(RATES, EXAMINATION, points, np.random.default_rng(s))
        for s in range(10)
    ]
    shown, _ = means([one[0] for one in runs])
    learned, _ = means([one[1] for one in runs])
    assert abs(shown[2] / (20_000 * UNIFORM) - 1.0) < 0.02
    assert learned[0] > 0.05 > learned[1] >= learned[2]
    assert learned[2] < 0.001


def test_a_run_is_that_of_its_seed() -> None:
    """Bit by bit; another seed gives another."""
    points = np.array([500])
    first, again, other = (
        pie_regret(RATES, EXAMINATION, points, 1, SHARE, np.random.default_rng(seed))[0]
        for seed in (1, 1, 2)
    )
    assert first == again != other
