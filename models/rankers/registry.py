"""Rankers, by the name that settings and snapshots use."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from models.rankers.ranker import LayeredRanker, Ranker


@dataclass(frozen=True)
class LinearRanker(LayeredRanker):
    """score(d) = sum over i of parameters[i] * features[d, i], without a bias."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hidden:
            raise ValueError(
                f"a linear ranker has no hidden layers; got hidden {self.hidden}"
            )

    def initial_parameters(
        self,
        *,
        rng: np.random.Generator,  # noqa: ARG002  the same call for every ranker
    ) -> npt.NDArray[np.float64]:
        """Zeros: every document scores alike."""
        return np.zeros(self.n_parameters)


@dataclass(frozen=True)
class NeuralRanker(LayeredRanker):
    """Any number of hidden layers; the score itself has no bias.

    References
    ----------
    Oosterhuis & de Rijke (CIKM 2018), section 5.3: one hidden layer of 64 units.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden:
            raise ValueError("a neural ranker needs a hidden layer; got hidden ()")

    def initial_parameters(
        self, *, rng: np.random.Generator
    ) -> npt.NDArray[np.float64]:
        """Normal weights and biases.

        The standard deviation is 1 / inputs for sigmoid units, as in the published
        experiments; for others the variance is 1 / inputs (tanh) or 2 / inputs
        (rectified units), and biases are 0, so that sums keep their scale.

        References
        ----------
        Glorot & Bengio (AISTATS 2010); He, Zhang, Ren & Sun (ICCV 2015).
        """
        parts = []
        for inputs, outputs in itertools.pairwise((self.n_features, *self.hidden)):
            n_drawn = (inputs + 1) * outputs
            part = rng.normal(0.0, self._deviation(inputs), n_drawn)
            if self.activation != "sigmoid":
                part[inputs * outputs :] = 0.0
            parts.append(part)
        last = self.hidden[-1]
        return np.concatenate([*parts, rng.normal(0.0, 1.0 / last, last)])

    def _deviation(self, inputs: int) -> float:
        if self.activation == "sigmoid":
            return 1.0 / inputs
        gain = 2.0 if self.activation == "relu" else 1.0
        return math.sqrt(gain / inputs)


KINDS: dict[str, Callable[[int, tuple[int, ...]], Ranker]] = {
    "linear": LinearRanker,
    "neural": NeuralRanker,
    "neural-tanh": partial(NeuralRanker, activation="tanh"),
    "neural-relu": partial(NeuralRanker, activation="relu"),
}
"""A neural ranker without further name has sigmoid units."""


def ranker_of(kind: str, n_features: int, hidden: Sequence[int] = ()) -> Ranker:
    """The ranker of this kind and shape.

    Raises
    ------
    ValueError
        Where the kind is unknown or its shape makes no sense.

    Examples
    --------
    >>> ranker_of("neural", 3, [2]).n_parameters
    10
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {sorted(KINDS)}; got {kind!r}")
    return KINDS[kind](n_features, tuple(hidden))
