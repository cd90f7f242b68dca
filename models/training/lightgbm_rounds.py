"""Rounds of boosting by LightGBM, down slopes and curvatures that others compute.

The one module that knows LightGBM, which few need: it is imported where trees are
trained, and nowhere else. Features are read in chunks and held as bins, one byte each.
One thread, its deterministic mode and a seed: equal chunks give equal bytes.

References
----------
Ke et al. (NeurIPS 2017) for LightGBM; Friedman (Annals of Statistics 2001) for boosting
by slopes, and Chen & Guestrin (KDD 2016) for leaves by slopes over curvatures.
"""

from typing import Any, NamedTuple

import lightgbm
import numpy as np

from models.arrays import Flags, Floats, Integers, Singles
from models.training.boosting_plan import BoostingPlan
from models.training.grown_trees import GrownTrees
from models.training.query_chunk import ChunkSource

BIN_SAMPLE = 100_000
"""Rows that bins are made from, held as float64 meanwhile; of fewer LightGBM warns."""

LEAST_CURVATURE = 1e-3
"""Of a leaf: where all is as good as certain no step is known."""

ROWS_AT_ONCE = 4_096


def _options(plan: BoostingPlan) -> dict[str, Any]:
    """A plan as LightGBM has it."""
    return {
        "objective": "none",
        "metric": "none",
        "num_leaves": plan.leaves,
        "learning_rate": plan.learning_rate,
        "min_data_in_leaf": plan.least_items,
        "min_sum_hessian_in_leaf": LEAST_CURVATURE,
        "feature_fraction": plan.share_of_features,
        "lambda_l2": plan.regularisation,
        "monotone_constraints": [*plan.monotone] or None,
        "use_missing": plan.is_zero_missing,
        "zero_as_missing": plan.is_zero_missing,
        "bin_construct_sample_cnt": BIN_SAMPLE,
        "seed": plan.seed % 2**31,
        "num_threads": 1,
        "deterministic": True,
        "force_col_wise": True,
        "verbosity": -1,
    }


class Part(NamedTuple):
    """Some items of a split, in their order.

    Parameters
    ----------
    chunks
        All items of the split.
    is_in : [n_items]
        Which of them.
    start : [n_in]
        Scores that trees are added to.
    """

    chunks: ChunkSource
    is_in: Flags
    start: Floats


class NothingSplits(Exception):
    """No feature has two values with enough items on either side."""


class LightgbmRounds:
    """A model of trees that grows tree by tree.

    Parameters
    ----------
    known
        Items that trees are grown by.
    others
        Items that are only scored.

    Raises
    ------
    NothingSplits
        LightGBM itself would end in an error that says nothing.
    """

    def __init__(self, plan: BoostingPlan, known: Part, others: list[Part]) -> None:
        options = _options(plan)
        grown = _dataset(known, options)
        if not any(map(grown.feature_num_bin, range(grown.num_feature()))):
            raise NothingSplits
        self._booster = lightgbm.Booster(options, grown)
        self._scored = []
        for number, part in enumerate(others):
            scored = _dataset(part, options, reference=grown)
            self._booster.add_valid(scored, f"{number}")
            self._scored.append(scored)

    @property
    def n_trees(self) -> int:
        """How many there are; before a first one with a split one may be of 0."""
        return int(self._booster.num_trees())

    def step(self, slopes: Floats, curvatures: Floats) -> bool:
        """Grow one tree; whether it has more than a root.

        Parameters
        ----------
        slopes, curvatures : [n_known]
            Of the loss, by scores as they are now.
        """
        steps = slopes.astype(np.float32), curvatures.astype(np.float32)
        return not self._booster.update(fobj=lambda _, __: steps)

    def scores(self) -> Floats:
        """Of the items that trees are grown by, as they are now, [n_known]."""
        return self._kept(self._booster.eval_train)

    def scores_of(self, number: int) -> Floats:
        """Of other items, as they are now, [n_in]."""
        scored = self._scored[number]
        return self._kept(lambda feval: self._booster.eval(scored, "", feval))

    def _kept(self, evaluate: Any) -> Floats:
        """Scores by the function that is evaluated on them."""
        found: list[Floats] = []

        def keep(scores: Floats, _: object) -> tuple[str, float, bool]:
            found.append(scores.copy())
            return "", 0.0, True

        evaluate(feval=keep)
        return found[0]

    def trees(self, n_trees: int) -> GrownTrees:
        """The first of them, at least one."""
        model = self._booster.dump_model(num_iteration=n_trees)
        walk = _Walk()
        roots = [walk.take(tree["tree_structure"]) for tree in model["tree_info"]]
        return walk.grown(roots)


class _Walk:
    """Nodes and leaves of trees, in the order in which they are reached."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, Any]] = []
        self._children: list[list[int]] = []
        self._leaves: list[float] = []

    def take(self, node: dict[str, Any]) -> int:
        """The number of a node, or -1 - that of a leaf, with all below it."""
        if "leaf_value" in node:
            self._leaves.append(node["leaf_value"])
            return -len(self._leaves)
        number = len(self._nodes)
        self._nodes.append(node)
        self._children.append([])
        left = self.take(node["left_child"])
        self._children[number] = [left, self.take(node["right_child"])]
        return number

    def grown(self, roots: list[int]) -> GrownTrees:
        """Arrays of what was taken."""
        return GrownTrees(
            np.array(roots, np.int64),
            np.array([node["split_feature"] for node in self._nodes], np.int64),
            np.array([node["threshold"] for node in self._nodes]),
            np.array(self._children, np.int64).reshape(-1, 2),
            np.array([node["missing_type"] == "Zero" for node in self._nodes], bool),
            np.array([node["default_left"] for node in self._nodes], bool),
            np.array(self._leaves),
        )


def _dataset(part: Part, options: dict[str, Any], **more: Any) -> lightgbm.Dataset:
    """Items in bins; labels have no part in what is grown."""
    reader, first = _Reader(part.chunks), 0
    rows: list[_Rows] = []
    for number in range(len(part.chunks)):
        end = first + reader.size(number)
        is_in = part.is_in[first:end]
        if is_in.any():
            rows.append(_Rows(reader, number, np.flatnonzero(is_in)))
        first = end
    made = lightgbm.Dataset(
        rows,
        label=np.zeros(len(part.start), np.float32),
        init_score=part.start,
        params=options,
        **more,
    )
    return made.construct()


class _Reader:
    """Features of one chunk at a time."""

    def __init__(self, chunks: ChunkSource) -> None:
        self._chunks, self._number = chunks, -1
        self._features: Singles = np.zeros((0, 0), np.float32)

    def features(self, number: int) -> Singles:
        if number != self._number:
            self._features = self._chunks[number].features
            self._number = number
        return self._features

    def size(self, number: int) -> int:
        return len(self.features(number))


class _Rows(lightgbm.Sequence):
    """Rows of one chunk, read when they are asked for."""

    batch_size = ROWS_AT_ONCE

    def __init__(self, reader: _Reader, number: int, places: Integers) -> None:
        self._reader, self._number, self._places = reader, number, places

    def __getitem__(self, wanted: Any) -> Floats:
        rows = self._reader.features(self._number)[self._places[wanted]]
        return np.asarray(rows, np.float64)

    def __len__(self) -> int:
        return len(self._places)
