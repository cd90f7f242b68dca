"""Curves as LightGBM and XGBoost read them; by these, where they are installed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from models.bias.fitted_curve import FittedCurve
from models.bias.position_weights import (
    LightGBMFiles,
    lightgbm_files,
    position_weights,
    row_weights,
    xgboost_start,
)

QUERIES = np.repeat([5, 3, 9], 4)
RANKS = np.tile([1, 2, 3, 4], 3)
CLICKED = np.array([1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0])


def curve(alpha: list[float], beta: list[float] | None = None) -> FittedCurve:
    """Without intervals."""
    nothing = np.full(len(alpha), np.nan)
    own = np.array(beta or [0.0] * len(alpha))
    ends = nothing, nothing, nothing, nothing
    return FittedCurve(np.array(alpha), own, *ends, ("",) * len(alpha))


def test_a_click_counts_one_over_its_examination() -> None:
    """What was not clicked counts once."""
    weights = position_weights(curve([1.0, 0.5, 0.25, np.nan]))

    assert weights.tolist() == [1.0, 2.0, 4.0]
    assert position_weights(curve([1.0, 0.5, 0.1]), most=5.0).tolist() == [1, 2, 5]
    found = row_weights(RANKS, CLICKED, weights)
    assert found.tolist() == [1, 1, 4, 1, 1, 2, 1, 1, 1, 1, 1, 1]


def files() -> LightGBMFiles:
    """Of the rows above."""
    weights = position_weights(curve([1.0, 0.5, 0.25, 0.2]))
    return lightgbm_files(QUERIES, RANKS, row_weights(RANKS, CLICKED, weights))


def test_files_have_a_number_a_line() -> None:
    """One for each query, or for each row."""
    found = files()

    assert found.query == "4\n4\n4\n"
    assert found.position == "0\n1\n2\n3\n" * 3
    assert [float(x) for x in found.weight.split()] == row_weights(
        RANKS, CLICKED, np.array([1.0, 2.0, 4.0, 5.0])
    ).tolist()


def test_xgboost_has_as_many_ratios_as_it_has_places() -> None:
    """Places further down are looked at as the last known one."""
    start = xgboost_start(curve([1.0, 0.5, 0.25, np.nan]), n_positions=5)

    assert start == {"ti+": [1.0, 0.5, 0.25, 0.25, 0.25], "tj-": [1.0] * 5}
    assert xgboost_start(curve([1.0, 0.5, 0.2]), n_positions=2)["ti+"] == [1.0, 0.5]


def test_lightgbm_reads_what_was_written(tmp_path: Path) -> None:
    """Rows, weights, places and queries are those that went in."""
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    data = tmp_path / "rows.txt"
    data.write_text(
        "".join(f"{c} 0:{r} 1:{r % 2}\n" for c, r in zip(CLICKED, RANKS, strict=True))
    )
    for name, text in files()._asdict().items():
        Path(f"{data}.{name}").write_text(text)
    options = {"objective": "lambdarank", "verbose": -1, "min_data_in_leaf": 1}
    rows = lightgbm.Dataset(str(data), params=options).construct()

    assert rows.get_group().tolist() == [4, 4, 4]
    assert rows.get_position().tolist() == (RANKS - 1).tolist()
    assert rows.get_weight() == pytest.approx([1, 1, 4, 1, 1, 2, 1, 1, 1, 1, 1, 1])
    assert lightgbm.train(options, rows, 2).num_trees() == 2


def test_xgboost_begins_where_it_is_told() -> None:
    """Its configuration says so, and its training goes on from there."""
    xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    features = np.column_stack([RANKS, RANKS % 2]).astype(float)
    rows = xgboost.DMatrix(features, label=CLICKED, qid=np.repeat([0, 1, 2], 4))
    options: dict[str, Any] = {
        "objective": "rank:ndcg", "lambdarank_unbiased": True,
        "lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 4,
    }  # fmt: skip
    made = json.loads(xgboost.train(options, rows, 1).save_config())
    start = xgboost_start(curve([1.0, 0.5, 0.25]), n_positions=4)
    made["learner"]["objective"] |= start
    learner = xgboost.Booster(options, cache=[rows])
    learner.load_config(json.dumps(made))
    told = json.loads(learner.save_config())["learner"]["objective"]

    assert told["ti+"] == [1.0, 0.5, 0.25, 0.25]
    assert told["tj-"] == [1.0] * 4
    learner.update(rows, 0)
    after = json.loads(learner.save_config())["learner"]["objective"]
    assert after["ti+"] != told["ti+"]


def test_what_is_no_weight_is_refused() -> None:
    """Trust bias, a curve of one rank, rows apart, and ranks beyond the curve."""
    with pytest.raises(ValueError, match="must be of plain position bias"):
        position_weights(curve([1.0, 0.5], [0.0, 0.1]))
    with pytest.raises(ValueError, match="known at two ranks or more; got 1"):
        position_weights(curve([1.0, np.nan]))
    with pytest.raises(ValueError, match=r"at least 1; got 0\.5"):
        position_weights(curve([1.0, 0.5]), most=0.5)
    with pytest.raises(ValueError, match=r"at ranks 1\.\.2, .*; got rank 3 in row 2"):
        row_weights(RANKS, CLICKED, np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="got 6 runs of 3 queries"):
        lightgbm_files(np.tile([1, 2, 3], 2), np.ones(6, np.int64), np.ones(6))
    with pytest.raises(ValueError, match="positions must be 1 or more; got 0"):
        xgboost_start(curve([1.0, 0.5]), n_positions=0)
