"""Rewards from logged propensities, by enumeration of all that could be logged."""

import itertools
import math

import numpy as np
import pytest

from models.estimators.bandit_arrays import BanditArrays, Floats, bandit_arrays
from models.estimators.bandit_reward import RoundReward, round_reward

LOGGED = np.array([0.6, 0.3, 0.1])
TARGET = np.array([0.1, 0.2, 0.7])
CLICKED = np.array([0.2, 0.5, 0.9])
TRUTH = float(TARGET @ CLICKED)


def rounds(actions: list[int], clicks: list[int], p: Floats = LOGGED) -> BanditArrays:
    """Rounds of a policy."""
    action = np.array(actions, np.int64)
    zeros = np.zeros_like(action)
    reward, context = np.array(clicks, np.int64), np.zeros((len(action), 0))
    return bandit_arrays(action, zeros, reward, p[action], context, n_actions=3)


def all_logs(n: int) -> list[tuple[float, RoundReward]]:
    """Each log of n rounds with its probability."""
    found = []
    for actions in itertools.product(range(3), repeat=n):
        for clicks in itertools.product((0, 1), repeat=n):
            chance = math.prod(
                LOGGED[a] * (CLICKED[a] if c else 1.0 - CLICKED[a])
                for a, c in zip(actions, clicks, strict=True)
            )
            log = rounds(list(actions), list(clicks))
            found.append((chance, round_reward(log, TARGET[log.action])))
    return found


def mean(logs: list[tuple[float, RoundReward]], name: str) -> float:
    """Expectation of a field; logs without it count as 0."""
    return float(sum(p * np.nan_to_num(getattr(each, name)) for p, each in logs))


def test_weighted_rewards_are_those_of_the_target_on_average() -> None:
    """Whatever the policy that logged; the plain mean is that policy's own reward."""
    logs = all_logs(2)

    assert mean(logs, "inverse") == pytest.approx(TRUTH, abs=1e-12)
    assert mean(logs, "naive") == pytest.approx(LOGGED @ CLICKED, abs=1e-12)
    assert abs(TRUTH - LOGGED @ CLICKED) > 0.3


def test_the_ratio_is_biased_and_less_so_with_more_rounds() -> None:
    """It is consistent only."""
    biases = [abs(mean(all_logs(n), "self_normalised") - TRUTH) for n in (1, 2, 4)]

    assert biases[0] > biases[1] > biases[2] > 0.01
    # Of one round it is the click itself, whatever its weight.
    assert mean(all_logs(1), "self_normalised") == pytest.approx(LOGGED @ CLICKED)


def test_squared_errors_are_variances_on_average() -> None:
    """Of the two means; exactly, as each round is drawn by itself."""
    logs = all_logs(3)
    for name, error in (("inverse", "inverse_error"), ("naive", "naive_error")):
        centre = mean(logs, name)
        variance = sum(p * (getattr(each, name) - centre) ** 2 for p, each in logs)
        squared = sum(p * getattr(each, error) ** 2 for p, each in logs)
        assert squared == pytest.approx(variance, abs=1e-12)


def test_the_error_of_the_ratio_is_that_without_each_round() -> None:
    """The linearised one is near the jackknife's, of many rounds."""
    rng = np.random.default_rng(5)
    actions = rng.choice(3, 400, p=LOGGED)
    clicks = (rng.random(400) < CLICKED[actions]).astype(np.int64)
    found = round_reward(rounds(actions.tolist(), clicks.tolist()), TARGET[actions])
    w = TARGET[actions] / LOGGED[actions]
    without = ((w * clicks).sum() - w * clicks) / (w.sum() - w)
    jackknife = np.sqrt(((without - without.mean()) ** 2).sum() * 399 / 400)

    assert found.self_normalised_error == pytest.approx(jackknife, rel=0.05)
    # A ratio, and so its error, is the same where all weights are a tenth of it.
    of_w = rounds(actions.tolist(), clicks.tolist(), np.ones(3))
    whole = round_reward(of_w, w / w.max())
    light = round_reward(of_w, w / w.max() / 10.0)
    assert light.self_normalised == pytest.approx(found.self_normalised, rel=1e-12)
    for each in (whole, light):
        assert each.self_normalised_error == pytest.approx(
            found.self_normalised_error, rel=1e-12
        )


def test_errors_by_list_take_rounds_of_one_together() -> None:
    """Each round twice is no more than once."""
    once = rounds([0, 1, 2, 1], [0, 1, 1, 0])
    twice = rounds([0, 1, 2, 1] * 2, [0, 1, 1, 0] * 2)
    lists = np.tile(np.arange(4), 2)
    by_list = round_reward(twice, TARGET[twice.action], lists)
    plain = round_reward(once, TARGET[once.action])

    assert by_list.inverse_error == pytest.approx(plain.inverse_error, abs=1e-12)
    assert by_list.self_normalised_error == pytest.approx(
        plain.self_normalised_error, abs=1e-12
    )
    assert round_reward(twice, TARGET[twice.action]).inverse_error < plain.inverse_error


def test_support_tells_how_few_rounds_count() -> None:
    """One heavy click of four rounds."""
    found = round_reward(rounds([0, 0, 0, 2], [1, 0, 0, 1]), TARGET[[0, 0, 0, 2]])
    light, heavy = 1 / 6, 7.0

    assert found.largest_share == pytest.approx(heavy / (heavy + light), abs=1e-12)
    effective = (3 * light + heavy) ** 2 / (3 * light**2 + heavy**2)
    assert found.effective_rounds == pytest.approx(effective, abs=1e-12)


def test_rounds_of_unknown_propensity_are_left_out_and_counted() -> None:
    """All of them where nobody knows any: there is no reward then."""
    unknown = rounds([0, 1, 2], [1, 1, 0], np.array([0.6, np.nan, 0.1]))
    found = round_reward(unknown, TARGET)
    known = round_reward(rounds([0, 2], [1, 0]), TARGET[[0, 2]])

    assert found.n_unknown == 1
    assert found[:8] == known[:8]
    none = round_reward(rounds([0], [1], np.full(3, np.nan)), TARGET[:1])
    assert np.isnan(none[:6]).all()
    assert none[6:] == pytest.approx((0.0, np.nan, 1), nan_ok=True)


def test_a_target_that_shows_none_of_it_has_no_ratio() -> None:
    """Its weighted mean is 0, which support shows to be nothing."""
    found = round_reward(rounds([0, 1], [1, 1]), np.zeros(2))

    assert (found.inverse, found.effective_rounds) == (0.0, 0.0)
    assert np.isnan(found.self_normalised)
    assert np.isnan(found.largest_share)


def test_what_is_no_target_is_refused() -> None:
    """As many probabilities as rounds."""
    log = rounds([0, 1], [1, 1])
    with pytest.raises(ValueError, match="of 2 rounds"):
        round_reward(log, TARGET)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\]; got 2 in round 1"):
        round_reward(log, np.array([0.5, 2.0]))
    with pytest.raises(ValueError, match="lists must be of 2 rounds"):
        round_reward(log, TARGET[:2], np.arange(3))
