"""Models of trees that other libraries trained, on data that is drawn from a seed."""

import warnings
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt
import xgboost

from tests.clicked_lists import features_of, relevance_of

N_FEATURES = 6
NAMES = ["bm25", "age", "ctr", "price", "clicks", "stock"]

QUERIES, PER_QUERY = 40, 20

OF_TASTE = ["fit", "price", "noise"]
"""Features of `clicked_lists`; nobody likes the last one, or the contrary."""


def data(seed: int = 0) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Features with zeros and missing ones, and labels from 0 to 3."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(QUERIES * PER_QUERY, N_FEATURES)).astype(np.float32)
    features[rng.random(features.shape) < 0.1] = np.nan
    features[rng.random(features.shape) < 0.1] = 0.0
    features = np.round(features, 2)
    told = np.nan_to_num(features[:, 0]) + np.nan_to_num(features[:, 1]) ** 2
    noise = rng.normal(size=len(features)) / 2
    labels = np.digitize(told + noise, [0.0, 1.0, 2.0])
    return features, labels.astype(np.int64)


def lightgbm_model(
    n_rounds: int = 30, *, names: list[str] | None = None, **parameters: Any
) -> lightgbm.Booster:
    """A booster of LightGBM, by `lambdarank` unless another objective is given."""
    features, labels = data()
    own = {
        "objective": "lambdarank", "num_leaves": 15, "min_data_in_leaf": 5,
        "verbose": -1, "num_threads": 1, "deterministic": True, "seed": 1,
    }  # fmt: skip
    made = lightgbm.Dataset(
        features, labels, group=[PER_QUERY] * QUERIES, feature_name=names or "auto",
        params={"verbose": -1},
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lightgbm.train(own | parameters, made, n_rounds)


def xgboost_model(
    n_rounds: int = 30, *, names: list[str] | None = None, **parameters: Any
) -> xgboost.Booster:
    """A booster of XGBoost, by `rank:ndcg` unless another objective is given."""
    features, labels = data()
    own = {"objective": "rank:ndcg", "max_depth": 4, "nthread": 1, "seed": 1}
    made = matrix(features, names=names, label=labels)
    made.set_group([PER_QUERY] * QUERIES)
    return xgboost.train(own | parameters, made, n_rounds)


def matrix(
    features: npt.NDArray[np.float32], *, names: list[str] | None = None, **more: Any
) -> xgboost.DMatrix:
    """Features as XGBoost takes them, on one thread."""
    return xgboost.DMatrix(features, feature_names=names, nthread=1, **more)


def saved(booster: xgboost.Booster, folder: Path, ending: str) -> bytes:
    """The file that a booster of XGBoost writes: `json` or `ubj`."""
    path = folder / f"model.{ending}"
    booster.save_model(path)
    return path.read_bytes()


def models_of_taste(folder: Path) -> None:
    """Two files by what users of `clicked_lists` like, and by what they do not.

    `model.txt` is of LightGBM and has features in another order; `model.ubj`, of
    XGBoost, ranks the other way round.
    """
    features = np.concatenate([features_of(query) for query in range(200)])
    liked = np.concatenate([relevance_of(query) for query in range(200)])
    parameters = {
        "objective": "regression", "num_leaves": 8, "verbose": -1, "num_threads": 1,
        "min_data_in_leaf": 5,
    }  # fmt: skip
    dataset = lightgbm.Dataset(
        features[:, ::-1], liked, feature_name=OF_TASTE[::-1], params={"verbose": -1}
    )
    lightgbm.train(parameters, dataset, 40).save_model(folder / "model.txt")
    rows = matrix(features.astype(np.float32), names=OF_TASTE, label=-liked)
    flipped = xgboost.train({"max_depth": 3, "nthread": 1}, rows, 40)
    flipped.save_model(folder / "model.ubj")
