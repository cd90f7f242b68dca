"""A version as a graph of ONNX: what it computes, in the same precision.

The input `features` [n_documents, n_features], float32, is as the service gives them;
the output is `scores` [n_documents], float32. Names of features are in the model's
metadata, `feature_names`, as JSON.
"""

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from rankstream.operations.exported_models.exported import (
    ExportRefused,
    feature_names,
    forest_of,
    version_name,
)
from rankstream.operations.tree_files.tree_file import check_leaves, trees_of
from rankstream.operations.tree_files.xgboost_model import missing_goes_left
from rankstream.ranking.checked_weights import checked_weights
from rankstream.wire.envelope import Snapshot

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""Of 2022: runtimes of today and of then read them."""

INPUT, OUTPUT = "features", "scores"

NO_SPLIT: dict[str, int | str | float] = {
    "modes": "LEAF", "featureids": 0, "truenodeids": 0, "falsenodeids": 0,
    "missing_value_tracks_true": 0, "values_as_tensor": 0.0,
}  # fmt: skip
"""What a leaf has in the columns of nodes."""

ACTIVATIONS = {"neural": "Sigmoid", "neural-tanh": "Tanh", "neural-relu": "Relu"}

INSTALL = "pip install 'rankstream[exports]'"

Constant = npt.NDArray[Any]


class _Graph:
    """Nodes that each take what the one before made, and constants of their own."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._last = INPUT

    def add(self, kind: str, *constants: Constant, **options: Any) -> None:
        """Add a node.

        Parameters
        ----------
        constants
            What it takes beside the tensor before.
        """
        number = len(self.nodes)
        names = [f"constant_{number}_{at}" for at in range(len(constants))]
        for name, numbers in zip(names, constants, strict=True):
            self.constants.append(self.onnx.numpy_helper.from_array(numbers, name))
        taken, self._last = [self._last, *names], f"tensor_{number}"
        node = self.onnx.helper.make_node(kind, taken, [self._last], **options)
        self.nodes.append(node)

    def model(self, snapshot: Snapshot) -> bytes:
        """The bytes of a model whose scores the last node made."""
        helper, single = self.onnx.helper, self.onnx.TensorProto.FLOAT
        self.nodes[-1].output[0] = OUTPUT
        shape = ["n_documents", snapshot.n_features]
        graph = helper.make_graph(
            self.nodes,
            version_name(snapshot),
            [helper.make_tensor_value_info(INPUT, single, shape)],
            [helper.make_tensor_value_info(OUTPUT, single, shape[:1])],
            self.constants,
        )
        domains = {"": OPSET, "ai.onnx.ml": ML_OPSET}
        made = helper.make_model(
            graph,
            ir_version=IR_VERSION,
            producer_name="rankstream",
            opset_imports=[helper.make_opsetid(*each) for each in domains.items()],
        )
        told = json.dumps(feature_names(snapshot))
        helper.set_model_props(made, {"feature_names": told})
        self.onnx.checker.check_model(made)
        content: bytes = made.SerializeToString(deterministic=True)
        return content


def write_layers(snapshot: Snapshot) -> bytes:
    """A linear ranker or a network: features shifted and scaled, then layer by layer.

    Raises
    ------
    ExportRefused, SnapshotError
    """
    onnx = _library()
    graph, checked = _Graph(onnx), checked_weights(snapshot, None)
    moves = ("Sub", checked.shift), ("Mul", checked.scale)
    if any(numbers is not None for _, numbers in moves):
        # In double precision, as rankers move features.
        graph.add("Cast", to=onnx.TensorProto.DOUBLE)
        for kind, numbers in moves:
            if numbers is not None:
                graph.add(kind, numbers.astype(np.float64))
        graph.add("Cast", to=onnx.TensorProto.FLOAT)
    start, n_inputs = 0, snapshot.n_features
    for n_units in snapshot.hidden:
        end = start + n_inputs * n_units
        graph.add("MatMul", checked.weights[start:end].reshape(n_inputs, n_units))
        graph.add("Add", checked.weights[end : end + n_units])
        graph.add(ACTIVATIONS[snapshot.kind])
        start, n_inputs = end + n_units, n_units
    graph.add("MatMul", checked.weights[start:])
    return graph.model(snapshot)


def write_trees(snapshot: Snapshot) -> bytes:
    """Trees, compared and added in double precision; each split sends NaN its way.

    Raises
    ------
    ExportRefused
    ModelFileRefused
        Where splits take 0 for what is missing, or a leaf is beyond single precision.
    """
    onnx, forest = _library(), forest_of(snapshot)
    check_leaves(forest, "ONNX")
    to_left = missing_goes_left(forest, np.arange(len(forest.features)), "ONNX")
    of_nodes: list[dict[str, int | str | float]] = []
    of_leaves: list[tuple[int, int, float]] = []
    for tree, (nodes, leaves) in enumerate(trees_of(forest)):
        places = [*nodes.tolist(), *(-1 - leaf for leaf in leaves)]
        number = {at: place for place, at in enumerate(places)}
        for at in places:
            own = {"treeids": tree, "nodeids": number[at]}
            of_nodes.append(own | NO_SPLIT)
            if at < 0:
                of_leaves.append((tree, number[at], float(forest.leaves[-1 - at])))
                continue
            left, right = forest.children[at].tolist()
            of_nodes[-1] |= {
                "modes": "BRANCH_LEQ",
                "featureids": int(forest.features[at]),
                "truenodeids": number[left],
                "falsenodeids": number[right],
                "missing_value_tracks_true": int(to_left[at]),
                "values_as_tensor": float(forest.thresholds[at]),
            }
    columns = {
        f"nodes_{name}": [each[name] for each in of_nodes] for name in of_nodes[0]
    }
    trees_told, numbers, values = zip(*of_leaves, strict=True)
    columns["target_treeids"], columns["target_nodeids"] = [*trees_told], [*numbers]
    for name, told in (
        ("nodes_values", columns.pop("nodes_values_as_tensor")),
        ("target_weights", values),
    ):
        tensor = onnx.numpy_helper.from_array(np.array(told, np.float64), name)
        columns[f"{name}_as_tensor"] = tensor
    graph = _Graph(onnx)
    graph.add("Cast", to=onnx.TensorProto.DOUBLE)
    graph.add(
        "TreeEnsembleRegressor",
        domain="ai.onnx.ml",
        n_targets=1,
        aggregate_function="SUM",
        target_ids=[0] * len(of_leaves),
        **columns,
    )
    graph.add("Reshape", np.array([-1], np.int64))
    return graph.model(snapshot)


def _library() -> Any:
    try:
        import onnx.checker  # noqa: PLC0415  few have it
        import onnx.helper  # noqa: PLC0415
        import onnx.numpy_helper  # noqa: PLC0415
    except ImportError as error:
        raise ExportRefused(
            "a graph of ONNX is made by the package onnx; it is not installed: "
            f"{INSTALL}"
        ) from error
    return onnx
