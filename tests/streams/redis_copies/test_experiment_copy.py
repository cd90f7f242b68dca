"""Experiments in Redis as their topic has them, whatever happened to Redis."""

from collections.abc import Iterator

import msgspec
import pytest

from rankstream.experiment_records import (
    REMOVED,
    RUNNING,
    ExperimentRecord,
    encode_record,
    put_records,
    running,
    stored_records,
)
from rankstream.settings import ExperimentSettings
from rankstream.snapshots import SnapshotStore
from streams.redis_copies.experiment_copy import ExperimentCopy
from streams.redis_copies.unexpected_entries import SETTLED
from tests.services import RedisService

pytestmark = pytest.mark.broker

BOOST = ExperimentSettings(rankers={"old": "m", "new": ""}, epoch=2)
RECORDS = {"boost": running(BOOST), "ended": ExperimentRecord(4)}


@pytest.fixture
def store(redis_server: RedisService, namespace: str) -> Iterator[SnapshotStore]:
    """A store of the test's own."""
    made = SnapshotStore(redis_server.url, namespace=namespace, retries=0)
    yield made
    made.close()


@pytest.fixture
def copy(store: SnapshotStore) -> ExperimentCopy:
    """One that was shown the records and has written them."""
    made = ExperimentCopy(store)
    show(made, RECORDS)
    assert step(made) == 2
    assert stored_records(store) == (RECORDS, {})
    return made


def values_of(records: dict[str, ExperimentRecord]) -> dict[bytes, bytes]:
    """As the topic has them."""
    return {name.encode(): encode_record(name, each) for name, each in records.items()}


def show(copy: ExperimentCopy, records: dict[str, ExperimentRecord]) -> None:
    """What the topic has."""
    copy.show(values_of(records))


def step(copy: ExperimentCopy) -> int:
    """Look and write; how many records that were."""
    count = copy.compare(copy.look())
    work = copy.work()
    if work:
        copy.write(work)
        copy.wrote(work)
    return count


def changed(**fields: object) -> ExperimentRecord:
    """The experiment, otherwise."""
    return running(msgspec.structs.replace(BOOST, **fields))


@pytest.mark.parametrize(
    "held",
    [
        {RUNNING: {"boost": None}},
        {RUNNING: {"boost": None, "ended": b"{"}, REMOVED: {"ended": None}},
        {REMOVED: {"ended": b"3"}},
        {REMOVED: {"ended": b"four"}},
        {REMOVED: {"boost": b"many"}},
    ],
)
def test_what_is_lost_or_no_document_is_written_at_once(
    store: SnapshotStore,
    copy: ExperimentCopy,
    held: dict[str, dict[str, bytes | None]],
) -> None:
    """From memory: no topic needs to be read."""
    store.put_documents(held)
    assert step(copy) == len({name for each in held.values() for name in each})
    assert stored_records(store) == (RECORDS, {})
    assert step(copy) == 0


@pytest.mark.parametrize("other", [changed(epoch=1), changed(share=0.5)])
def test_what_is_older_or_otherwise_is_written_at_once(
    store: SnapshotStore, copy: ExperimentCopy, other: ExperimentRecord
) -> None:
    """As from a backup, or by hand."""
    put_records(store, {"boost": other})
    assert step(copy) == 1
    assert stored_records(store) == (RECORDS, {})


@pytest.mark.parametrize(
    "later", [changed(epoch=3), ExperimentRecord(2), ExperimentRecord(9)]
)
def test_what_is_later_may_not_have_been_read_yet(
    store: SnapshotStore, copy: ExperimentCopy, later: ExperimentRecord
) -> None:
    """It stays if it was published, and leaves once it is certain that it was not."""
    put_records(store, {"boost": later})
    for _ in range(SETTLED):
        assert step(copy) == 0
        copy.settle()
    show(copy, RECORDS | {"boost": later})
    assert step(copy) == 0
    assert stored_records(store).records["boost"] == later
    show(copy, RECORDS)
    for _ in range(SETTLED):
        assert step(copy) == 0
        copy.settle()
    assert step(copy) == 1
    assert stored_records(store) == (RECORDS, {})


def test_what_the_topic_does_not_know_is_said_once_and_stays(
    store: SnapshotStore, copy: ExperimentCopy, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is what it has in another schema."""
    value = encode_record("newer", changed()).replace(b'"schema":1', b'"schema":2')
    put_records(store, {"newer": changed(), "older": changed()})
    values = values_of(RECORDS)
    copy.show(values | {b"newer": value})
    copy.show(values | {b"newer": value})
    for _ in range(SETTLED + 3):
        assert step(copy) == 0
        copy.settle()
    assert caplog.text.count("event=experiment-unknown experiment='older'") == 1
    assert caplog.text.count("event=experiment-rejected experiment='newer'") == 1
    assert "experiment-unknown experiment='newer'" not in caplog.text
    assert sorted(stored_records(store).records) == ["boost", "ended", "newer", "older"]
    assert copy.counters() == {"experiments_written": 2, "experiments_rejected": 1}
