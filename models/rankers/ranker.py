"""What every ranker is: a score of an item, over one flat vector of parameters."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from models.arrays import Floats, Singles
from models.rankers import layers
from models.rankers.item_scores import fill_scores

ACTIVATIONS = {"sigmoid": layers.SIGMOID, "tanh": layers.TANH, "relu": layers.RELU}


class Scorer(Protocol):
    """A scoring function; what ranks need not say how to change it."""

    @property
    def n_parameters(self) -> int:
        """Length of the flat vector."""

    @property
    def proportional(self) -> slice:
        """Where parameters lie that scores are proportional to."""

    def item_scores(self, parameters: Floats, features: Singles) -> Floats:
        """Scores of items as trainings see them, the same bits on every run.

        Parameters
        ----------
        parameters : [n_parameters]
        features : [n_items, n_features]

        Returns
        -------
        [n_items]
        """


class Ranker(Scorer, Protocol):
    """A differentiable scoring function."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features, hidden layers, 1."""

    @property
    def shape(self) -> layers.Shape:
        """The same, and the activation, as kernels take it."""

    def initial_parameters(self, *, rng: np.random.Generator) -> Floats:
        """Where learning begins."""

    def score(self, parameters: Floats, features: Floats) -> Floats:
        """Scores of documents.

        Parameters
        ----------
        parameters : [n_parameters]
        features : [n_documents, n_features]

        Returns
        -------
        [n_documents]
        """

    def accumulate(
        self, parameters: Floats, features: Floats, coefficients: Floats
    ) -> Floats:
        """The gradient of a weighted sum of scores.

        Parameters
        ----------
        parameters : [n_parameters]
        features : [n_documents, n_features]
        coefficients : [n_documents]

        Returns
        -------
        [n_parameters]
        """


@dataclass(frozen=True)
class LayeredRanker:
    """Feed-forward layers; see `models.rankers.layers` for where what lies.

    Parameters
    ----------
    n_features
        Features of a document, at least 1.
    hidden
        Units of each hidden layer, from the features on.
    activation
        Of hidden units: "sigmoid", "tanh" or "relu".
    """

    n_features: int
    hidden: tuple[int, ...] = ()
    activation: str = "sigmoid"

    def __post_init__(self) -> None:
        if self.n_features < 1:
            raise ValueError(f"n_features must be at least 1; got {self.n_features}")
        if any(units < 1 for units in self.hidden):
            raise ValueError(
                f"hidden layers must have at least 1 unit; got {self.hidden}"
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation must be one of {list(ACTIVATIONS)}; "
                f"got {self.activation!r}"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """Features, hidden layers, 1."""
        return (self.n_features, *self.hidden, 1)

    @property
    def shape(self) -> layers.Shape:
        """The same, and the activation, as kernels take it."""
        sizes = np.array(self.sizes, np.int64)
        return layers.Shape(sizes, ACTIVATIONS[self.activation])

    @property
    def n_parameters(self) -> int:
        """Length of the flat vector."""
        return layers.n_parameters_of(self.sizes)

    @property
    def proportional(self) -> slice:
        """The weights of the last layer: of a linear ranker all.

        Examples
        --------
        >>> LayeredRanker(3, (2,)).proportional
        slice(-2, None, None)
        """
        return slice(-self.sizes[-2], None)

    def item_scores(self, parameters: Floats, features: Singles) -> Floats:
        """Scores of items, as in `Scorer.item_scores`."""
        scores = np.empty(len(features))
        activations = np.empty((len(features), sum(self.hidden)))
        fill_scores(features, parameters, self.shape, scores, activations)
        return scores

    def score(self, parameters: Floats, features: Floats) -> Floats:
        """Scores of documents, as in `Ranker.score`."""
        return self._scores_and_activations(parameters, features)[0]

    def accumulate(
        self, parameters: Floats, features: Floats, coefficients: Floats
    ) -> Floats:
        """The gradient of a weighted sum of scores.

            sum over documents d of coefficients[d] * d score(d) / d parameters

        Arrays are as in `Ranker.accumulate`.
        """
        if len(coefficients) != len(features):
            raise ValueError(
                "coefficients and features must share their documents; got "
                f"{len(coefficients)} and {len(features)}"
            )
        _, activations = self._scores_and_activations(parameters, features)
        gradient = np.zeros(self.n_parameters)
        layers.add_gradient(
            gradient,
            np.array(coefficients, np.float64),
            np.array(parameters, np.float64),
            self.shape,
            np.array(features, np.float64, order="C"),
            activations,
        )
        return gradient

    def _scores_and_activations(
        self, parameters: Floats, features: Floats
    ) -> tuple[Floats, Floats]:
        if len(parameters) != self.n_parameters:
            raise ValueError(
                f"parameters must number {self.n_parameters}; got {len(parameters)}"
            )
        if features.ndim != 2 or features.shape[1] != self.n_features:
            raise ValueError(
                "features must be documents by n_features; got shape "
                f"{features.shape} for {self.n_features} features"
            )
        scores = np.empty(len(features))
        activations = np.empty((len(features), sum(self.hidden)))
        layers.score_rows(
            np.array(parameters, np.float64),
            self.shape,
            np.array(features, np.float64, order="C"),
            scores,
            activations,
        )
        return scores, activations
