"""The role `train` and records that it cannot use: it goes on without them."""

import asyncio
import logging

import msgspec
import pytest

from rankstream.snapshots import decode_snapshot, encode_snapshot
from rankstream.wire.schemas import LogRefused
from rankstream.wire.topics import SNAPSHOTS, TRAINING
from rankstream.wire.training import SCHEMA, Status, encode_record, training_key
from streams.roles import trainer as role
from streams.training.model_records import ModelRecords
from tests.streams.roles.trainer_world import World, settings_with, turned

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


def test_an_empty_request_is_passed_over() -> None:
    """Nobody could be answered, so it would be tried for ever."""
    world = World(settings_with(after=[10**9]))
    world.write(
        TRAINING,
        (training_key("request", "m"), msgspec.msgpack.encode([SCHEMA, "", 0])),
    )
    asyncio.run(turned(world, world.trainer(), 3))
    assert len(world.read(TRAINING)) == 1


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
