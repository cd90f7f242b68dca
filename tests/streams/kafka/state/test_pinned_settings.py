"""Settings that a state was made under, and what becomes of a change."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from rankstream.settings import (
    DeliverySettings,
    LimitSettings,
    Settings,
    TimeSettings,
)
from streams.kafka.partitions.committer import Committer
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    StateRefused,
    decode_position,
    encode_position,
)
from streams.source_records import SourceRecords
from streams.topology import STAGES, StageKind, pinned_settings
from tests.streams.kafka.memory_log import (
    KIND,
    Acknowledged,
    MemoryLog,
    Topics,
    numbered,
)
from tests.streams.kafka.toy import STATE

PINNED = replace(KIND, pinned=("time.keep_ms", "limits.lists"))
BEFORE = Settings(time=TimeSettings(keep_ms=300_000))
AFTER = Settings(time=TimeSettings(keep_ms=600_000))

FREE = {
    "time.ahead_ms",  # what ingest accepts and when it calls a source idle is
    "time.idle_ms",  # written into the log, and nothing decides it again
    "ingestion.segment",
    "limits.documents",
    "exclude.users",
    "exclude.lists_per_minute",
    "exclude.minutes",
    "redis.keep_versions",  # which versions stay, not what is in them
    "models",  # each has a rule of its own in the learner's state
    "online",  # those of them that learn
    "deployed",  # and those that do not
    "experiments",  # each has an epoch
}
"""What stages read and may change."""


class Read:
    """Settings that note which of them are read."""

    def __init__(self, what: Any, name: str, names: set[str]) -> None:
        self._what, self._name, self._names = what, name, names

    def __getattr__(self, field: str) -> Any:
        found = getattr(self._what, field)
        name = f"{self._name}.{field}".lstrip(".")
        if isinstance(found, msgspec.Struct):
            return Read(found, name, self._names)
        if not callable(found):
            self._names.add(name)
        return found


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's body."""
    asyncio.run(work)


def committer_on(topics: Topics, settings: Settings) -> Committer:
    """A committer of a stage whose state depends on two settings."""
    return Committer(PINNED, 0, MemoryLog(topics), settings)


async def opened(topics: Topics, settings: Settings) -> Committer:
    """The same, with its partition."""
    committer = committer_on(topics, settings)
    await committer.open(None)
    return committer


async def committed(committer: Committer, offset: int) -> None:
    """Fold a record and write what came of it."""
    committer.fold(SourceRecords.of([numbered(offset)]), Acknowledged())
    assert await committer.commit(at_end_ms=0)


async def made(*, is_stopped: bool) -> Topics:
    """Topics of a stage that folded under the first settings."""
    topics = Topics()
    committer = await opened(topics, BEFORE)
    await committed(committer, 10)
    if is_stopped:
        await committer.commit_last()
    return topics


@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.name)
def test_what_a_stage_reads_is_pinned_or_may_change(kind: StageKind) -> None:
    """A setting that a stage begins to read is pinned, or said to be free."""
    names: set[str] = set()
    kind.build(Read(Settings(), "", names), 0)  # type: ignore[arg-type]
    width = {"learn": {"kafka.learner_partitions"}}  # of its source, which is compared
    # `Statistics.classes` reads the rest.
    classes = {"statistics.actions", "statistics.groups", "statistics.reward"}
    assert names - classes <= set(kind.pinned) | FREE | width.get(kind.name, set())
    assert set(kind.pinned) <= names | classes


def test_all_of_time_and_limits_is_pinned_but_what_only_ingest_decides() -> None:
    """`lead_ms` says which partitions are read first."""
    everything = {name for kind in STAGES for name in kind.pinned}
    names = {f"time.{each}" for each in TimeSettings.__struct_fields__}
    names |= {f"limits.{each}" for each in LimitSettings.__struct_fields__}
    assert names - everything == {
        "time.lead_ms", "time.ahead_ms", "time.idle_ms", "limits.documents"
    }  # fmt: skip
    for kind in STAGES:
        assert pinned_settings(kind, Settings()).keys() == set(kind.pinned)


@pytest.mark.parametrize("is_stopped", [True, False], ids=["stopped", "killed"])
def test_a_change_in_place_is_refused_by_name(is_stopped: bool) -> None:
    """Whether there is something to fold again or not; and it may be set back."""

    async def body() -> None:
        topics = await made(is_stopped=is_stopped)
        with pytest.raises(StateRefused) as refusal:
            await opened(topics, AFTER)
        assert str(refusal.value) == (
            "settings must be those that the state of toy[0] was made under; "
            "time.keep_ms was 300000, is 600000: set it back, or fold the log in a new "
            "--namespace"
        )
        await opened(topics, BEFORE)

    run(body())


def test_what_no_state_depends_on_may_change() -> None:
    """How often it commits, for one."""

    async def body() -> None:
        topics = await made(is_stopped=True)
        other = msgspec.structs.replace(
            BEFORE, delivery=DeliverySettings(commit_s=7.0), namespace=""
        )
        await opened(topics, other)

    run(body())


def test_a_position_without_settings_is_taken_once() -> None:
    """As of the release before; the next commit records them."""

    async def body() -> None:
        topics = await made(is_stopped=True)
        place = STATE, POSITION_KEY
        position = decode_position(topics.items[place])
        assert position.settings == {"time.keep_ms": 300_000, "limits.lists": 64}
        earlier = msgspec.structs.replace(position, settings={})
        topics.items[place] = encode_position(earlier)

        committer = await opened(topics, AFTER)
        await committed(committer, 11)
        assert topics.position.settings["time.keep_ms"] == 600_000
        with pytest.raises(StateRefused, match=r"time\.keep_ms was 600000"):
            await opened(topics, BEFORE)

    run(body())
