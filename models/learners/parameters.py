"""What all learners have in common: a ranker, its parameters, and an optimiser."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.learners.learner import State, TrainingExample
from models.optimisers.kernel import RATE
from models.optimisers.optimiser import (
    OptimiserConfig,
    optimiser_of,
    optimiser_state,
    restore_optimiser,
)
from models.rankers.ranker import Ranker
from models.rankers.registry import ranker_of

UPDATED, WITHOUT_PREFERENCE, REFUSED = range(3)
"""What became of an interaction."""

COUNT_NAMES = {
    "updates": UPDATED,
    "without_preference": WITHOUT_PREFERENCE,
    "refused": REFUSED,
}


@dataclass(frozen=True)
class LearnerConfig:
    """How a learner is made, whatever it learns by.

    Parameters
    ----------
    kind, hidden
        Of the ranker; see `models.rankers.registry`.
    learning_rate
        Of the first update, above 0.
    decay
        Factor of the rate after each performed update, in (0, 1].
    seed
        Of the initial parameters.
    optimiser
        "sgd", "adagrad" or "adam".
    """

    n_features: int
    kind: str = "linear"
    hidden: tuple[int, ...] = ()
    learning_rate: float = 0.1
    decay: float = 1.0
    seed: int = 0
    optimiser: str = "sgd"

    def __post_init__(self) -> None:
        self.step_config()

    def step_config(self) -> OptimiserConfig:
        """The settings of the optimiser."""
        return OptimiserConfig(self.optimiser, self.learning_rate, self.decay)


Config = TypeVar("Config", bound=LearnerConfig)


class ParameterLearner(Generic[Config], ABC):
    """Parameters, how they step, and counts of what became of interactions."""

    needs_candidates: ClassVar[bool] = False

    def __init__(self, config: Config) -> None:
        self.config = config
        self.ranker: Ranker = ranker_of(config.kind, config.n_features, config.hidden)
        rng = np.random.default_rng(config.seed)
        self._parameters = self.ranker.initial_parameters(rng=rng)
        self._shape = self.ranker.shape
        self._optimiser = optimiser_of(config.step_config(), self.ranker.n_parameters)
        self._counts = np.zeros(len(COUNT_NAMES), np.int64)
        self._gradient = np.zeros(self.ranker.n_parameters)
        self._kind = config.kind

    @property
    def updates(self) -> int:
        """Interactions that moved the parameters."""
        return int(self._counts[UPDATED])

    @property
    def refused(self) -> int:
        """Interactions refused for a number that was not finite, or too large."""
        return int(self._counts[REFUSED])

    @property
    def learning_rate(self) -> float:
        """Of the next update."""
        return float(self._optimiser.numbers[RATE])

    def parameters(self) -> Floats:
        """A copy of the parameters in full precision."""
        return self._parameters.copy()

    def weights(self) -> npt.NDArray[np.float32]:
        """The parameters as float32, always finite."""
        return self._parameters.astype(np.float32)

    def state(self) -> State:
        """All that this learner is, beside its configuration."""
        return {
            "parameters": self._parameters.astype("<f8").tobytes(),
            **{name: int(self._counts[i]) for name, i in COUNT_NAMES.items()},
            **optimiser_state(self._optimiser),
        }

    def restore(self, state: Mapping[str, bytes | int | float]) -> None:
        """Take back a state, to the same bits.

        Raises
        ------
        ValueError
            Where it is the state of another kind of ranker or optimiser.
        """
        stored = state["parameters"]
        expected = 8 * self.ranker.n_parameters
        if not isinstance(stored, bytes) or len(stored) != expected:
            size = len(stored) if isinstance(stored, bytes) else type(stored).__name__
            raise ValueError(
                f"parameters must be {expected} bytes for a {self._kind} ranker "
                f"of layers {self.ranker.sizes}; got {size}"
            )
        restore_optimiser(self._optimiser, state)
        self._parameters = np.frombuffer(stored, "<f8").astype(np.float64)
        for name, place in COUNT_NAMES.items():
            self._counts[place] = state[name]

    @abstractmethod
    def learn(self, example: TrainingExample) -> bool:
        """Fold one interaction; returns whether the parameters moved.

        Raises
        ------
        ValueError
            Where what an example holds contradicts itself, or lacks what this learner
            needs.
        """

    def learn_all(self, examples: Sequence[TrainingExample]) -> int:
        """Fold consecutive interactions; returns how many had to be left out."""
        n_left_out = 0
        for example in examples:
            try:
                self.learn(example)
            except (ValueError, OverflowError):
                n_left_out += 1
        return n_left_out

    def _checked(self, example: TrainingExample) -> TrainingExample:
        """The training example in the types of kernels.

        Raises
        ------
        ValueError
            Where shapes or rows contradict each other.
        """
        n, k = len(example.scores), len(example.shown)
        width = self.ranker.sizes[0]
        if len(example.clicks) != k or example.features.shape != (k, width):
            raise ValueError(
                "shown, clicks and features must share their documents; got "
                f"{k} shown, {len(example.clicks)} clicks and features of shape "
                f"{example.features.shape} for {width} features"
            )
        shown = np.array(example.shown, np.int64)
        if k and (shown.min() < 0 or shown.max() >= n or len({*shown.tolist()}) < k):
            raise ValueError(
                "shown must hold different rows of the candidates; got "
                f"{shown.tolist()} of {n} candidates"
            )
        return example._replace(
            scores=np.array(example.scores, np.float64),
            shown=shown,
            clicks=np.array(example.clicks, np.bool_),
            features=np.array(example.features, np.float64, order="C"),
            candidates=np.array(example.candidates, np.float64, order="C"),
            ranks=np.array(example.ranks, np.int64, order="C"),
            teams=np.array(example.teams, np.int64),
        )


class FixedLearner(ParameterLearner[LearnerConfig]):
    """Learns from no list, by any policy: something else trains the parameters."""

    policies: frozenset[str] = frozenset()

    def learn(self, example: TrainingExample) -> bool:  # noqa: ARG002  of the protocol
        """Leave the parameters as they are."""
        return False


class ExampleLearner(ParameterLearner[Config]):
    """A learner that folds one training example after another, by its own `_learn`."""

    def learn(self, example: TrainingExample) -> bool:
        """Fold one interaction; returns whether the parameters moved."""
        checked = self._checked(example)
        expected = (len(checked.scores), self.ranker.sizes[0])
        if self.needs_candidates and checked.candidates.shape != expected:
            raise ValueError(
                f"candidates must be {expected[0]} documents by {expected[1]} "
                f"features; got shape {checked.candidates.shape}"
            )
        became = self._learn(checked)
        self._counts[became] += 1
        return became == UPDATED

    @abstractmethod
    def _learn(self, example: TrainingExample) -> int:
        """What became of a training example whose shapes and rows are right."""
