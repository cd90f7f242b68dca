"""A linear scoring function."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.rankers.ranker import LayeredRanker


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
