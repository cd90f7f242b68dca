"""Versions that go out to a share of sessions first: judged, raised, taken back."""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pytest
from aiokafka.errors import KafkaConnectionError

from rankstream.configuration.canary import CanarySettings
from rankstream.snapshots import Pointer, decode_snapshot, pointer_of
from rankstream.wire.models.canaries import Canary, decode_canary, encode_canary
from rankstream.wire.models.canary_reports import OUT, CanaryReport, decode_report
from rankstream.wire.models.changes import (
    CANARY,
    PROMOTED,
    ROLLED_BACK,
    UNDECIDED,
    WITHDRAWN,
    Change,
    History,
)
from rankstream.wire.models.deployments import decode_deployment, is_deployment
from rankstream.wire.models.training import Request, encode_record, training_key
from rankstream.wire.topics import EVALUATIONS, PREFERENCES, SNAPSHOTS, TRAINING
from streams.comparisons.canary_lists import StageSums, encoded, stage_key
from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.deployment.canary_change import Decided, removed
from streams.kafka.deployment.operator_change import Chosen, Wanted, change
from streams.kafka.training.canaries import Canaries
from streams.training.model_records import ModelRecords
from tests.streams.roles.trainer_world import (
    Killed,
    Mortal,
    Paused,
    World,
    settings_with,
    turned,
)
from tests.worker_process import PATIENCE_S

RULES = CanarySettings(
    shares=[0.1, 0.5],
    planned=2_000,
    least=200,
    margin=0.2,
    guardrails=["without click"],
)
GROUPS = np.arange(100)


@lru_cache(1)
def going_out() -> World:
    """A model whose first training goes out; not to be changed."""
    world = World(settings_with(canary=RULES))
    world.grow(700)
    asyncio.run(turned(world, world.trainer()))
    return world


def out_of(world: World) -> Canary | None:
    """The canary, where there is one."""
    values = [value for key, value in world.read(SNAPSHOTS) if key == b"m/canary"]
    return decode_canary(values[-1]) if values and values[-1] else None


def past(world: World) -> list[Change]:
    """The history, which has no gap."""
    found = History()
    for key, value in world.read(SNAPSHOTS):
        found.take(key, value)
    changes = found.changes.get("m", {})
    assert [*changes] == [*range(1, len(changes) + 1)]
    return [each for each in changes.values() if each is not None]


def noted(world: World) -> list[str]:
    """Names that were deployed, by their notes."""
    return [
        decode_deployment(value).intervention
        for key, value in world.read(SNAPSHOTS)
        if value is not None and is_deployment(key, value)
    ]


def counted(
    world: World, canary: Canary, rate: float, *, n_lists: int, served: float = 0.6
) -> None:
    """Lists of a stage: clicks per list of the canary, and of what is served.

    Both arms have the lists that the share means, and groups differ a little.
    """
    sums = np.zeros((100, 2, 3), np.int64)
    for arm, (share, mean) in enumerate(
        [(1.0 - canary.share, served), (canary.share, rate)]
    ):
        lists = round(n_lists / canary.share * share / 100)
        clicks = np.clip(np.round(lists * mean) + GROUPS % 3 - 1, 0, lists)
        sums[:, arm, 0] = lists
        sums[:, arm, 1] = lists - clicks
        sums[:, arm, 2] = clicks
    value = encoded(StageSums(("click",), sums))
    world.write(PREFERENCES, (stage_key(canary.tag, 0), value))


def reports(world: World) -> list[CanaryReport]:
    """What the monitor is told, oldest first."""
    found = world.read(EVALUATIONS)
    return [decode_report(value or b"") for key, value in found if key == b"m/canary"]


def look(world: World) -> None:
    """A trainer that begins, reads, and judges."""
    asyncio.run(turned(world, world.trainer()))


def kinds(world: World) -> Sequence[str]:
    """Kinds of the changes."""
    return [each.what for each in past(world)]


def test_a_training_goes_out_to_a_share_first() -> None:
    """With its note and its record, and nothing else is served."""
    world = going_out()
    canary = out_of(world)
    assert canary is not None
    assert (canary.stage, canary.share, canary.before) == (1, 0.1, "0.0")
    assert canary.rules == RULES.rules()
    assert canary.intervention.startswith("m@1.")
    snapshot = decode_snapshot(canary.envelope)
    assert snapshot.intervention == canary.intervention
    assert (snapshot.parent_epoch, snapshot.parent) == (0, 0)
    assert world.trained() == []
    (row,) = past(world)
    assert (row.what, row.before) == (CANARY, "0.0")
    assert f"m@{row.version}" == canary.intervention
    assert (row.evidence["stage"], row.evidence["share"]) == (1, 0.1)
    assert row.evidence["largest_loss"] == world.records("run")[0].largest_loss > 0.0
    assert noted(world) == [canary.intervention]
    (run,) = world.records("run")
    assert run.intervention == canary.intervention
    assert world.records("status")[-1].said.endswith(
        "goes out to 10% of sessions first"
    )


def test_what_is_asked_for_meanwhile_is_refused() -> None:
    """In words, which answers the request."""
    world = going_out().copied()
    request = encode_record(Request(1, "r", 0))
    world.write(TRAINING, (training_key("request", "m"), request))
    look(world)
    assert "must have one canary at a time" in world.records("refusal")[-1].said
    assert world.records("position")[-1].request == "r"
    assert len(world.records("run")) == 1


def test_what_is_due_meanwhile_waits() -> None:
    """A second version beside it would be judged by nobody; then it goes out."""
    world = World(settings_with(canary=RULES))
    world.grow(700)
    trainer = world.trainer()
    asyncio.run(turned(world, trainer))
    world.grow(200)
    asyncio.run(turned(world, trainer))
    assert len(world.records("run")) == 1
    canary = out_of(world)
    assert canary is not None
    counted(world, canary, 0.2, n_lists=1_000)
    asyncio.run(turned(world, trainer, 2))
    assert len(world.records("run")) == 2
    following = out_of(world)
    assert following is not None
    assert following.intervention.startswith("m@2.")
    assert kinds(world) == [CANARY, WITHDRAWN, CANARY]


def test_one_that_is_worse_is_taken_back_at_once() -> None:
    """With the figures, and what was served stays."""
    world = going_out().copied()
    canary = out_of(world)
    assert canary is not None
    counted(world, canary, 0.2, n_lists=1_000)
    trainer = world.trainer()
    asyncio.run(turned(world, trainer))
    told = {tuple(x.labels.values()): x.value for x in trainer.series()}
    assert (told["m", "withdrawn"], told["m", "raised"]) == (1, 0)
    assert trainer.counters()["canaries_changed"] == 1
    assert out_of(world) is None
    *_, row = past(world)
    assert (row.what, f"m@{row.version}") == (WITHDRAWN, canary.intervention)
    assert row.why.startswith("worse after 1,000 lists of the canary: clicks differ by")
    assert row.by.startswith("train ")
    assert row.evidence["low"] < row.evidence["difference"] < row.evidence["high"] < 0.0
    assert (row.evidence["canary_lists"], row.evidence["served_lists"]) == (
        1_000,
        9_000,
    )
    assert "without click low" in row.evidence
    assert [each.state for each in reports(world)][-1] == WITHDRAWN
    last = reports(world)[-1]
    assert (last.canary, last.stage, last.stages) == (canary.intervention, 1, 2)
    assert [each.name for each in last.differences] == ["clicks", "without click"]
    assert last.differences[0].interval == (row.evidence["low"], row.evidence["high"])
    assert last.largest_loss == world.records("run")[0].largest_loss
    assert world.trained() == []


def test_one_that_is_no_worse_goes_on_to_all_under_its_name() -> None:
    """By the next share, whose lists count anew; the last change serves it to all."""
    world = going_out().copied()
    first = out_of(world)
    assert first is not None
    counted(world, first, 0.6, n_lists=1_000)
    look(world)
    second = out_of(world)
    assert second is not None
    assert (second.stage, second.share) == (2, 0.5)
    assert second.envelope == first.envelope
    look(world)
    assert out_of(world) == second  # `least` lists of this stage lack
    counted(world, second, 0.62, n_lists=1_000)
    look(world)
    assert out_of(world) is None
    (envelope,) = world.trained()
    assert envelope == first.envelope
    assert kinds(world) == [CANARY, CANARY, PROMOTED]
    rows = past(world)
    assert {each.version for each in rows} == {rows[0].version}
    assert rows[1].evidence["share"] == 0.5
    assert {*noted(world)} == {first.intervention}
    told = [(each.state, each.stage) for each in reports(world)]
    assert told[-1] == (PROMOTED, 2)
    assert (OUT, 2) in told


def test_one_that_nobody_can_tell_ends_by_what_was_planned() -> None:
    """And says so."""
    world = going_out().copied()
    canary = out_of(world)
    assert canary is not None
    counted(world, canary, 0.42, n_lists=2_000, served=0.6)
    sums = np.zeros((100, 2, 3), np.int64)
    # A few groups click all, others nothing.
    for arm, lists in enumerate((180, 20)):
        sums[:, arm, 0] = lists
        sums[::3, arm, 2] = lists
        sums[:, arm, 1] = lists - sums[:, arm, 2]
    sums[::6, 1, 2] = 0
    sums[::6, 1, 1] = 20
    sums[1::6, 1, 2] = 20
    sums[1::6, 1, 1] = 0
    value = encoded(StageSums(("click",), sums))
    world.write(PREFERENCES, (stage_key(canary.tag, 0), value))
    look(world)
    assert kinds(world) == [CANARY, UNDECIDED]
    assert "2,000 were planned" in past(world)[-1].why
    assert out_of(world) is None


def test_stages_that_never_were_count_nowhere() -> None:
    """Whatever events name."""
    world = going_out().copied()
    canary = out_of(world)
    assert canary is not None
    for tag in (f"{canary.intervention}/2", f"{canary.intervention}/0", "m@9.9/1"):
        made = encoded(StageSums(("click",), np.full((100, 2, 3), 50)))
        world.write(PREFERENCES, (stage_key(tag, 0), made))
    look(world)
    assert out_of(world) == canary
    assert kinds(world) == [CANARY]


def test_nothing_is_judged_before_all_was_read() -> None:
    """Older values of a key may stand before the last."""
    world = going_out().copied()
    canary = out_of(world)
    assert canary is not None
    counted(world, canary, 0.2, n_lists=1_000)

    async def half_read() -> None:
        trainer = world.trainer()
        for source in trainer.sources:
            batch = CommittedBatch([*world.read(source.topic)], at_end=False)
            trainer.take(source, batch)
        await trainer.turn(asyncio.Event())

    asyncio.run(half_read())
    assert out_of(world) == canary


def test_two_trainers_change_it_once() -> None:
    """The second finds another stage than it judged, and judges that."""
    world = going_out().copied()
    canary = out_of(world)
    assert canary is not None
    counted(world, canary, 0.6, n_lists=1_000)

    async def scenario() -> None:
        point = Paused(1)
        earlier = asyncio.create_task(turned(world, world.trainer(point)))
        await point.reached.wait()
        await turned(world, world.trainer())
        point.go_on.set()
        await earlier

    asyncio.run(scenario())
    assert kinds(world) == [CANARY, CANARY]
    second = out_of(world)
    assert second is not None
    assert second.stage == 2


@pytest.mark.parametrize("where", ["_tell", "_change"])
def test_a_broker_that_fails_once_holds_no_judgement_up(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what is known already, nor what comes while a training goes on."""
    world = going_out().copied()
    canary = out_of(world)
    assert canary is not None
    counted(world, canary, 0.2, n_lists=1_000)
    monkeypatch.setattr("streams.kafka.training.canaries.LOOK_S", 0.01)
    whole, failures = getattr(Canaries, where), [KafkaConnectionError()]

    async def once(*given: object) -> None:
        if failures:
            raise failures.pop()
        await whole(*given)

    monkeypatch.setattr(Canaries, where, once)

    async def scenario() -> None:
        trainer, done = world.trainer(), asyncio.Event()
        world.tell(trainer)
        going_on = asyncio.create_task(trainer._canaries.run(done))
        while out_of(world) is not None:
            await asyncio.sleep(0.01)
        done.set()
        await going_on

    asyncio.run(asyncio.wait_for(scenario(), PATIENCE_S))
    assert not failures
    assert kinds(world) == [CANARY, WITHDRAWN]


def test_lists_dealt_otherwise_than_meant_take_it_back() -> None:
    """Whatever the clicks say."""
    world = going_out().copied()
    canary = out_of(world)
    assert canary is not None
    sums = np.zeros((100, 2, 3), np.int64)
    sums[:, :, 0] = sums[:, :, 2] = 50
    value = encoded(StageSums(("click",), sums))
    world.write(PREFERENCES, (stage_key(canary.tag, 0), value))
    look(world)
    assert kinds(world) == [CANARY, WITHDRAWN]
    assert "sessions are dealt otherwise" in past(world)[-1].why


def test_what_was_read_before_counts_no_more_when_all_is_read_again() -> None:
    """After an outage: older values come first, and what is gone does not come."""
    world = going_out().copied()
    canary = out_of(world)
    assert canary is not None
    counted(world, canary, 0.2, n_lists=1_000)

    async def read_again() -> None:
        trainer = world.trainer()
        world.tell(trainer)
        source = next(x for x in trainer.sources if x.topic == PREFERENCES)
        trainer.take(source, CommittedBatch([], at_end=False, is_first=True))
        await trainer.turn(asyncio.Event())
        assert out_of(world) == canary
        trainer.take(source, CommittedBatch([], at_end=True, is_settled=True))
        await trainer.turn(asyncio.Event())

    asyncio.run(read_again())
    assert out_of(world) == canary


@pytest.mark.parametrize(
    "fault",
    [
        {"intervention": "x@1.625"}, {"stage": 2_000_000}, {"stage": 0},
        {"envelope": b"junk"}, {"schema": 9},
    ],
    ids=str,
)  # fmt: skip
def test_one_that_is_damaged_is_judged_by_nobody_and_can_be_taken_away(
    fault: dict[str, Any],
) -> None:
    """Nothing is written for it, no training goes out beside it."""
    world = going_out().copied()
    canary = out_of(world)
    assert canary is not None
    damaged = encode_canary(msgspec.structs.replace(canary, **fault))
    world.write(SNAPSHOTS, (b"m/canary", damaged))
    counted(world, canary, 0.2, n_lists=1_000)
    n_records = len(world.read(SNAPSHOTS))
    request = encode_record(Request(1, "r", 0))
    world.write(TRAINING, (training_key("request", "m"), request))
    look(world)
    assert len(world.read(SNAPSHOTS)) == n_records
    assert "one that cannot be read is going out" in world.records("refusal")[-1].said
    records = ModelRecords(frozenset({"m"}))
    for key, value in world.read(SNAPSHOTS):
        records.take_snapshot(key, value)
    assert records.unreadable_canaries == {"m"}
    _, outputs = removed(records, "m", Decided("ann"))
    world.write(SNAPSHOTS, *((x.key or b"", x.value) for x in outputs))
    assert kinds(world) == [CANARY, WITHDRAWN]
    assert out_of(world) is None


@pytest.mark.parametrize(("rate", "what"), [(0.2, WITHDRAWN), (0.6, CANARY)])
def test_killed_anywhere_the_next_trainer_does_the_same(rate: float, what: str) -> None:
    """All of a change is there or nothing, and none is there twice."""
    started = going_out().copied()
    canary = out_of(started)
    assert canary is not None
    counted(started, canary, rate, n_lists=1_000)
    count = Mortal(10**9)
    asyncio.run(turned(started.copied(), started.copied().trainer(count)))

    async def scenario(at: int) -> World:
        world, point = started.copied(), Mortal(at)
        dying = asyncio.create_task(turned(world, world.trainer(point)))
        await asyncio.wait(
            {dying, asyncio.create_task(point.dead.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        dying.cancel()
        with contextlib.suppress(Killed, asyncio.CancelledError):
            await dying
        return world

    n_whole = 0
    for at in range(count.n):
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)
        try:
            world = loop.run_until_complete(scenario(at))
        finally:
            loop.close()
        is_done = kinds(world) == [CANARY, what]
        assert is_done or kinds(world) == [CANARY]
        assert (out_of(world) == canary) is not is_done
        n_whole += is_done
        look(world)
        assert kinds(world) == [CANARY, what]
    assert 0 < n_whole < count.n


def test_an_operator_who_changes_what_is_served_ends_it() -> None:
    """Wherever the trainer stands that raises its share: one of them writes first."""
    started = going_out().copied()
    canary = out_of(started)
    assert canary is not None
    counted(started, canary, 0.6, n_lists=1_000)
    count = Paused(0)
    asyncio.run(turned(started.copied(), started.copied().trainer(count)))
    seen = set()

    async def scenario(point: Paused) -> World:
        world = started.copied()
        judging = asyncio.create_task(turned(world, world.trainer(point)))
        await asyncio.wait(
            {judging, asyncio.create_task(point.reached.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        first = decode_snapshot(dict(world.read(SNAPSHOTS))[b"m/0.0"] or b"")
        wanted = Wanted("m", Pointer(0, 0), "ann", "enough")
        chosen = Chosen(first, ROLLED_BACK)
        made, _ = await change(
            world.settings, world.cluster(), wanted, lambda _: chosen
        )
        assert made.evidence == {"withdrew": canary.intervention}
        point.go_on.set()
        await judging
        return world

    for at in range(1, count.n + 1):
        world = asyncio.run(scenario(Paused(at)))
        seen.add(tuple(kinds(world)))
        assert out_of(world) is None
        (envelope,) = world.trained()
        # No version has the epoch of one that was withdrawn.
        assert pointer_of(decode_snapshot(envelope)) == Pointer(2, 0)
    assert seen == {(CANARY, ROLLED_BACK), (CANARY, CANARY, ROLLED_BACK)}
