"""Queries with labelled documents, which simulated users ask about."""

import itertools
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers
from models.click_models.click_model import checked_labels
from models.kernels.compilation import compiled
from models.plackett_luce.placement import placement_batch
from models.training.exploration import Placements


class World(NamedTuple):
    """Queries with labelled documents.

    Parameters
    ----------
    features : [n_documents, n_features]
    labels : [n_documents]
        Grades from 0.
    offsets : [n_queries + 1]
        Documents of query q are rows `offsets[q] : offsets[q + 1]`.
    """

    features: npt.NDArray[np.float32]
    labels: Integers
    offsets: Integers


class Loop(Protocol):
    """A learner that lives with its users."""

    updates: int
    """Impressions that moved the parameters."""

    @property
    def parameters(self) -> Floats:
        """What was learned so far."""

    def begin_at(self, parameters: Floats) -> None:
        """Learn on from `parameters` [n_parameters]."""

    def run(self, n_impressions: int) -> Integers:
        """Live through impressions.

        Returns
        -------
        [n_impressions, 1 + cutoff]
            The query, and the rows of its documents that were shown, in order;
            -1 where the query had fewer.
        """


class WorldPlacements:
    """Exact probabilities of ranks for many queries at once.

    Queries of one length go together, so that few calls do for all of them.

    Parameters
    ----------
    offsets : [n_queries + 1]
        As those of a `World`.
    cutoff
        Ranks that are shown.
    placements
        Computes probabilities of ranks for lists of one length.
    """

    def __init__(
        self,
        offsets: Integers,
        cutoff: int,
        placements: Placements = placement_batch,
    ) -> None:
        sizes = np.diff(offsets)
        self._rows = [
            offsets[:-1][sizes == size][:, None] + np.arange(size)
            for size in np.unique(sizes).tolist()
        ]
        self._n_documents = int(offsets[-1])
        self._cutoff, self._placements = cutoff, placements

    def of(self, scores: Floats) -> Floats:
        """P(document at rank) of the Plackett-Luce policy of `scores` [n_documents].

        [n_documents, cutoff]; 0 at ranks that a query is too short for.
        """
        placed = np.zeros((self._n_documents, self._cutoff))
        for rows in self._rows:
            shown = min(self._cutoff, rows.shape[1])
            placed[rows, :shown] = self._placements(scores[rows], shown)
        return placed


def checked_world(world: World, *, n_grades: int) -> World:
    """The world in the types of kernels.

    Raises
    ------
    ValueError
        Where queries are empty or labels unknown to the users.
    """
    offsets = np.array(world.offsets, np.int64)
    features = np.ascontiguousarray(world.features, np.float32)
    ends = (len(features), len(world.labels))
    if (np.diff(offsets) < 1).any() or offsets[0] != 0 or {*ends} != {offsets[-1]}:
        raise ValueError(
            "every query must have documents, and offsets end with them; got "
            f"{ends[0]} rows of features, {ends[1]} labels and offsets to {offsets[-1]}"
        )
    return World(features, checked_labels(world.labels, n_grades), offsets)


def columns_of(world: World) -> npt.NDArray[np.float32]:
    """Features query by query as [n_features, documents of the query], end to end.

    Machines score several documents at once along the last axis.
    """
    parts = [
        world.features[begin:end].T.ravel()
        for begin, end in itertools.pairwise(world.offsets.tolist())
    ]
    return np.concatenate(parts)


def checked_cutoff(cutoff: int) -> int:
    """A length of lists.

    Raises
    ------
    ValueError
        Where it is below 1.
    """
    if cutoff < 1:
        raise ValueError(f"cutoff must be at least 1; got {cutoff}")
    return cutoff


@compiled
def any_query(offsets: Integers, rng: np.random.Generator) -> int:
    """A query, each as likely as any other.

    Parameters
    ----------
    offsets : [n_queries + 1]
    """
    n_queries: int = offsets.shape[0] - 1
    return min(int(rng.random() * n_queries), n_queries - 1)
