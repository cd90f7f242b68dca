"""What was learned under fire, against the same log learned in one go."""

import contextlib
import time
from typing import Any

import msgspec

from producers.topic_reader import TopicReader
from rankstream.settings import Settings
from rankstream.snapshots import (
    SnapshotStore,
    StoreUnavailable,
    decode_at,
    decode_snapshot,
    encode_snapshot,
    pointer_of,
    store_of,
)
from rankstream.wire.envelope import Pointer, Snapshot, SnapshotError
from rankstream.wire.models.changes import change_key
from rankstream.wire.models.deployments import is_deployment
from rankstream.wire.topics import INTERACTIONS, SNAPSHOTS
from streams.learning.learn import STATE_TOPIC, InteractionsBroken, Learn
from streams.recount.differences import Verdict
from streams.stage import SourceRecord
from tests.fire.letters import last_values

PATIENCE_S = 300.0
"""How long the publisher may take for the last version, and a Redis to be refilled."""


def is_newest_served(settings: Settings, model: str) -> bool:
    """Whether Redis comes to hold the newest version in the topic, whole."""
    store = store_of(settings, retries=0)
    deadline = time.monotonic() + PATIENCE_S
    with contextlib.closing(store):
        while _served(store, model) != max(_snapshots(settings, model), default=None):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.5)
    return True


def compare_learned(settings: Settings, model: str) -> Verdict:
    """Every snapshot that is kept, and the learner's state, to the last bit."""
    verdict = Verdict()
    written = _snapshots(settings, model)
    states: dict[int, dict[bytes, bytes]] = {}
    learners: dict[int, Learn] = {}
    matched: set[Pointer] = set()
    with TopicReader(settings) as reader:
        for partition in reader.partitions(STATE_TOPIC):
            records = reader.records(STATE_TOPIC, {partition: 0})
            states[partition] = last_values((r.key, r.value) for r in records)
            learners[partition] = Learn(partition, settings)
        for record in reader.records(INTERACTIONS):
            learner = learners[record.partition]
            try:
                learner.fold(_source_record(record))
            except InteractionsBroken as error:
                verdict.find("wrong", str(error))
                return verdict
            fold = learner.models.get(model)
            if fold is None:
                continue
            at = Pointer(0, fold.version)
            # Records of other models alone leave the version as it is.
            if at in written and at not in matched:
                matched.add(at)
                if encode_snapshot(written[at]) != encode_snapshot(fold.snapshot()):
                    verdict.find("wrong", f"snapshot {at}")
    for at in written.keys() - matched:
        if at.version:
            verdict.find("extra", f"snapshot {at} is of no place in the log")
    for partition, learner in learners.items():
        _compare_states(partition, learner, states[partition], verdict)
    return verdict


def _source_record(record: Any) -> SourceRecord:
    return SourceRecord(
        INTERACTIONS, record.partition, record.offset, 0, None, record.value, ()
    )


def _snapshots(settings: Settings, model: str) -> dict[Pointer, Snapshot]:
    """Those in the topic that no tombstone removed."""
    with TopicReader(settings) as reader:
        records = reader.records(SNAPSHOTS)
        values = last_values((record.key, record.value) for record in records)
    found = (
        decode_snapshot(value)
        for key, value in values.items()
        if not (is_deployment(key, value) or change_key(key, value))
    )
    return {pointer_of(each): each for each in found if each.model == model}


def _served(store: SnapshotStore, model: str) -> Pointer | None:
    try:
        pointer, envelope = store.current(model) or (None, None)
        if pointer is not None:
            decode_at(envelope or b"", model, pointer)
    except (StoreUnavailable, SnapshotError):
        return None
    return pointer


def _compare_states(
    partition: int, learner: Learn, values: dict[bytes, bytes], verdict: Verdict
) -> None:
    for change in learner.changes():
        expected = _without_published(change.key, change.value or b"")
        found = values.get(change.key)
        if found is None or expected != _without_published(change.key, found):
            verdict.find("wrong", f"{change.key!r} of interactions[{partition}]")


def _without_published(key: bytes, value: bytes) -> Any:
    state = msgspec.msgpack.decode(value)
    if key.startswith(b"model/"):
        state[1][4] = None
    return state
