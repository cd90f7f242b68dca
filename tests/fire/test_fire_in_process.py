"""The harness' closed form, without faults: it agrees, and sees what is amiss."""

import itertools
import time

import pytest

from rankstream.operations.recount.stored_statistics import stored
from rankstream.settings import Settings, TimeSettings
from streams.recount.recount import Found as Checkpoint
from streams.recount.recount import recount
from streams.recount.rules import rules_of
from tests.fire.events import KEEP_MS, Events, step_of
from tests.fire.in_process import MODELS, STATISTICS, TIME, InProcess, run_in_process
from tests.fire.live_events import LiveEvents
from tests.fire.verdict import verdict_of
from tests.session.cases import n_cases

SETTINGS = Settings(time=TIME, models=MODELS, statistics=STATISTICS)
N_EVENTS = n_cases(8_000, 20_000)
N_LIVE = n_cases(6_000, 13_500)


def run(seed: int, every: int = 100) -> tuple[Events, InProcess]:
    """A run without faults."""
    now_ms = int(time.time() * 1_000)
    start_ms = now_ms - N_EVENTS * step_of(N_EVENTS) - 600_000
    events = Events(seed, start_ms, now_ms, N_EVENTS, SETTINGS.kafka.partitions)
    return events, run_in_process(events, SETTINGS, now_ms, every)


@pytest.mark.parametrize(("seed", "every"), [(1, 100), (2, 1_000)])
def test_what_was_sent_came_out_and_the_recount_agrees(seed: int, every: int) -> None:
    """Every kind of outcome is planted, and each is as it was planned."""
    events, pipeline = run(seed, every)
    expected = events.expected
    verdict, missing = verdict_of(expected, pipeline.found)
    assert verdict.is_clean, verdict.differences
    assert missing == 0
    planned = expected.outcomes()
    for name in ("duplicate", "late", "orphan", "dead_letter", "applied_clicks"):
        assert planned[name] > N_EVENTS // 200, name
    assert len(expected.letters) > N_EVENTS // 80
    again = recount(
        sorted(pipeline.log, key=lambda record: record[0]),
        {
            p: Checkpoint(10**9, -1, fold.counters())
            for p, fold in enumerate(pipeline.folds)
        },
        stored(pipeline.found.statistics),
        pipeline.interactions,
        rules_of(SETTINGS),
    )
    assert again.is_clean, again.differences
    left = [fold.counters()["statistics_left"] for fold in pipeline.folds]
    assert min(left) > N_EVENTS // 200


def test_events_of_the_clock_come_out_as_planned_by_default_settings() -> None:
    """Minutes at 15 a second, of a clock that the test turns."""
    began_ms = int(time.time() * 1_000) - 3_600_000
    clock = itertools.count(began_ms, 66)
    live = Settings(
        time=TimeSettings(keep_ms=KEEP_MS), models=MODELS, statistics=STATISTICS
    )
    events = LiveEvents(1, N_LIVE, live.kafka.partitions, 15.0, clock.__next__)
    pipeline = run_in_process(events, live, began_ms + 3_600_000)
    verdict, missing = verdict_of(events.expected, pipeline.found)
    assert verdict.is_clean, verdict.differences
    assert missing == 0
    planned = events.expected.outcomes()
    for name in ("duplicate", "late", "orphan", "dead_letter", "applied_clicks"):
        assert planned[name] > N_LIVE // 600, name


def test_what_is_amiss_is_seen() -> None:
    """An impression twice, one not at all, a letter lost, another's bytes."""
    events, pipeline = run(3)
    found = pipeline.found
    names = iter(found.applied)
    first, second = next(names), next(names)
    found.applied[first] *= 2
    del found.applied[second]
    found.letters.pop()
    verdict, missing = verdict_of(events.expected, found)
    assert verdict.double == 1
    assert verdict.lost == 1
    assert missing == 1
