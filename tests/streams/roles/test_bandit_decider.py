"""The role `decide` with a bandit: it begins at once, and goes on under one name."""

import asyncio
import logging
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.configuration.bandits import BanditSettings
from rankstream.configuration.curves import PositionCurve
from rankstream.settings import LimitSettings, Settings
from rankstream.snapshots import encode_snapshot, rolled_back
from rankstream.wire.decision_shards import digest_of, pack_shards
from rankstream.wire.decisions import (
    Decision,
    Manifest,
    decode_decision,
    decode_key,
    decode_manifest,
    entry_of,
    manifest_key,
)
from rankstream.wire.models.deployments import is_deployment
from rankstream.wire.topics import DECISIONS, SNAPSHOTS, STATISTICS
from streams.roles.decider import Decider
from tests.streams.decisions.bandit_shop import NAME, BanditShop
from tests.streams.roles.trainer_world import World, settings_with, turned

PIE = BanditSettings(model="m", length=3, every_s=1e-9)
SELDOM = msgspec.structs.replace(PIE, every_s=3_600.0)


def settings_of(plan: BanditSettings, **changes: Any) -> Settings:
    """A trained model whose examination is known, and a bandit."""
    settings = settings_with(**changes)
    return msgspec.structs.replace(settings, bandits={NAME: plan})


@pytest.fixture(scope="module")
def counted() -> list[tuple[bytes, bytes | None]]:
    """Statistics of lists of the bandit, of two queries."""
    rng = np.random.default_rng(8)
    shop = BanditShop(PIE, rng.random((2, 6)))
    shop.look()
    shop.show(80, rng)
    shop.pipeline.end()
    shop.statistics()
    return [*shop.records.items()]


def standing(world: World) -> tuple[Manifest, dict[str, Decision]]:
    """What the topic says, and that its digests say the same."""
    found = dict(world.read(DECISIONS))
    manifest = decode_manifest(found.pop(manifest_key(NAME)) or b"")
    decisions = {
        decode_key(key).query: decode_decision(value)
        for key, value in found.items()
        if value is not None
    }
    shards = pack_shards(entry_of(query, x) for query, x in decisions.items())
    assert [digest_of(each) for each in shards] == manifest.shards
    return manifest, decisions


def n_names(world: World) -> int:
    """Interventions that were noted."""
    notes = {
        key for key, value in world.read(SNAPSHOTS) if is_deployment(key, value or b"")
    }
    return len(notes)


def turn(world: World, decider: Decider | None = None) -> Decider:
    """A turn of the role, as if it had waited after its last try."""
    own = decider or Decider(world.settings, world.cluster())
    own._next_s.clear()
    asyncio.run(turned(world, own))
    return own


def test_it_begins_at_once_and_keeps_its_name(
    counted: list[tuple[bytes, bytes | None]],
) -> None:
    """Before anything is counted, so that lists bear it; it uses up no more names."""
    world = World(settings_of(PIE))
    limits = LimitSettings(interventions=4)
    world.settings = msgspec.structs.replace(world.settings, limits=limits)
    own = turn(world)
    manifest, decisions = standing(world)
    assert (manifest.intervention, decisions) == (f"{NAME}@1.0", {})
    assert (manifest.bandit, n_names(world)) == ("pie, lists of 3", 1)
    world.write(STATISTICS, *counted)
    turn(world, own)
    manifest, decisions = standing(world)
    assert (manifest.number, manifest.intervention) == (2, f"{NAME}@1.0")
    assert {*decisions} == {"q0", "q1"}
    assert [each.lists for each in decisions.values()] == [40, 40]
    assert any(each.slot for each in decisions.values())
    for _ in range(4):
        asyncio.run(turned(world, Decider(world.settings, world.cluster())))
    assert standing(world)[0].number == 2  # as nothing more is counted
    assert n_names(world) == 1
    assert own.counters()["decisions_in_force"] == 2


def test_a_rollback_and_other_settings_are_followed_at_once(
    counted: list[tuple[bytes, bytes | None]],
) -> None:
    """Each under another name, as other lists were shown before."""
    world = World(settings_of(SELDOM))
    world.write(STATISTICS, *counted)
    own = turn(world, turn(world))
    assert standing(world)[0].number == 1
    rolled = rolled_back(own._served.newest["m"], 1)
    world.write(SNAPSHOTS, (b"m", encode_snapshot(rolled)))
    turn(world)
    second = standing(world)[0]
    assert (second.stands_on, second.number) == ("1.0", 2)
    cascade = BanditSettings(model="m", policy="cascade", every_s=3_600.0)
    world.settings = settings_of(cascade)
    turn(world)
    third, decisions = standing(world)
    assert (third.bandit, third.number) == ("cascade", 3)
    assert {each.policy for each in decisions.values()} == {"cascade"}
    assert n_names(world) == 3


def test_another_model_is_followed_at_once() -> None:
    """Its rankers would refuse what is of the one before."""
    world = World(settings_of(SELDOM))
    served = turn(world)._served.newest["m"]
    other = msgspec.structs.replace(served, model="other")
    world.write(SNAPSHOTS, (b"other", encode_snapshot(other)))
    settings = settings_of(msgspec.structs.replace(SELDOM, model="other"))
    models = {**settings.models, "other": settings.models["m"]}
    world.settings = msgspec.structs.replace(settings, models=models)
    turn(world)
    manifest = standing(world)[0]
    assert (manifest.model, manifest.number) == ("other", 2)


def test_without_the_curve_of_its_model_it_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And writes nothing: rankers go on without it."""
    settings = settings_of(PIE, examination=[])
    settings = msgspec.structs.replace(settings, curves={"eyes": PositionCurve()})
    world = World(settings)
    with caplog.at_level(logging.WARNING, "rankstream.decider"):
        own = turn(world)
    assert "'eyes', the curve of its model, has no version yet" in caplog.text
    assert own.counters()["rewrites_refused"] == 1
    assert not world.read(DECISIONS)
