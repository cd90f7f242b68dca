"""Rankers follow scikit-learn where that fits, and are stored as snapshots."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.base
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import rankstream
from rankstream.operations.answers.folders import snapshot_in
from rankstream.ranker import Ranker
from rankstream.wire.envelope import encode_snapshot
from tests.clicked_tables import Shop


def test_parameters_are_what_was_given() -> None:
    """As they are, so that scikit-learn can clone a ranker."""
    ranker = rankstream.ClickRanker(kind="neural", hidden=(4,), epochs=3)
    params = ranker.get_params()
    assert (params["kind"], params["hidden"], params["epochs"]) == ("neural", (4,), 3)
    assert params["loss"] is None
    assert repr(ranker) == "ClickRanker(kind='neural', hidden=(4,), epochs=3)"
    for other in (ranker.clone(), sklearn.base.clone(ranker)):
        assert other is not ranker
        assert other.get_params() == params
    assert ranker.set_params(epochs=5) is ranker
    assert ranker.epochs == 5
    with pytest.raises(ValueError, match="did you mean learning_rate"):
        ranker.set_params(learning_rat=1.0)


def test_a_clone_has_learned_nothing(ranker: rankstream.ClickRanker) -> None:
    """Whoever asks it for scores is told to fit it."""
    with pytest.raises(ValueError, match="a ranker must be fitted first"):
        ranker.clone().predict(np.zeros((2, 2)))


def test_a_table_is_no_log(own: Shop) -> None:
    """It is read first."""
    with pytest.raises(ValueError, match=r"fit takes a log; got a Table: fit\(rank"):
        rankstream.ClickRanker().fit(own.clicks)


def test_scores_are_those_that_services_rank_by(
    ranker: rankstream.ClickRanker, own: Shop
) -> None:
    """Query by query, as features are normalised within one."""
    names = ["price", "stars"]
    features = np.stack([own.products[name].to_numpy() for name in names], axis=1)
    assert ranker.feature_names_in_.tolist() == names
    assert ranker.n_features_in_ == 2
    envelope = encode_snapshot(ranker.snapshot_)
    served = Ranker(ranker.name, source=lambda: envelope)
    served.load()
    groups = np.repeat(["a", "b"], [30, len(features) - 30])
    scores = ranker.predict(features, groups)
    for group in ("a", "b"):
        rows = np.flatnonzero(groups == group)
        ranking = served.rank(features[rows], policy="deterministic", cutoff=len(rows))
        own_order = rows[np.argsort(-scores[rows], kind="stable")]
        assert own_order.tolist() == rows[ranking.order].tolist()
    assert np.allclose(ranker.predict(own.products, groups), scores)
    assert len(ranker.coef_) == 2


def test_features_that_are_others_are_refused(ranker: rankstream.ClickRanker) -> None:
    """By shape, by name, and by number of groups."""
    with pytest.raises(ValueError, match=r"shape \[n, 2\]; got \[3, 5\]"):
        ranker.predict(np.zeros((3, 5)))
    with pytest.raises(ValueError, match="'price' is missing: did you mean prices"):
        ranker.predict(pa.table({"prices": [1.0], "stars": [1.0]}))
    with pytest.raises(ValueError, match="groups must name the query of each of 2"):
        ranker.predict(np.zeros((2, 2)), ["a"])
    with pytest.raises(ValueError, match="features must be finite"):
        ranker.predict(np.array([[np.nan, 1.0], [0.0, 1.0]]))


def test_a_pickle_is_refused_with_the_way_to_store(
    ranker: rankstream.ClickRanker, tmp_path: Path
) -> None:
    """A snapshot, which services read too."""
    for ask in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"ranker\.save\(\"ranker\.snapshot\"\)"):
            ask(ranker)
    file = ranker.save(tmp_path / "ranker.snapshot")
    assert snapshot_in(file) == ranker.snapshot_
    loaded = rankstream.load(file)
    features = np.random.default_rng(3).random((5, 2))
    assert np.array_equal(loaded.predict(features), ranker.predict(features))
    assert rankstream.load(tmp_path).get_params() == ranker.clone().get_params()
    with pytest.raises(ValueError, match=r"\*\.snapshot; got 'ranker\.pkl'"):
        ranker.save(tmp_path / "ranker.pkl")
    with pytest.raises(RuntimeError, match="must be writable"):
        ranker.save(tmp_path / "nowhere" / "ranker.snapshot")
    with pytest.raises(ValueError, match="this one was loaded"):
        loaded.training()


def test_a_training_says_how_it_went(ranker: rankstream.ClickRanker) -> None:
    """Epoch by epoch, the first one that of version 0; and what was decided."""
    found = ranker.training()
    assert [row.epoch for row in found] == [*range(len(found))]
    assert found.rows[0].held_out_dcg < max(row.held_out_dcg for row in found)
    assert any("no settings of 'ranker'" in each for each in found.remarks)
    assert found.to_dict()["run"]["intervention"] == ranker.snapshot_.intervention


def test_parameters_reach_the_training(log: rankstream.Log) -> None:
    """Each that is set, and none that is not."""
    ranker = log.train(
        "neural-relu", hidden=[3], loss="dcg-linear", epochs=2, seed=7,
        examination=[1.0, 0.5, 0.3, 0.25], name="deep",
    )  # fmt: skip
    run = ranker.training().answer.run
    training = run.settings["training"]
    assert (training["epochs"], training["loss"], training["seed"]) == (
        2, "dcg-linear", 7,
    )  # fmt: skip
    assert run.curve.alpha == [1.0, 0.5, 0.3, 0.25]
    assert (ranker.snapshot_.kind, ranker.snapshot_.hidden) == ("neural-relu", [3])
    assert ranker.snapshot_.model == "deep"
    with pytest.raises(AttributeError, match="must be linear"):
        _ = ranker.coef_


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"kind": "tree"}, "kind must be one of linear"),
        ({"loss": "hinge"}, "loss must be one of"),
        ({"epochs": 0}, "parameters of a ranker must be sound"),
        ({"hidden": [3]}, "hidden"),
    ],
)
def test_a_parameter_that_cannot_be_so_is_refused(
    log: rankstream.Log, params: dict[str, Any], reason: str
) -> None:
    """Before anything is trained."""
    with pytest.raises(ValueError, match=reason):
        log.train(**params)


def test_features_may_be_columns_of_the_clicks(
    own: Shop, ranker: rankstream.ClickRanker
) -> None:
    """The same ranker comes of it."""
    joined = own.clicks.join(own.products, "item").sort_by(
        [("at", "ascending"), ("position", "ascending")]
    )
    names = {"features": "price+stars"}
    log = rankstream.read(joined, columns=names, progress=False)
    same = log.train()
    assert same.feature_names_in_.tolist() == ranker.feature_names_in_.tolist()
    assert same.coef_.tolist() == ranker.coef_.tolist()


def test_features_may_come_with_the_training(own: Shop) -> None:
    """The log has them from then on; without any there is nothing to train."""
    log = rankstream.read(own.clicks, progress=False)
    with pytest.raises(ValueError, match="nothing was trained: a log must have feat"):
        log.train()
    ranker = log.train(features=own.products)
    assert len(log.evaluate({"new": ranker})) == 2


def test_a_gap_in_features_is_placed(ranker: rankstream.ClickRanker, own: Shop) -> None:
    """By column and row; without rows there are no scores."""
    frame = own.products.to_pandas()
    frame.loc[[3, 5], "stars"] = np.nan
    match = "column 'stars' holds nan in row 3, the first of 2 such rows"
    with pytest.raises(ValueError, match=match):
        ranker.predict(frame)
    assert ranker.predict(own.products.slice(0, 0)).shape == (0,)
    assert ranker.predict(frame.iloc[:0]).shape == (0,)


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"kind": "trees"}, "kind must be one of linear, neural, neural-tanh, neural"),
        ({"kind": "linera"}, "did you mean linear"),
        ({"epochs": "many"}, "parameters of a ranker must be sound; Expected.*: epoch"),
        ({"epochs": 0}, r"^(?!.*models\.ranker).*epochs"),
    ],
)
def test_parameters_are_refused_by_their_names(
    log: rankstream.Log, params: dict[str, Any], reason: str
) -> None:
    """Not by those of settings."""
    with pytest.raises(ValueError, match=reason) as told:
        log.train(**params)
    assert "models." not in str(told.value)
    assert "$." not in str(told.value)


def test_scikit_learn_knows_whether_it_is_fitted(
    ranker: rankstream.ClickRanker,
) -> None:
    """As its pipelines ask."""
    check_is_fitted(ranker)
    with pytest.raises(NotFittedError):
        check_is_fitted(ranker.clone())
