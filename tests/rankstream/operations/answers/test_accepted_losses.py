"""Accepted losses, as operators read them."""

import io

import msgspec
import pytest
from kafka import KafkaAdminClient, KafkaProducer

from producers.topic_reader import TopicReader
from rankstream.operations.answers.installation.health import (
    accepted_losses,
    loss_in_words,
    losses_in_words,
)
from rankstream.operations.commands import recount as command
from rankstream.operations.monitoring.overview import Gathered
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.topics import COMPACTED, full_name
from streams.kafka.state.lost_records import AcceptedLoss
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    SCHEMA,
    Loss,
    ResumePosition,
    encode_position,
)
from streams.recount.differences import Verdict
from tests.services import KafkaService

POSITION = ResumePosition(SCHEMA, 9, 9, b"f", b"f", "id", 7, 12, 2, 1)
SENTENCE = "queries[1]: offsets 5-8 (4) were lost unread, as an operator accepted"


def position(*losses: Loss) -> bytes:
    """A resume position with these losses."""
    return encode_position(msgspec.structs.replace(POSITION, losses=losses))


def test_losses_are_read_from_the_last_position_of_each_partition(
    kafka: KafkaService, namespace: str
) -> None:
    """Beside other state, and a position that only a later release reads."""
    settings = Settings(
        namespace=namespace, kafka=KafkaSettings(bootstrap=kafka.bootstrap)
    )
    queries = full_name(namespace, "ingest-queries-state")
    clicks = full_name(namespace, "ingest-clicks-state")
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    shape = {"num_partitions": 2, "replication_factor": 1, "configs": COMPACTED}
    admin.create_topics(dict.fromkeys((queries, clicks), shape), wait_for_metadata=True)
    admin.close()
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
    for topic, partition, key, value in (
        (queries, 1, POSITION_KEY, position()),
        (queries, 1, POSITION_KEY, position(Loss(5, 8), Loss(20, 20))),
        (queries, 1, b"state", b"\x90"),
        (queries, 0, POSITION_KEY, position()),
        (clicks, 0, POSITION_KEY, position(Loss(0, 3))),
        (clicks, 1, POSITION_KEY, msgspec.msgpack.encode([SCHEMA + 1, 1])),
    ):
        producer.send(topic, key=key, value=value, partition=partition)
    producer.close()
    with TopicReader(settings) as reader:
        found = accepted_losses(reader)
    assert found == [
        AcceptedLoss("queries", 1, Loss(5, 8)),
        AcceptedLoss("queries", 1, Loss(20, 20)),
        AcceptedLoss("clicks", 0, Loss(0, 3)),
    ]
    assert loss_in_words(found[0]) == SENTENCE


def test_a_recount_tells_of_losses_and_is_clean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They never reached the log that it counts."""
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    verdict = Verdict(n_events=7, accepted_losses=[SENTENCE])
    command._tell(verdict)
    assert verdict.is_clean
    assert SENTENCE in out.getvalue()
    assert verdict.as_dict()["accepted_losses"] == [SENTENCE]


def test_the_monitor_tells_of_losses_beside_other_things() -> None:
    """And of nothing where there is none."""
    gathered = Gathered()
    gathered.note("losses", losses_in_words([]))
    assert gathered.overview()["trouble"] == ""
    gathered.note("snapshots", "Redis is empty.")
    gathered.note("losses", losses_in_words([AcceptedLoss.parsed("queries:1:5-8")]))
    assert gathered.overview()["trouble"] == f"Redis is empty. {SENTENCE}."
