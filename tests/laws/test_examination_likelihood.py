"""The examination curve is a maximum of the likelihood that other algorithms find."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import check_grad, minimize

from models.bias import examination as public
from models.bias.examination import ExaminationCurve, estimate_examination
from models.bias.position_based_likelihood import (
    TOLERANCE,
    Fit,
    Pairs,
    fit_position_based,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

N_RANKS = 10


class Counts(NamedTuple):
    """Rows of (document, rank from 1), and what the users were planted with."""

    documents: Integers
    ranks: Integers
    shown: Integers
    clicked: Integers
    planted: Floats


def counts_of(
    seed: int,
    *,
    n_documents: int = 12,
    views: float = 60.0,
    power: float = 0.8,
    apart: float = 2.0,
) -> Counts:
    """Better documents stand higher; a place off is `apart` times rarer."""
    rng = np.random.default_rng(seed)
    planted = np.arange(1.0, N_RANKS + 1) ** -power
    relevance = rng.uniform(0.05, 0.95, n_documents)
    usual = 1.0 + (1.0 - relevance) * (N_RANKS - 1)
    documents, ranks = np.divmod(np.arange(n_documents * N_RANKS), N_RANKS)
    often = views * apart ** -np.abs(ranks + 1 - usual[documents])
    shown = rng.poisson(often)
    chance = planted[ranks] / planted.max() * relevance[documents]
    clicked = rng.binomial(shown, chance)
    return Counts(documents, ranks + 1, shown, clicked, planted)


def estimated(counts: Counts, confidence: float = 0.95) -> ExaminationCurve:
    """By the function of the product."""
    return estimate_examination(*counts[:4], n_ranks=N_RANKS, confidence=confidence)


def fitted(counts: Counts, **options: int) -> tuple[Fit, Pairs]:
    """What lies below it."""
    table = public._added_up(counts[0], counts[1] - 1, counts[2], counts[3], N_RANKS)
    _, pairs = public._pairs_of(table, public._telling(table, N_RANKS))
    return fit_position_based(pairs, **options), pairs


class Oracle:
    """The likelihood written down a second time, for an optimiser of somebody else's.

    All logarithms of examination and relevance are free up to 0, less a hair.
    """

    def __init__(self, pairs: Pairs) -> None:
        self.n_ranks, self.n_documents = len(pairs.clicks_at), len(pairs.clicks_of)
        self.documents = np.repeat(np.arange(self.n_documents), np.diff(pairs.offsets))
        self.rows, self.pairs = pairs.rows, pairs

    def loss(self, logs: Floats) -> float:
        """The negative log likelihood."""
        theta, gamma = logs[: self.n_ranks], logs[self.n_ranks :]
        p = np.exp(theta[self.rows] + gamma[self.documents])
        missed = self.pairs.missed
        with np.errstate(divide="ignore", invalid="ignore"):
            of_missed = np.where(missed > 0, missed * np.log1p(-p), 0.0).sum()
        of_clicks = self.pairs.clicks_at @ theta + self.pairs.clicks_of @ gamma
        return float(-of_missed - of_clicks)

    def slope(self, logs: Floats) -> Floats:
        """Its gradient."""
        theta, gamma = logs[: self.n_ranks], logs[self.n_ranks :]
        p = np.exp(theta[self.rows] + gamma[self.documents])
        missed = self.pairs.missed
        odds = np.where(missed > 0, missed * p / np.maximum(1.0 - p, 1e-300), 0.0)
        return np.concatenate([
            np.bincount(self.rows, odds, self.n_ranks) - self.pairs.clicks_at,
            np.bincount(self.documents, odds) - self.pairs.clicks_of,
        ])  # fmt: skip

    def best(self) -> tuple[float, Floats]:
        """Largest log likelihood, and ratios to the first rank."""
        start = np.full(self.n_ranks + self.n_documents, -1.0)
        for _ in range(3):
            found = minimize(
                self.loss,
                start,
                jac=self.slope,
                method="L-BFGS-B",
                bounds=[(-30.0, -1e-13)] * len(start),
                options={
                    "maxiter": 20_000, "maxfun": 200_000, "maxcor": 60,
                    "ftol": 1e-16, "gtol": 1e-9,
                },
            )  # fmt: skip
            start = found.x
        theta = found.x[: self.n_ranks]
        return -float(found.fun), np.exp(theta - theta[0])


def test_the_slope_of_the_oracle_is_that_of_its_loss() -> None:
    """By finite differences, inside the bounds."""
    oracle = Oracle(fitted(counts_of(1))[1])
    rng = np.random.default_rng(2)
    for _ in range(5):
        logs = -rng.uniform(0.1, 3.0, oracle.n_ranks + oracle.n_documents)
        size = np.abs(oracle.slope(logs)).max()
        assert check_grad(oracle.loss, oracle.slope, logs) < 1e-4 * size


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("n_documents", "views", "power"),
    [(12, 60.0, 0.8), (60, 4.0, 1.0), (5, 3_000.0, 0.5), (25, 30.0, -0.7)],
    ids=["ordinary", "few views", "many views", "later ranks are looked at more"],
)
def test_it_is_the_maximum_of_the_oracle(
    n_documents: int, views: float, power: float, seed: int
) -> None:
    """The same likelihood to rounding, the same ratios to what the oracle reaches."""
    counts = counts_of(seed, n_documents=n_documents, views=views, power=power)
    fit, pairs = fitted(counts)
    likelihood, ratios = Oracle(pairs).best()
    found = estimated(counts).ratios

    assert fit.is_converged
    assert fit.log_likelihood >= likelihood - 1e-9 * abs(likelihood)
    assert fit.log_likelihood == pytest.approx(likelihood, rel=1e-7)
    assert found[np.isfinite(found)] == pytest.approx(ratios, rel=2e-3)
    # Clicks that are expected at each rank are those that were counted.
    inside = fit.examination < 1.0
    assert (np.abs(fit.slopes) <= TOLERANCE * pairs.clicks_at)[inside].all()


def maximised(pairs: Pairs, n_iterations: int, *, clipped: bool = False) -> Floats:
    """Expectation maximisation, plain; or as it was, with a wrong second step."""
    documents = np.repeat(np.arange(len(pairs.clicks_of)), np.diff(pairs.offsets))
    rows, missed = pairs.rows, pairs.missed
    theta, gamma = (
        np.full(len(pairs.clicks_at), 0.5),
        np.full(len(pairs.clicks_of), 0.5),
    )
    # Clicks of each pair are not kept, and only their sums matter.
    views_at = np.bincount(rows, missed) + pairs.clicks_at
    views_of = np.bincount(documents, missed) + pairs.clicks_of
    for _ in range(n_iterations):
        p = theta[rows] * gamma[documents]
        unseen = missed * theta[rows] * (1 - gamma[documents]) / (1 - p)
        liked = missed * gamma[documents] * (1 - theta[rows]) / (1 - p)
        theta = (pairs.clicks_at + np.bincount(rows, unseen)) / views_at
        gamma = (pairs.clicks_of + np.bincount(documents, liked)) / views_of
        if clipped:
            theta = np.clip(theta / theta[0], 1e-9, 1.0 - 1e-9)
    return np.concatenate([np.log(theta), np.log(gamma)])


def test_expectation_maximisation_gets_there_when_it_is_given_time() -> None:
    """A third algorithm; after 40 turns it is far off, and never above."""
    counts = counts_of(3, n_documents=200, views=20_000.0, apart=100.0)
    fit, pairs = fitted(counts)
    oracle = Oracle(pairs)
    likelihoods, ratios = [], []
    for n in (40, 400, 20_000):
        logs = maximised(pairs, n)
        likelihoods.append(-oracle.loss(logs))
        ratios.append(np.exp(logs[:N_RANKS] - logs[0]))
    expected = fit.examination / fit.examination[0]

    assert sorted(likelihoods) == likelihoods
    assert likelihoods[-1] <= fit.log_likelihood + 1e-9 * abs(fit.log_likelihood)
    assert ratios[-1] == pytest.approx(expected, rel=1e-3)
    assert np.abs(ratios[0] / expected - 1).max() > 0.2
    assert fit.log_likelihood - likelihoods[0] > 10.0


def test_dividing_by_the_first_rank_within_iterations_is_no_maximum() -> None:
    """As it was done; where a later rank is looked at more it never gets there."""
    fit, pairs = fitted(counts_of(4, n_documents=40, views=100.0, power=-0.5))
    wrong = -Oracle(pairs).loss(maximised(pairs, 5_000, clipped=True))

    assert fit.log_likelihood - wrong > 10.0


@pytest.mark.parametrize("seed", range(4))
def test_the_likelihood_never_falls(seed: int) -> None:
    """From step to step; and a search that is cut short does not call itself over."""
    counts = counts_of(seed, n_documents=80, views=8.0)
    fits = [fitted(counts, most_steps=n)[0] for n in range(30)]
    last = fits[-1]
    likelihoods = np.array([fit.log_likelihood for fit in fits])

    assert last.is_converged
    assert 2 < last.n_steps < 25
    assert (np.diff(likelihoods) >= -1e-12 * abs(likelihoods[-1])).all()
    assert not any(fit.is_converged for fit in fits[: last.n_steps])
    assert all(fit.n_steps == last.n_steps for fit in fits[last.n_steps :])


def test_splitting_and_shuffling_rows_changes_nothing() -> None:
    """Nor do other numbers for the documents."""
    counts = counts_of(5)
    rng = np.random.default_rng(6)
    part_shown = rng.integers(counts.shown + 1)
    least = np.maximum(0, counts.clicked - (counts.shown - part_shown))
    most = np.minimum(counts.clicked, part_shown)
    part_clicked = rng.integers(least, most + 1)
    order = rng.permutation(2 * len(counts.ranks))
    split = [
        np.concatenate([one, other])[order]
        for one, other in (
            (counts.documents, counts.documents),
            (counts.ranks, counts.ranks),
            (part_shown, counts.shown - part_shown),
            (part_clicked, counts.clicked - part_clicked),
        )
    ]
    split[0] = (split[0] << 32) + 7
    expected, found = estimated(counts), estimate_examination(*split, n_ranks=N_RANKS)

    for one, other in zip(
        expected.__dict__.values(), found.__dict__.values(), strict=True
    ):
        assert np.array_equal(one, other, equal_nan=isinstance(one, np.ndarray))


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """95 and 80 %, over 600 runs, rank by rank and over all ranks."""
    n_runs = 600
    for confidence in (0.95, 0.8):
        holds = np.zeros((n_runs, N_RANKS), np.bool_)
        for seed in range(n_runs):
            counts = counts_of(1_000 + seed, n_documents=15, views=150.0)
            curve = estimated(counts, confidence=confidence)
            assert set(curve.reasons) == {""}
            holds[seed] = (curve.low <= counts.planted) & (counts.planted <= curve.high)
        deviation = np.sqrt(confidence * (1 - confidence) / n_runs)
        assert holds[:, 0].all()
        share = holds[:, 1:].mean(axis=0)
        assert np.abs(share - confidence).max() < 4.0 * deviation
        assert abs(share.mean() - confidence) < 2.5 * deviation
