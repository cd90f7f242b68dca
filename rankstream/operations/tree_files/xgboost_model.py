"""XGBoost's models, JSON and UBJSON: what `Booster.save_model` writes.

Its splits send a document left where the feature is *below* the condition, both in
single precision; ours where it is at most the threshold. So a condition becomes the
number before it in single precision, and the same documents go left.
"""

import json
from collections.abc import Mapping, Sequence
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from rankstream.operations.tree_files.nested_trees import Split, grown
from rankstream.operations.tree_files.tree_file import (
    ModelFileRefused,
    Tree,
    TreeFile,
    checked,
    damaged,
    in_single,
    joined,
    one_leaf,
    single,
    unfit,
    unknown_field,
)
from rankstream.operations.tree_files.ubjson import UbjsonDamaged, decode_ubjson
from rankstream.wire.models.forests import (
    MISSING_LEFT,
    NAN_IS_MISSING,
    ZERO_IS_MISSING,
    Forest,
)

FORM = "XGBoost's model"

PLAIN_OBJECTIVES = frozenset(
    {
        "rank:ndcg", "rank:map", "rank:pairwise", "reg:squarederror", "reg:linear",
        "reg:absoluteerror", "reg:pseudohubererror", "reg:quantileerror",
    }
)  # fmt: skip
"""Whose predictions are the sums of leaves and `base_score`, and nothing more."""

OF_MODEL = frozenset({"learner", "version"})
OF_LEARNER = frozenset(
    {
        "attributes", "feature_names", "feature_types", "gradient_booster",
        "learner_model_param", "objective",
    }
)  # fmt: skip
OF_BOOSTER = frozenset(
    {"gbtree_model_param", "iteration_indptr", "tree_info", "trees", "cats"}
)
NO_PARENT = 2_147_483_647

COLUMNS = (
    "left_children", "right_children", "split_conditions", "split_indices",
    "default_left",
)  # fmt: skip

OF_TREE = frozenset(
    {
        "base_weights", "categories", "categories_nodes", "categories_segments",
        "categories_sizes", "default_left", "id", "left_children", "loss_changes",
        "parents", "right_children", "split_conditions", "split_indices", "split_type",
        "sum_hessian", "tree_param",
    }
)  # fmt: skip


def is_xgboost(beginning: bytes) -> bool:
    """Whether a file begins as one of the two forms does."""
    if beginning.startswith(b"{L\0\0\0\0\0\0\0\x07learner"):
        return True
    text = beginning.translate(None, b" \t\r\n")
    return text.startswith((b'{"learner":', b'{"version":[', b'{"Config":'))


def read_xgboost(content: bytes) -> TreeFile:
    """The trees of a model, `base_score` as a tree of one leaf before them.

    Raises
    ------
    ModelFileRefused
    """
    try:
        model = _document(content)
        return checked(_file_of(model), FORM)
    except (
        KeyError, TypeError, AttributeError, IndexError, OverflowError, ValueError,
    ) as error:  # fmt: skip
        if isinstance(error, ModelFileRefused):
            raise
        told = f"{error} is missing" if isinstance(error, KeyError) else error
        raise damaged(FORM, told) from error


def _document(content: bytes) -> Any:
    if not content.lstrip().startswith(b'{"') and content.startswith(b"{"):
        try:
            return decode_ubjson(content)
        except UbjsonDamaged as error:
            raise damaged(FORM, error) from error
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise damaged(FORM, error) from error


def _known(found: Any, place: str, known: frozenset[str]) -> Mapping[str, Any]:
    """A section, where it is one and nothing else is in it."""
    if not isinstance(found, dict):
        raise damaged(FORM, f"{place} is no object")
    if unknown := found.keys() - known:
        raise unknown_field(FORM, place, unknown)
    return found


def _file_of(model: Any) -> TreeFile:
    top = _known(model, "the model", OF_MODEL)
    learner = _known(top["learner"], "learner", OF_LEARNER)
    _check_objective(learner["objective"]["name"])
    booster = learner["gradient_booster"]
    if booster.get("name") != "gbtree":
        raise unfit(
            FORM, f"the booster {booster.get('name')!r}, whose trees have weights or "
            "are none", "train it with booster='gbtree'",
        )  # fmt: skip
    _check_types(learner.get("feature_types", []))
    parameters = learner["learner_model_param"]
    for name in ("num_class", "num_target"):
        if int(parameters.get(name, "1")) > 1:
            raise unfit(
                FORM, f"{name} = {parameters[name]}", "train one that gives one score"
            )
    section = _known(booster["model"], "the booster", OF_BOOSTER)
    if any(section.get("cats", {}).values()):
        raise unfit(FORM, "categories", "train it with numbers alone")
    trees = [_tree(number, tree) for number, tree in enumerate(section["trees"])]
    n_told = int(section["gbtree_model_param"]["num_trees"])
    if n_told != len(trees):
        raise damaged(FORM, f"it has {len(trees)} trees of {n_told}")
    base = single(str(parameters["base_score"]).strip("[]"))
    if base:
        trees.insert(0, one_leaf(float(base)))
    names = [str(name) for name in learner.get("feature_names", [])]
    return TreeFile(joined(trees), int(parameters["num_feature"]), names)


def _check_objective(name: Any) -> None:
    if name not in PLAIN_OBJECTIVES:
        raise unfit(
            FORM,
            f"the objective {name!r}, whose predictions are more than sums",
            "train it by a ranking objective",
        )


def _check_types(types: Sequence[Any]) -> None:
    if "c" in types:
        raise unfit(FORM, "categorical features", "train it with numbers alone")


def _tree(number: int, tree: Any) -> Tree:
    """What hangs below the first node: pruned nodes stay in the arrays of a file."""
    tree = _known(tree, f"tree {number}", OF_TREE)
    if any(tree.get("split_type", [])) or tree.get("categories"):
        raise unfit(
            FORM, f"a categorical split in tree {number}", "train it with numbers alone"
        )
    if int(tree["tree_param"].get("size_leaf_vector", "1")) > 1:
        raise unfit(FORM, f"leaves of several numbers in tree {number}", "train others")
    columns = [tree[name] for name in COLUMNS]
    if len({len(column) for column in columns}) > 1:
        raise damaged(FORM, f"arrays of tree {number} are of different lengths")
    left, right, conditions, features, defaults = columns
    seen: set[int] = set()

    def read(at: int) -> Split[int] | float:
        if not 0 <= at < len(left) or at in seen:
            raise damaged(FORM, f"node {at} of tree {number} is no child of one node")
        seen.add(at)
        condition = single(conditions[at])
        if left[at] == -1:
            return float(condition)
        missing = NAN_IS_MISSING + (MISSING_LEFT if defaults[at] else 0)
        children = index(left[at]), index(right[at])
        return Split(index(features[at]), below(condition), missing, *children)

    return grown(FORM, 0, read)


def below(condition: np.float32) -> float:
    """The largest number of single precision below a condition."""
    return float(np.nextafter(condition, np.float32(-np.inf)))


def write_xgboost(forest: Forest, names: list[str], n_features: int) -> bytes:
    """A model in JSON that XGBoost loads; it adds in single precision, and we do not.

    A first tree of one leaf becomes `base_score`.

    Raises
    ------
    ModelFileRefused
        Where a split, a leaf or a name can be none of XGBoost's.
    """
    for name in names:
        if any(letter in "[]<" or letter < " " for letter in name):
            raise ModelFileRefused(
                "names of features must be without brackets, < and control characters "
                f"for XGBoost; got {name!r}: name the features of the model otherwise"
            )
    forest = in_single(forest, "XGBoost", goes_below=True)
    base, roots = 0.0, forest.roots.tolist()
    if roots and roots[0] < 0:
        base = float(single(forest.leaves[-1 - roots[0]]))
        roots = roots[1:]
    told = [
        _told(forest, n_features, number, root) for number, root in enumerate(roots)
    ]
    n = str(len(told))
    trees = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": n},
        "iteration_indptr": [*range(len(told) + 1)],
        "tree_info": [0] * len(told),
        "trees": told,
    }
    learner = {
        "attributes": {},
        "feature_names": names,
        "feature_types": ["float"] * len(names),
        "gradient_booster": {"model": trees, "name": "gbtree"},
        "learner_model_param": {
            "base_score": repr(base), "boost_from_average": "0", "num_class": "0",
            "num_feature": str(n_features), "num_target": "1",
        },
        "objective": {
            "name": "reg:squarederror",
            "reg_loss_param": {"scale_pos_weight": "1"},
        },
    }  # fmt: skip
    model = {"learner": learner, "version": [2, 1, 0]}
    # XGBoost reads no letters that are told by their numbers.
    return json.dumps(model, ensure_ascii=False).encode()


def _told(forest: Forest, n_features: int, number: int, root: int) -> dict[str, Any]:
    """One tree; a right child stands behind its left one, as XGBoost looks for it."""
    order, parents, left = [root], [NO_PARENT], []
    for place, one in enumerate(order):
        left.append(len(order) if one >= 0 else -1)
        if one >= 0:
            order += forest.children[one].tolist()
            parents += [place, place]
    n, at = len(order), np.array(order, np.int64)
    is_node, nodes = at >= 0, at[at >= 0]
    conditions = np.empty(n, np.float32)
    conditions[is_node] = conditions_of(forest.thresholds[nodes])
    conditions[~is_node] = forest.leaves[-1 - at[~is_node]]
    features, defaults = np.zeros((2, n), np.int64)
    features[is_node] = forest.features[nodes]
    defaults[is_node] = missing_goes_left(forest, nodes)
    return {
        "base_weights": [0.0] * n,
        "categories": [], "categories_nodes": [], "categories_segments": [],
        "categories_sizes": [],
        "default_left": defaults.tolist(),
        "id": number,
        "left_children": left,
        "loss_changes": [0.0] * n,
        "parents": parents,
        "right_children": [each + 1 if each >= 0 else -1 for each in left],
        "split_conditions": conditions.tolist(),
        "split_indices": features.tolist(),
        "split_type": [0] * n,
        "sum_hessian": [1.0] * n,
        "tree_param": {
            "num_deleted": "0", "num_feature": str(n_features), "num_nodes": str(n),
            "size_leaf_vector": "1",
        },
    }  # fmt: skip


def conditions_of(thresholds: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """The numbers of single precision below which all stand that go left, [n].

    Parameters
    ----------
    thresholds : [n]
        Up to which a document goes left.
    """
    found: npt.NDArray[np.float32]
    with np.errstate(over="ignore"):
        near = thresholds.astype(np.float32)
        above = near.astype(np.float64) > thresholds
        lower = np.where(above, np.nextafter(near, np.float32(-np.inf)), near)
        found = np.nextafter(lower, np.float32(np.inf))
    return found


def missing_goes_left(
    forest: Forest, nodes: npt.NDArray[np.int64], system: str = "XGBoost"
) -> npt.NDArray[np.bool_]:
    """Whether what is missing goes left; what is NaN and counts as 0 goes as 0 does.

    Parameters
    ----------
    nodes : [n]
        Places of nodes in the forest.
    system
        Named in the refusal.

    Returns
    -------
    [n]

    Raises
    ------
    ModelFileRefused
        Where 0 is missing, which no split of the system says.
    """
    missing, thresholds = forest.missing[nodes], forest.thresholds[nodes]
    goes_left = (missing & MISSING_LEFT) != 0
    if ((missing & ZERO_IS_MISSING) != 0).any():
        raise ModelFileRefused(
            f"splits must take 0 for a number for {system}; the model has some by "
            "which 0 is missing: export it to LightGBM"
        )
    as_zero = (missing & NAN_IS_MISSING) == 0
    return np.where(as_zero, thresholds >= 0.0, goes_left)
