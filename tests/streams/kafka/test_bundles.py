"""What goes through Faust together, and that each record of it is still a record."""

import asyncio
import inspect
import itertools
from types import SimpleNamespace
from typing import Any

import pytest
from faust.transport.consumer import Consumer as FaustConsumer
from faust.types import TP
from hypothesis import given
from hypothesis import strategies as st

from rankstream.settings import Settings
from streams.kafka.app import TURN_BYTES, TURNS, StageApp, build_app
from streams.kafka.bundles import (
    BYTES,
    RECORD_BYTES,
    bundled,
    sizes_of,
)
from streams.kafka.clients import Cluster
from streams.kafka.partitions.process import TopicPartition
from streams.kafka.transport import Bundle
from streams.stage import SourceRecord
from streams.topology import STAGES

PLACE = TP("clicks", 0)
SIZES = st.sampled_from([0, 1, 200, BYTES // 3, BYTES - RECORD_BYTES, BYTES, 3 * BYTES])


def fetched(offset: int, n_bytes: int = 0, **fields: Any) -> Any:
    """A record as the client gives it."""
    plain = {"key": None, "headers": (), "timestamp": 1_000, "timestamp_type": 1}
    named = {"topic": PLACE.topic, "partition": PLACE.partition, "offset": offset}
    value = {"value": bytes(n_bytes)}
    return SimpleNamespace(**(named | value | plain | fields))


@given(st.lists(SIZES, max_size=30), st.integers(0, 2_500))
def test_records_are_cut_in_their_order_and_within_bounds(
    sizes: list[int], n_small: int
) -> None:
    """Each once; only a record that is too large alone is beyond the bytes."""
    records = [fetched(n, size) for n, size in enumerate(sizes + [0] * n_small)]
    bundles = list(bundled(records))
    assert [one for bundle in bundles for one in bundle.records] == records
    for bundle in bundles:
        assert bundle.records
        assert bundle.n_bytes == sum(sizes_of(bundle.records))
        assert len(bundle.records) == 1 or bundle.n_bytes <= BYTES
    for one, other in itertools.pairwise(bundles):
        weight = one.n_bytes + sizes_of(other.records)[0]
        assert weight > BYTES


def test_what_waits_is_counted_with_its_key_and_headers() -> None:
    """A record may be all key; headers may have no content."""
    headers = (("a", None), ("b", b"c"))
    records = [fetched(1, 10), fetched(1, 10, key=b"k" * 100, headers=headers)]
    plain, heavy = sizes_of(records)
    assert plain == RECORD_BYTES + 10
    assert heavy >= plain + 100 + 3


def bundle_of(*records: Any) -> Bundle:
    """These records, as a message to Faust of generation 3."""
    (together,) = bundled(records)
    return Bundle(together, PLACE, 3)


def test_faust_takes_a_bundle_to_be_read_up_to_its_last_record() -> None:
    """It knows messages by their offset: the next bundle must be beyond it."""
    bundle = bundle_of(fetched(5), fetched(9))
    assert (bundle.offset, bundle.tp, bundle.generation_id) == (9, PLACE, 3)
    assert (bundle.key, bundle.value) == (None, None)
    source = inspect.getsource(FaustConsumer._drain_messages)
    assert "if r_offset is None or offset >= r_offset" in source
    assert "to_message(tp, record)" in inspect.getsource(FaustConsumer.getmany)


class Desk:
    """In place of an assignment: takes records, and may be full before some."""

    def __init__(self, full_before: int = -1) -> None:
        self.taken: list[tuple[list[SourceRecord], Any, bool]] = []
        self.n_waits = 0
        self._full_before = full_before

    def take(
        self,
        place: TopicPartition,
        records: list[SourceRecord],
        event: Any,
        *,
        is_current: bool,
    ) -> bool:
        """Take them, or have them wait once."""
        if records[0].offset == self._full_before and not self.n_waits:
            return False
        assert place == TopicPartition(*PLACE)
        self.taken.append((records, event, is_current))
        return True

    async def turn_of(self, _: TopicPartition) -> None:
        """Another turn."""
        self.n_waits += 1


def folded(
    monkeypatch: pytest.MonkeyPatch, desk: Desk, *bundles: Bundle, generation: int = 3
) -> tuple[StageApp, list[Any]]:
    """An application whose agent has folded bundles; its events."""
    kind = next(kind for kind in STAGES if kind.source == PLACE.topic)
    settings = Settings()
    app = build_app(settings, "ingest", [kind], Cluster("", {}, {}))
    app.assignment = desk  # type: ignore[assignment]
    waited: list[int] = []
    consumer = SimpleNamespace(taken=waited.append)
    monkeypatch.setattr(StageApp, "consumer", consumer)
    monkeypatch.setattr(StageApp, "consumer_generation_id", generation, raising=False)
    events = [SimpleNamespace(message=bundle) for bundle in bundles]

    class Stream:
        def noack(self) -> Any:
            return self

        async def events(self) -> Any:
            for event in events:
                yield event

    asyncio.run(app.fold_events(Stream(), kind))
    assert waited == [bundle.n_bytes for bundle in bundles]
    return app, events


def test_records_are_folded_and_acknowledged_with_their_bundle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With its own offset, time, key and headers."""
    header = ("a", b"b")
    first = [fetched(5), fetched(6, key=b"k", headers=(header,), timestamp=7)]
    desk = Desk()
    _, events = folded(monkeypatch, desk, bundle_of(*first), bundle_of(fetched(9)))
    (one, other), last = (records for records, _, _ in desk.taken)
    assert one == SourceRecord("clicks", 0, 5, 1_000, None, b"", ())
    assert other == SourceRecord("clicks", 0, 6, 7, b"k", b"", (header,))
    assert [record.offset for record in last] == [9]
    assert [event for _, event, _ in desk.taken] == events
    assert all(is_current for _, _, is_current in desk.taken)
    # What waits for a commit is the stage's alone.
    assert not any(event.message.records for event in events)


def offsets(desk: Desk) -> list[list[int]]:
    """What the desk has taken, and what of it together."""
    return [[record.offset for record in records] for records, _, _ in desk.taken]


def test_a_bundle_waits_whole_where_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What comes before is folded."""
    desk = Desk(full_before=6)
    folded(monkeypatch, desk, bundle_of(fetched(5)), bundle_of(fetched(6), fetched(7)))
    assert desk.n_waits == 1
    assert offsets(desk) == [[5], [6, 7]]


def test_a_bundle_of_before_a_rebalance_is_told_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where partitions are assigned anew while it waits."""
    desk = Desk(full_before=6)

    async def turn_of(_: TopicPartition) -> None:
        desk.n_waits += 1
        monkeypatch.setattr(StageApp, "consumer_generation_id", 4, raising=False)

    desk.turn_of = turn_of  # type: ignore[method-assign]
    folded(monkeypatch, desk, bundle_of(fetched(5)), bundle_of(fetched(6), fetched(7)))
    assert [is_current for _, _, is_current in desk.taken] == [True, False]


@pytest.mark.parametrize("n_bytes", [TURN_BYTES, 0])
def test_a_commit_goes_on_behind_a_large_bundle(
    monkeypatch: pytest.MonkeyPatch, n_bytes: int
) -> None:
    """As far as from an answer to the next request; small ones wait for nobody."""
    n_turns, seen = 0, list[int]()

    class Counting(Desk):
        def take(self, *arguments: Any, **options: Any) -> bool:
            if not seen:
                asyncio.get_running_loop().create_task(count())
            seen.append(n_turns)
            return super().take(*arguments, **options)

    async def count() -> None:
        nonlocal n_turns
        while len(seen) < 3:
            n_turns += 1
            await asyncio.sleep(0)

    bundles = [bundle_of(fetched(offset, n_bytes)) for offset in range(3)]
    folded(monkeypatch, Counting(), *bundles)
    passed = TURNS if n_bytes else 0
    assert seen == [0, passed, 2 * passed]
