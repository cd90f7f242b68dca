"""The loop of roles that fold nothing: when turns begin, go on and end."""

import asyncio
import logging

import msgspec
import pytest
from kafka import KafkaAdminClient, KafkaProducer

from rankstream.settings import KafkaSettings
from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.reader_role import FollowedPartition, run_reader_role
from streams.series import Series
from tests.services import KafkaService
from tests.worker_process import PATIENCE_S


class Away(RuntimeError):
    """What a turn needs does not answer."""


class Recorder:
    """A role that writes down what happens to it, and stops after some turns."""

    awaited = "something"
    absences = (Away,)

    def __init__(self, *faults: BaseException | None, turns: int = 1) -> None:
        self.faults = list(faults)
        self.left = turns
        self.seen: list[tuple[int, bytes | None]] = []
        self.seen_at_first_turn: list[tuple[int, bytes | None]] | None = None
        self.n_turns = self.n_closed = 0
        self.wrote_s: float | None = None

    def take(self, source: FollowedPartition, batch: CommittedBatch) -> None:
        """Note the values."""
        self.seen += [(source.partition, value) for _, value in batch.records]
        if any(value == b"bad" for _, value in batch.records):
            raise LookupError("a record that no role foresaw")

    async def turn(self, stop: asyncio.Event) -> None:
        """Fail as planned, or count down."""
        if self.seen_at_first_turn is None:
            self.seen_at_first_turn = list(self.seen)
        self.n_turns += 1
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None:
            raise fault
        self.left -= 1
        if self.left == 0:
            stop.set()
        await asyncio.sleep(0)

    def counters(self) -> dict[str, int]:
        """How often it was called."""
        return {"turns_taken": self.n_turns}

    def series(self) -> list[Series]:
        """Nothing by labels."""
        return []

    async def close(self) -> None:
        """Count."""
        self.n_closed += 1


@pytest.fixture
def settings(kafka: KafkaService) -> KafkaSettings:
    """How to reach the broker."""
    return KafkaSettings(bootstrap=kafka.bootstrap)


@pytest.fixture
def topic(kafka: KafkaService, namespace: str) -> str:
    """Two partitions with a thousand records each."""
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.create_topics({namespace: {"num_partitions": 2, "replication_factor": 1}})
    admin.close()
    send(kafka, namespace, *(b"%d" % number for number in range(1_000)))
    return namespace


def send(kafka: KafkaService, topic: str, *values: bytes) -> None:
    """To both partitions."""
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
    for value in values:
        for partition in (0, 1):
            producer.send(topic, value, partition=partition)
    producer.flush()
    producer.close()


def ran(settings: KafkaSettings, topic: str, role: Recorder) -> None:
    """Run the role to its end."""
    sources = [FollowedPartition(topic, 0), FollowedPartition(topic, 1)]
    stop = asyncio.Event()
    asyncio.run(
        asyncio.wait_for(run_reader_role(settings, sources, role, stop), PATIENCE_S)
    )
    assert stop.is_set()


def test_turns_begin_at_the_end_of_all_sources(
    settings: KafkaSettings, topic: str
) -> None:
    """Nothing is judged or written by a part of what is there."""
    role = Recorder(turns=3)
    ran(settings, topic, role)
    assert role.seen_at_first_turn is not None
    assert sorted(role.seen_at_first_turn) == sorted(
        (partition, b"%d" % number) for partition in (0, 1) for number in range(1_000)
    )
    assert (role.n_turns, role.n_closed) == (3, 1)


def test_a_turn_is_tried_again_and_the_wait_is_said_once(
    settings: KafkaSettings, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Then that it is over."""
    caplog.set_level(logging.INFO)
    role = Recorder(Away("no answer"), Away("no answer"), Away("no answer"))
    ran(settings, topic, role)
    assert (role.n_turns, role.n_closed) == (4, 1)
    assert caplog.text.count("event=waiting for=something reason=no answer") == 1
    assert caplog.text.count("event=reached what=something") == 1


def test_a_turn_that_fails_ends_the_role(settings: KafkaSettings, topic: str) -> None:
    """Reading goes on for nobody."""
    role = Recorder(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        ran(settings, topic, role)
    assert role.n_closed == 1


def test_a_turn_that_is_cancelled_has_failed(
    settings: KafkaSettings, topic: str
) -> None:
    """A client may let out a cancellation of its own; the role must not just end."""
    role = Recorder(asyncio.CancelledError("of a client"))
    with pytest.raises(RuntimeError, match="was cancelled, though nobody asked"):
        ran(settings, topic, role)
    assert role.n_closed == 1


def test_a_record_that_fails_ends_the_role(
    kafka: KafkaService, settings: KafkaSettings, topic: str
) -> None:
    """Turns do not go on without what is read."""
    send(kafka, topic, b"bad")
    role = Recorder()
    with pytest.raises(LookupError, match="no role foresaw"):
        ran(settings, topic, role)


def test_the_stop_is_heard_before_the_first_turn() -> None:
    """Also where no broker answers; nothing was begun, and nothing is closed."""
    nowhere = msgspec.structs.replace(KafkaSettings(), bootstrap="127.0.0.1:1")
    role = Recorder()

    async def scenario() -> None:
        stop = asyncio.Event()
        running = asyncio.create_task(
            run_reader_role(nowhere, [FollowedPartition("nothing")], role, stop)
        )
        await asyncio.sleep(0.2)
        stop.set()
        await asyncio.wait_for(running, PATIENCE_S)

    asyncio.run(scenario())
    assert (role.n_turns, role.n_closed) == (0, 0)
