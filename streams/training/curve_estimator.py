"""How a curve of bias is fitted: the estimator of a model's options, and its anchor."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.bias.curve_fit import fitted
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Views
from models.bias.registry import bias_estimator
from models.bias.trust_anchor import Anchor, anchored_fit
from models.estimators.bias_curve import BiasCurve
from rankstream.configuration.curve_options import CurveOptions, curve_options
from rankstream.settings import ModelSettings
from streams.training.curve_views import ViewsAsked

LEAST_RANKS = 2
"""A curve of one rank corrects nothing."""

POSITION = "position"


class CurveEstimator(NamedTuple):
    """An estimator with its options.

    Parameters
    ----------
    options
        Of the model.
    seed
        Of the bootstrap.
    """

    options: CurveOptions = CurveOptions()
    seed: int = 0

    @property
    def asked(self) -> ViewsAsked:
        """What it asks of views."""
        name, has_classes = self.options.estimator, self.options.classes
        # What was harvested is compared within one intervention.
        is_harvest = not bias_estimator(name).has_information
        keeps_unclicked = name != POSITION
        return ViewsAsked(self.options.ranks, is_harvest, keeps_unclicked, has_classes)

    @property
    def is_ratio_only(self) -> bool:
        """Whether its curves are in units of the first rank."""
        return self.options.anchor is None

    def fit(
        self,
        views: Views,
        others: Views | None = None,
        on_estimate: Callable[[], object] = lambda: None,
    ) -> FittedCurve:
        """The curve of views; see `models.bias.curve_fit.fitted`.

        Raises
        ------
        ValueError
            Where ratios do not go with the anchor.
        """
        found = fitted(
            self.options.estimator,
            views,
            np.random.default_rng(self.seed),
            n_ranks=self.options.ranks,
            others=others,
            confidence=self.options.confidence,
            n_resamples=self.options.bootstrap,
            on_estimate=on_estimate,
        )
        return self._anchored(found)

    def point(self, views: Views) -> FittedCurve:
        """The same without a bootstrap, hence without what takes one."""
        options = self.options
        estimate = bias_estimator(options.estimator).estimate
        return self._anchored(estimate(views, options.ranks, options.confidence))

    def _anchored(self, found: FittedCurve) -> FittedCurve:
        if self.options.anchor is None or found.n_known < LEAST_RANKS:
            return found
        return anchored_fit(found, Anchor(*self.options.anchor))

    def usable(self, found: FittedCurve) -> BiasCurve | None:
        """The curve up to the first rank that is not known, where there are two."""
        return usable_curve(found, is_ratio_only=self.is_ratio_only)


def estimator_of(model: ModelSettings) -> CurveEstimator:
    """That of a model that is a curve.

    Raises
    ------
    ValueError
        Where an option cannot be so.
    """
    return CurveEstimator(curve_options(model.options), model.seed)


def usable_curve(found: FittedCurve, *, is_ratio_only: bool) -> BiasCurve | None:
    """A curve that corrects; None where fewer than two ranks are known."""
    n = found.n_known
    if n < LEAST_RANKS:
        return None
    return BiasCurve(found.alpha[:n], found.beta[:n], is_ratio_only=is_ratio_only)
