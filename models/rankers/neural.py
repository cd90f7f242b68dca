"""Hidden layers of sigmoid, tanh or rectified units under a linear score."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.rankers.ranker import LayeredRanker


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
