"""Curves of classes: rows of a log without ids of documents, put together."""

import numpy as np
import pytest

from models.bias.examination import estimate_examination
from models.estimators.item_classes import class_of
from rankstream.wire.events import UNKNOWN, ClickMark, Interaction, decode_items
from streams.statistics.reader import Statistics
from streams.training.curves import curve_views
from streams.training.curves.curve_snapshot import fit_curve
from streams.training.curves.curve_views import TooManyClasses, columns_by_class
from streams.training.curves.estimated_curve import curve_of_groups
from streams.training.inputs import TrainingRefused
from tests.event_factory import impression
from tests.streams.estimation.planted_users import statistics_of
from tests.streams.training.trusting_lists import (
    curve_model,
    records_of,
    settings_with,
)

GROUPS = 5
LOOKED = np.array([1.0, 0.6, 0.35])
RELEVANCE = {"VITAL/WEB": 0.8, "USEFUL/WEB": 0.5, "STUPID/NEWS": 0.2}


def pages(n_lists):
    """Each of a query of its own, of any classes; what is good stands higher."""
    rng, log = np.random.default_rng(3), []
    for number in range(n_lists):
        kinds = rng.integers(3, size=3)
        liked = np.array([*RELEVANCE.values()])[kinds]
        order = np.argsort(-liked - rng.normal(0.0, 0.4, 3))
        shown = [f"{[*RELEVANCE][kinds[i]]}#{n}" for n, i in enumerate(order, 1)]
        one = impression(
            query_id=f"q{number}", items=shown, unit=number, policy=UNKNOWN
        )
        clicked = np.flatnonzero(rng.random(3) < liked[order] * LOOKED).tolist()
        log.append(
            Interaction(one, [ClickMark(row + 1, 1, "click") for row in clicked])
        )
    return log


def test_rows_are_those_of_classes_and_nothing_else_changes():
    """Item by item, whatever query it is of; sums stay what they were."""
    statistics = statistics_of(pages(200), GROUPS)
    before = list(statistics.columns())
    after = list(columns_by_class(statistics.columns()))
    names: dict[int, set[str]] = {}
    for one, other in zip(before, after, strict=True):
        for name in ("scope", "group", "rank", "shown", "by_class", "cells"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
        assert {name.query for name in other.names} == {""}
        interventions = [name.intervention for name in one.names]
        assert [name.intervention for name in other.names] == interventions
        for scope, item, number in zip(one.scope, one.item, other.item, strict=True):
            found = class_of(one.items[scope][item])
            names.setdefault(int(number), set()).add(found)
    assert sorted(map(tuple, names.values())) == sorted((x,) for x in RELEVANCE)


def test_a_curve_is_fitted_on_classes_where_single_items_tell_none():
    """It is that of the counts by class and rank, and near the truth."""
    log = pages(4_000)
    statistics = statistics_of(log, GROUPS)
    groups = tuple(range(GROUPS))

    assert curve_of_groups(statistics.columns(), groups) is None
    found = curve_of_groups(columns_by_class(statistics.columns()), groups)

    counts = np.zeros((2, 3, 3))
    for one in log:
        clicked = {mark.position for mark in one.clicks}
        candidates = decode_items(one.impression.candidates)
        for row, item in enumerate(np.frombuffer(one.impression.shown, "<u2").tolist()):
            number = [*RELEVANCE].index(class_of(candidates[item]))
            counts[0, number, row] += 1
            counts[1, number, row] += row + 1 in clicked
    items, rows = np.divmod(np.arange(9), 3)
    by_class = (counts[0].ravel().astype(int), counts[1].ravel().astype(int))
    expected = estimate_examination(items, rows + 1, *by_class, n_ranks=3)
    assert found is not None
    assert found.alpha == pytest.approx(expected.ratios, rel=1e-6)
    assert found.alpha == pytest.approx(LOOKED, abs=0.06)
    naive = counts[1].sum(axis=0) / counts[0].sum(axis=0)
    assert abs(naive / naive[0] - LOOKED).max() > 0.1


def test_a_model_of_curves_may_count_classes():
    """Where its options say so; it is the curve of the same columns."""
    log = pages(4_000)
    records = records_of(log, GROUPS)
    model = curve_model("position", classes=True)
    found = fit_curve(
        "users", settings_with(users=model), Statistics(records), None, reason="asked"
    )

    of_columns = columns_by_class(Statistics(records).columns())
    curve = curve_of_groups(of_columns, found.run.groups)
    assert curve is not None
    assert found.run.options["classes"] is True
    assert found.run.n_rows == 9
    assert found.run.alpha[:3] == pytest.approx(curve.alpha.tolist(), rel=1e-9)
    without = settings_with(users=curve_model("position"))
    with pytest.raises(TrainingRefused, match="clicks must tell 2 ranks"):
        fit_curve("users", without, Statistics(records), None, reason="asked")


def test_ids_without_classes_are_refused_where_they_are_many(monkeypatch):
    """Every document would be held."""
    monkeypatch.setattr(curve_views, "MOST_CLASSES", 2)
    statistics = statistics_of(pages(20), GROUPS)
    with pytest.raises(TooManyClasses, match="classes of items must be few, 2 at most"):
        list(columns_by_class(statistics.columns()))
    settings = settings_with(users=curve_model("position", classes=True))
    with pytest.raises(TrainingRefused, match="'users': classes of items must be few"):
        fit_curve("users", settings, statistics, None, reason="asked")
