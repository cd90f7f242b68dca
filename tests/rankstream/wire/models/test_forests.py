import struct
from typing import Any

import numpy as np
import pytest

from rankstream.wire.envelope import (
    FOREST_SCHEMA,
    SCHEMA,
    TREES,
    Snapshot,
    SnapshotError,
    decode_snapshot,
    encode_snapshot,
)
from rankstream.wire.models.forests import (
    HEADER,
    MOST_DEEP,
    NO_TREES,
    Forest,
    fault_of_forest,
    pack_forest,
    packed_bytes,
    unpack_forest,
)
from tests.forest_factory import drawn_forest, packed
from tests.snapshot_factory import snapshot


def tiny(**changed: object) -> Forest:
    """x1 <= 2 goes to leaf 0, else on to x0 <= -1; and a tree that is one leaf."""
    fields: dict[str, object] = {
        "roots": np.array([0, -4], np.int32),
        "features": np.array([1, 0], np.int32),
        "thresholds": np.array([2.0, -1.0]),
        "children": np.array([[-1, 1], [-2, -3]], np.int32),
        "missing": np.array([5, 0], np.uint8),
        "leaves": np.array([0.5, -0.25, 4.0, 1.0]),
    }
    return Forest(**(fields | changed))  # type: ignore[arg-type]


def of_trees(weights: bytes, **fields: Any) -> Snapshot:
    """A snapshot of trees over six features."""
    return snapshot(kind=TREES, n_features=6, weights=weights, **fields)


def test_layout_is_pinned() -> None:
    """Sizes, then arrays in order, little-endian, without gaps."""
    expected = (
        struct.pack("<4I", 2, 2, 4, 0)
        + struct.pack("<2d", 2.0, -1.0)
        + struct.pack("<4d", 0.5, -0.25, 4.0, 1.0)
        + struct.pack("<2i", 0, -4)
        + struct.pack("<2i", 1, 0)
        + struct.pack("<4i", -1, 1, -2, -3)
        + bytes([5, 0])
    )
    assert pack_forest(tiny()) == expected
    assert len(expected) == packed_bytes(2, 2, 4)


@pytest.mark.parametrize("forest", [tiny(), NO_TREES, drawn_forest(3)])
def test_unpacking_gives_back_what_was_packed(forest: Forest) -> None:
    """Value by value; nothing is wrong with it."""
    again = unpack_forest(pack_forest(forest))
    for name in Forest._fields:
        expected, got = getattr(forest, name), getattr(again, name)
        assert expected.tolist() == got.tolist()
        assert expected.dtype == got.dtype
    assert fault_of_forest(pack_forest(forest), 6) == ""


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"features": np.array([1, 6])}, "among the 6 of the model; got 6"),
        ({"features": np.array([-1, 0])}, "got -1"),
        ({"thresholds": np.array([np.nan, 0.0])}, "thresholds must be numbers"),
        ({"leaves": np.array([0.5, np.inf, 4.0, 1.0])}, "leaves must be finite"),
        ({"leaves": np.array([0.5, np.nan, 4.0, 1.0])}, "leaves must be finite"),
        ({"missing": np.array([6, 0])}, "missing must be 5 at most; got 6"),
        ({"roots": np.array([0, 2])}, "among 2 nodes and 4 leaves; got 2"),
        ({"roots": np.array([0, -5])}, "among 2 nodes and 4 leaves; got -5"),
        ({"roots": np.array([0, -3])}, "each leaf must have one parent"),
        ({"roots": np.array([0])}, "each leaf must have one parent, or be one tree; 3"),
        ({"roots": np.array([0, 0])}, "each node must have one parent"),
        ({"children": np.array([[-1, 1], [-2, -2]])}, "leaf must have one parent"),
        ({"children": np.array([[-1, 0], [-2, -3]])}, "node must have one parent"),
        ({"children": np.array([[-1, 7], [-2, -3]])}, "got 7"),
        (
            {"roots": np.array([-2, -4]), "children": np.array([[-1, 1], [0, -3]])},
            "2 lie in a circle",
        ),
        ({"children": np.array([[-1, -2], [1, -3]])}, "1 lie in a circle"),
    ],
)
def test_what_is_no_forest_is_refused(changed: dict[str, object], told: str) -> None:
    """Each with what is wrong, also inside an envelope with a right checksum."""
    broken = pack_forest(tiny(**changed))
    assert told in fault_of_forest(broken, 6)
    with pytest.raises(SnapshotError, match="trees of a snapshot must be whole") as e:
        decode_snapshot(encode_snapshot(of_trees(broken)))
    assert e.value.reason == "weights"


def chain(n_nodes: int) -> Forest:
    """A tree as deep as it has nodes."""
    numbers = np.arange(n_nodes)
    children = np.stack([-1 - numbers, numbers + 1], axis=1)
    children[-1, 1] = -1 - n_nodes
    return Forest(
        np.zeros(1, np.int32),
        np.zeros(n_nodes, np.int32),
        np.arange(n_nodes, dtype=float),
        children.astype(np.int32),
        np.zeros(n_nodes, np.uint8),
        np.arange(n_nodes + 1, dtype=float),
    )


def test_depth_is_bounded() -> None:
    """A tree as deep as may be is taken, and one that is deeper by a node is not."""
    assert fault_of_forest(pack_forest(chain(MOST_DEEP)), 1) == ""
    assert "512 nodes deep" in fault_of_forest(pack_forest(chain(MOST_DEEP + 1)), 1)


def test_sizes_are_those_of_the_bytes() -> None:
    """Cut off, longer, with sizes that no memory has, or in a later layout."""
    good = packed()
    for length in range(len(good)):
        assert fault_of_forest(good[:length], 6)
    assert "must take" in fault_of_forest(good + b"\0", 6)
    most = HEADER.pack(*[2**32 - 1] * 3, 0)
    assert "must take" in fault_of_forest(most + good[HEADER.size :], 6)
    assert fault_of_forest(good[:12] + b"\1" + good[13:], 6)


def test_trees_have_a_schema_of_their_own() -> None:
    """So that an earlier release tells that a later one wrote them."""
    made = of_trees(packed())
    envelope = encode_snapshot(made)
    assert decode_snapshot(envelope) == made
    assert envelope[4:6] == struct.pack(">H", FOREST_SCHEMA)
    assert encode_snapshot(snapshot())[4:6] == struct.pack(">H", SCHEMA)
    for one, schema in ((envelope, SCHEMA), (encode_snapshot(snapshot()), 2)):
        with pytest.raises(SnapshotError, match="known shape") as refused:
            decode_snapshot(one[:4] + struct.pack(">H", schema) + one[6:])
        assert refused.value.reason == "shape"


@pytest.mark.parametrize(
    "fields",
    [
        {"normalisation": "min-max"},
        {"hidden": [3]},
        {"shift": bytes(24)},
        {"scale": bytes(24)},
    ],
)
def test_trees_take_features_as_they_are(fields: dict[str, object]) -> None:
    """Thresholds of anything else would be other numbers."""
    with pytest.raises(SnapshotError, match="known shape"):
        decode_snapshot(encode_snapshot(of_trees(packed(), **fields)))
