"""The role `train` and curves: one transaction, before those who take them."""

import asyncio
import contextlib

import msgspec
import pytest

from rankstream.configuration.curves import PositionCurve
from rankstream.configuration.training import Schedule
from rankstream.snapshots import decode_snapshot
from rankstream.wire.models.curves import PublishedCurve
from rankstream.wire.models.deployments import is_deployment
from rankstream.wire.models.snapshot_names import sha256_of
from rankstream.wire.models.training import SCHEMA, Request, encode_record, training_key
from rankstream.wire.topics import EVALUATIONS, SNAPSHOTS, TRAINING
from streams.roles import trainer as role
from tests.streams.roles.trainer_world import (
    Killed,
    Mortal,
    World,
    settings_with,
    turned,
)

CURVE = PositionCurve(ranks=5, schedule=Schedule(after=[500]))


def world_with(n_lists: int = 700, **training) -> World:
    """One whose model `m` takes the curve `eyes`."""
    settings = settings_with(examination=[], **training)
    world = World(msgspec.structs.replace(settings, curves={"eyes": CURVE}))
    world.grow(n_lists)
    return world


@pytest.fixture(scope="module")
def grown() -> World:
    """One of which both are due; not to be changed."""
    return world_with()


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role, "LOOK_S", 0.01)


def of_curve(world: World) -> list[bytes]:
    """Envelopes of the curve, oldest first."""
    return [value for key, value in world.read(SNAPSHOTS) if key == b"eyes" and value]


def names_of_curves(world: World) -> list[str]:
    """In the order of their records."""
    return [each.intervention for each in world.records("curve")]


def test_a_curve_is_published_at_once_and_the_training_after_it_takes_it(
    grown: World,
) -> None:
    """Snapshot, record, position, status and JSON; no note, as it serves no list."""
    world = grown.copied()
    asyncio.run(turned(world, world.trainer(), 1))
    (envelope,), (record,) = of_curve(world), world.records("curve")
    snapshot = decode_snapshot(envelope)
    at = f"0.{snapshot.version}"
    assert snapshot.intervention == record.intervention == f"eyes@{at}"
    assert record.sha256 == sha256_of(envelope)
    (told,) = [
        msgspec.json.decode(value, type=PublishedCurve)
        for key, value in world.read(EVALUATIONS)
        if key == b"eyes" and value
    ]
    assert (told.model, told.version) == ("eyes", at)
    assert told.digest == record.sha256.hex()
    notes = [
        key
        for key, value in world.read(SNAPSHOTS)
        if value and is_deployment(key, value)
    ]
    assert notes == [f"m@{at}/deployed".encode()]
    positions = {each.intervention: each for each in world.records("position")}
    assert positions[f"eyes@{at}"].n_done == 1
    done = [x.said for x in world.records("status") if x.state == "done"]
    assert done == [f"eyes@{at} was published", f"m@{at} was published"]
    (run,) = world.records("run")
    assert run.curve.source == f"eyes@{at}"
    assert run.curve.alpha == record.alpha[: len(run.curve.alpha)]
    assert run.curve.groups == record.groups


def test_who_dies_anywhere_leaves_a_whole_curve_or_none(grown: World) -> None:
    """Whoever comes after it makes the same bytes."""
    plain = grown.copied()
    asyncio.run(turned(plain, plain.trainer(), 1))
    wanted = of_curve(plain)

    async def scenario(world: World, point: Mortal) -> None:
        dying = asyncio.create_task(turned(world, world.trainer(point), 1))
        await asyncio.wait(
            {dying, asyncio.create_task(point.dead.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        dying.cancel()
        with contextlib.suppress(Killed, asyncio.CancelledError):
            await dying

    n_died = 0
    for at in range(2, 60, 8):
        world, point = grown.copied(), Mortal(at)
        loop = asyncio.new_event_loop()
        # What is left of a process that was killed has nobody to tell.
        loop.set_exception_handler(lambda *_: None)
        try:
            loop.run_until_complete(scenario(world, point))
        finally:
            loop.close()
        n_died += point.dead.is_set()
        left = of_curve(world)
        assert len(left) in (0, 1)
        assert [x.intervention for x in world.records("curve")] == [
            decode_snapshot(each).intervention for each in left
        ]
        told = [key for key, _ in world.read(EVALUATIONS) if key == b"eyes"]
        assert len(told) == len(left)
        asyncio.run(turned(world, world.trainer(), 1))
        assert of_curve(world) == wanted
    assert n_died > 3


def test_without_a_version_of_the_curve_a_training_is_refused() -> None:
    """With the remedy; as soon as there is one it is trained."""
    world = world_with()
    curve = msgspec.structs.replace(CURVE, schedule=Schedule())
    world.settings = msgspec.structs.replace(world.settings, curves={"eyes": curve})
    trainer = world.trainer()
    asyncio.run(turned(world, trainer, 1))
    (refusal,) = world.records("refusal")
    assert "'eyes' has no version yet: fit it, `rankstream intervene eyes`" in (
        refusal.said
    )
    assert world.records("run") == []
    asked = Request(SCHEMA, "1", 0)
    world.write(TRAINING, (training_key("request", "eyes"), encode_record(asked)))
    world.write(TRAINING, (training_key("request", "m"), encode_record(asked)))
    asyncio.run(turned(world, world.trainer(), 1))
    (record,) = world.records("curve")
    assert (record.request, record.reason) == ("1", "asked")
    sources = [each.curve.source for each in world.records("run")]
    assert sources == [record.intervention]


def test_clicks_that_tell_no_curve_are_a_refusal_like_others() -> None:
    """What is there stays, and an asked one is answered."""
    curve = msgspec.structs.replace(
        CURVE, learns_from=["nobody"], schedule=Schedule(after=[10])
    )
    settings = settings_with(after=[])
    world = World(msgspec.structs.replace(settings, curves={"eyes": curve}))
    world.grow(100)
    asyncio.run(turned(world, world.trainer(), 1))
    (refusal,) = world.records("refusal")
    assert "clicks must tell 2 ranks of 'eyes' or more" in refusal.said
    assert of_curve(world) == []
