"""When a model is due: each point once, however many are passed at a time."""

from datetime import UTC, datetime
from itertools import pairwise

import msgspec
import pytest

from rankstream.settings import TrainingSettings
from rankstream.wire.models.training import COUNT, SCHEMA, TIME, Position
from streams.training.schedule import (
    count_points,
    due,
    least_watermark,
    n_passed,
    next_points,
    position_after,
)
from tests.rankstream.wire.models.test_training import RUN


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


def test_event_time_is_where_all_partitions_are():
    """The least of theirs, and nowhere before each has one."""
    assert least_watermark([9, 5, 7], 3) == 5
    assert least_watermark([9, 5, None], 3) is None
    assert least_watermark([9, 5], 3) is None
    assert least_watermark([], 3) is None


def test_a_point_that_a_partition_has_still_to_pass_is_not_lost():
    """An intervention while one has no watermark leaves the times where they were."""
    plan = TrainingSettings(after=[10], at=[5_000, 8_000])
    run = msgspec.structs.replace(
        RUN, counts=[(0, 10)], watermarks=[(0, 10_000), (1, None)], created_ms=10_000,
        request="r1",
    )  # fmt: skip
    begun = position_after(None, run, 2)
    assert (begun.n_done, begun.n_counted, begun.watermark_ms) == (1, 10, -1)
    assert (begun.request, begun.intervention) == ("r1", run.intervention)
    assert due(plan, begun, 10, least_watermark([10_000, 6_000], 2)) == TIME

    both = msgspec.structs.replace(
        run, watermarks=[(0, 10_000), (1, 6_000)], request=""
    )
    later = position_after(begun, both, 2)
    assert (later.n_done, later.watermark_ms, later.request) == (2, 6_000, "r1")
    assert due(plan, later, 10, 7_999) is None
    assert due(plan, later, 10, 8_000) == TIME
    # Of a partition that nothing is known of nothing is past either.
    assert position_after(later, run, 3).watermark_ms == 6_000
    assert position_after(later, both, 3).watermark_ms == 6_000


def test_what_is_next_is_the_first_point_after_the_last_intervention():
    """One that was passed and refused is the next still; where all are past, none."""
    plan = TrainingSettings(after=[100, 200], at=[5_000])
    assert next_points(plan, None) == (100, 5_000)
    assert next_points(plan, after(100, 6_000)) == (200, None)
    assert next_points(plan, after(250, 4_999)) == (None, 5_000)
    assert next_points(plan, after(250, 5_000)) == (None, None)
    passed = [
        n_passed(plan, n, at) for n, at in ((99, None), (100, 4_999), (200, 5_000))
    ]
    assert passed == [0, 1, 3]
