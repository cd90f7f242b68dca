"""Graphs of ONNX: run by onnxruntime, they score as rankers do."""

import json
import sys
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from rankstream.operations.exported_models.exported import ExportRefused
from rankstream.operations.exported_models.targets import exported_file
from rankstream.wire.models.forests import NO_TREES
from tests.rankstream.operations.exported_models.versions import (
    assert_near,
    documents,
    live,
    of_layers,
    of_trees,
)
from tests.trained_elsewhere import N_FEATURES, NAMES


def run(content: bytes, features: Any) -> Any:
    """Scores of a graph, [n_documents]."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options)
    return session.run(["scores"], {"features": features})[0]


@pytest.mark.parametrize(
    ("kind", "hidden"),
    [
        ("linear", ()), ("neural", (4, 3)), ("neural-tanh", (8,)), ("neural-relu", (5,))
    ],
)  # fmt: skip
def test_layers_score_as_rankers_do(kind: str, hidden: tuple[int, ...]) -> None:
    """A thousand documents, shifted and scaled first, and as they are."""
    for more in ({}, {"shift": b"", "scale": b""}, {"scale": b""}):
        version = of_layers(kind, hidden, **more)
        features = documents()
        assert_near(
            run(exported_file(version, "onnx"), features), live(version, features)
        )


def test_trees_score_as_rankers_do_to_the_last_bits() -> None:
    """In double precision: also on thresholds, and where a feature is NaN."""
    version, features = of_trees(), documents(has_missing=True)
    assert np.isnan(features).any(axis=1).sum() > 100
    found = run(exported_file(version, "onnx"), features)
    np.testing.assert_array_max_ulp(found, live(version, features), 1)


def test_a_version_without_trees_scores_0() -> None:
    """As the version from which training begins does."""
    content = exported_file(of_trees(NO_TREES), "onnx")
    assert run(content, documents()[:3]).tolist() == [0, 0, 0]


def test_a_graph_says_what_its_features_are_called() -> None:
    """And the same version gives the same bytes."""
    content = exported_file(of_trees(), "onnx")
    assert content == exported_file(of_trees(), "onnx")
    read = onnx.load_from_string(content)
    told = {each.key: each.value for each in read.metadata_props}
    assert json.loads(told["feature_names"]) == NAMES
    assert read.graph.name == "m@0.1"
    shape = read.graph.input[0].type.tensor_type.shape.dim
    assert shape[1].dim_value == N_FEATURES


def test_without_the_package_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody else needs it."""
    for name in [each for each in sys.modules if each.partition(".")[0] == "onnx"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ExportRefused, match=r"rankstream\[exports\]"):
        exported_file(of_layers(), "onnx")
