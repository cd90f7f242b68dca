"""Weights by sampled rankings: what is wrong with them, by enumeration of all samples.

A sample of rankings is a multinomial count of all lists that could be drawn.
"""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

from tests.laws.sampled_propensities import (
    Floats,
    completed_propensities,
    counted_propensities,
    drawn_errors,
    exact_propensities,
    table,
    weight_errors,
)

SCORES = np.array([0.4, 0.0, -0.9])
THETA = np.array([1.0, 0.5])
LISTS = np.array([*itertools.permutations(range(3), 2)])


def chances() -> Floats:
    """Of each list, by Plackett-Luce."""
    rates = np.exp(SCORES)
    first = rates[LISTS[:, 0]] / rates.sum()
    return np.asarray(first * rates[LISTS[:, 1]] / (rates.sum() - rates[LISTS[:, 0]]))


def samples(n_samples: int) -> Iterator[tuple[float, np.ndarray]]:
    """All samples of so many rankings, in any order, and how likely each is."""
    logs = np.log(chances())
    for drawn in itertools.combinations_with_replacement(range(len(LISTS)), n_samples):
        counts = np.bincount(drawn, minlength=len(LISTS))
        orders = math.lgamma(n_samples + 1) - sum(math.lgamma(n + 1) for n in counts)
        yield math.exp(orders + counts @ logs), LISTS[[*drawn]]


class Moments:
    """Of propensities and of weights times rho, by item, over all samples."""

    def __init__(self, n_samples: int, *, is_completed: bool) -> None:
        rho = exact_propensities(SCORES, THETA)
        likely, found = [], []
        for chance, rankings in samples(n_samples):
            likely.append(chance)
            if is_completed:
                found.append(completed_propensities(rankings, THETA, SCORES))
            else:
                found.append(counted_propensities(rankings, THETA, 3))
        chance_of, self.rho = np.array(likely)[:, None], rho
        drawn = np.array(found)
        self.total = float(chance_of.sum())
        self.mean = (chance_of * drawn).sum(axis=0)
        self.variance = (chance_of * (drawn - rho) ** 2).sum(axis=0)
        seen = chance_of * (drawn > 0.0)
        self.missing = 1.0 - seen.sum(axis=0)
        ratios = rho / np.where(drawn > 0.0, drawn, 1.0)
        self.weight = (seen * ratios).sum(axis=0) / seen.sum(axis=0)
        squared = (seen * (ratios - self.weight) ** 2).sum(axis=0)
        self.weight_variance = squared / seen.sum(axis=0)


def test_exact_propensities_are_those_of_all_lists() -> None:
    """And their weights have no error."""
    expected = np.zeros(3)
    for chance, ranking in zip(chances(), LISTS, strict=True):
        expected[ranking] += chance * THETA
    rho = exact_propensities(SCORES, THETA)

    assert np.abs(rho - expected).max() < 1e-12
    told = weight_errors(np.stack([rho, rho]), rho)
    assert told.mean == pytest.approx(1.0, abs=1e-12)
    assert told.missing == 0.0
    assert told.deviation == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("is_completed", [False, True])
def test_sampled_propensities_are_unbiased_and_their_weights_are_not(
    is_completed: bool,
) -> None:
    """Weights are too large on average, of each item; less so with more rankings."""
    found = [Moments(n, is_completed=is_completed) for n in (4, 8, 12)]

    for one in found:
        assert one.total == pytest.approx(1.0, abs=1e-9)
        assert np.abs(one.mean - one.rho).max() < 1e-9
    # Items that a short sample does not show have no weight that could be large.
    first = 0 if is_completed else 1
    for one in found[first:]:
        assert (one.weight > 1.0 + 1e-6).all()
    for fewer, more in itertools.pairwise(found[first:]):
        assert (more.weight < fewer.weight).all()
        assert (more.weight_variance < fewer.weight_variance).all()
        assert (more.variance < fewer.variance).all()


def test_computing_the_last_rank_leaves_less_to_chance() -> None:
    """And each item has a weight; without it, those that no sample shows have none."""
    counted, completed = (Moments(4, is_completed=is_so) for is_so in (False, True))

    assert (completed.variance < counted.variance).all()
    assert np.abs(completed.missing).max() < 1e-12
    absent = np.array([chances()[np.all(i != LISTS, axis=1)].sum() for i in range(3)])
    assert counted.missing == pytest.approx(absent**4, rel=1e-6)


@pytest.mark.parametrize("is_completed", [False, True])
def test_drawn_samples_have_the_errors_of_all_samples(is_completed: bool) -> None:
    """As a click meets them: items by how often they are looked at."""
    one = Moments(8, is_completed=is_completed)
    rng = np.random.default_rng(3)
    told = drawn_errors(SCORES, THETA, 8, rng, is_completed=is_completed, n_draws=6_000)
    looks = one.rho / one.rho.sum()
    seen = looks * (1.0 - one.missing)
    seen /= seen.sum()

    assert told.mean == pytest.approx(float(seen @ one.weight), rel=0.02)
    deviation = math.sqrt(float(seen @ one.weight_variance))
    assert told.deviation == pytest.approx(deviation, rel=0.06)
    assert told.missing == pytest.approx(float(looks @ one.missing), abs=0.004)


def test_the_table_of_weights_has_every_case() -> None:
    """Exact, counted and computed, of both spreads."""
    rows = table(n_draws=3)

    assert rows.row_count == 2 * 7
    assert next(iter(rows.columns[2].cells)) == "1.000"
    assert next(iter(rows.columns[3].cells)) == "0.000"
