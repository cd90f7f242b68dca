"""When a model is due: each point once, however many are passed at a time."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from rankstream.sections import TrainingSettings
from rankstream.wire.training import COUNT, SCHEMA, TIME, Position
from streams.training.schedule import count_points, due


def after(n_counted, watermark_ms=0):
    """A position after an intervention at this count."""
    return Position(SCHEMA, 1, [(0, n_counted)], watermark_ms, "m@0.1")


def test_points_lie_evenly_on_a_log_scale():
    """First and last among them; with numbers that are named."""
    plan = TrainingSettings(first=100, last=100_000, interventions=4)
    assert count_points(plan) == [100, 1_000, 10_000, 100_000]
    assert count_points(TrainingSettings(first=7, interventions=1)) == [7]
    assert count_points(TrainingSettings(after=[3, 9])) == [3, 9]
    assert count_points(TrainingSettings()) == []
    steps = count_points(TrainingSettings(first=10, last=1_000, interventions=9))
    ratios = [later / earlier for earlier, later in pairwise(steps)]
    assert ratios == pytest.approx([100 ** (1 / 8)] * 8, rel=0.03)


def test_each_point_is_passed_once():
    """And several that were passed together are one."""
    plan = TrainingSettings(after=[100, 200, 300])
    assert due(plan, None, 99, 0) is None
    assert due(plan, None, 100, 0) == COUNT
    assert due(plan, after(130), 199, 0) is None
    assert due(plan, after(130), 350, 0) == COUNT
    assert due(plan, after(200), 299, 0) is None
    assert due(plan, after(350), 10_000, 0) is None


def test_event_times_are_due_when_all_watermarks_have_passed_them():
    """As numbers or as dates; not before each partition has a watermark."""
    moment = datetime.fromtimestamp(7, UTC)
    plan = TrainingSettings(at=[5_000, moment])
    assert due(plan, None, 10, None) is None
    assert due(plan, None, 10, 4_999) is None
    assert due(plan, None, 10, 5_000) == TIME
    assert due(plan, after(10, 5_000), 10, 6_999) is None
    assert due(plan, after(10, 6_999), 10, 7_000) == TIME
    assert due(plan, after(10, 6_000), 10, 7_000) == TIME
    assert due(plan, after(10, 7_000), 99, 99_000) is None


def test_another_schedule_begins_where_the_last_one_stopped():
    """Points that it has before that are past, and later ones come."""
    plan = TrainingSettings(after=[50, 60, 70, 400])
    assert due(plan, after(300), 399, 0) is None
    assert due(plan, after(300), 400, 0) == COUNT
