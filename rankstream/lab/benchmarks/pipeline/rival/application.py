"""A running rival: what it has read, and what it has counted."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from kafka import KafkaConsumer, TopicPartition

from deploy.process import ServerProcess
from producers.brokers.connection import client_options
from producers.topic_reader import TopicReader
from rankstream.lab.benchmarks.pipeline.bed import BenchmarkFailed
from rankstream.lab.benchmarks.pipeline.input_recount import Tally
from rankstream.lab.benchmarks.pipeline.logs import Offsets
from rankstream.lab.benchmarks.pipeline.rival.build import rival_command
from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, QUERIES, full_name

NAME = "rival"
RUNNING = b"running"
"""What it says once all of its threads have their partitions."""

CHANGELOG = f"{NAME}-counts-changelog"


class Rival:
    """The application in its process.

    Parameters
    ----------
    process
        Must have started.
    """

    def __init__(self, settings: Settings, process: ServerProcess) -> None:
        self._settings = settings
        self._process = process

    @property
    def pid(self) -> int:
        """Of the Java."""
        if self._process.process is None:
            raise BenchmarkFailed("the rival must have been started; it was not")
        return self._process.process.pid

    def check(self) -> None:
        """Raise where it has ended."""
        if not self._process.is_running:
            tail = self._process.log.read_text(errors="replace")[-2_000:]
            raise BenchmarkFailed(f"the rival must run until it is stopped; {tail}")

    @contextlib.contextmanager
    def positions(self) -> Iterator["Positions"]:
        """Up to where it has committed, for as long as the context lasts."""
        consumer = KafkaConsumer(
            **client_options(self._settings.kafka),
            group_id=full_name(self._settings.namespace, NAME),
            enable_auto_commit=False,
        )
        try:
            yield Positions(self._settings, consumer)
        finally:
            consumer.close()


class Positions:
    """Offsets of its sources by topic and partition, without their namespace."""

    def __init__(self, settings: Settings, consumer: KafkaConsumer) -> None:
        self._places = {
            TopicPartition(full_name(settings.namespace, topic), partition): (
                topic,
                partition,
            )
            for topic in (QUERIES, CLICKS)
            for partition in range(settings.kafka.input_partitions)
        }
        self._consumer = consumer

    def ends(self) -> Offsets:
        """Behind the last record of each partition that has any."""
        found = self._consumer.end_offsets(list(self._places))
        return {self._places[each]: end for each, end in found.items() if end}

    def __call__(self) -> Offsets:
        """The first offset that it has not committed, of those it has read of."""
        found = {place: self._consumer.committed(place) for place in self._places}
        return {
            self._places[each]: offset
            for each, offset in found.items()
            if offset is not None
        }


@contextlib.contextmanager
def running_rival(
    settings: Settings, folder: Path, n_threads: int = 2
) -> Iterator[Rival]:
    """The rival over the input topics of a namespace, stopped in order at the end.

    Parameters
    ----------
    folder
        Where its state and its log lie.

    Raises
    ------
    ServerFailed
        Where there is no JDK, it does not compile, or it does not start.
    """
    own = folder / f"{settings.namespace}-{NAME}"
    own.mkdir()
    command = [
        *rival_command(),
        full_name(settings.namespace, NAME),
        settings.kafka.bootstrap,
        *(full_name(settings.namespace, topic) for topic in (QUERIES, CLICKS)),
        str(own / "state"),
        str(n_threads),
    ]
    process = ServerProcess(command, own, NAME)
    process.start(lambda: process.has_logged(RUNNING))
    try:
        yield Rival(settings, process)
    finally:
        process.stop()


def rival_tally(settings: Settings) -> Tally:
    """What the rival has counted, from the changelog of its counts."""
    with TopicReader(settings) as reader:
        # A transaction may be told of as committed before each partition has its end.
        records = reader.records(CHANGELOG, ends=reader.written(CHANGELOG))
        last = {record.key: record.value for record in records}
    tally = Tally.empty()
    for key, value in last.items():
        if key is None or value is None:
            raise BenchmarkFailed("a query must have counts; the rival removed them")
        for item, rank, shown, clicked in _rows(value):
            tally.shown[key.decode(), item, rank] += shown
            tally.clicked[key.decode(), item, rank] += clicked
    return tally


def _rows(value: bytes) -> Iterator[tuple[str, int, int, int]]:
    """Item, rank, times shown and clicked; the Java says how they are stored."""
    at = 0
    while at < len(value):
        cells = at + 4 + int.from_bytes(value[at : at + 2], "big")
        end = cells + int.from_bytes(value[at + 2 : at + 4], "big")
        item, at = value[at + 4 : cells].decode(), cells
        while at < end:
            rank = value[at]
            shown, at = _number(value, at + 1)
            clicked, at = _number(value, at)
            yield item, rank, shown, clicked


def _number(value: bytes, at: int) -> tuple[int, int]:
    """A number in groups of seven bits, the lowest first, and where it ends."""
    found, shift = 0, 0
    while True:
        found |= (value[at] & 127) << shift
        if value[at] < 128:
            return found, at + 1
        at, shift = at + 1, shift + 7
