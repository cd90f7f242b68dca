"""Pairwise differentiable gradient descent, on logged interactions.

    parameters += rate * sum over pairs (i preferred to j) of
                  rho(i, j) * sigma'(s_i - s_j) * d (s_i - s_j) / d parameters

`rho` comes from the *logged* scores, as it undoes the bias of the policy that drew
the list; sigma' and the gradient come from the parameters as they are now. A learner
that lags behind its own snapshots goes astray if either is taken from the other.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.learners import pdgd_kernel
from models.learners.learner import State
from models.rankers.ranker import Ranker
from models.rankers.registry import ranker_of

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PdgdConfig:
    """How a PDGD learner is made.

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
    """

    n_features: int
    kind: str = "linear"
    hidden: tuple[int, ...] = ()
    learning_rate: float = 0.1
    decay: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 < self.learning_rate < np.inf:
            raise ValueError(
                f"learning_rate must be finite and above 0; got {self.learning_rate}"
            )
        if not 0.0 < self.decay <= 1.0:
            raise ValueError(f"decay must lie in (0, 1]; got {self.decay}")


class Interactions(NamedTuple):
    """Consecutive interactions in flat arrays, in the order of their log.

    `scores` and `shown` / `clicks` / `features` lie end to end; those of
    interaction i are at `score_offsets[i] : score_offsets[i + 1]` and
    `shown_offsets[i] : shown_offsets[i + 1]`. Rows of `shown` count from the first
    candidate of their own interaction.
    """

    scores: npt.NDArray[np.floating]
    score_offsets: npt.NDArray[np.integer]
    shown: npt.NDArray[np.integer]
    clicks: npt.NDArray[np.bool_]
    features: npt.NDArray[np.floating]
    shown_offsets: npt.NDArray[np.integer]


class PdgdLearner:
    """PDGD as a fold over interactions.

    Interactions without a preference between shown documents change nothing. So do
    those that hold a number that is not finite, or would move a parameter beyond
    what float32 can hold: they count as `refused`.

    References
    ----------
    Oosterhuis & de Rijke (CIKM 2018), algorithm 1.
    """

    def __init__(self, config: PdgdConfig) -> None:
        self.config = config
        self.ranker: Ranker = ranker_of(config.kind, config.n_features, config.hidden)
        rng = np.random.default_rng(config.seed)
        self._parameters = self.ranker.initial_parameters(rng=rng)
        self._sizes = np.array(self.ranker.sizes, np.int64)
        self._rate = np.array([config.learning_rate])
        self._counts = np.zeros(pdgd_kernel.N_COUNTS, np.int64)
        self._scratch = np.zeros(self.ranker.n_parameters)

    @property
    def updates(self) -> int:
        """Interactions that moved the parameters."""
        return int(self._counts[pdgd_kernel.UPDATED])

    @property
    def refused(self) -> int:
        """Interactions refused for a number that was not finite, or too large."""
        return int(self._counts[pdgd_kernel.REFUSED])

    @property
    def without_preference(self) -> int:
        """Interactions that told nothing: none of the shown clicked, or all."""
        return int(self._counts[pdgd_kernel.WITHOUT_PREFERENCE])

    @property
    def learning_rate(self) -> float:
        """Of the next update."""
        return float(self._rate[0])

    def parameters(self) -> Floats:
        """A copy of the parameters in full precision."""
        return self._parameters.copy()

    def learn(
        self,
        scores: npt.NDArray[np.floating],
        shown: npt.NDArray[np.integer],
        clicks: npt.NDArray[np.bool_],
        features: npt.NDArray[np.floating],
    ) -> bool:
        """Fold one interaction.

        Parameters
        ----------
        scores : [n]
            Logged scores of all candidates.
        shown : [k]
            Rows of the shown ones, in displayed order.
        clicks : [k]
        features : [k, n_features]
            Of the shown ones, in displayed order, normalised as they were scored.

        Returns
        -------
        bool
            Whether the parameters moved.

        Raises
        ------
        ValueError
            Where shapes or rows contradict each other.
        """
        ends = (len(scores), len(shown))
        offsets = np.array([[0, end] for end in ends], np.int64)
        moved = self.learn_batch(
            Interactions(scores, offsets[0], shown, clicks, features, offsets[1])
        )
        return moved > 0

    def learn_batch(self, batch: Interactions) -> int:
        """Fold consecutive interactions, one after another.

        The result does not depend on how a log is cut into batches.

        Returns
        -------
        int
            How many of them moved the parameters.

        Raises
        ------
        ValueError
            Where shapes or rows contradict each other; nothing was folded then.
        """
        _check_shapes(batch, self.config.n_features)
        before = self.updates
        # Copies give the kernel one type of array whatever the caller holds.
        score_offsets = np.array(batch.score_offsets, np.int64)
        shown = np.array(batch.shown, np.int64)
        shown_offsets = np.array(batch.shown_offsets, np.int64)
        arrays = Interactions(
            np.array(batch.scores, np.float64),
            score_offsets,
            shown,
            np.array(batch.clicks, np.bool_),
            np.array(batch.features, np.float64, order="C"),
            shown_offsets,
        )
        wrong = pdgd_kernel.first_wrong_interaction(score_offsets, shown, shown_offsets)
        if wrong >= 0:
            raise ValueError(
                "shown must hold different rows of the candidates; got "
                f"{_shown_of(arrays, wrong)} of {_n_candidates(arrays, wrong)} "
                f"candidates at interaction {wrong}"
            )
        pdgd_kernel.learn_interactions(
            arrays,
            self._parameters,
            self._sizes,
            self._rate,
            self.config.decay,
            self._counts,
            self._scratch,
        )
        return self.updates - before

    def weights(self) -> npt.NDArray[np.float32]:
        """The parameters as float32, always finite."""
        return self._parameters.astype(np.float32)

    def state(self) -> State:
        """All that this learner is, beside its configuration."""
        return {
            "parameters": self._parameters.astype("<f8").tobytes(),
            "learning_rate": self.learning_rate,
            "updates": self.updates,
            "without_preference": self.without_preference,
            "refused": self.refused,
        }

    def restore(self, state: Mapping[str, bytes | int | float]) -> None:
        """Take back a state, to the same bits.

        Raises
        ------
        ValueError
            Where it is the state of another kind of ranker.
        """
        stored = state["parameters"]
        expected = 8 * self.ranker.n_parameters
        if not isinstance(stored, bytes) or len(stored) != expected:
            size = len(stored) if isinstance(stored, bytes) else type(stored).__name__
            raise ValueError(
                f"parameters must be {expected} bytes for a {self.config.kind} ranker "
                f"of layers {self.ranker.sizes}; got {size}"
            )
        self._parameters = np.frombuffer(stored, "<f8").astype(np.float64)
        self._rate[0] = state["learning_rate"]
        for name, place in pdgd_kernel.COUNT_NAMES.items():
            self._counts[place] = state[name]


def _check_shapes(batch: Interactions, n_features: int) -> None:
    n_shown = len(batch.shown)
    if len(batch.clicks) != n_shown or batch.features.shape != (n_shown, n_features):
        raise ValueError(
            "shown, clicks and features must share their documents; got "
            f"{n_shown} shown, {len(batch.clicks)} clicks and features of shape "
            f"{batch.features.shape} for {n_features} features"
        )
    for name, offsets, end in (
        ("score_offsets", batch.score_offsets, len(batch.scores)),
        ("shown_offsets", batch.shown_offsets, n_shown),
    ):
        is_whole = len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == end
        if not is_whole or (np.diff(offsets) < 0).any():
            raise ValueError(
                f"{name} must rise from 0 to {end}; got {offsets[:1]} to {offsets[-1:]}"
            )
    if len(batch.score_offsets) != len(batch.shown_offsets):
        raise ValueError(
            "score_offsets and shown_offsets must be as long as each other; got "
            f"{len(batch.score_offsets)} and {len(batch.shown_offsets)}"
        )


def _shown_of(batch: Interactions, index: int) -> list[int]:
    begin, end = batch.shown_offsets[index : index + 2]
    rows: list[int] = batch.shown[begin:end].tolist()
    return rows


def _n_candidates(batch: Interactions, index: int) -> int:
    return int(batch.score_offsets[index + 1] - batch.score_offsets[index])
