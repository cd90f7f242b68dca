"""Models of the plug-ins for learning to rank of Elasticsearch and OpenSearch.

Both read the same document: it goes to `_ltr/_featureset/SET/_createmodel`, and names
features of that set. Both compute in single precision.
"""

import json

import numpy as np

from rankstream.operations.exported_models.exported import (
    Nested,
    feature_names,
    forest_of,
    linear_model,
    nested,
    version_name,
)
from rankstream.operations.tree_files.tree_file import in_single
from rankstream.operations.tree_files.xgboost_model import (
    conditions_of,
    missing_goes_left,
)
from rankstream.wire.envelope import Snapshot

TREES = "model/xgboost+json"


def write_linear(snapshot: Snapshot) -> bytes:
    """`model/linear`, with the normaliser `standard` where a feature is scaled.

    The other one, `min_max`, is the same, and takes no ranges that begin below 0.

    Raises
    ------
    ExportRefused, SnapshotError
    """
    model, names = linear_model(snapshot), feature_names(snapshot)
    scales = np.array([model.mean, model.deviation]).astype(np.float32).T.tolist()
    normalisers = {
        name: {"standard": {"mean": mean, "standard_deviation": deviation}}
        for name, (mean, deviation), is_scaled in zip(
            names, scales, model.is_scaled, strict=True
        )
        if is_scaled
    }
    weights = dict(zip(names, model.weights.tolist(), strict=True))
    more = {"feature_normalizers": normalisers} if normalisers else {}
    return _document(snapshot, "model/linear", weights, more)


def write_trees(snapshot: Snapshot) -> bytes:
    """`model/xgboost+json`: a dump of XGBoost, whose splits go left below a condition.

    Raises
    ------
    ExportRefused, ModelFileRefused
    """
    forest = in_single(forest_of(snapshot), TREES, goes_below=True)
    names = feature_names(snapshot)
    every = np.arange(len(forest.features))
    conditions = conditions_of(forest.thresholds).tolist()
    to_left = missing_goes_left(forest, every, TREES).tolist()
    leaves = forest.leaves.astype(np.float32).tolist()
    n_splits = len(every)

    def leaf(at: int, _: int) -> Nested:
        return {"nodeid": n_splits + at, "leaf": leaves[at]}

    def split(at: int, deep: int, left: Nested, right: Nested) -> Nested:
        return {
            "nodeid": at, "depth": deep, "split": names[forest.features[at]],
            "split_condition": conditions[at],
            "yes": left["nodeid"], "no": right["nodeid"],
            "missing": (left if to_left[at] else right)["nodeid"],
            "children": [left, right],
        }  # fmt: skip

    trees = [nested(forest, root, leaf, split) for root in forest.roots.tolist()]
    return _document(snapshot, TREES, trees, {})


def _document(snapshot: Snapshot, kind: str, definition: object, more: Nested) -> bytes:
    told = {"type": kind, "definition": json.dumps(definition), **more}
    document = {"model": {"name": version_name(snapshot), "model": told}}
    return (json.dumps(document, indent=1) + "\n").encode()
