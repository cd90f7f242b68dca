"""The model document of Elasticsearch's plug-in for learning to rank, read.

It holds the model as text: RankLib's ensemble, whose features are numbers, or a dump of
XGBoost in JSON, whose features have the names of the feature set.
"""

import json
from collections.abc import Mapping
from typing import Any

from rankstream.operations.tree_files.nested_trees import Split, grown
from rankstream.operations.tree_files.ranklib_xml import read_ranklib
from rankstream.operations.tree_files.tree_file import (
    ModelFileRefused,
    Tree,
    TreeFile,
    checked,
    damaged,
    joined,
    single,
    unfit,
    unknown_field,
)
from rankstream.operations.tree_files.xgboost_model import below
from rankstream.wire.models.forests import MISSING_LEFT, NAN_IS_MISSING

FORM = "a model document of Elasticsearch"

OF_NODE = frozenset(
    {
        "nodeid", "depth", "split", "split_condition", "yes", "no", "missing",
        "children", "leaf", "gain", "cover",
    }
)  # fmt: skip

PLAIN_OBJECTIVES = frozenset(
    {"rank:ndcg", "rank:map", "rank:pairwise", "reg:linear", "reg:squarederror"}
)


def is_elasticsearch(beginning: bytes) -> bool:
    """Whether a file begins as the document does, or as what the plug-in returns."""
    text = beginning.translate(None, b" \t\r\n")
    is_stored = text.startswith(b'{"_') and b'"_source"' in text
    return is_stored or text.startswith((b'{"model":', b'{"name":'))


def read_elasticsearch(content: bytes) -> TreeFile:
    """The trees of a document.

    Raises
    ------
    ModelFileRefused
    """
    try:
        document = json.loads(content)
        document = document.get("_source", document)
        names = _names(document)
        model = document["model"]
        model = model.get("model", model)
        if model.get("feature_normalizers"):
            raise unfit(
                FORM, "features that are normalised", "train it on features as they are"
            )
        if unknown := model.keys() - {"type", "definition", "feature_normalizers"}:
            raise unknown_field(FORM, "model", unknown)
        kind, definition = model["type"], model["definition"]
        if kind == "model/ranklib":
            return read_ranklib(str(definition).encode())
        if kind != "model/xgboost+json":
            raise unfit(FORM, f"the type {kind!r}", "give it one of trees")
        if isinstance(definition, str):
            definition = json.loads(definition)
        return _of_dump(definition, names)
    except (
        KeyError, TypeError, AttributeError, ValueError, RecursionError, OverflowError,
    ) as error:  # fmt: skip
        if isinstance(error, ModelFileRefused):
            raise
        told = f"{error} is missing" if isinstance(error, KeyError) else error
        raise damaged(FORM, told) from error


def _names(document: Mapping[str, Any]) -> list[str]:
    """Names of the feature set, where the document brings it along."""
    own = document.get("feature_set") or document.get("model", {}).get("feature_set")
    names = [str(each["name"]) for each in (own or {}).get("features", [])]
    if len({*names}) < len(names):
        again = next(each for each in names if names.count(each) > 1)
        raise ModelFileRefused(
            f"features of a model file must have different names; got {again!r} twice "
            "in its feature set: rename one, and save it anew"
        )
    return names


def _of_dump(dump: Any, names: list[str]) -> TreeFile:
    if isinstance(dump, dict):
        if unknown := dump.keys() - {"objective", "splits"}:
            raise unknown_field(FORM, "definition", unknown)
        objective = dump.get("objective", "rank:ndcg")
        if objective not in PLAIN_OBJECTIVES:
            raise unfit(
                FORM,
                f"the objective {objective!r}, whose predictions are more than sums",
                "train it by a ranking objective",
            )
        dump = dump["splits"]
    numbers = {name: at for at, name in enumerate(names)}
    is_closed = bool(names)
    trees = [_tree(tree, numbers, is_closed=is_closed) for tree in dump]
    n_features = max(1, len(numbers))
    return checked(TreeFile(joined(trees), n_features, [*numbers]), FORM)


def _tree(root: Any, numbers: dict[str, int], *, is_closed: bool) -> Tree:
    """Names that no feature set tells are numbered as they come."""

    def read(node: Mapping[str, Any]) -> Split[Mapping[str, Any]] | float:
        if unknown := node.keys() - OF_NODE:
            raise unknown_field(FORM, "a split", unknown)
        if "leaf" in node:
            return float(single(node["leaf"]))
        name = str(node["split"])
        if name not in numbers and is_closed:
            raise damaged(FORM, f"a split names {name!r}, and the feature set not")
        number = numbers.setdefault(name, len(numbers))
        is_left = node.get("missing", node["yes"]) == node["yes"]
        return Split(
            number,
            below(single(node["split_condition"])),
            NAN_IS_MISSING + MISSING_LEFT * is_left,
            *_children(node),
        )

    return grown(FORM, root, read)


def _children(node: Mapping[str, Any]) -> tuple[Any, Any]:
    by_number = {child["nodeid"]: child for child in node["children"]}
    if len(node["children"]) != 2 or len(by_number) != 2:
        raise damaged(FORM, f"split {node.get('nodeid')} has no two children")
    left, right = by_number[node["yes"]], by_number[node["no"]]
    if left is right:
        # Taken twice at each split, a small file would be an endless tree.
        raise damaged(FORM, f"split {node.get('nodeid')} has one child on both sides")
    return left, right
