"""Orders of rankers, and whether chance was fair."""

import numpy as np
import pytest

from models.evaluation.balance import log_evidence
from models.evaluation.conclusion import bradley_terry, copeland, cycles


def beats(*pairs: tuple[int, int], n: int = 4) -> np.ndarray:
    """Signs of a tournament."""
    signs = np.zeros((n, n), np.int64)
    for winner, loser in pairs:
        signs[winner, loser], signs[loser, winner] = 1, -1
    return signs


def test_a_circle_is_shown_and_a_line_is_none() -> None:
    """Rock, paper and scissors above a fourth."""
    circle = beats((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))
    line = beats((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))

    assert cycles(circle) == [[0, 1, 2]]
    assert copeland(circle).tolist() == [1, 1, 1, -3]
    assert cycles(line) == []
    assert copeland(line).tolist() == [3, 1, -1, -3]


def test_bradley_terry_recovers_planted_strengths() -> None:
    """From expected wins, and finite where somebody never wins."""
    planted = np.array([1.0, 0.2, -0.3, -0.9])
    odds = 1.0 / (1.0 + np.exp(planted[None, :] - planted[:, None]))
    wins = 1e7 * odds * (1 - np.eye(4))

    assert bradley_terry(wins) == pytest.approx(planted, abs=1e-5)
    never = np.array([[0.0, 10.0], [0.0, 0.0]])
    assert np.isfinite(bradley_terry(never)).all()
    assert bradley_terry(never)[0] > 0


def test_evidence_against_fair_shares_errs_seldom_and_finds_a_leak() -> None:
    """Looked at every hundred: at most 5 % above 20; three per cent lost are found."""
    rng = np.random.default_rng(0)
    shares = np.array([0.5, 0.25, 0.25])
    alarms = found = 0
    n_runs = 300
    for _ in range(n_runs):
        fair = rng.multinomial(100, shares, 50).cumsum(axis=0)
        leaky = rng.multinomial(100, [0.53, 0.235, 0.235], 200).cumsum(axis=0)
        alarms += max(log_evidence(row, shares) for row in fair) > np.log(20)
        found += log_evidence(leaky[-1], shares) > np.log(20)

    assert alarms <= 0.07 * n_runs
    assert found > 0.9 * n_runs
