"""LightGBM's text: what `Booster.save_model` writes, read and written."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from rankstream.operations.tree_files.tree_file import (
    ModelFileRefused,
    Tree,
    TreeFile,
    checked,
    damaged,
    joined,
    trees_of,
    unfit,
    unknown_field,
)
from rankstream.wire.models.forests import NEAR_ZERO, Forest

FORM = "LightGBM's text"

VERSIONS = ("v3", "v4")

PLAIN_OBJECTIVES = frozenset(
    {
        "lambdarank", "rank_xendcg", "regression", "regression_l1", "huber", "fair",
        "quantile", "mape", "custom",
    }
)  # fmt: skip
"""Whose predictions are the sums of leaves, and nothing more."""

HEAD = frozenset(
    {
        "version", "num_class", "num_tree_per_iteration", "label_index",
        "max_feature_idx", "objective", "feature_names", "monotone_constraints",
        "feature_infos", "tree_sizes",
    }
)  # fmt: skip

OF_TREE = frozenset(
    {
        "num_leaves", "num_cat", "split_feature", "split_gain", "threshold",
        "decision_type", "left_child", "right_child", "leaf_value", "leaf_weight",
        "leaf_count", "internal_value", "internal_weight", "internal_count",
        "is_linear", "shrinkage",
    }
)  # fmt: skip

CATEGORICAL = 1
"""The bit of `decision_type`; above it the side of what is missing, and its kind."""

MOST_DECISION = 15
"""Nothing is known of further bits."""

OWN_NAME = "Column_"
"""Begins the names that LightGBM gives to features without any."""

Fields = Mapping[str, str]


def is_lightgbm(beginning: bytes) -> bool:
    """Whether a file begins as LightGBM's text does."""
    return beginning.replace(b"\r\n", b"\n").startswith(b"tree\nversion=")


def read_lightgbm(content: bytes) -> TreeFile:
    """The trees of a text.

    Raises
    ------
    ModelFileRefused
    """
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise damaged(FORM, error) from error
    if "\nend of trees" not in text:
        raise damaged(FORM, "it does not come to the end of trees")
    before = text.partition("\nend of trees")[0]
    head, *trees = before.split("\nTree=")
    fields = _fields(head.split("\n")[1:], "the head", HEAD)
    _check_head(fields)
    try:
        found = joined(_tree(number, tree) for number, tree in enumerate(trees))
        n_sizes = len(fields.get("tree_sizes", "").split())
        n_features = int(fields["max_feature_idx"]) + 1
    except (ValueError, KeyError, OverflowError) as error:
        if isinstance(error, ModelFileRefused):
            raise
        raise damaged(FORM, error) from error
    if n_sizes != len(trees):
        raise damaged(FORM, f"it has {len(trees)} trees of {n_sizes}")
    names = fields.get("feature_names", "").split()
    if names == _own_names(len(names)):
        names = []
    return checked(TreeFile(found, n_features, names), FORM)


def _own_names(n_features: int) -> list[str]:
    return [f"{OWN_NAME}{number}" for number in range(n_features)]


def _fields(lines: list[str], place: str, known: frozenset[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for line in lines:
        name, mark, value = line.strip().partition("=")
        if not name:
            continue
        if name == "average_output" and not mark:
            raise unfit(
                FORM, "an average of trees, of a random forest", "train it by boosting"
            )
        if name in found:
            raise damaged(FORM, f"{name!r} comes twice in {place}")
        found[name] = value
    if found.get("num_cat", "0") != "0":
        raise unfit(
            FORM, f"a categorical split in {place}", "train it without such features"
        )
    if found.get("is_linear", "0") != "0":
        raise unfit(FORM, "linear trees", "train it with linear_tree=false")
    if unknown := found.keys() - known:
        raise unknown_field(FORM, place, unknown)
    return found


def _check_head(fields: Fields) -> None:
    version = fields.get("version", "")
    if version not in VERSIONS:
        raise damaged(FORM, f"its version is {version!r} and none of {VERSIONS}")
    for name in ("num_class", "num_tree_per_iteration"):
        if fields.get(name) != "1":
            raise unfit(
                FORM, f"{name}={fields.get(name)}", "train one that gives one score"
            )
    objective, *options = fields.get("objective", "custom").split() or ["custom"]
    if objective not in PLAIN_OBJECTIVES or "sqrt" in options:
        raise unfit(
            FORM,
            f"the objective {fields['objective']!r}, whose predictions are more than "
            "sums",
            "train it by a ranking objective",
        )


def _tree(number: int, text: str) -> Tree:
    own, *lines = text.split("\n")
    if own.strip() != str(number):
        raise damaged(FORM, f"tree {own.strip()!r} comes in the place of {number}")
    fields = _fields(lines, f"tree {number}", OF_TREE)
    n_leaves = int(fields["num_leaves"])

    def numbers(name: str, kind: type, n: int) -> npt.NDArray[Any]:
        values: npt.NDArray[Any]
        values = np.array(fields.get(name, "").split()).astype(kind)
        if len(values) != n:
            raise damaged(FORM, f"{name} of tree {number} has {len(values)} of {n}")
        return values

    n = n_leaves - 1
    decisions = numbers("decision_type", np.int64, n)
    if (decisions & CATEGORICAL).any():
        raise unfit(
            FORM, f"a categorical split in tree {number}",
            "train it without such features",
        )  # fmt: skip
    if len(unknown := decisions[decisions & ~MOST_DECISION != 0]):
        raise damaged(FORM, f"decision_type of tree {number} has {unknown[0]}")
    return Tree(
        0 if n else -1,
        numbers("split_feature", np.int64, n),
        _around_zero(numbers("threshold", np.float64, n)),
        numbers("left_child", np.int64, n),
        numbers("right_child", np.int64, n),
        # Its bits are ours: the side, and then the kind of what is missing.
        decisions >> 1 & 7,
        numbers("leaf_value", np.float64, n_leaves),
    )


def _around_zero(thresholds: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Thresholds that part no numbers which LightGBM takes for 0, on the same sides."""
    zero = np.float32(NEAR_ZERO)
    below = np.nextafter(-zero, np.float32(-1.0))
    is_near = np.abs(thresholds) <= NEAR_ZERO
    return np.where(is_near, np.where(thresholds < 0.0, below, zero), thresholds)


def write_lightgbm(forest: Forest, names: list[str], n_features: int) -> bytes:
    """A text that LightGBM loads, and that scores alike to the bit.

    Parameters
    ----------
    names
        Of the features; empty where they have none.

    Raises
    ------
    ModelFileRefused
        Where LightGBM could not have features of these names.
    """
    own = names or _own_names(n_features)
    for name in own:
        if any(letter.isspace() or letter in ',:[]{}"' for letter in name):
            raise ModelFileRefused(
                "names of features must be without spaces and the letters of JSON for "
                f"LightGBM; got {name!r}: name the features of the model otherwise"
            )
    trees = [*_texts(forest)]
    head = {
        "version": "v4", "num_class": "1", "num_tree_per_iteration": "1",
        "label_index": "0", "max_feature_idx": str(n_features - 1),
        "feature_names": " ".join(own),
        "feature_infos": " ".join(["none"] * n_features),
        "tree_sizes": " ".join(str(len(tree)) for tree in trees),
    }  # fmt: skip
    lines = "".join(f"{name}={value}\n" for name, value in head.items())
    return ("tree\n" + lines + "\n" + "".join(trees) + "end of trees\n").encode()


def _texts(forest: Forest) -> Iterator[str]:
    for number, (nodes, leaves) in enumerate(trees_of(forest)):
        place = {int(node): at for at, node in enumerate(nodes)}
        leaf = {-1 - int(each): -1 - at for at, each in enumerate(leaves)}
        to = place | leaf
        columns = {
            "split_feature": forest.features[nodes].tolist(),
            "split_gain": [0] * len(nodes),
            "threshold": forest.thresholds[nodes].tolist(),
            "decision_type": (forest.missing[nodes].astype(int) << 1).tolist(),
            "left_child": [to[each] for each in forest.children[nodes, 0].tolist()],
            "right_child": [to[each] for each in forest.children[nodes, 1].tolist()],
            "leaf_value": forest.leaves[leaves].tolist(),
            "leaf_weight": [0] * len(leaves),
            "leaf_count": [0] * len(leaves),
            "internal_value": [0] * len(nodes),
            "internal_weight": [0] * len(nodes),
            "internal_count": [0] * len(nodes),
        }
        told = "".join(
            f"{name}={' '.join(map(repr, values))}\n"
            for name, values in columns.items()
        )
        yield (
            f"Tree={number}\nnum_leaves={len(leaves)}\nnum_cat=0\n{told}"
            "is_linear=0\nshrinkage=1\n\n\n"
        )
