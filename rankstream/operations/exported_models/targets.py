"""Systems that a version can be a file of, and which kinds each can express."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rankstream.operations.exported_models import (
    learning_to_rank,
    onnx_graph,
    ranklib_line,
    solr,
)
from rankstream.operations.exported_models.exported import ExportRefused
from rankstream.operations.tree_files.lightgbm_text import write_lightgbm
from rankstream.operations.tree_files.ranklib_xml import write_ranklib
from rankstream.operations.tree_files.xgboost_model import write_xgboost
from rankstream.wire.envelope import (
    CURVE,
    NETWORKS,
    TREES,
    Snapshot,
    pointer_of,
)
from rankstream.wire.models.forests import Forest, unpack_forest

LINEAR = "linear"

Writer = Callable[[Snapshot], bytes]


class Target(NamedTuple):
    """A system: what writes its file by the kind of a ranker, and whether that is text.

    Raises of a writer: `ExportRefused`, `ModelFileRefused`, `SnapshotError`.
    """

    writers: Mapping[str, Writer]
    is_text: bool = True


def _trees_by(write: Callable[[Forest, list[str], int], bytes]) -> Writer:
    return lambda version: write(
        unpack_forest(version.weights), version.feature_names, version.n_features
    )


_LTR = Target(
    {LINEAR: learning_to_rank.write_linear, TREES: learning_to_rank.write_trees}
)

TARGETS = {
    "lightgbm": Target({TREES: _trees_by(write_lightgbm)}),
    "xgboost": Target({TREES: _trees_by(write_xgboost)}),
    "ranklib": Target(
        {LINEAR: ranklib_line.write_linear, TREES: _trees_by(write_ranklib)}
    ),
    "elasticsearch-ltr": _LTR,
    "opensearch-ltr": _LTR,
    "solr-ltr": Target({LINEAR: solr.write_linear, TREES: solr.write_trees}),
    "onnx": Target(
        {
            LINEAR: onnx_graph.write_layers,
            TREES: onnx_graph.write_trees,
            **dict.fromkeys(NETWORKS, onnx_graph.write_layers),
        },
        is_text=False,
    ),
}


def exported_file(snapshot: Snapshot, target: str) -> bytes:
    """A version as a file of another system.

    Parameters
    ----------
    target
        One of `TARGETS`.

    Raises
    ------
    ExportRefused
        Where the system has no rankers of its kind, or features are normalised by
        query, which none has.
    ModelFileRefused
        Where the system can have no such trees, or no features of these names.
    SnapshotError
        Where its numbers are not finite.
    """
    writers, kind = TARGETS[target].writers, snapshot.kind
    if kind not in writers:
        what = "a curve of bias" if kind == CURVE else f"of the kind {kind!r}"
        others = [name for name, each in TARGETS.items() if kind in each.writers]
        remedy = f"export it to {', '.join(others)}" if others else "name another"
        raise ExportRefused(
            f"a version must be of {' or '.join(writers)} to be exported to {target}; "
            f"{pointer_of(snapshot)} of {snapshot.model!r} is {what}: {remedy}"
        )
    if (how := snapshot.normalisation) != "none":
        raise ExportRefused(
            "features must be normalised alike for all queries to be exported; "
            f"{pointer_of(snapshot)} of {snapshot.model!r} has {how!r}, by the "
            f"candidates of each query: train it with models.{snapshot.model}."
            "normalisation = 'fixed'"
        )
    return writers[kind](snapshot)
