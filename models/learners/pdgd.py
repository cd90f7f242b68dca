"""Pairwise differentiable gradient descent, on logged interactions.

    parameters += rate * sum over pairs (i preferred to j) of
                  rho(i, j) * sigma'(s_i - s_j) * d (s_i - s_j) / d parameters

`rho` comes from the *logged* scores, as it undoes the bias of the policy that drew
the list; sigma' and the gradient come from the parameters as they are now. A learner
that lags behind its own snapshots goes astray if either is taken from the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.learners import pdgd_kernel
from models.learners.learner import TrainingExample
from models.learners.parameters import LearnerConfig, ParameterLearner
from models.learners.reversed_pairs import Pairs


@dataclass(frozen=True)
class PdgdConfig(LearnerConfig):
    """How a PDGD learner is made; beside what every learner has, its forms.

    Parameters
    ----------
    counterfactual
        Take sigma' from the logged scores too, and only d s / d parameters from the
        parameters as they are now: PDGD applied to another ranker's log.
    biased
        Leave rho out: every preference weighs the same.
    all_observed
        Take all shown documents as seen, not only those down to the one after the
        last click.

    References
    ----------
    Oosterhuis (2020), sections 4.4 (observed documents) and 8.8 (counterfactual
    and biased PDGD).
    """

    counterfactual: bool = False
    biased: bool = False
    all_observed: bool = False


class Interactions(NamedTuple):
    """Consecutive interactions in flat arrays, in the order of their log.

    Candidates and shown documents of all interactions lie end to end.

    Parameters
    ----------
    scores : [n_candidates]
        As they were logged.
    score_offsets : [n_interactions + 1]
        Interaction i has candidates `score_offsets[i] : score_offsets[i + 1]`.
    shown : [n_shown]
        Rows, from the first candidate of their own interaction.
    clicks : [n_shown]
    features : [n_shown, n_features]
    shown_offsets : [n_interactions + 1]
        Interaction i shows documents `shown_offsets[i] : shown_offsets[i + 1]`.
    """

    scores: npt.NDArray[np.floating]
    score_offsets: npt.NDArray[np.integer]
    shown: npt.NDArray[np.integer]
    clicks: npt.NDArray[np.bool_]
    features: npt.NDArray[np.floating]
    shown_offsets: npt.NDArray[np.integer]


class PdgdLearner(ParameterLearner[PdgdConfig]):
    """PDGD as a fold over interactions.

    Interactions without a preference between shown documents change nothing. So do
    those that hold a number that is not finite, or would move a parameter beyond
    what float32 can hold: they count as `refused`.

    References
    ----------
    Oosterhuis & de Rijke (CIKM 2018), algorithm 1.
    """

    policies = frozenset({"plackett-luce"})

    def __init__(self, config: PdgdConfig) -> None:
        super().__init__(config)
        self._options = pdgd_kernel.PdgdOptions(
            Pairs(config.all_observed, not config.biased), config.counterfactual
        )

    def learn(self, example: TrainingExample) -> bool:
        """Fold one interaction; returns whether the parameters moved.

        Raises
        ------
        ValueError
            Where shapes or rows contradict each other.
        """
        ends = (len(example.scores), len(example.shown))
        offsets = np.array([[0, end] for end in ends], np.int64)
        moved = self.learn_batch(
            Interactions(
                example.scores,
                offsets[0],
                example.shown,
                example.clicks,
                example.features,
                offsets[1],
            )
        )
        return moved > 0

    def learn_all(self, examples: Sequence[TrainingExample]) -> int:
        """Fold consecutive interactions; returns how many had to be left out."""
        width = self.config.n_features
        whole = [one for one in examples if _is_whole(one, width)]
        try:
            self.learn_batch(_flat(whole, width))
        except ValueError:  # nothing was folded: rows of one of them cannot be
            return len(examples) - len(whole) + super().learn_all(whole)
        return len(examples) - len(whole)

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
            self._shape,
            self._optimiser,
            self._options,
            self._counts,
            self._gradient,
        )
        return self.updates - before


def _is_whole(example: TrainingExample, n_features: int) -> bool:
    """Whether shown, clicks and features share their documents."""
    n_shown = len(example.shown)
    shape = example.features.shape
    return len(example.clicks) == n_shown and shape == (n_shown, n_features)


def _flat(examples: Sequence[TrainingExample], n_features: int) -> Interactions:
    """Training examples end to end."""
    return Interactions(
        _joined([one.scores for one in examples]),
        _offsets([len(one.scores) for one in examples]),
        _joined([one.shown for one in examples]).astype(np.int64),
        _joined([one.clicks for one in examples]).astype(np.bool_),
        np.concatenate([np.zeros((0, n_features)), *(x.features for x in examples)]),
        _offsets([len(one.shown) for one in examples]),
    )


def _joined(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Arrays [n] of any lengths, end to end."""
    return np.concatenate(arrays) if arrays else np.zeros(0)


def _offsets(lengths: list[int]) -> npt.NDArray[np.int64]:
    """Where each begins, and where the last one ends, [n + 1]."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


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
