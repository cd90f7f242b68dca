"""The role `decide`: when it rewrites, what it writes, and that nobody sees half."""

import asyncio
import contextlib
import logging
import time
from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.configuration.decisions import DecisionSettings
from rankstream.settings import LimitSettings, ModelSettings, Settings
from rankstream.snapshots import decode_snapshot, encode_snapshot, rolled_back
from rankstream.wire.decision_shards import digest_of, pack_shards
from rankstream.wire.decisions import (
    GENERAL,
    LOGGING,
    OWN,
    Decision,
    Manifest,
    decode_decision,
    decode_key,
    decode_manifest,
    entry_of,
    manifest_key,
)
from rankstream.wire.models.deployments import decode_deployment
from rankstream.wire.topics import DECISIONS, SNAPSHOTS
from streams.decisions import evidence as evidence_module
from streams.decisions import inputs
from streams.roles import decider as module
from streams.roles.decider import Decider
from tests.clicked_lists import N_FEATURES, relevance_of
from tests.fakes.points import Point, straight_on
from tests.streams.roles.trainer_world import (
    Killed,
    Mortal,
    Paused,
    World,
    settings_with,
    turned,
)

RULE = DecisionSettings(general="m", logging="safe", every_s=1e-9)
N_QUERIES = 2


def settings_of(rule: DecisionSettings = RULE, **changes: object) -> Settings:
    """A trained model, a safe one, and a rule over both."""
    settings = settings_with()
    safe = ModelSettings(features=N_FEATURES, versions="promoted")
    return msgspec.structs.replace(
        settings,
        models={**settings.models, "safe": safe},
        decisions={"lists": rule},
        **changes,
    )


@cache
def counted() -> World:
    """Enough lists of two queries for both to be decided; not to be changed."""
    world = World(settings_of())
    world.grow(2_400, n_queries=N_QUERIES)
    return world


def decider(world: World, point: Point = straight_on) -> Decider:
    """One whose clients stop at points."""
    return Decider(world.settings, world.cluster(point))


class Standing:
    """What the topic says, the last of each key."""

    def __init__(self, world: World) -> None:
        found = dict(world.read(DECISIONS))
        value = found.pop(manifest_key("lists"), None)
        self.manifest: Manifest | None = value and decode_manifest(value)  # type: ignore[assignment]
        self.decisions: dict[str, Decision] = {
            decode_key(key).query: decode_decision(each)
            for key, each in found.items()
            if each is not None
        }

    def assert_whole(self) -> None:
        """Digests of the manifest are those of the decisions beside it."""
        assert self.manifest is not None
        entries = [entry_of(k, x) for k, x in self.decisions.items() if x.order]
        digests = [digest_of(each) for each in pack_shards(entries)]
        assert digests == self.manifest.shards
        assert self.manifest.n_decisions == len(entries)


def test_each_query_gets_what_its_users_like() -> None:
    """With the safe model for all others, under a name that is noted."""
    world = counted().copied()
    asyncio.run(turned(world, decider(world)))
    found = Standing(world)
    found.assert_whole()
    manifest = found.manifest
    assert manifest is not None
    assert (manifest.number, manifest.default) == (1, "safe@0.0")
    assert decode_snapshot(manifest.envelope).model == "safe"
    assert found.decisions.keys() == {f"q{n}" for n in range(N_QUERIES)}
    for query, each in found.decisions.items():
        likes = relevance_of(int(query[1:]))
        best, worst = likes[each.order[0]], likes[each.order[-1]]
        assert best >= sorted(likes)[-2]
        assert worst <= sorted(likes)[1]
        assert each.policy == OWN
        own = [x for x in each.evidence if x.policy == OWN]
        assert [x.against for x in own] == [GENERAL, LOGGING]
        assert all(0.0 < x.lower < x.estimate < x.upper for x in own)
    note = dict(world.read(SNAPSHOTS))[f"{manifest.intervention}/deployed".encode()]
    # Groups of the selection alone are those that nothing came from.
    assert decode_deployment(note or b"").groups == [*range(13)]


def test_nothing_is_written_while_nothing_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what is decided as before keeps the record that it has."""
    world = counted().copied()
    own = decider(world)
    asyncio.run(turned(world, own))
    n_before = len(world.read(DECISIONS))
    monkeypatch.setattr(module, "RETRY_S", 0.0)
    asyncio.run(turned(world, own, 2))
    assert own.counters()["rewrites_written"] == 1
    assert len(world.read(DECISIONS)) == n_before
    later = Decider(world.settings, world.cluster())
    monkeypatch.setattr(later, "_state_of", lambda _: ("0.0", 1))
    asyncio.run(turned(world, later))
    (key, _), *more = world.read(DECISIONS)[n_before:]
    assert (key, more) == (manifest_key("lists"), [])
    Standing(world).assert_whole()


def test_a_rewrite_waits_until_it_is_time() -> None:
    """However much is counted meanwhile; the first one waits for nothing."""
    world = counted().copied()
    world.settings = settings_of(msgspec.structs.replace(RULE, every_s=3_600.0))
    asyncio.run(turned(world, decider(world)))
    began = Standing(world).manifest
    asyncio.run(turned(world, decider(world)))
    assert Standing(world).manifest == began
    assert began is not None
    assert abs(began.at_ms - time.time() * 1_000) < 60_000


def test_a_rollback_is_followed_at_once() -> None:
    """Rankers use nothing of a rewrite that stands on another epoch."""
    world = counted().copied()
    world.settings = settings_of(msgspec.structs.replace(RULE, every_s=3_600.0))
    own = decider(world)
    asyncio.run(turned(world, own))
    served = own._served.newest["m"]
    rolled = rolled_back(served, 1)
    world.write(SNAPSHOTS, (b"m", encode_snapshot(rolled)))
    own._next_s.clear()
    asyncio.run(turned(world, own))
    found = Standing(world)
    found.assert_whole()
    assert found.manifest is not None
    assert (found.manifest.number, found.manifest.stands_on) == (2, "1.0")


def test_a_rollback_of_the_safe_model_is_followed_at_once() -> None:
    """It is what a rewrite brings as its default."""
    world = counted().copied()
    world.settings = settings_of(msgspec.structs.replace(RULE, every_s=3_600.0))
    own = decider(world)
    asyncio.run(turned(world, own))
    rolled = rolled_back(own._served.newest["safe"], 1)
    world.write(SNAPSHOTS, (b"safe", encode_snapshot(rolled)))
    for _ in range(2):
        own._next_s.clear()
        asyncio.run(turned(world, own))
    found = Standing(world)
    found.assert_whole()
    assert found.manifest is not None
    assert (found.manifest.number, found.manifest.default) == (2, "safe@1.0")


def test_of_few_names_a_quarter_is_left_to_others() -> None:
    """So that decisions are made at all."""
    world = counted().copied()
    world.settings = settings_of(limits=LimitSettings(interventions=8))
    own = decider(world)
    asyncio.run(turned(world, own))
    assert own.counters()["rewrites_written"] == 1


def test_killed_at_every_point_it_wrote_all_or_nothing() -> None:
    """And the next one goes on."""
    whole, counting = counted().copied(), Mortal(1 << 30)
    asyncio.run(turned(whole, decider(whole, counting)))
    assert counting.n > 10

    async def scenario(at: int) -> World:
        world, point = counted().copied(), Mortal(at)
        dying = asyncio.create_task(turned(world, decider(world, point)))
        await asyncio.wait(
            {dying, asyncio.create_task(point.dead.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        dying.cancel()
        with contextlib.suppress(Killed, asyncio.CancelledError):
            await dying
        if world.read(DECISIONS):
            Standing(world).assert_whole()
        await turned(world, decider(world))
        return world

    for at in range(counting.n):
        loop = asyncio.new_event_loop()
        # What is left of a process that was killed has nobody to tell.
        loop.set_exception_handler(lambda *_: None)
        try:
            world = loop.run_until_complete(scenario(at))
        finally:
            loop.close()
        Standing(world).assert_whole()
        assert Standing(world).decisions == Standing(whole).decisions, at


def test_of_two_at_once_one_writes() -> None:
    """Wherever the first one stands when the second begins."""
    counting = Mortal(1 << 30)
    world = counted().copied()
    asyncio.run(turned(world, decider(world, counting)))

    async def both(world: World, at: int) -> tuple[Decider, Decider]:
        point = Paused(at)
        first, second = decider(world, point), decider(world)
        slow = asyncio.create_task(turned(world, first))
        await asyncio.wait(
            {slow, asyncio.create_task(point.reached.wait())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        await turned(world, second)
        point.go_on.set()
        await slow
        return first, second

    for at in range(1, counting.n + 1, 3):
        world = counted().copied()
        first, second = asyncio.run(both(world, at))
        written = [x.counters()["rewrites_written"] for x in (first, second)]
        assert sum(written) >= 1
        found = Standing(world)
        found.assert_whole()
        assert found.manifest is not None
        assert found.manifest.number == sum(written)


def test_what_cannot_be_decided_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """With no model to compare with nothing is even begun."""
    world = counted().copied()
    world.settings = settings_of(limits=LimitSettings(interventions=2))
    with caplog.at_level(logging.WARNING, "rankstream.decider"):
        own = decider(world)
        asyncio.run(turned(world, own))
    assert "an era must have at most limits.interventions, 2" in caplog.text
    assert own.counters()["rewrites_refused"] == 1
    told = {each.labels["outcome"]: each.value for each in own.series()}
    assert told == {"written": 0, "refused": 1, "fenced": 0}
    assert Standing(world).manifest is None
    world.settings = msgspec.structs.replace(
        settings_of(), models={"m": settings_of().models["m"]}
    )
    rule = msgspec.structs.replace(RULE, logging="gone")
    world.settings = msgspec.structs.replace(world.settings, decisions={"lists": rule})
    own = decider(world)
    asyncio.run(turned(world, own))
    assert not any(own.counters().values())


def test_a_rewrite_that_takes_too_much_memory_is_refused(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In words, and what is served stays."""
    world = counted().copied()
    world.settings = settings_of(msgspec.structs.replace(RULE, memory_mb=64))
    held: list[Any] = []

    def large(*arguments: Any) -> Any:
        held.append(np.ones(100 << 17))
        return evidence_module.evidence_of(*arguments)

    monkeypatch.setattr(inputs, "evidence_of", large)
    own = decider(world)
    with caplog.at_level(logging.WARNING, "rankstream.decider"):
        asyncio.run(turned(world, own))
    assert "must fit decisions.lists.memory_mb, 64 MiB; it took" in caplog.text
    assert own.counters()["rewrites_refused"] == 1
    assert Standing(world).manifest is None


def test_only_the_newest_sets_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that left goes from the topic, and is counted."""
    world = counted().copied()
    asyncio.run(turned(world, decider(world)))
    world.settings = settings_of(msgspec.structs.replace(RULE, queries=1))
    own = decider(world)
    monkeypatch.setattr(own, "_state_of", lambda _: ("0.0", 1))
    asyncio.run(turned(world, own))
    found = Standing(world)
    found.assert_whole()
    assert len(found.decisions) == 1
    assert found.manifest is not None
    assert found.manifest.n_left_out == N_QUERIES - 1
