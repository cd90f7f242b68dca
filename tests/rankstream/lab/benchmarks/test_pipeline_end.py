"""A stage is done when its resume positions are at the end, however long it is silent.

The positions are scripted, and so is the time.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from producers.topic_reader import TopicReader
from rankstream.lab.benchmarks.pipeline.bed import Bed, BenchmarkFailed
from rankstream.lab.benchmarks.pipeline.logs import (
    LOOK_S,
    TAIL_RECORDS,
    Offsets,
    ResumePositions,
    await_positions,
    preload,
)
from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.wire.events import DETERMINISTIC
from rankstream.wire.topics import EVENTS, full_name
from tests.services import KafkaService, RedisService
from tests.worker_process import PATIENCE_S, configured, settings_of

ENDS = {("events", 0): 100, ("events", 1): 40}
DONE = {("events", 0): 100, ("events", 1): 41}


class Time:
    """Passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def clock(self) -> float:
        """Seconds."""
        return self.now_s

    def sleep(self, seconds: float) -> None:
        """Pass."""
        self.now_s += seconds


def waited(positions: Iterator[Offsets], check: Callable[[], None]) -> float:
    """Seconds until the wait was over, with a patience of ten."""
    time = Time()
    await_positions(
        ENDS,
        lambda: next(positions),
        check,
        patience_s=10.0,
        clock=time.clock,
        sleep=time.sleep,
    )
    return time.now_s


def scripted(*parts: tuple[Offsets, float]) -> Iterator[Offsets]:
    """Positions, each for so many seconds."""
    for positions, seconds in parts:
        for _ in range(round(seconds / LOOK_S)):
            yield positions


def nothing() -> None:
    """The worker lives."""


def test_a_silent_stage_is_waited_for() -> None:
    """Nine silent seconds in the middle, and again: nothing has ended."""
    half = {("events", 0): 100, ("events", 1): 20}

    assert waited(scripted(({}, 9), (half, 9), (DONE, 1)), nothing) == 18.0


def test_it_waits_for_every_partition() -> None:
    """One that is one record short is not done."""
    short = {("events", 0): 100, ("events", 1): 39}

    assert waited(scripted((short, 1), (DONE, 1)), nothing) == 1.0


def test_a_stage_that_moves_no_more_is_an_error_that_says_where_it_is() -> None:
    """What was reached, what was not, and what has no position at all."""
    stuck = {("events", 0): 1_000}

    with pytest.raises(BenchmarkFailed) as failure:
        waited(scripted((stuck, 60)), nothing)

    assert "not at the end: events[1] at no position of 40;" in str(failure.value)
    assert "at the end: events[0] at 1,000 of 100;" in str(failure.value)
    assert "for 10 s" in str(failure.value)


def test_a_worker_that_ended_is_not_waited_for() -> None:
    """Its error comes through at once."""

    def ended() -> None:
        raise BenchmarkFailed("a worker must run")

    with pytest.raises(BenchmarkFailed, match="a worker must run"):
        waited(scripted((DONE, 60)), ended)


@pytest.mark.broker
def test_the_positions_of_a_worker_reach_the_end_of_its_log(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Also behind many records of state; a partition without records has no end."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace)
    settings = settings_of(config)
    width = settings.kafka.partitions
    plan = Workload(3_000, DETERMINISTIC, n_queries=200, n_partitions=width)
    records = [
        (full_name(namespace, EVENTS), partition, value)
        for partition, value, _ in canonical_records(plan, np.random.default_rng(1))
    ]
    assert len(records) > TAIL_RECORDS
    with TopicReader(settings) as reader:
        positions = ResumePositions(reader, "fold")
        assert positions.ends() == {}
        assert positions() == {}
        preload(kafka.bootstrap, records)
        ends = positions.ends()
        bed = Bed(tmp_path)
        shutil.copy(config, bed.configuration(settings))
        # Ingestion would write to the log too, as the source that this one has.
        with bed.worker(settings, "fold") as worker:
            await_positions(ends, positions, worker.check, patience_s=PATIENCE_S)
        assert positions() == ends
    assert sum(ends.values()) == len(records)
