"""What is imported decides and scores as the library does that trained it."""

from pathlib import Path

import lightgbm
import numpy as np
import pytest
import xgboost

from rankstream.operations.tree_files.lightgbm_text import (
    read_lightgbm,
    write_lightgbm,
)
from rankstream.operations.tree_files.ranklib_xml import read_ranklib, write_ranklib
from rankstream.operations.tree_files.xgboost_model import read_xgboost, write_xgboost
from rankstream.ranking.tree_scoring import TreeScorer
from rankstream.wire.models.forests import NAN_IS_MISSING, Forest
from tests.forest_factory import drawn_forest, telling_documents
from tests.trained_elsewhere import (
    N_FEATURES,
    NAMES,
    lightgbm_model,
    matrix,
    saved,
    xgboost_model,
)

N_DOCUMENTS = 1_000

BOOSTERS = {
    "as it is": {},
    "zero is missing": {"zero_as_missing": True},
    "nothing is missing": {"use_missing": False},
    "one leaf": {"min_data_in_leaf": 10_000},
    "dart": {"boosting": "dart", "drop_rate": 0.5},
    "labels as they are": {"objective": "regression"},
    "a thousand trees": {"num_leaves": 4, "n_rounds": 1_000},
}


def documents(forest: Forest, *, is_finite: bool = False) -> np.ndarray:
    """Documents that hit thresholds exactly, among others."""
    found = telling_documents(forest, N_DOCUMENTS, N_FEATURES, seed=3)
    if is_finite:
        found[np.isinf(found)] = 2.5
    return found


def of_lightgbm(text: bytes) -> lightgbm.Booster:
    """What LightGBM makes of a text."""
    return lightgbm.Booster(model_str=text.decode())


@pytest.mark.parametrize("name", BOOSTERS)
def test_scores_are_those_of_lightgbm(name: str) -> None:
    """To 1e-12, on documents that lack features, are infinite or on a threshold."""
    booster = lightgbm_model(**BOOSTERS[name])  # type: ignore[arg-type]
    found = read_lightgbm(booster.model_to_string().encode())
    features = documents(found.forest)
    expected = booster.predict(features, raw_score=True, num_threads=1)

    scores = TreeScorer(found.forest).scores(features)

    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    assert len(found.forest.roots) == booster.num_trees()
    assert name == "one leaf" or np.ptp(scores) > 0.1


@pytest.mark.parametrize("name", BOOSTERS)
def test_lightgbm_loads_what_is_exported(name: str) -> None:
    """And scores to the same bits as the booster that was imported."""
    booster = lightgbm_model(**BOOSTERS[name])  # type: ignore[arg-type]
    forest = read_lightgbm(booster.model_to_string().encode()).forest
    features = documents(forest)

    again = of_lightgbm(write_lightgbm(forest, NAMES, N_FEATURES))

    expected = booster.predict(features, raw_score=True, num_threads=1)
    got = again.predict(features, num_threads=1)
    assert np.asarray(got).tolist() == np.asarray(expected).tolist()
    assert again.feature_name() == NAMES


@pytest.mark.parametrize("ending", ["json", "ubj"])
@pytest.mark.parametrize("missing", [np.nan, 0.0])
def test_decisions_are_those_of_xgboost(
    tmp_path: Path, ending: str, missing: float
) -> None:
    """Each document comes to the same leaf of each tree, also on a condition."""
    booster = xgboost_model(base_score=0.25)
    forest = read_xgboost(saved(booster, tmp_path, ending)).forest
    features = documents(forest, is_finite=True)
    # Conditions stand just above our thresholds.
    rng = np.random.default_rng(4)
    edges = np.nextafter(forest.thresholds.astype(np.float32), np.float32(9))
    where = rng.random(features.shape) < 0.3
    features[where] = rng.choice(edges, int(where.sum()))
    features[rng.random(features.shape) < 0.1] = missing
    given = matrix(features)

    scores = TreeScorer(forest).scores(features)
    expected = booster.predict(given, output_margin=True)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)

    # Leaves apart: each tree alone, whose leaf XGBoost does not round.
    for number, root in enumerate(forest.roots[1:6].tolist()):
        alone = forest._replace(roots=np.array([root], np.int32))
        own = booster.predict(
            given, output_margin=True, iteration_range=(number, number + 1)
        )
        ours = TreeScorer(alone).scores(features).astype(np.float32)
        assert (ours + np.float32(0.25)).tolist() == own.tolist()


@pytest.mark.parametrize("ending", ["json", "ubj"])
def test_xgboost_loads_what_is_exported(tmp_path: Path, ending: str) -> None:
    """And scores to the same bits as the booster that was imported."""
    booster = xgboost_model(names=NAMES, base_score=0.25)
    found = read_xgboost(saved(booster, tmp_path, ending))
    assert found.names == NAMES
    features = documents(found.forest, is_finite=True)

    again = xgboost.Booster()
    content = write_xgboost(found.forest, found.names, found.n_features)
    again.load_model(bytearray(content))

    given = matrix(features, names=NAMES)
    expected = booster.predict(given, output_margin=True)
    assert again.predict(given, output_margin=True).tolist() == expected.tolist()


def test_trees_of_lightgbm_decide_alike_in_xgboost() -> None:
    """Thresholds of double precision become conditions that part the same numbers."""
    forest = drawn_forest(8, kinds=[NAN_IS_MISSING, 0], n_features=N_FEATURES)
    forest = forest._replace(thresholds=forest.thresholds + 1e-9)
    booster = xgboost.Booster()
    booster.load_model(bytearray(write_xgboost(forest, [], N_FEATURES)))
    features = documents(forest, is_finite=True)
    again = read_xgboost(write_xgboost(forest, [], N_FEATURES)).forest

    scores = TreeScorer(forest).scores(features)
    expected = booster.predict(matrix(features), output_margin=True)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(TreeScorer(again).scores(features), scores, atol=1e-5)


def test_ranklib_reads_back_what_is_exported() -> None:
    """To the same bits, where leaves are of single precision."""
    forest = drawn_forest(9, kinds=[0], n_features=N_FEATURES)
    forest = forest._replace(leaves=forest.leaves.astype(np.float32).astype(float))
    features = documents(forest)
    again = read_ranklib(write_ranklib(forest, [], N_FEATURES)).forest
    expected = TreeScorer(forest).scores(features).tolist()
    assert TreeScorer(again).scores(features).tolist() == expected
