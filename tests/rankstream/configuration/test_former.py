"""Models of a form that there was: refused with the new one, read in records."""

from pathlib import Path

import msgspec
import pytest

from rankstream.configuration.curves import PositionCurve, TrustCurve
from rankstream.configuration.former import (
    curve_of_record,
    model_of_record,
    recorded_model,
)
from rankstream.settings import ModelSettings, SettingsError, TrainingSettings
from tests.rankstream.configuration.test_training import loaded

FORMER = """
[models.eyes]
learner = "examination"
options = { estimator = "trust", ranks = 4, bootstrap = 20, anchor = [0.8, 0.1] }
seed = 3
learns_from = ["search"]
[models.eyes.training]
first = 100
last = 1_000
interventions = 3
at = [2026-01-02T00:00:00Z]
[models."a shop"]
features = 3
learner = "trained"
feature_names = ["a", "b", "c"]
[models."a shop".training]
after = [500]
curve = "eyes"
[models.search]
features = 3
"""

ANEW = """
[curves.eyes]
estimator = "trust"
ranks = 4
anchor = [0.8, 0.1]
seed = 3
learns_from = ["search"]
[curves.eyes.schedule]
first = 100
last = 1000
interventions = 3
at = ["2026-01-02T00:00:00Z"]

[models."a shop"]
features = 3
versions = "trained"
feature_names = ["a", "b", "c"]
[models."a shop".training]
after = [500]
curve = "eyes"
"""

OF_CURVE = {
    "features": 0, "feature_names": [], "kind": "linear", "hidden": [],
    "normalisation": "min-max", "learner": "examination", "learning_rate": 0.1,
    "decay": 1.0, "seed": 1, "log_candidates": False, "learns_from": ["search"],
}  # fmt: skip


def test_a_form_that_there_was_is_refused_with_the_new_one(tmp_path: Path) -> None:
    """Each by its name, and what to write is what the file then has."""
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, FORMER)
    said, _, anew = str(caught.value).partition(": write instead\n")
    file = tmp_path / "shop.toml"
    assert said == (
        "models.eyes.learner must name a learner; got 'examination', which is a curve "
        f"now, in {file}; models.a shop.learner must name a learner; got 'trained', "
        f"which versions are now, in {file}"
    )
    assert anew == ANEW
    found = loaded(tmp_path, anew)
    assert found.trained["a shop"].training.curve == "eyes"
    assert found.curves["eyes"].schedule.at_ms == [1_767_312_000_000]


@pytest.mark.parametrize(
    ("text", "anew"),
    [
        ("", '[curves.c]\nestimator = "position"\n'),
        ("options = 3\ntraining = 'x'", '[curves.c]\nestimator = "position"\n'),
        ("options = {estimator = ['a']}", '[curves.c]\nestimator = ["a"]\n'),
        ("options = {estimator = 'em'}", '[curves.c]\nestimator = "em"\n'),
        ("options = {ranks = 3, classes = true}\nfeatures = 2",
         '[curves.c]\nestimator = "position"\nranks = 3\nclasses = true\n'),
    ],
)  # fmt: skip
def test_what_to_write_is_what_the_curve_had(
    tmp_path: Path, text: str, anew: str
) -> None:
    """Nothing of a ranker; what cannot be is refused when it is written."""
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, "[models.c]\nlearner = 'examination'\n" + text)
    assert str(caught.value).endswith(f"\n\n{anew}")


def test_a_variable_is_named(tmp_path: Path) -> None:
    """As the file says nothing of it."""
    name = "RANKSTREAM_MODELS__M__LEARNER"
    with pytest.raises(SettingsError, match=f"versions are now, in {name}: write"):
        loaded(tmp_path, "[models.m]\nfeatures = 2", {name: "trained"})


def test_models_are_recorded_as_they_were() -> None:
    """Their form in states and records is a promise, the order of its names too."""
    model = ModelSettings(
        features=2, versions="trained", training=TrainingSettings(after=[3])
    )
    form = recorded_model(model)
    assert [*form][5:7] == ["learner", "learning_rate"]
    assert form["learner"] == "trained"
    assert "versions" not in form
    assert model_of_record(form) == model
    online = ModelSettings(features=2, learner="mgd")
    assert recorded_model(online)["learner"] == "mgd"
    assert model_of_record(recorded_model(online)) == online


def test_curves_of_records_are_read_in_both_forms() -> None:
    """That of models that were curves, and their own."""
    training = {**msgspec.to_builtins(TrainingSettings()), "after": [5]}
    options = {"estimator": "trust", "ranks": 3, "anchor": [0.8, 0.1], "bootstrap": 7}
    curve = curve_of_record({**OF_CURVE, "options": options, "training": training})
    assert isinstance(curve, TrustCurve)
    assert (curve.ranks, curve.seed, curve.learns_from) == (3, 1, ["search"])
    assert (curve.anchor, curve.schedule.after) == ([0.8, 0.1], [5])
    assert curve_of_record(msgspec.to_builtins(curve)) == curve
    plain = curve_of_record({**OF_CURVE, "options": {}, "training": training})
    assert isinstance(plain, PositionCurve)
