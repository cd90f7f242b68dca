"""The role `train`: whole interventions, once each, whatever dies or comes back."""

import asyncio
import contextlib
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.snapshots import Snapshot, decode_snapshot, deployed, encode_snapshot
from rankstream.wire import bounds
from rankstream.wire.models.deployments import deployment_record
from rankstream.wire.models.training import (
    SCHEMA,
    Request,
    Status,
    encode_record,
    training_key,
)
from rankstream.wire.schemas import LogRefused
from rankstream.wire.topics import SNAPSHOTS, TRAINING
from streams.kafka.training import intervention
from streams.roles import trainer as role
from streams.series import SecondsHistogram
from streams.training.inputs import TrainingRefused
from streams.training.progress import TrainingProgress
from streams.training.trained_snapshot import train_model
from tests.streams.roles.trainer_world import (
    START_MS,
    Killed,
    Mortal,
    Paused,
    World,
    settings_with,
    turned,
)

N_LISTS = 700


def world_of(**changes: Any) -> World:
    """A model that is due."""
    world = World(settings_with(**changes))
    world.grow(N_LISTS)
    return world


GROWN = lru_cache(world_of)
"""One that is not to be changed."""


def ask(world: World, name: str) -> None:
    """Ask for an intervention."""
    request = encode_record(Request(SCHEMA, name, 0))
    world.write(TRAINING, (training_key("request", "m"), request))


def states(world: World) -> list[str]:
    """What became of the model, one after another."""
    return [each.state for each in world.records("status")]


@pytest.fixture(scope="module")
def undisturbed() -> tuple[World, int]:
    """After one intervention that nothing disturbed; how often it could have died."""
    world, point = GROWN().copied(), Mortal(10**9)
    asyncio.run(turned(world, world.trainer(point)))
    return world, point.n


def test_a_model_is_trained_when_it_is_due_and_not_before(
    undisturbed: tuple[World, int],
) -> None:
    """Once for each point that was passed; then it waits for the next."""
    early = World(settings_with())
    early.grow(300)
    asyncio.run(turned(early, early.trainer(), 2))
    assert early.read(TRAINING) == []

    world, _ = undisturbed
    world.assert_whole()
    (envelope,), (run,) = world.trained(), world.records("run")
    snapshot = decode_snapshot(envelope)
    assert snapshot.intervention == f"m@0.{sum(n for _, n in run.counts)}"
    assert run.reason == "count"
    assert len(run.epochs) == 4
    assert states(world) == ["training", "done"]

    async def go_on() -> None:
        trainer = again.trainer()
        await turned(again, trainer, 3)
        assert len(again.trained()) == 1
        again.grow(400)
        await turned(again, trainer, 3)

    again = world_of()
    asyncio.run(go_on())
    again.assert_whole()
    first, second = map(decode_snapshot, again.trained())
    assert (second.parent, second.epoch) == (first.version, 0)
    assert second.weights != first.weights


def test_each_training_gives_back_what_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, and not when it only looks."""
    given_back: list[str] = []
    monkeypatch.setattr(role, "give_back_free_pages", lambda: given_back.append("it"))
    world = GROWN().copied()
    asyncio.run(turned(world, world.trainer(), 3))
    assert (len(world.trained()), given_back) == (1, ["it"])


def test_killed_anywhere_it_publishes_all_or_nothing_and_another_start_the_same(
    undisturbed: tuple[World, int],
) -> None:
    """At every await: what comes in the end is what would have come undisturbed."""
    quiet, n_points = undisturbed

    async def scenario(at: int) -> World:
        world, point = GROWN().copied(), Mortal(at)
        dying = asyncio.create_task(turned(world, world.trainer(point)))
        await asyncio.wait(
            {dying, asyncio.create_task(point.dead.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        dying.cancel()
        with contextlib.suppress(Killed, asyncio.CancelledError):
            await dying
        world.assert_whole()
        assert len(world.trained()) <= 1
        await turned(world, world.trainer(), 2)
        return world

    published = set()
    for at in range(n_points):
        loop = asyncio.new_event_loop()
        # What is left of a process that was killed has nobody to tell.
        loop.set_exception_handler(lambda *_: None)
        try:
            world = loop.run_until_complete(scenario(at))
        finally:
            loop.close()
        world.assert_whole()
        assert world.trained() == quiet.trained(), at
        assert world.records("run") == quiet.records("run"), at
        published.add(states(world).count("training"))
    assert published >= {1, 2}


def test_of_two_trainers_one_publishes_and_the_earlier_one_says_so(
    undisturbed: tuple[World, int],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Wherever the earlier one stands when the later one begins and ends."""
    monkeypatch.setattr(role, "LEASE_S", 0.0)
    quiet, n_points = undisturbed

    async def scenario(at: int) -> World:
        world, point = GROWN().copied(), Paused(at)
        earlier = asyncio.create_task(turned(world, world.trainer(point, by="a")))
        await point.reached.wait()
        await turned(world, world.trainer(by="b"))
        point.go_on.set()
        await earlier
        return world

    ends = []
    for at in range(1, n_points + 1, 2):
        caplog.clear()
        world = asyncio.run(scenario(at))
        world.assert_whole()
        assert world.trained() == quiet.trained(), at
        (by,) = {each.by for each in world.records("status") if each.state == "done"}
        said = [x.getMessage() for x in caplog.records]
        fenced = [x for x in said if x.startswith("event=fenced model=m")]
        assert all("another one has 'm' now" in x for x in fenced)
        ends.append((by, len(fenced)))
    assert set(ends) == {("/b", 0), ("/b", 1), ("/a", 0)}
    # The one that finds the position of the other has nothing left to do.
    assert ends[0] == ("/b", 0)
    assert ends.count(("/b", 1)) > 10
    assert ends[-1] == ("/a", 0)


def test_nobody_begins_while_another_trainer_says_that_it_trains(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until it has been silent for long, or says that it is done."""
    world = world_of()
    at_work = Status(SCHEMA, "training", "epoch 3", 0, "", "/other")
    world.write(TRAINING, (training_key("status", "m"), encode_record(at_work)))
    asyncio.run(turned(world, world.trainer()))
    assert not world.trained()
    monkeypatch.setattr(role, "LEASE_S", 0.0)
    asyncio.run(turned(world, world.trainer()))
    assert len(world.trained()) == 1


def test_its_own_last_word_before_a_kill_holds_nothing_up() -> None:
    """A role that is started again goes on at once."""
    world = world_of()
    own = Status(SCHEMA, "training", "epoch 3", 0, "", "one/t")
    world.write(TRAINING, (training_key("status", "m"), encode_record(own)))
    asyncio.run(turned(world, world.trainer(by="one/t")))
    assert len(world.trained()) == 1


def test_workers_configured_alike_do_not_fence_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second one waits for the first, and begins soon where that one is silent."""
    world, begun = world_of(), 0

    async def scenario() -> None:
        loop = asyncio.get_running_loop()

        def train(*arguments: Any, **options: Any) -> Any:
            nonlocal begun
            begun += 1
            if begun == 1:
                second = turned(world, world.trainer(by="one/b", train=train))
                asyncio.run_coroutine_threadsafe(second, loop).result()
            return train_model(*arguments, **options)

        await turned(world, world.trainer(by="one/a", train=train))

    asyncio.run(scenario())
    assert begun == 1
    assert {each.by for each in world.records("status")} == {"one/a"}
    assert len(world.trained()) == 1

    killed = world_of()
    last = Status(SCHEMA, "training", "epoch 3", 0, "", "one/a")
    killed.write(TRAINING, (training_key("status", "m"), encode_record(last)))
    asyncio.run(turned(killed, killed.trainer(by="one/b")))
    assert not killed.trained()
    monkeypatch.setattr(role, "ALIKE_S", 0.0)
    asyncio.run(turned(killed, killed.trainer(by="two/b")))
    assert not killed.trained()
    asyncio.run(turned(killed, killed.trainer(by="one/b")))
    assert len(killed.trained()) == 1
    assert intervention.BEAT_S < role.LEASE_S


def test_a_request_is_answered_once_in_the_next_epoch_at_equal_counts() -> None:
    """Also one that comes while another intervention is under way."""
    world = world_of()

    def train(*arguments: Any, **options: Any) -> Any:
        if not world.records("request"):
            ask(world, "one")
        return train_model(*arguments, **options)

    async def scenario() -> None:
        trainer = world.trainer(train=train)
        await turned(world, trainer, 3)
        assert len(world.trained()) == 2
        ask(world, "two")
        await turned(world, trainer, 3)
        await turned(world, world.trainer(), 2)

    asyncio.run(scenario())
    world.assert_whole()
    snapshots = [decode_snapshot(each) for each in world.trained()]
    assert [each.epoch for each in snapshots] == [0, 1, 2]
    assert [each.parent_epoch for each in snapshots] == [0, 0, 1]
    assert len({each.version for each in snapshots}) == 1
    assert [each.reason for each in world.records("run")] == ["count", "asked", "asked"]
    assert [x.request for x in world.records("position")] == ["", "one", "two"]
    assert [x.request for x in world.records("run")] == ["", "one", "two"]


def test_the_stop_ends_a_training_soon_and_nothing_is_published() -> None:
    """At its next epoch."""
    world, stop = world_of(epochs=1_000, patience=1_000), asyncio.Event()
    n_epochs, loop = 0, asyncio.new_event_loop()

    def train(*arguments: Any, on_progress: Any, **options: Any) -> Any:
        def tell(progress: Any) -> None:
            nonlocal n_epochs
            n_epochs += progress.stage == "epoch"
            if n_epochs == 3:
                loop.call_soon_threadsafe(stop.set)
            on_progress(progress)

        return train_model(*arguments, on_progress=tell, **options)

    async def scenario() -> None:
        trainer = world.trainer(train=train)
        world.tell(trainer)
        await trainer.turn(stop)

    loop.run_until_complete(scenario())
    loop.close()
    assert 3 <= n_epochs < 1_000
    assert states(world) == ["training"]
    assert not world.trained()


def refusing(why: str) -> Any:
    """A training that is refused."""

    def train(*_: Any, **__: Any) -> Any:
        raise TrainingRefused(why)

    return train


def test_a_refusal_answers_who_asked_and_stays_when_the_status_goes_on() -> None:
    """Nobody who asks waits; what was refused can be read until the next refusal."""
    world = world_of()

    async def scenario() -> None:
        trainer = world.trainer(train=refusing("too little"))
        await turned(world, trainer, 3)
        assert states(world) == ["training", "refused"]
        assert world.records("position") == []
        for name in ("one", "two"):
            ask(world, name)
            await turned(world, trainer, 3)
        first, second = world.records("position")
        assert (first.request, first.n_done, first.counts) == ("one", 0, [])
        assert second.request == "two"
        assert states(world) == ["training", "refused"] * 3
        assert trainer.counters()["interventions_refused"] == 3
        told = {(x.name, *x.labels.values()): x.value for x in trainer.series()}
        assert told["trainings", "m", "refused"] == 3
        assert told["trainings", "m", "published"] == 0
        took = told["training_duration_seconds", "m"]
        assert isinstance(took, SecondsHistogram)
        assert took.read()[0][-1] == ("+Inf", 3)

    asyncio.run(scenario())
    assert [each.said for each in world.records("status")][1::2] == ["too little"] * 3
    refusals = world.records("refusal")
    assert [each.said for each in refusals] == ["too little"] * 3
    assert [(x.reason, x.request, x.after) for x in refusals] == [
        ("count", "", ""), ("asked", "one", ""), ("asked", "two", ""),
    ]  # fmt: skip
    assert not world.trained()


def test_a_full_disk_is_a_refusal_in_words() -> None:
    """As is whatever else a training runs into."""
    world = world_of()

    def train(*_: Any, **__: Any) -> Any:
        raise OSError(28, "No space left on device")

    asyncio.run(turned(world, world.trainer(train=train)))
    assert "No space left" in world.records("status")[-1].said


def test_a_training_that_takes_too_much_memory_is_refused() -> None:
    """At its next word, and nothing stays of it."""
    world = world_of()
    few = msgspec.structs.replace(world.settings.train, memory_mb=64)
    world.settings = msgspec.structs.replace(world.settings, train=few)

    def train(*arguments: Any, on_progress: Any, **options: Any) -> Any:
        held = np.ones(100 << 17)
        on_progress(TrainingProgress("reading"))
        return train_model(*arguments, on_progress=on_progress, **options), held

    asyncio.run(turned(world, world.trainer(train=train)))
    said = world.records("status")[-1].said
    assert "must fit train.memory_mb, 64 MiB; it took" in said
    assert not world.trained()


def test_a_run_that_fits_no_record_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would fail again at every start."""
    monkeypatch.setitem(bounds.LARGEST, TRAINING, 300)
    world = GROWN().copied()
    asyncio.run(turned(world, world.trainer()))
    assert "must be at most 300 bytes" in world.records("status")[-1].said
    assert not world.trained()


def rolled_back(world: World, epoch: int) -> Snapshot:
    """Serve version 0 again, as the command does."""
    old = decode_snapshot(dict(world.read(SNAPSHOTS))[b"m/0.0"] or b"")
    new = deployed(old, epoch)
    note = deployment_record(new.intervention, START_MS)
    world.write(SNAPSHOTS, note, (b"m", encode_snapshot(new)))
    return new


def test_a_model_that_was_rolled_back_is_left_alone_until_somebody_asks() -> None:
    """Then it goes on from what is served, in the next epoch."""
    world = world_of()
    old = rolled_back(world, 1)

    async def scenario() -> None:
        trainer = world.trainer()
        await turned(world, trainer, 3)
        assert states(world) == ["left alone"]
        assert "`rankstream intervene m`" in world.records("status")[0].said
        ask(world, "one")
        await turned(world, trainer, 2)

    asyncio.run(scenario())
    assert states(world) == ["left alone", "training", "done"]
    new = decode_snapshot(world.trained()[-1])
    assert (new.epoch, new.parent) == (2, old.version)
    (run,) = world.records("run")
    assert (run.parent.epoch, run.parent.version) == (1, 0)


def test_a_rollback_while_it_trains_stays() -> None:
    """What was trained from another version is not published over it."""
    world = world_of()

    def train(*arguments: Any, **options: Any) -> Any:
        rolled_back(world, 1)
        return train_model(*arguments, **options)

    asyncio.run(turned(world, world.trainer(train=train), 3))
    assert [decode_snapshot(each).intervention for each in world.trained()] == ["m@1.0"]
    said = [each.said for each in world.records("status")]
    assert "went from 0.0 to 1.0 meanwhile" in said[1]
    assert states(world) == ["training", "refused", "left alone"]


def test_an_era_without_room_refuses_before_anything_is_read() -> None:
    """With the day on which it ends; by event time."""
    world = world_of()
    limits = msgspec.structs.replace(world.settings.limits, interventions=1)
    world.settings = msgspec.structs.replace(world.settings, limits=limits)
    asyncio.run(turned(world, world.trainer()))
    (status,) = world.records("status")
    assert "at most limits.interventions, 1" in status.said
    assert "2025-" in status.said
    assert [key for key, _ in world.read(TRAINING)] == [b"m/refusal", b"m/status"]


def test_a_model_without_a_version_is_refused_until_it_has_one() -> None:
    """It cannot be restarted from nothing."""
    world = world_of()
    first = dict(world.read(SNAPSHOTS))[b"m/0.0"]
    world.kafka.delete(SNAPSHOTS)
    world.kafka.create(SNAPSHOTS, 1)

    async def scenario() -> None:
        trainer = world.trainer()
        await turned(world, trainer, 2)
        assert states(world) == ["refused"]
        world.write(SNAPSHOTS, (b"m/0.0", first))
        await turned(world, trainer, 2)

    asyncio.run(scenario())
    assert states(world) == ["refused", "training", "done"]


@pytest.mark.parametrize(
    "value", [msgspec.msgpack.encode([SCHEMA, "x"]), msgspec.msgpack.encode([9])]
)
def test_what_another_release_wrote_ends_the_role(value: bytes) -> None:
    """Where the schedule stands is not known, so nothing may be trained."""
    world = world_of()
    world.write(TRAINING, (training_key("position", "m"), value))
    with pytest.raises(LogRefused, match="a record"):
        asyncio.run(turned(world, world.trainer()))


def test_a_long_training_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that others see that it lives."""
    monkeypatch.setattr(intervention, "BEAT_S", 0.01)
    world = world_of(epochs=200, patience=200, least_gain=0.0)
    asyncio.run(turned(world, world.trainer()))
    said = [each.said for each in world.records("status")]
    assert any("epoch" in each and "held-out DCG" in each for each in said)
    assert states(world)[-1] == "done"
    world.assert_whole()


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role, "LOOK_S", 0.01)
