"""What operators deploy: whole or not at all, one after another, in a history."""

import asyncio
import contextlib
from functools import lru_cache
from typing import Any

import msgspec
import pytest

from rankstream.settings import ModelSettings
from rankstream.snapshots import (
    Pointer,
    decode_snapshot,
    encode_snapshot,
    pointer_of,
)
from rankstream.wire.models.changes import (
    FOLLOWED,
    LOOKED,
    ROLLED_BACK,
    SCHEMA,
    TRAINED,
    Change,
    History,
    change_record,
)
from rankstream.wire.models.deployments import decode_deployment, is_deployment
from rankstream.wire.models.training import Request, encode_record, training_key
from rankstream.wire.topics import SNAPSHOTS, TRAINING
from streams.kafka.deployment.fenced_log import WriterFenced
from streams.kafka.deployment.operator_change import (
    ChangeRefused,
    Chosen,
    Wanted,
    change,
    check_seen,
)
from streams.training.model_records import ModelRecords
from tests.streams.roles.trainer_world import (
    Killed,
    Mortal,
    Paused,
    World,
    settings_with,
    turned,
)

FIRST = Pointer(0, 0)


@lru_cache(1)
def trained_world() -> World:
    """A model that was trained once; not to be changed."""
    world = World(settings_with())
    world.grow(700)
    asyncio.run(turned(world, world.trainer()))
    assert len(world.trained()) == 1
    return world


def served(world: World) -> Pointer:
    """The newest version that was deployed."""
    return max(pointer_of(decode_snapshot(each)) for each in world.trained())


def past(world: World) -> list[Change]:
    """The history, which has no gap."""
    found = History()
    for key, value in world.read(SNAPSHOTS):
        found.take(key, value)
    changes = found.changes.get("m", {})
    assert [*changes] == [*range(1, len(changes) + 1)]
    return [each for each in changes.values() if each is not None]


def assert_whole(world: World) -> None:
    """Each deployed version has its note and its change, and none has two."""
    deployed = [f"m@{pointer_of(decode_snapshot(x))}" for x in world.trained()]
    noted = [
        decode_deployment(value).intervention
        for key, value in world.read(SNAPSHOTS)
        if value is not None and is_deployment(key, value)
    ]
    assert deployed == noted == [f"m@{each.version}" for each in past(world)]


async def roll_back(
    world: World, *, by: str = "ann", point: Any = None, seen: Pointer | None = None
) -> Change:
    """Serve the first version again."""
    envelope = dict(world.read(SNAPSHOTS))[b"m/0.0"] or b""
    first = Chosen(decode_snapshot(envelope), ROLLED_BACK)
    cluster = world.cluster(*([point] if point else []))
    wanted = Wanted("m", seen or served(trained_world()), by, "clicks fell")
    made, _ = await change(world.settings, cluster, wanted, lambda _: first)
    return made


def test_a_rollback_is_a_record_of_its_own() -> None:
    """Numbered after the training, with who and why; the note lies beside it."""
    world = trained_world().copied()
    before = served(world)
    made = asyncio.run(roll_back(world))
    trained, second = past(world)
    assert (trained.number, trained.what, trained.why) == (1, TRAINED, "count")
    assert trained.version == str(before)
    assert second == made
    assert (made.number, made.by, made.why) == (2, "ann", "clicks fell")
    assert (made.before, made.version) == (str(before), "1.0")
    assert served(world) == Pointer(1, 0)
    assert_whole(world)


def test_killed_anywhere_all_of_it_is_there_or_nothing() -> None:
    """And who does it again is told, or does it."""
    count = Mortal(10**9)
    asyncio.run(roll_back(trained_world().copied(), point=count))
    n_whole = 0

    async def scenario(at: int) -> World:
        world, point = trained_world().copied(), Mortal(at)
        dying = asyncio.create_task(roll_back(world, point=point))
        await asyncio.wait(
            {dying, asyncio.create_task(point.dead.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        dying.cancel()
        with contextlib.suppress(Killed, asyncio.CancelledError):
            await dying
        assert_whole(world)
        return world

    for at in range(count.n):
        loop = asyncio.new_event_loop()
        # What is left of a process that was killed has nobody to tell.
        loop.set_exception_handler(lambda *_: None)
        try:
            world = loop.run_until_complete(scenario(at))
        finally:
            loop.close()
        is_done = len(past(world)) == 2
        n_whole += is_done
        if is_done:
            with pytest.raises(ChangeRefused, match=r"to 1\.0 meanwhile, rolled back"):
                asyncio.run(roll_back(world))
        else:
            asyncio.run(roll_back(world))
        assert_whole(world)
        assert len(past(world)) == 2
    assert 0 < n_whole < count.n


def test_of_two_operators_exactly_one_wins() -> None:
    """Wherever the first stands when the second begins and ends."""
    count = Paused(0)
    asyncio.run(roll_back(trained_world().copied(), point=count))
    ends = []

    async def scenario(at: int) -> World:
        world, point = trained_world().copied(), Paused(at)
        earlier = asyncio.create_task(roll_back(world, point=point))
        await point.reached.wait()
        later = asyncio.create_task(roll_back(world, by="bob"))
        await asyncio.wait({later})
        point.go_on.set()
        results = await asyncio.gather(earlier, later, return_exceptions=True)
        ends.append([*map(type, results)])
        return world

    for at in range(1, count.n + 1):
        world = asyncio.run(scenario(at))
        assert_whole(world)
        assert len(past(world)) == 2, at
        assert ends[-1].count(Change) == 1, ends[-1]
    assert {*map(tuple, ends)} == {
        (ChangeRefused, Change), (WriterFenced, Change), (Change, ChangeRefused),
    }  # fmt: skip


def test_a_trainer_and_an_operator_never_both_write() -> None:
    """The trainer goes on with what is served, and leaves a rollback alone."""
    count = Paused(0)

    async def scenario(point: Paused) -> World:
        world = trained_world().copied()
        request = encode_record(Request(1, "r", 0))
        world.write(TRAINING, (training_key("request", "m"), request))
        trainer = world.trainer(point)
        training = asyncio.create_task(turned(world, trainer))
        await asyncio.wait(
            {training, asyncio.create_task(point.reached.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        if not training.done():
            with contextlib.suppress(ChangeRefused):
                await roll_back(world)
            point.go_on.set()
        await training
        return world

    asyncio.run(scenario(count))
    seen = set()
    for at in range(1, count.n + 1, 3):
        world = asyncio.run(scenario(Paused(at)))
        assert_whole(world)
        seen.add(tuple(each.what for each in past(world)))
    assert (TRAINED, ROLLED_BACK) in seen
    assert (TRAINED, ROLLED_BACK, TRAINED) in seen | {(TRAINED, ROLLED_BACK, TRAINED)}
    assert all(kinds.count(ROLLED_BACK) <= 1 for kinds in seen)


def test_another_version_than_was_seen_is_refused_with_the_one_that_is() -> None:
    """Where it is named, it is compared; a model that learns online by its epoch."""
    world = trained_world().copied()
    with pytest.raises(ChangeRefused, match=r"--expect 0\.\d+ to go on"):
        asyncio.run(roll_back(world, seen=Pointer(0, 1)))
    assert len(past(world)) == 1

    envelope = dict(world.read(SNAPSHOTS))[b"m/0.0"] or b""
    records = ModelRecords(frozenset({"m"}))
    later = msgspec.structs.replace(decode_snapshot(envelope), version=9)
    records.take_snapshot(b"m/0.9", encode_snapshot(later))
    online = msgspec.structs.replace(
        world.settings, models={"m": ModelSettings(features=3)}
    )
    check_seen(online, Wanted("m", Pointer(0, 4), "ann"), records)
    with pytest.raises(ChangeRefused, match=r"from 1\.4 to 0\.9 meanwhile, by whom is"):
        check_seen(online, Wanted("m", Pointer(1, 4), "ann"), records)
    check_seen(world.settings, Wanted("m", None, "ann"), records)


def test_a_number_is_taken_also_where_its_record_cannot_be_read() -> None:
    """And a look changes nothing that is served."""
    world = trained_world().copied()
    key, _ = change_record("m", Change(SCHEMA, 2, 0, LOOKED, "", "", ""))
    world.write(SNAPSHOTS, (key, b"\x92\x09\x02"))
    look = Chosen(None, LOOKED, {"upper": 0.5})
    wanted = Wanted("m", served(world), "ann")
    made, envelope = asyncio.run(
        change(world.settings, world.cluster(), wanted, lambda _: look)
    )
    assert (made.number, made.version, envelope) == (3, str(served(world)), b"")
    assert made.evidence == {"upper": 0.5}
    assert len(world.trained()) == 1


def test_what_is_followed_again_has_the_key_of_following() -> None:
    """So that publishers move later versions into its epoch."""
    world = trained_world().copied()
    envelope = dict(world.read(SNAPSHOTS))[b"m/0.0"] or b""
    chosen = Chosen(decode_snapshot(envelope), FOLLOWED)
    wanted = Wanted("m", served(world), "ann")
    _, written = asyncio.run(
        change(world.settings, world.cluster(), wanted, lambda _: chosen)
    )
    assert dict(world.read(SNAPSHOTS))[b"m/follow"] == written
