"""Whether clicks show trust bias, or position bias alone tells them as well.

Position bias alone is the curve of trust bias with v = 0, that is beta = 0 at all of
its k ranks. Where it is true

    2 (log likelihood with trust bias - log likelihood without)

would be chi square of k - 1 degrees if relevances were known and nothing lay at its
bound. Each relevance is fitted too, which makes it larger, and items that are hardly
ever clicked leave beta no room below 0, which makes it smaller. So logs are drawn from
the fit without trust bias, with the same views, and the statistic is held against its
mean over them: a ratio of means that is F with k - 1 and n (k - 1) degrees.

Clicks of one query are not independent of one another: the scale is by how much more
the slopes vary from query to query than the curvature says, on average over the
degrees, and at least 1. The statistic is divided by it, and the mean of drawn logs is
then raised towards that of chi square, as their clicks are independent.

References
----------
Self & Liang (JASA 82, 1987), for parameters on a boundary; Rocke (J. Statist. Comput.
Simul. 32, 1989), for the mean of drawn logs; Rao & Scott (Annals of Statistics 12,
1984), section 3, for the scale.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import fdtrc

from models.arrays import Floats, Integers
from models.bias.examination import NOT_CONVERGED
from models.bias.logged_views import Cells, Views, cells_of
from models.bias.trust import ENOUGH_VIEWS, near_maximum, ratios_of, told_cells
from models.bias.trust_likelihood import Peak, Sums, climb, sums_of

LEVEL = 0.05
"""Of position-only logs at most so many seem to have trust bias."""

MOST_CELLS = 1 << 14
"""Of the items that were shown most: more would only be slower."""

N_DRAWN = 19
"""Logs without trust bias."""

LEAST_QUERIES = 50
"""For the scale; of fewer, clicks are taken as independent."""

LEAST_USUAL = 0.1
"""Of the statistic: where it has no room to be larger, that is no reason to reject."""

ZERO = 1e-9
"""Share of the largest curvature that is rounding."""

NOT_TOLD = "the log cannot tell position bias from trust bias: "


class TrustTest(NamedTuple):
    """What a test of position bias alone says.

    Parameters
    ----------
    statistic, degrees
        Over its mean without trust bias, and degrees of freedom; NaN and 0 where there
        is no test.
    p_value
        In [0, 1]; NaN where there is no test.
    scale
        By which clicks of a query vary more than independent ones, at least 1.
    reason
        Why there is no test; else empty.
    gain
        Twice what trust bias adds to the log likelihood.
    """

    statistic: float
    degrees: int
    p_value: float
    scale: float
    reason: str = ""
    gain: float = np.nan

    @property
    def has_trust_bias(self) -> bool:
        """Whether position bias alone is rejected."""
        return self.p_value < LEVEL

    def told(self) -> str:
        """Which of both holds, in words."""
        if self.reason:
            return NOT_TOLD + self.reason
        figures = (
            f"likelihood ratio {self.statistic:.1f} times what it is without, "
            f"p {self.p_value:.2g}, level {LEVEL:g}"
        )
        if self.has_trust_bias:
            return f"trust bias holds: position bias alone is rejected ({figures})"
        return f"position bias alone holds: it is not rejected ({figures})"


def trust_test(views: Views, rng: np.random.Generator, *, n_ranks: int) -> TrustTest:
    """Test position bias alone against trust bias, by their likelihoods.

    Of items with `ENOUGH_VIEWS` views, at ranks where trust bias can be told. Policies
    must have been fixed before these clicks.

    Parameters
    ----------
    rng
        Draws logs without trust bias.

    Raises
    ------
    ValueError
        Where counts are impossible or a rank is out of range.
    """
    every = cells_of(views, n_ranks)
    cells = told_cells(_most_shown(every), reasons := [""] * n_ranks)
    rows, sums = sums_of(cells)
    if len(rows) < 2:
        return TrustTest(np.nan, 0, np.nan, 1.0, _reason(reasons))
    without, beside = _both(cells, sums)
    if not (without.is_converged and beside.is_converged):
        return TrustTest(np.nan, 0, np.nan, 1.0, NOT_CONVERGED)
    usual = _usual(cells, sums, without, rng)
    scale = _scale(views, cells, rows, without)
    gain, degrees = _gain(without, beside), len(rows) - 1
    # Clicks that go together wander past what room single ones have.
    usual = max(usual, degrees * (1.0 - 1.0 / scale))
    statistic = gain / (usual * scale)
    p_value = float(fdtrc(degrees, N_DRAWN * degrees, statistic))
    return TrustTest(statistic, degrees, p_value, scale, gain=gain)


def _gain(without: Peak, beside: Peak) -> float:
    gain = beside.log_likelihoods[-1] - without.log_likelihoods[-1]
    return max(2.0 * float(gain), 0.0)


def _usual(cells: Cells, sums: Sums, without: Peak, rng: np.random.Generator) -> float:
    """The mean gain of logs of the same views without trust bias.

    Each item is drawn with half a click more: one that had none could else have none.
    """
    looks = np.bincount(cells.items, cells.shown * without.ends[sums.rows])
    relevance = np.minimum(without.relevance + 0.5 / looks, 1.0)
    chance = relevance[cells.items] * without.ends[sums.rows]
    shown, gains = cells.shown.astype(np.int64), []
    for _ in range(N_DRAWN):
        clicked = rng.binomial(shown, np.clip(chance, 0.0, 1.0)).astype(np.float64)
        drawn = cells._replace(clicked=clicked)
        gains.append(_gain(*_both(drawn, sums_of(drawn)[1])))
    return max(float(np.mean(gains)), LEAST_USUAL)


def _reason(reasons: list[str]) -> str:
    found = next((why for why in reasons if why), "")
    return found or f"no two items with {ENOUGH_VIEWS} views differ and lead to rank 1"


def _most_shown(cells: Cells) -> Cells:
    """Items that were shown often, which nobody's clicks have chosen."""
    n_items = len(cells.names)
    views = np.bincount(cells.items, cells.shown, n_items)
    order = np.argsort(-views, kind="stable")
    n_cells = np.cumsum(np.bincount(cells.items, minlength=n_items)[order])
    is_kept = np.zeros(n_items, np.bool_)
    is_kept[order[n_cells <= MOST_CELLS]] = True
    is_kept &= views >= ENOUGH_VIEWS
    return cells.at(is_kept[cells.items])


def _both(cells: Cells, sums: Sums) -> tuple[Peak, Peak]:
    """The maximum where nothing that is not relevant is clicked, and the other one."""
    k, n_items = sums.n_ranks, len(cells.names)
    clicked = np.bincount(sums.rows, sums.clicked, k)
    rates = clicked / (clicked + np.bincount(sums.rows, sums.missed, k))
    is_noise = np.arange(2 * k) >= k
    ends = np.concatenate([0.9 * rates / rates.max(), np.zeros(k)])
    start = np.full(n_items, 0.5)
    without = climb(sums, start, ends, ratios_of, is_fixed=is_noise)
    near = near_maximum(cells, sums.rows)
    found = [
        climb(sums, near[:n_items], near[n_items:], ratios_of),
        climb(sums, without.relevance, without.ends, ratios_of),
    ]
    return without, max(found, key=lambda peak: float(peak.log_likelihoods[-1]))


def _scale(views: Views, cells: Cells, rows: Integers, without: Peak) -> float:
    """How much more slopes vary over queries than their curvature says, 1 or more."""
    slopes = _slopes_of_queries(views, cells, rows, without)
    if len(slopes) < LEAST_QUERIES:
        return 1.0
    k = len(rows)
    uu, uv = without.curvature[:k, :k], without.curvature[:k, k:]
    by_u = np.linalg.pinv(uu, ZERO, hermitian=True) @ uv
    left = slopes[:, k:] - slopes[:, :k] @ by_u
    known = without.curvature[k:, k:] - uv.T @ by_u
    values, vectors = np.linalg.eigh(known)
    values, vectors = values[1:], vectors[:, 1:]  # One direction is of units alone.
    is_known = values > ZERO * values[-1]
    varied = ((left @ vectors) ** 2).sum(axis=0)[is_known]
    return max(1.0, float((varied / values[is_known]).mean()))


def _slopes_of_queries(
    views: Views, cells: Cells, rows: Integers, without: Peak
) -> Floats:
    """Of the log likelihood in u and v, [n_queries, 2 k]."""
    k = len(rows)
    items = np.searchsorted(cells.names, views.items)
    items = np.minimum(items, len(cells.names) - 1)
    places = np.minimum(np.searchsorted(rows, views.ranks - 1), k - 1)
    is_used = (cells.names[items] == views.items) & (rows[places] == views.ranks - 1)
    items, places = items[is_used], places[is_used]
    clicked = views.clicked[is_used].astype(np.float64)
    missed = views.shown[is_used] - clicked
    r = without.relevance[items]
    p = r * without.ends[places]
    with np.errstate(divide="ignore", invalid="ignore"):
        slope = np.where(clicked > 0.0, clicked / p, 0.0)
        slope -= np.where(missed > 0.0, missed / (1.0 - p), 0.0)
    names, queries = np.unique(views.queries[is_used], return_inverse=True)
    found = np.zeros((len(names), 2 * k))
    np.add.at(found, (queries, places), slope * r)
    # What is never clicked pulls v down for good, and takes no part.
    np.add.at(found, (queries, places + k), np.where(r > 0.0, slope * (1.0 - r), 0.0))
    return found
