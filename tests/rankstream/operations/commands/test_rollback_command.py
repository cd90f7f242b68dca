"""`rankstream snapshots rollback` and `follow`, on a real Kafka and Redis."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest
import redis
from kafka import KafkaProducer

from producers.event_producer import send_records
from producers.topic_reader import read_records
from rankstream.operations.cli import main
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import store_of
from rankstream.wire.models.snapshot_names import decode_record
from rankstream.wire.topics import SNAPSHOTS, full_name
from streams.roles.publisher import publish_copies
from tests.snapshot_factory import envelope
from tests.worker_process import PATIENCE_S


@pytest.fixture
def publisher(settings: Settings) -> Iterator[None]:
    """One that runs beside the test."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(
        target=lambda: loop.run_until_complete(publish_copies(settings, stop))
    )
    thread.start()
    yield
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def learn(settings: Settings, *versions: int) -> None:
    """Write versions as a learner does."""
    producer = KafkaProducer(bootstrap_servers=settings.kafka.bootstrap)
    topic = full_name(settings.namespace, SNAPSHOTS)
    for version in versions:
        key = f"m/0.{version}".encode()
        producer.send(topic, envelope(version), key=key, partition=0)
    producer.flush()
    producer.close()


def forge(settings: Settings, *records: tuple[bytes, bytes]) -> None:
    """Write whatever it is."""
    send_records(settings, SNAPSHOTS, records)


def until(holds: Callable[[], bool]) -> bool:
    """Whether it comes to hold."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


@pytest.mark.usefixtures("publisher")
def test_a_ranker_goes_back_stays_and_follows_again(
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The learner goes on, a publisher does not overwrite, an emptied Redis neither."""
    store = store_of(settings)
    ranker = Ranker("m", store=store)
    ranker.follow()
    learn(settings, 1, 2, 3)
    assert until(lambda: ranker.pointer == (0, 3))

    assert main(["snapshots", "rollback", "m", "0.2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"model": "m", "version": "1.2"}
    assert until(lambda: ranker.pointer == (1, 2))
    assert ranker.snapshot.intervention == "m@1.2"
    learn(settings, 4, 5)
    with redis.Redis.from_url(settings.redis.url) as client:
        client.delete(*client.keys(f"{settings.namespace}:*"))
    assert until(lambda: store.standing(["m"]) == {"m": (1, 2)})
    assert ranker.pointer == (1, 2)
    assert ranker.snapshot.intervention == "m@1.2"

    capsys.readouterr()
    assert main(["snapshots", "follow", "m", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"model": "m", "version": "2.5"}
    assert until(lambda: ranker.pointer == (2, 5))
    assert ranker.snapshot.intervention == "m@2.5"
    learn(settings, 6)
    assert until(lambda: ranker.pointer == (2, 6))
    assert ranker.snapshot.intervention == ""
    capsys.readouterr()
    assert main(["snapshots", "show", "m", "--version", "2.5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["intervention"] == "m@2.5"

    assert main(["snapshots", "rollback", "m", "0.77"]) == 2
    assert "must be kept in Redis; 0.77 of 'm' is not" in capsys.readouterr().err

    # An era of a century, so that the test lies in one: a rollback and a follow.
    monkeypatch.setenv("RANKSTREAM_TIME__KEEP_MS", str(100 * 365 * 86_400_000))
    monkeypatch.setenv("RANKSTREAM_LIMITS__INTERVENTIONS", "2")
    assert main(["snapshots", "rollback", "m", "2.5"]) == 2
    told = capsys.readouterr().err
    assert "at most limits.interventions, 2, as" in told
    assert "this one has 2: deploy after it ends" in told
    monkeypatch.setenv("RANKSTREAM_LIMITS__INTERVENTIONS", "3")
    assert main(["snapshots", "rollback", "m", "2.5"]) == 0
    assert until(lambda: ranker.pointer == (3, 5))
    assert ranker.snapshot.intervention == "m@3.5"
    ranker.close()
    store.close()


@pytest.mark.usefixtures("publisher")
def test_versions_that_no_pointer_names_hold_nothing_up_and_are_repaired(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """The model moves on and back; the repair tells first, and restores a rollback."""
    store = store_of(settings)
    learn(settings, 1, 2)
    assert until(lambda: store.standing(["m"]) == {"m": (0, 2)})
    assert main(["snapshots", "rollback", "m", "0.1", "--json"]) == 0
    forge(
        settings,
        (b"m/0.1234567890123456", envelope(1_234_567_890_123_456)),
        (b"m", envelope(2, epoch=2**63)),
    )
    capsys.readouterr()
    assert main(["snapshots", "repair"]) == 1
    told = capsys.readouterr().out
    assert "2 records that nobody can serve" in told
    assert "back to 1.1" in told
    assert "nothing was changed: --yes does it" in told
    assert main(["snapshots", "repair", "m", "--yes", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["key"], row["repair"], row["is_repaired"]) for row in rows] == [
        ("m/0.1234567890123456", "removed", True),
        ("m", "back to 1.1", True),
    ]
    last = {record.key: record.value for record in read_records(settings, SNAPSHOTS)}
    assert last[b"m/0.1234567890123456"] is None
    assert decode_record(b"m", last[b"m"] or b"").intervention == "m@1.1"
    assert main(["snapshots", "repair"]) == 0
    assert "can be served" in capsys.readouterr().out

    forge(settings, (b"m/0.9999999999999999", envelope(9_999_999_999_999_999)))
    assert main(["snapshots", "rollback", "m", "0.2"]) == 0
    assert until(lambda: store.standing(["m"]) == {"m": (2, 2)})
    assert main(["snapshots", "follow", "m"]) == 0
    learn(settings, 3)
    assert until(lambda: store.standing(["m"]) == {"m": (3, 3)})
    store.close()
