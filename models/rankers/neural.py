"""Hidden layers of sigmoid units under a linear score."""

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
        """Normal weights and biases with standard deviation 1 / inputs."""
        hidden = zip(self.sizes[:-2], self.sizes[1:-1], strict=True)
        parts = [
            rng.normal(0.0, 1.0 / inputs, (inputs + 1) * outputs)
            for inputs, outputs in hidden
        ]
        last = self.hidden[-1]
        return np.concatenate([*parts, rng.normal(0.0, 1.0 / last, last)])
