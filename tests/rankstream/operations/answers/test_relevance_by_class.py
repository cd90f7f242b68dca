"""Corrected relevance of a query whose items count as one where their classes do."""

import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve
from rankstream.operations.answers.relevance import relevance_of
from rankstream.operations.answers.sources import LoggingPolicies
from rankstream.wire.events import ClickMark, Interaction
from tests.event_factory import impression
from tests.streams.estimation.planted_users import statistics_of

GROUPS = 6
TRUST = BiasCurve(np.array([0.6, 0.4]), np.array([0.3, 0.1]))


def statistics():
    """Lists of two items of one class, by turns, of which .5 is what users like."""
    log = []
    for number in range(600):
        shown = ["GOOD#1", "GOOD#2"] if number % 2 else ["GOOD#2", "GOOD#1"]
        one = impression(items=["GOOD#1", "GOOD#2"], shown=shown, unit=number // 20)
        # .6 R + .3 = .6 and .4 R + .1 = .3 of ten lists each.
        clicked = [number // 2 % 10 < 6, number // 2 % 10 < 3]
        marks = [ClickMark(row + 1, 1, "click") for row in (0, 1) if clicked[row]]
        log.append(Interaction(one, marks))
    return statistics_of(log, GROUPS)


def test_items_of_one_class_are_one_row_that_rests_on_all_of_them() -> None:
    """Its impressions are theirs: a list shows the class twice."""
    columns = statistics().columns
    single = relevance_of(columns(), TRUST, GROUPS, LoggingPolicies())
    found = relevance_of(columns(), TRUST, GROUPS, LoggingPolicies(), has_classes=True)

    assert sorted(row.item for row in single.items) == ["GOOD#1", "GOOD#2"]
    (row,) = found.items
    assert row.item == "GOOD"
    assert row.impressions == sum(each.impressions for each in single.items) == 1_200
    assert row.clicked == sum(each.clicked for each in single.items) == 540
    assert row.exposure == pytest.approx(sum(each.exposure for each in single.items))
    assert row.relevance == pytest.approx(0.5, rel=1e-9)
