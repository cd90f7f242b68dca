"""How a curve of bias is fitted: by its estimator, and to its anchor."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.bias.registry import bias_estimator, fitted
from models.bias.trust_anchor import Anchor, anchored_fit
from models.estimators.bias_curve import BiasCurve
from rankstream.configuration.curves import (
    CurveSettings,
    PooledCurve,
    PositionCurve,
    TrustCurve,
)
from streams.training.curves.curve_views import ViewsAsked


class CurveEnds(NamedTuple):
    """Ends of intervals of alpha, each by itself.

    Parameters
    ----------
    low, high : [n_ranks]
        In units of the first rank, as the curve; NaN where there is none.
    confidence
        In (0, 1); None where who has the curve does not know it.
    """

    low: Floats
    high: Floats
    confidence: float | None = None

    def first(self, n_ranks: int) -> "CurveEnds":
        """Those of the first ranks."""
        return self._replace(low=self.low[:n_ranks], high=self.high[:n_ranks])


LEAST_RANKS = 2
"""A curve of one rank corrects nothing."""


class CurveEstimator(NamedTuple):
    """What a curve of the settings is fitted by."""

    curve: CurveSettings = PositionCurve()

    @property
    def asked(self) -> ViewsAsked:
        """What it asks of views."""
        curve = self.curve
        has_classes = isinstance(curve, PooledCurve) and curve.classes
        # What was harvested is compared within one intervention.
        is_harvest = not bias_estimator(curve.estimator).has_information
        keeps_unclicked = not isinstance(curve, PositionCurve)
        return ViewsAsked(curve.ranks, is_harvest, keeps_unclicked, has_classes)

    @property
    def _anchor(self) -> list[float]:
        return self.curve.anchor if isinstance(self.curve, TrustCurve) else []

    @property
    def is_ratio_only(self) -> bool:
        """Whether its curves are in units of the first rank."""
        return not self._anchor

    def fit(
        self,
        views: Views,
        others: Views | None = None,
        on_estimate: Callable[[], object] = lambda: None,
    ) -> FittedCurve:
        """The curve of views; see `models.bias.registry.fitted`.

        Raises
        ------
        ValueError
            Where ratios do not go with the anchor.
        """
        found = fitted(
            self.curve.estimator,
            views,
            np.random.default_rng(self.curve.seed),
            n_ranks=self.curve.ranks,
            others=others,
            confidence=self.curve.confidence,
            n_resamples=self.curve.options()["bootstrap"],
            on_estimate=on_estimate,
        )
        return self._anchored(found)

    def point(self, views: Views) -> FittedCurve:
        """The same without a bootstrap, hence without what takes one."""
        curve = self.curve
        estimate = bias_estimator(curve.estimator).estimate
        return self._anchored(estimate(views, curve.ranks, curve.confidence))

    def _anchored(self, found: FittedCurve) -> FittedCurve:
        if not self._anchor or found.n_known < LEAST_RANKS:
            return found
        return anchored_fit(found, Anchor(*self._anchor))

    def usable(self, found: FittedCurve) -> BiasCurve | None:
        """The curve up to the first rank that is not known, where there are two."""
        return usable_curve(found, is_ratio_only=self.is_ratio_only)


def usable_curve(found: FittedCurve, *, is_ratio_only: bool) -> BiasCurve | None:
    """A curve that corrects; None where fewer than two ranks are known."""
    n = found.n_known
    if n < LEAST_RANKS:
        return None
    return BiasCurve(found.alpha[:n], found.beta[:n], is_ratio_only=is_ratio_only)
