"""Optimisers by name, with their settings.

All of them climb: learners hand over the direction in which things get better.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.optimisers import kernel

NAMES = {"sgd": kernel.SGD, "adagrad": kernel.ADAGRAD, "adam": kernel.ADAM}


@dataclass(frozen=True)
class OptimiserConfig:
    """How an optimiser is made.

    Parameters
    ----------
    name
        "sgd", "adagrad" or "adam".
    learning_rate
        Of the first step, above 0.
    decay
        Factor of the rate after each performed step, in (0, 1].
    epsilon
        Added to the root of squares (AdaGrad, Adam), above 0.
    keep_mean, keep_square
        Shares of the moments that a step keeps (Adam), in [0, 1).

    References
    ----------
    Duchi, Hazan & Singer (JMLR 2011); Kingma & Ba (ICLR 2015), algorithm 1.
    """

    name: str = "sgd"
    learning_rate: float = 0.1
    decay: float = 1.0
    epsilon: float = 1e-8
    keep_mean: float = 0.9
    keep_square: float = 0.999

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ValueError(
                f"optimiser must be one of {list(NAMES)}; got {self.name!r}"
            )
        if not 0.0 < self.learning_rate < np.inf:
            raise ValueError(
                f"learning_rate must be finite and above 0; got {self.learning_rate}"
            )
        if not 0.0 < self.decay <= 1.0:
            raise ValueError(f"decay must lie in (0, 1]; got {self.decay}")
        if not 0.0 < self.epsilon < np.inf:
            raise ValueError(f"epsilon must be finite and above 0; got {self.epsilon}")
        for name in ("keep_mean", "keep_square"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise ValueError(
                    f"{name} must lie in [0, 1); got {getattr(self, name)}"
                )


def optimiser_of(config: OptimiserConfig, n_parameters: int) -> kernel.Optimiser:
    """The optimiser at its beginning."""
    numbers = np.zeros(kernel.N_NUMBERS)
    numbers[kernel.RATE] = config.learning_rate
    numbers[kernel.DECAY] = config.decay
    numbers[kernel.EPSILON] = config.epsilon
    numbers[kernel.KEEP_MEAN] = config.keep_mean
    numbers[kernel.KEEP_SQUARE] = config.keep_square
    return kernel.Optimiser(
        NAMES[config.name],
        numbers,
        np.zeros(n_parameters if config.name == "adam" else 0),
        np.zeros(0 if config.name == "sgd" else n_parameters),
    )


def optimiser_state(optimiser: kernel.Optimiser) -> dict[str, bytes | int | float]:
    """What changes with steps, as `restore_optimiser` takes it."""
    return {
        "learning_rate": float(optimiser.numbers[kernel.RATE]),
        "steps": float(optimiser.numbers[kernel.STEPS]),
        "mean": optimiser.mean.astype("<f8").tobytes(),
        "square": optimiser.square.astype("<f8").tobytes(),
    }


def restore_optimiser(
    optimiser: kernel.Optimiser, state: Mapping[str, bytes | int | float]
) -> None:
    """Take back a state, to the same bits; one without moments is that of "sgd".

    Raises
    ------
    ValueError
        Where it is the state of another optimiser.
    """
    for name, array in (("mean", optimiser.mean), ("square", optimiser.square)):
        stored = state.get(name, b"")
        if not isinstance(stored, bytes) or len(stored) != array.nbytes:
            raise ValueError(
                f"{name} must be {array.nbytes} bytes for this optimiser; "
                f"got {stored!r:.40}"
            )
        array[:] = np.frombuffer(stored, "<f8")
    optimiser.numbers[kernel.RATE] = state["learning_rate"]
    optimiser.numbers[kernel.STEPS] = state.get("steps", 0.0)
