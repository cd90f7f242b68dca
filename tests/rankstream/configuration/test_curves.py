"""Settings of curves: options that an estimator has not are refused by their name."""

from pathlib import Path

import pytest

from rankstream.configuration.curves import ESTIMATORS, PositionCurve, TrustCurve
from rankstream.settings import SettingsError
from tests.rankstream.configuration.test_training import CURVE, MODEL, loaded

TRUST = CURVE.replace("position", "trust")
PIVOT = CURVE.replace("position", "pivot")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CURVE + "features = 3", "curves.c.features is no setting; there is ranks"),
        (CURVE + "rank = 3", "curves.c.rank is no setting; did you mean ranks?"),
        (CURVE + "bootstrap = 9", "curves.c.bootstrap is no setting"),
        (CURVE + "anchor = [0.5, 0.1]", "curves.c.anchor is no setting"),
        (PIVOT + "classes = true", "curves.c.classes is no setting"),
        (CURVE + "classes = 1", "curves.c.classes must be true or false; got a whole"),
        ("[curves.c]\nranks = 3", "curves.c.estimator must be set; it is missing"),
        (
            "[curves.c]\nestimator = 'em'",
            "curves.c.estimator must be one of ['position', 'trust', 'adjacent-pairs', "
            "'pivot', 'all-pairs']; got 'em'",
        ),
        (CURVE + "ranks = 1", "curves.c.ranks must be a whole number, 2 or more"),
        ("[curves.c]\nestimator = ['trust']", "curves.c.estimator must be one of ['"),
        (CURVE + "ranks = 101", "curves.c.ranks must be a whole number, 100 or less"),
        (CURVE + "ranks = 2.0", "curves.c.ranks must be a whole number; got a number"),
        (PIVOT + "bootstrap = 1", "bootstrap must be a whole number, 2 or more; got 1"),
        (CURVE + "confidence = 1.0", "confidence must be a number, below 1.0; got 1.0"),
        (CURVE + "confidence = '1'", "confidence must be a number; got a text"),
        (TRUST + "anchor = false", "curves.c.anchor must be a list; got true or"),
        (TRUST + "anchor = [0.5]", "must be alpha and beta of rank 1, two numbers"),
        (TRUST + "anchor = [0.9, 0.2]", "a sum of at most 1; got 0.9 and 0.2"),
        (TRUST + "anchor = [0.0, 0.2]", "alpha more than 0, beta at least 0"),
        (
            CURVE + "[curves.c.schedule]\nafter = [3, 2]",
            "curves.c.schedule.after must ascend; got [3, 2]",
        ),
        (CURVE + "[curves.c.schedule]\nepochs = 3", "c.schedule.epochs is no setting"),
        (CURVE + "learns_from = ['c']", "curves.c.learns_from must name models that"),
        (
            CURVE + "learns_from = ['a', 'a']",
            "curves.c.learns_from must be names, each",
        ),
        (
            MODEL + "versions = 'trained'\nlearns_from = ['m', 'c']\n" + CURVE,
            "models.m.learns_from must name models that make lists; got 'c', which is "
            "a curve",
        ),
        (
            MODEL + CURVE + "[experiments.x.rankers]\nA = 'm'\nB = 'c'",
            "experiments.x.rankers must be models that rank; got 'c' for 'B'",
        ),
        (
            MODEL + CURVE + "[experiments.x.rankers]\nA = 'm'\nB = 'c@0.12'",
            "must be models that rank; got 'c@0.12' for 'B', which is a curve",
        ),
        (
            MODEL + CURVE.replace("curves.c", "curves.m"),
            "curves.m must have a name of its own, as snapshots are by name; there is "
            "a model 'm'",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    """With what was got."""
    with pytest.raises(SettingsError) as caught:
        loaded(tmp_path, text)
    assert said in str(caught.value)


def test_variables_name_curves_as_they_name_models(tmp_path: Path) -> None:
    """Its estimator, and what is below it."""
    variables = {
        "RANKSTREAM_CURVES__EYES__ESTIMATOR": "trust",
        "RANKSTREAM_CURVES__EYES__ANCHOR": "[0.8, 0.1]",
        "RANKSTREAM_CURVES__EYES__SCHEDULE__AFTER": "[30]",
    }
    curve = loaded(tmp_path, "", variables).curves["eyes"]
    assert isinstance(curve, TrustCurve)
    assert (curve.anchor, curve.schedule.after) == ([0.8, 0.1], [30])


def test_records_have_all_options_whatever_the_estimator() -> None:
    """As releases had them whose curves were models."""
    names = [
        "estimator", "ranks", "confidence", "anchor", "bootstrap", "classes", "seed",
    ]  # fmt: skip
    for name, curve in ESTIMATORS.items():
        assert [*curve().options()] == names
        assert curve().options()["estimator"] == name
    assert PositionCurve().options()["anchor"] is None
