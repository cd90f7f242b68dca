"""`rankstream rank` by trees: features may be missing, and splits say where they go."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream.operations.cli import main
from rankstream.snapshots import features_hash
from rankstream.wire.envelope import TREES, encode_snapshot
from rankstream.wire.models.forests import (
    MISSING_LEFT,
    NAN_IS_MISSING,
    Forest,
    pack_forest,
)
from tests.snapshot_factory import snapshot

MISSING_GOES_LEFT = pack_forest(
    Forest(
        roots=np.array([0], np.int32),
        features=np.array([1], np.int32),
        thresholds=np.array([-1.0]),
        children=np.array([[-1, -2]], np.int32),
        missing=np.array([NAN_IS_MISSING + MISSING_LEFT], np.uint8),
        leaves=np.array([5.0, -5.0]),
    )
)
"""Price up to -1, or none, scores 5; others, 0 among them, -5."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The file of a snapshot of such trees."""
    file = tmp_path / "m.snapshot"
    file.write_bytes(
        encode_snapshot(
            snapshot(
                kind=TREES, n_features=2, weights=MISSING_GOES_LEFT,
                feature_names=["age", "price"],
                features_hash=features_hash(["age", "price"]),
            )
        )
    )  # fmt: skip
    return file


ROWS = {
    "csv": "item,age,price\na,1,0\nb,1,\nc,,-2\n",
    "jsonl": '{"item":"a","age":1,"price":0}\n{"item":"b","age":1,"price":null}\n'
    '{"item":"c","price":-2}\n',
}


@pytest.mark.parametrize("ending", ROWS)
def test_an_empty_cell_goes_where_splits_say(
    ending: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not where 0 does."""
    file = model.with_suffix(f".{ending}")
    file.write_text(ROWS[ending])
    words = ["rank", "--model", str(model), "--features", str(file), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)[0]
    scores = dict(zip(found["items"], found["scores"], strict=True))
    assert scores == {"a": -5.0, "b": 5.0, "c": 5.0}


@pytest.mark.parametrize(
    ("cell", "told"),
    [("cheap", "'price' is 'cheap': leave it empty"), ("inf", "must be finite")],
)
def test_what_is_neither_a_number_nor_missing_is_refused(
    cell: str, told: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the column that it stands in, not with an empty one before."""
    file = model.with_suffix(".csv")
    file.write_text(f"item,age,price\na,1,1\nb,,{cell}\n")
    assert main(["rank", "--model", str(model), "--features", str(file)]) == 2
    assert told in capsys.readouterr().err


def test_weighted_sums_have_no_features_that_are_missing(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """There an empty cell is refused as before."""
    fields: dict[str, Any] = {
        "n_features": 2,
        "feature_names": ["age", "price"],
        "features_hash": features_hash(["age", "price"]),
    }
    weights = np.ones(2, "<f4").tobytes()
    model.write_bytes(encode_snapshot(snapshot(weights=weights, **fields)))
    file = model.with_suffix(".csv")
    file.write_text(ROWS["csv"])
    assert main(["rank", "--model", str(model), "--features", str(file)]) == 2
    assert "'price' is '': fill it, with 0 say" in capsys.readouterr().err
