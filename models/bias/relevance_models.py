"""How relevance depends on what is known of items, for a regression on sums.

`liked` of `shown` impressions of each item are relevant, as far as is known; a model is
fitted to these, never worse than it was.

Shapes: n_items items, n parameters.
"""

from abc import abstractmethod
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

N_STEPS = 2
"""Of Newton's method in one turn: the next turn asks for something else anyway."""

MOST_HALVINGS = 40
"""Of one step, before it is given up."""

RIDGE = 1e-12
"""Share of a curvature that is added to it, so that equal features have a step."""

MOST_SCORE = 40.0
"""Of a logistic relevance; beyond it is 0 or 1 to rounding."""


class RelevanceModel(Protocol):
    """Relevance of items by parameters."""

    def start(self) -> Floats:
        """Parameters that make all items half relevant, [n]."""

    def relevance(self, own: Floats) -> Floats:
        """Of each item, [n_items]; `own` [n]."""

    def bounded(self, own: Floats) -> Floats:
        """The nearest parameters that may be, [n]; `own` [n]."""

    def fitted(self, own: Floats, liked: Floats, shown: Floats) -> Floats:
        """Parameters that explain relevance better, [n].

        Parameters
        ----------
        own : [n]
        liked, shown : [n_items]
        """

    def slopes_of_logs(self, own: Floats) -> Floats:
        """Derivatives of the logs of relevance, [n_items, n]; `own` [n]."""


class ClassRelevance(RelevanceModel):
    """One relevance for each class.

    Parameters
    ----------
    classes : [n_items]
    """

    def __init__(self, classes: Integers) -> None:
        names, self._classes = np.unique(classes, return_inverse=True)
        self._n = len(names)

    def start(self) -> Floats:
        """Half, as in `RelevanceModel`."""
        return np.full(self._n, 0.5)

    def relevance(self, own: Floats) -> Floats:
        """Of each item, as in `RelevanceModel.relevance`."""
        return np.asarray(own[self._classes])

    def bounded(self, own: Floats) -> Floats:
        """As in `RelevanceModel.bounded`."""
        return np.clip(own, 0.0, 1.0)

    def fitted(
        self,
        own: Floats,  # noqa: ARG002  of the protocol
        liked: Floats,
        shown: Floats,
    ) -> Floats:
        """As in `RelevanceModel.fitted`."""
        of_class = np.bincount(self._classes, liked, self._n)
        return np.asarray(of_class / np.bincount(self._classes, shown, self._n))

    def slopes_of_logs(self, own: Floats) -> Floats:  # noqa: ARG002  of the protocol
        """As in `RelevanceModel.slopes_of_logs`."""
        # A log of a relevance is its own parameter here, which has no end at 0.
        return np.eye(self._n)[self._classes]


class _OfFeatures(RelevanceModel):
    """Relevance by a weighted sum of features and a constant."""

    def __init__(self, features: Floats) -> None:
        spread = features.std(axis=0)
        centred = features - features.mean(axis=0)
        scaled = centred / np.where(spread > 0.0, spread, 1.0)
        self._table = np.column_stack([np.ones(len(features)), scaled])

    def bounded(self, own: Floats) -> Floats:
        """As in `RelevanceModel.bounded`."""
        return own

    def fitted(self, own: Floats, liked: Floats, shown: Floats) -> Floats:
        """As in `RelevanceModel.fitted`."""
        now = self._likelihood(own, liked, shown)
        for _ in range(N_STEPS):
            slopes, weights = self._slopes(own, liked, shown)
            curvature = self._table.T @ (weights[:, None] * self._table)
            ridge = RIDGE * curvature.diagonal().max(initial=1e-300)
            curvature += ridge * np.eye(len(own))
            step = np.linalg.solve(curvature, self._table.T @ slopes)
            for _ in range(MOST_HALVINGS):
                found = self._likelihood(own + step, liked, shown)
                if found >= now:
                    own, now = own + step, found
                    break
                step = 0.5 * step
            else:
                break
        return own

    @abstractmethod
    def _slopes(
        self, own: Floats, liked: Floats, shown: Floats
    ) -> tuple[Floats, Floats]:
        """First derivative of the likelihood by the sum, and minus the second."""

    def _likelihood(self, own: Floats, liked: Floats, shown: Floats) -> float:
        gamma = self.relevance(own)
        if not ((gamma > 0.0) & (gamma < 1.0)).all():
            return -np.inf
        return float(liked @ np.log(gamma) + (shown - liked) @ np.log1p(-gamma))


class LogisticRelevance(_OfFeatures):
    """1 / (1 + exp(-sum)).

    Parameters
    ----------
    features : [n_items, n_features]
    """

    def start(self) -> Floats:
        """Half, as in `RelevanceModel`."""
        return np.zeros(self._table.shape[1])

    def relevance(self, own: Floats) -> Floats:
        """Of each item, as in `RelevanceModel.relevance`."""
        # Rounding leaves nothing of 1 less a relevance at scores above 36.
        scores = np.clip(self._table @ own, -MOST_SCORE, 0.75 * MOST_SCORE)
        return np.asarray(1.0 / (1.0 + np.exp(-scores)))

    def slopes_of_logs(self, own: Floats) -> Floats:
        """As in `RelevanceModel.slopes_of_logs`."""
        return np.asarray((1.0 - self.relevance(own))[:, None] * self._table)

    def _slopes(
        self, own: Floats, liked: Floats, shown: Floats
    ) -> tuple[Floats, Floats]:
        gamma = self.relevance(own)
        return liked - shown * gamma, shown * gamma * (1.0 - gamma)


class LinearRelevance(_OfFeatures):
    """The sum itself, which must lie between 0 and 1 for every item.

    Parameters
    ----------
    features : [n_items, n_features]
    """

    def start(self) -> Floats:
        """Half, as in `RelevanceModel`."""
        half = np.zeros(self._table.shape[1])
        half[0] = 0.5
        return half

    def relevance(self, own: Floats) -> Floats:
        """Of each item, as in `RelevanceModel.relevance`."""
        return np.asarray(self._table @ own)

    def slopes_of_logs(self, own: Floats) -> Floats:
        """As in `RelevanceModel.slopes_of_logs`."""
        return np.asarray(self._table / self.relevance(own)[:, None])

    def _slopes(
        self, own: Floats, liked: Floats, shown: Floats
    ) -> tuple[Floats, Floats]:
        gamma = self.relevance(own)
        missed = shown - liked
        slopes = liked / gamma - missed / (1.0 - gamma)
        return slopes, liked / gamma**2 + missed / (1.0 - gamma) ** 2
