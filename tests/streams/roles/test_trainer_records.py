"""The role `train` and records that it cannot use: it goes on without them."""

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import msgspec
import numba
import pytest
from aiokafka.errors import KafkaError

from rankstream import deployment_rules
from rankstream.deployment_rules import DeploymentRefused
from rankstream.snapshots import decode_snapshot, encode_snapshot, pointer_of
from rankstream.wire.models.deployments import Deployment, deployment_record
from rankstream.wire.models.training import (
    KINDS,
    SCHEMA,
    Request,
    Status,
    encode_record,
    training_key,
)
from rankstream.wire.schemas import LogRefused
from rankstream.wire.topics import SNAPSHOTS, STATISTICS, TRAINING, full_name
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.reader_role import FollowedPartition
from streams.kafka.training import intervention
from streams.roles import trainer as role
from streams.roles.trainer import Trainer
from streams.statistics import keys
from streams.training.inputs import TrainingRefused
from streams.training.model_records import ModelRecords
from streams.training.trained_snapshot import train_model
from tests.fakes.clients import FakeClients
from tests.streams.roles.trainer_world import START_MS, World, settings_with, turned

BAD = [b"", b"x", b"\x93\x01x", msgspec.msgpack.encode([9, "x", 0, 0])]


@pytest.fixture(scope="module")
def grown() -> World:
    """One that is due; not to be changed."""
    world = World(settings_with())
    world.grow(700)
    return world


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role, "LOOK_S", 0.01)


@pytest.mark.parametrize("kind", ["request", "status"])
@pytest.mark.parametrize("value", BAD)
def test_a_request_or_status_that_cannot_be_read_is_passed_over(
    grown: World, kind: str, value: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """All models are trained as before, and one line says so."""
    world = grown.copied()
    world.write(TRAINING, (training_key(kind, "m"), value))
    with caplog.at_level(logging.WARNING):
        asyncio.run(turned(world, world.trainer()))
    (said,) = [x.getMessage() for x in caplog.records if x.name == role.log.name]
    assert f"event=passed-over topic=training record=m/{kind}: " in said
    assert len(world.trained()) == 1


def test_a_version_that_no_pointer_names_is_passed_over(grown: World) -> None:
    """What is trained goes on from the newest that is served."""
    world = grown.copied()
    served = max(
        (decode_snapshot(value) for key, value in world.read(SNAPSHOTS) if value),
        key=pointer_of,
    )
    for forged in (
        msgspec.structs.replace(served, version=10**15),
        msgspec.structs.replace(served, epoch=2**63 - 1),
    ):
        world.write(SNAPSHOTS, (b"m", encode_snapshot(forged)))
    asyncio.run(turned(world, world.trainer()))
    run = world.records("run")[-1]
    assert (run.parent.epoch, run.parent.version) == pointer_of(served)
    assert decode_snapshot(world.trained()[-1]).intervention == run.intervention


def test_an_empty_request_is_passed_over() -> None:
    """Nobody could be answered, so it would be tried for ever."""
    world = World(settings_with(after=[10**9]))
    world.write(
        TRAINING,
        (training_key("request", "m"), msgspec.msgpack.encode([SCHEMA, "", 0])),
    )
    asyncio.run(turned(world, world.trainer(), 3))
    assert len(world.read(TRAINING)) == 1


@pytest.mark.parametrize(
    ("kind", "value"), [*((kind, None) for kind in KINDS), ("later", b"x")]
)
def test_what_was_removed_and_kinds_of_later_releases_say_nothing(
    kind: str, value: bytes | None
) -> None:
    """Neither of a model nor of an intervention, and nothing is passed over."""
    passed: list[str] = []
    records = ModelRecords(frozenset({"m"}), passed.append)
    assert records.take_training(f"m/{kind}".encode(), value) == ""
    assert not records.trained
    assert not passed


def test_what_is_passed_over_leaves_what_was_known() -> None:
    """The last one that could be read holds."""
    passed: list[str] = []
    records = ModelRecords(frozenset({"m"}), passed.append)
    key = training_key("status", "m")
    said = Status(SCHEMA, "done", "x", 0)
    assert records.take_training(key, encode_record(said)) == "m"
    assert records.take_training(key, b"x") == ""
    assert records.statuses == {"m": said}
    assert len(passed) == 1
    with pytest.raises(LogRefused, match="a record of training must be readable"):
        records.take_training(training_key("position", "m"), b"x")


def test_a_snapshot_under_a_key_of_another_is_none_of_the_model(grown: World) -> None:
    """It lies where nobody reads it as this model's version, so neither does it."""
    envelope = dict(grown.read(SNAPSHOTS))[b"m/0.0"] or b""
    first = decode_snapshot(envelope)
    later = encode_snapshot(msgspec.structs.replace(first, version=99))
    for key, version in ((b"m/0.98", 0), (b"n", 0), (b"m/0.99", 99), (b"m", 99)):
        records = ModelRecords(frozenset({"m", "n"}))
        records.take_snapshot(b"m/0.0", envelope)
        records.take_snapshot(key, later)
        assert records.newest["m"].version == version, key


def test_a_deployment_that_cannot_be_read_leaves_room_for_none() -> None:
    """Else there would be room for one too many."""
    noted, packed = deployment_record("m@1.1", 5)
    records = ModelRecords(frozenset({"m"}))
    records.take_snapshot(noted, packed)
    assert records.deployments() == [Deployment(1, "m@1.1", 5)]
    for wrong in (b"", b"\x93\x02\xa1x\x05", b"\x93\x01\xa1x\xa1y"):
        other = ModelRecords(frozenset({"m"}))
        other.take_snapshot(noted, packed)
        other.take_snapshot(noted, wrong)
        with pytest.raises(DeploymentRefused, match=r"must be readable; .*: run the"):
            other.deployments()


def refusing(*arguments: Any, **_: Any) -> Any:
    """A training that is refused, with other numbers each time."""
    raise TrainingRefused(f"must have 9,000.5; got {id(arguments)}")


def refused(caplog: pytest.LogCaptureFixture) -> int:
    """How often the log says that one was."""
    return sum("event=training-refused" in x.getMessage() for x in caplog.records)


def test_a_refusal_is_said_once_and_tried_ever_less_often(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """However much is counted meanwhile; a request is tried at once."""
    world, clock = World(settings_with(after=[400, 2_000])), 1_000.0
    world.grow(700)
    monkeypatch.setattr(role, "time", SimpleNamespace(monotonic=lambda: clock))

    async def scenario() -> None:
        nonlocal clock
        trainer = world.trainer(train=refusing)
        n_tried = []
        for after_s in (0.0, 9.0, 2.0, 19.0, 2.0, 39.0, 2.0):
            clock += after_s
            world.grow(10)
            await turned(world, trainer, 2)
            n_tried.append(trainer.counters()["interventions_refused"])
        assert n_tried == [1, 1, 2, 2, 3, 3, 4]
        request = encode_record(Request(SCHEMA, "one", 0))
        world.write(TRAINING, (training_key("request", "m"), request))
        await turned(world, trainer, 3)
        assert trainer.counters()["interventions_refused"] == 5
        assert refused(caplog) == 1
        # A further point of the schedule.
        world.grow(1_400)
        await turned(world, trainer, 3)
        assert trainer.counters()["interventions_refused"] == 6
        assert refused(caplog) == 1

    asyncio.run(scenario())


def test_what_another_reason_refuses_is_said_too(
    grown: World, caplog: pytest.LogCaptureFixture
) -> None:
    """And so is the first one again, after it."""
    world, reasons = grown.copied(), ["no 1", "no 2", "never", "no 3"]

    def train(*_: Any, **__: Any) -> Any:
        raise TrainingRefused(reasons[len(world.records("refusal"))])

    async def scenario() -> None:
        trainer = world.trainer(train=train)
        for number in range(len(reasons)):
            request = encode_record(Request(SCHEMA, f"r{number}", 0))
            world.write(TRAINING, (training_key("request", "m"), request))
            await turned(world, trainer)

    asyncio.run(scenario())
    assert [each.said for each in world.records("refusal")] == reasons
    assert refused(caplog) == 3


def test_of_two_records_of_a_version_the_last_one_counts(grown: World) -> None:
    """One that is published again may differ; an earlier version never counts."""
    old = decode_snapshot(dict(grown.read(SNAPSHOTS))[b"m/0.0"] or b"")
    again = msgspec.structs.replace(old, created_ms=old.created_ms + 1)
    later = msgspec.structs.replace(old, version=7)
    records = ModelRecords(frozenset({"m"}))
    for each, counts in ((old, old), (again, again), (later, later), (old, later)):
        records.take_snapshot(b"m", encode_snapshot(each))
        assert records.newest["m"] == counts


ERRORS = [
    (MemoryError(), "MemoryError;"),
    (KeyError("x"), "KeyError: 'x';"),
    (OverflowError("x"), "OverflowError: x;"),
    (TypeError("x"), "TypeError: x;"),
    (StopIteration("x"), "StopIteration: x;"),
]


@pytest.mark.parametrize(("error", "said"), ERRORS)
def test_whatever_a_training_raises_a_request_is_answered(
    grown: World, error: Exception, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In words, with the traceback in the log once; the schedule waits then."""
    world, n_begun = grown.copied(), 0

    def train(*_: Any, **__: Any) -> Any:
        nonlocal n_begun
        n_begun += 1
        raise error

    async def scenario() -> None:
        trainer = world.trainer(train=train)
        for name in ("one", "two"):
            request = encode_record(Request(SCHEMA, name, 0))
            world.write(TRAINING, (training_key("request", "m"), request))
            await turned(world, trainer, 3)
        assert trainer.counters()["interventions_refused"] == 2

    asyncio.run(scenario())
    assert n_begun == 2
    refusals = world.records("refusal")
    assert [each.request for each in refusals] == ["one", "two"]
    begins = f"a training must end without an error; got {said}"
    assert all(each.said.startswith(begins) for each in refusals)
    assert [each.request for each in world.records("position")] == ["one", "two"]
    assert refused(caplog) == 1
    assert caplog.text.count("in train\n    raise error") == 1


@pytest.mark.parametrize("error", [LogRefused("x"), KafkaError()])
def test_what_is_no_fault_of_the_training_ends_the_turn(
    grown: World, error: Exception
) -> None:
    """Nothing is answered: who comes next begins it again."""
    world = grown.copied()

    def train(*_: Any, **__: Any) -> Any:
        raise error

    with pytest.raises(type(error)):
        asyncio.run(turned(world, world.trainer(train=train)))
    assert not world.records("refusal")


def test_compiled_kernels_are_told_of(
    grown: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log and to who follows it: the first training takes minutes then."""
    monkeypatch.setattr(intervention, "BEAT_S", 0.01)

    def train(*arguments: Any, **options: Any) -> Any:
        for _ in range(2):
            numba.njit(lambda x: x + 1.5)(1.0)
        return train_model(*arguments, **options)

    world = grown.copied()
    with caplog.at_level(logging.INFO):
        asyncio.run(turned(world, world.trainer(train=train)))
    assert caplog.text.count("event=compiling model=m reason=compiling kernels") == 1
    said = [each.said for each in world.records("status")]
    assert any(each.startswith("compiling kernels") for each in said)


def test_an_answered_request_stays_answered_after_the_schedule_went_on() -> None:
    """It lies in the topic still, as the last of its key."""
    world = World(settings_with())
    world.grow(300)
    request = Request(SCHEMA, "one", 0)
    world.write(TRAINING, (training_key("request", "m"), encode_record(request)))

    async def scenario() -> None:
        trainer = world.trainer()
        await turned(world, trainer, 2)
        world.grow(400)
        await turned(world, trainer, 3)
        await turned(world, world.trainer(), 2)

    asyncio.run(scenario())
    assert [each.reason for each in world.records("run")] == ["asked", "count"]


def test_room_that_is_gone_after_the_training_refuses_it(grown: World) -> None:
    """Others deploy meanwhile, and statistics keep no more apart."""
    world = grown.copied()
    limits = msgspec.structs.replace(world.settings.limits, interventions=2)
    world.settings = msgspec.structs.replace(world.settings, limits=limits)

    def train(*arguments: Any, **options: Any) -> Any:
        world.write(SNAPSHOTS, deployment_record("n@0.5", START_MS))
        return train_model(*arguments, **options)

    asyncio.run(turned(world, world.trainer(train=train)))
    assert [each.state for each in world.records("status")] == ["training", "refused"]
    assert "limits.interventions, 2" in world.records("status")[-1].said
    assert not world.trained()


def test_a_stop_just_before_it_is_published_publishes_nothing(
    grown: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the last look at the topics."""
    world, stop, n_checks = grown.copied(), asyncio.Event(), 0
    check_room = deployment_rules.check_room

    def stopping(*arguments: Any, **options: Any) -> None:
        nonlocal n_checks
        n_checks += 1
        if n_checks == 2:
            stop.set()
        check_room(*arguments, **options)

    monkeypatch.setattr(intervention, "check_room", stopping)
    trainer = world.trainer()
    world.tell(trainer)
    asyncio.run(trainer.turn(stop))
    assert n_checks == 2
    assert not world.trained()
    assert [each.state for each in world.records("status")] == ["training"]


@pytest.mark.parametrize(
    ("at_ms", "is_due"),
    [
        ([9_000, 6_000], True),
        ([6_000, 9_000], True),
        ([9_000, 4_999], False),
        ([4_999, 9_000], False),
        ([9_000, None], False),
        ([9_000], False),
    ],
)
def test_a_time_is_due_when_all_partitions_have_passed_it(
    grown: World, at_ms: list[int | None], is_due: bool
) -> None:
    """Not when the first one has, nor before each of them has begun."""
    settings = settings_with(after=[], at=[5_000])
    kafka = msgspec.structs.replace(settings.kafka, partitions=2)
    settings = msgspec.structs.replace(settings, kafka=kafka)
    trainer = Trainer(settings, Cluster("", {}, {}, FakeClients(grown.kafka)))
    last = dict(grown.read(STATISTICS))[keys.counted_key(0)]
    counted = keys.decode_counted(last or b"")
    for partition, watermark_ms in enumerate(at_ms):
        one = keys.encode_counted(counted._replace(watermark_ms=watermark_ms))
        record = keys.counted_key(partition), one
        source = FollowedPartition(full_name("", STATISTICS), partition)
        trainer.take(source, CommittedBatch([record], at_end=True, is_first=True))
    assert trainer._is_wanted("m") is is_due
