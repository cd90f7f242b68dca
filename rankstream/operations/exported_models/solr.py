"""Models of Solr's module for learning to rank: JSON for its model store.

Solr computes in single precision, and adds a millionth to each threshold.
"""

import json

import numpy as np
import numpy.typing as npt

from rankstream.operations.exported_models.exported import (
    ExportRefused,
    Nested,
    feature_names,
    forest_of,
    linear_model,
    nested,
    version_name,
)
from rankstream.operations.tree_files.ranklib_xml import check_missing
from rankstream.operations.tree_files.tree_file import in_single
from rankstream.wire.envelope import Snapshot

PACKAGE = "org.apache.solr.ltr"

SLACK = np.float32(1e-6)

TOLD_APART = ",="
"""Part names from values where Solr logs features."""


def write_linear(snapshot: Snapshot) -> bytes:
    """`LinearModel`, with a `StandardNormalizer` where a feature is scaled.

    Raises
    ------
    ExportRefused, SnapshotError
    """
    model, names = linear_model(snapshot), _names(snapshot)
    scales = np.array([model.mean, model.deviation]).astype(np.float32).T.tolist()
    features = []
    for name, (mean, deviation), is_scaled in zip(
        names, scales, model.is_scaled, strict=True
    ):
        told: Nested = {"name": name}
        if is_scaled:
            told["norm"] = {
                "class": f"{PACKAGE}.norm.StandardNormalizer",
                "params": {"avg": repr(mean), "std": repr(deviation)},
            }
        features.append(told)
    weights = dict(zip(names, model.weights.tolist(), strict=True))
    return _document(snapshot, "LinearModel", features, {"weights": weights})


def write_trees(snapshot: Snapshot) -> bytes:
    """`MultipleAdditiveTreesModel`; what is missing counts as 0.

    Raises
    ------
    ExportRefused, ModelFileRefused
    """
    forest = in_single(forest_of(snapshot), "Solr", goes_below=False)
    names = _names(snapshot)
    check_missing(forest, np.arange(len(forest.features)), "Solr")
    thresholds = thresholds_of(forest.thresholds).tolist()
    leaves = forest.leaves.astype(np.float32).tolist()

    def leaf(at: int, _: int) -> Nested:
        return {"value": repr(leaves[at])}

    def split(at: int, _: int, left: Nested, right: Nested) -> Nested:
        return {
            "feature": names[forest.features[at]], "threshold": repr(thresholds[at]),
            "left": left, "right": right,
        }  # fmt: skip

    roots = [nested(forest, root, leaf, split) for root in forest.roots.tolist()]
    trees = [{"weight": "1", "root": root} for root in roots]
    features = [{"name": name} for name in names]
    return _document(snapshot, "MultipleAdditiveTreesModel", features, {"trees": trees})


def thresholds_of(
    thresholds: npt.NDArray[np.float64],
) -> npt.NDArray[np.float32]:
    """What Solr is given, so that what it compares with is ours, [n].

    Parameters
    ----------
    thresholds : [n]

    Returns
    -------
    [n]
        The largest that come out at most as ours. Of some thresholds below 1e-5 none
        comes out as ours: it is below by 5e-13 at most.
    """
    largest = float(np.finfo(np.float32).max)
    ours = np.clip(thresholds, -largest, largest)
    # Of the largest ones a millionth moves none.
    size = np.clip(np.abs(ours), SLACK, 1e30).astype(np.float32)
    step = np.spacing(size).astype(np.float64)
    # Sums are rounded: which numbers near the difference come out at most as ours?
    near = ours - SLACK + step * np.arange(1.0, -4.0, -1.0)[:, None]
    given = np.clip(near, -largest, largest).astype(np.float32)
    sums = (given + SLACK).astype(np.float64)
    best = np.where(sums <= ours, sums, -np.inf).argmax(axis=0)
    found: npt.NDArray[np.float32] = given[best, np.arange(len(ours))]
    return found


def _names(snapshot: Snapshot) -> list[str]:
    names = feature_names(snapshot)
    for name in names:
        if any(letter in TOLD_APART for letter in name):
            raise ExportRefused(
                "names of features must be without , and = for Solr, which logs them "
                f"as name=value; got {name!r}: name the features of the model otherwise"
            )
    return names


def _document(
    snapshot: Snapshot, kind: str, features: list[Nested], parameters: Nested
) -> bytes:
    document = {
        "class": f"{PACKAGE}.model.{kind}",
        "name": version_name(snapshot),
        "features": features,
        "params": parameters,
    }
    return (json.dumps(document, indent=1) + "\n").encode()
