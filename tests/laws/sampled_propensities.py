"""Weights of clicks by exact placements, beside those by sampled rankings.

    weight = 1 / rho        rho = sum over ranks of theta[rank] P(item at rank)

Rankings are sampled once for a query and a policy, and all clicks on an item take the
same weight. So what a sample got wrong of rho is an error that no number of clicks
takes away. 1 / rho is convex: the mean weight is too large. An item that no sample
shows has no weight at all, unless the last rank is computed: the probability of each
item there, given the ranks above it. Exact placements have none of these errors.

`python -m tests.laws.sampled_propensities` prints the table of `docs/estimators.md`; it
takes a minute of one core at most. Shapes: `n` items, `k` ranks.

References
----------
Oosterhuis & de Rijke (WSDM 2021), section 6, for estimates from 1,000 rankings; Jensen
(Acta Mathematica 30, 1906) for means of what is convex.
"""

import sys
import time
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from streams.native.placing import placements_of_scores

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SAMPLES = (10, 100, 1_000)
"""Rankings of a sample; 1,000 is what is usual."""

N_DRAWS = 400
"""Samples that the errors of weights are told from."""

N_ITEMS, N_RANKS = 25, 5

SPREADS = {"standard normal": 1.0, "four times as far apart": 4.0}
"""Scores, by how far apart they lie: those of a new ranker, and of a trained one."""


class WeightErrors(NamedTuple):
    """How weights differ from 1 / rho, as a click meets them.

    An item counts as often as users look at it, and clicks on what has no weight are
    left out of mean and deviation.

    Parameters
    ----------
    mean
        Of weight times rho; 1 if nothing is wrong.
    deviation
        Standard deviation of weight times rho from one sample to the next.
    missing
        Share of clicks, in [0, 1], that have no weight.
    """

    mean: float
    deviation: float
    missing: float


def exact_propensities(scores: Floats, theta: Floats) -> Floats:
    """Rho of each item under Plackett-Luce; `scores` [n], `theta` [k], result [n]."""
    found: Floats = placements_of_scores(scores[None], len(theta))[0] @ theta
    return found


def sampled_rankings(
    scores: Floats, n_ranks: int, n_samples: int, rng: np.random.Generator
) -> Integers:
    """The first items of rankings that are drawn, [n_samples, n_ranks].

    `scores` [n].
    """
    keys = scores + rng.gumbel(size=(n_samples, len(scores)))
    return np.argsort(-keys, axis=1)[:, :n_ranks]


def counted_propensities(rankings: Integers, theta: Floats, n: int) -> Floats:
    """Rho as rankings show it: how often each item is at each rank; [n].

    `rankings` [n_samples, k], `theta` [k].
    """
    looked = np.broadcast_to(theta, rankings.shape)
    return np.bincount(rankings.ravel(), looked.ravel(), n) / len(rankings)


def completed_propensities(rankings: Integers, theta: Floats, scores: Floats) -> Floats:
    """The same, but for the last rank: the probability of each item, given the others.

    `rankings` [n_samples, k], `theta` [k], `scores` [n]; [n].
    """
    above = counted_propensities(rankings[:, :-1], theta[:-1], len(scores))
    rates = np.broadcast_to(np.exp(scores - scores.max()), (len(rankings), len(scores)))
    left = rates.copy()
    np.put_along_axis(left, rankings[:, :-1], 0.0, axis=1)
    last = (left / left.sum(axis=1, keepdims=True)).mean(axis=0)
    return np.asarray(above + theta[-1] * last)


def weight_errors(propensities: Floats, rho: Floats) -> WeightErrors:
    """Errors of weights from several samples.

    Parameters
    ----------
    propensities : [n_draws, n]
        Of each sample; 0 where it does not show the item.
    rho : [n]
        What they should be, each above 0.
    """
    looks = np.broadcast_to(rho / rho.sum(), propensities.shape) / len(propensities)
    is_there = propensities > 0.0
    ratios = np.divide(rho, propensities, out=np.ones(looks.shape), where=is_there)
    n_each = np.maximum(is_there.sum(axis=0), 1)
    mean_each = np.where(is_there, ratios, 0.0).sum(axis=0) / n_each
    share = (looks * is_there).sum()
    squares = np.where(is_there, (ratios - mean_each) ** 2, 0.0)
    return WeightErrors(
        float((looks * is_there * ratios).sum() / share),
        float(np.sqrt((looks * squares).sum() / share)),
        float((looks * ~is_there).sum()),
    )


def drawn_errors(
    scores: Floats,
    theta: Floats,
    n_samples: int,
    rng: np.random.Generator,
    *,
    is_completed: bool,
    n_draws: int = N_DRAWS,
) -> WeightErrors:
    """Errors of weights by so many rankings.

    Parameters
    ----------
    scores : [n]
    theta : [k]
    n_samples
        Rankings of a sample.
    is_completed
        Whether the last rank is computed.
    n_draws
        Samples that are drawn.
    """
    found = []
    for _ in range(n_draws):
        rankings = sampled_rankings(scores, len(theta), n_samples, rng)
        if is_completed:
            found.append(completed_propensities(rankings, theta, scores))
        else:
            found.append(counted_propensities(rankings, theta, len(scores)))
    return weight_errors(np.array(found), exact_propensities(scores, theta))


def table(n_draws: int = N_DRAWS) -> Table:
    """All cases side by side."""
    theta = 1.0 / np.arange(1.0, N_RANKS + 1)
    rows = Table(
        title=f"weights of clicks, {N_ITEMS} items, {N_RANKS} ranks",
        title_justify="left",
    )
    rows.add_column("scores")
    rows.add_column("propensities")
    for heading in ("mean, should be 1", "deviation", "clicks without a weight"):
        rows.add_column(heading, justify="right")
    for name, spread in SPREADS.items():
        scores = spread * np.random.default_rng(1).standard_normal(N_ITEMS)
        rho = exact_propensities(scores, theta)
        told = weight_errors(np.stack([rho, rho]), rho)
        rows.add_row(name, "exact", *_cells(told))
        for is_completed in (False, True):
            way = ", last rank computed" if is_completed else ""
            for n_samples in SAMPLES:
                rng = np.random.default_rng(n_samples)
                told = drawn_errors(
                    scores, theta, n_samples, rng, is_completed=is_completed,
                    n_draws=n_draws,
                )  # fmt: skip
                rows.add_row(name, f"{n_samples:,} rankings{way}", *_cells(told))
    return rows


def _cells(told: WeightErrors) -> tuple[str, str, str]:
    return f"{told.mean:.3f}", f"{told.deviation:.3f}", f"{told.missing:.2%}"


def main() -> None:
    """Print the table, and how long it took."""
    started_s = time.process_time()
    console = Console(file=sys.stdout)
    console.print(table())
    spent_s = time.process_time() - started_s
    console.print(f"{N_DRAWS} samples each, {spent_s:.0f} s of CPU", highlight=False)


if __name__ == "__main__":
    main()
