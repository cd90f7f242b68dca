"""Events to a real broker, and back from it."""

import json
import threading
import time
import zlib

import msgspec
import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError

from producers.brokers.connection import client_options
from producers.event_producer import END_HEADER, ROOM_BYTES, EventProducer
from producers.event_sink import EventTooLarge
from producers.topic_reader import (
    TopicReader,
    TopicUnreadable,
    reached_ms,
    read_records,
    read_topic,
)
from rankstream.wire.events import ACTIVE, ENDED, Frontier, encode_record
from rankstream.wire.topics import CLICKS, EVENTS, MAX_EVENT_BYTES, QUERIES, full_name
from tests.worker_process import PATIENCE_S

pytestmark = pytest.mark.broker


def event(number):
    """Some click."""
    return b'{"impression_id": "i%d", "at_ms": 5, "position": 1}' % number


def elements(record):
    """The events of an input record."""
    value = record.value
    return json.loads(value) if value.startswith(b"[") else [json.loads(value)]


@pytest.mark.parametrize("batch", [1, 7])
def test_every_event_arrives_once_in_the_order_of_its_partition(settings, batch):
    """Alone or several in a record; nothing is open at the end."""
    with EventProducer(settings, batch=batch) as producer:
        for number in range(1_000):
            producer.send(CLICKS, event(number))
        producer.send(QUERIES, b"{}", key=b"k", headers=(("h", b"v"),))
        producer.flush()
        assert producer.acknowledged == producer.taken == producer.settled() == 1_001
    records = list(read_records(settings, CLICKS))
    for partition in (0, 1):
        found = [e for r in records if r.partition == partition for e in elements(r)]
        assert found == [
            json.loads(event(n))
            for n in range(1_000)
            if zlib.crc32(event(n)) % 2 == partition
        ]
    assert max(len(elements(record)) for record in records) == batch
    (query,) = read_records(settings, QUERIES)
    assert (query.key, query.value, query.headers) == (b"k", b"{}", (("h", b"v"),))


def test_what_is_too_large_is_refused_here_and_what_just_fits_is_taken(settings):
    """The refused one is counted; the others are not touched."""
    largest = MAX_EVENT_BYTES - ROOM_BYTES
    with EventProducer(settings, batch=3) as producer:
        producer.send(CLICKS, b'"' + b"x" * (largest - 2) + b'"')
        with pytest.raises(EventTooLarge, match="must fit"):
            producer.send(CLICKS, b"x" * (largest + 1))
        producer.send(CLICKS, event(1))
        producer.flush()
        assert (producer.refused, producer.acknowledged) == (1, 2)
        assert producer.settled() == producer.taken == 3
    sizes = sorted(
        len(record.value or b"") for record in read_records(settings, CLICKS)
    )
    assert sizes == [len(event(1)), largest]


def test_bytes_that_are_no_event_never_share_a_record(settings):
    """One bad line must not spoil a batch."""
    with EventProducer(settings, batch=10) as producer:
        producer.send(CLICKS, event(1))
        producer.send_raw(CLICKS, b"{junk")
    assert {r.value for r in read_records(settings, CLICKS)} == {event(1), b"{junk"}


def test_the_end_is_said_on_every_partition(settings):
    """After everything else."""
    with EventProducer(settings, batch=5) as producer:
        producer.send(CLICKS, event(1))
        producer.end()
    for topic, n_records in ((QUERIES, 2), (CLICKS, 3)):
        records = list(read_records(settings, topic))
        assert len(records) == n_records
        last = {record.partition: record for record in records}
        assert {partition: record.headers for partition, record in last.items()} == {
            0: (END_HEADER,),
            1: (END_HEADER,),
        }
        assert all(not record.value for record in last.values())


def test_a_client_that_is_given_up_leaves_no_thread(settings, monkeypatch):
    """It would look for its broker for as long as the process lives."""
    before = {*threading.enumerate()}
    producer = EventProducer(settings)
    assert {*threading.enumerate()} > before

    def never(timeout=None):
        raise KafkaTimeoutError(f"not within {timeout} s")

    monkeypatch.setattr(producer._client, "flush", never)
    producer.close(timeout_s=PATIENCE_S)
    assert {*threading.enumerate()} <= before


def test_missing_topics_are_refused_with_the_command_that_helps(settings):
    """As is another number of partitions."""
    other = msgspec.structs.replace(
        settings, namespace=settings.namespace + "-none", file="shop.toml"
    )
    command = r"`rankstream topics create --config shop.toml --namespace"
    with pytest.raises(TopicUnreadable, match=command):
        EventProducer(other)
    kafka = msgspec.structs.replace(settings.kafka, input_partitions=3)
    with pytest.raises(TopicUnreadable, match=r"topics check --namespace"):
        EventProducer(msgspec.structs.replace(settings, kafka=kafka))
    with pytest.raises(TopicUnreadable, match="must exist"):
        list(read_topic(other, EVENTS))


def write_events(settings, partition, *records, commit=True):
    """Records of `events` in one transaction, as ingest writes them."""
    producer = KafkaProducer(
        **client_options(settings.kafka), transactional_id=f"t-{settings.namespace}"
    )
    producer.init_transactions()
    producer.begin_transaction()
    for elements_ in records:
        value = encode_record([1, 0, 1, list(elements_)])
        producer.send(
            full_name(settings.namespace, EVENTS), value=value, partition=partition
        )
    producer.flush()
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()
    producer.close()


def test_only_committed_records_are_read(settings):
    """Also where the last offsets are markers, or aborted."""
    write_events(settings, 0, [Frontier(0, 2, 5, ACTIVE)])
    write_events(settings, 0, [Frontier(0, 2, 99, ACTIVE)], commit=False)
    write_events(settings, 1, [Frontier(0, 2, 5, ACTIVE)])
    with TopicReader(settings) as reader:
        assert reached_in_the_end(reader, 5) == 5
    found = [(partition, key) for partition, _, key, _ in read_topic(settings, EVENTS)]
    assert found == [(0, None), (1, None)]
    assert len(list(read_records(settings, EVENTS, from_last=1))) == 0
    assert len(list(read_records(settings, EVENTS, from_last=4))) == 2


def reached_in_the_end(reader, expected):
    """What the reader sees, once a broker has written the marker of a commit."""
    deadline = time.monotonic() + PATIENCE_S
    while reached_ms(reader) != expected and time.monotonic() < deadline:
        time.sleep(0.02)
    return reached_ms(reader)


def test_the_time_of_a_target_is_that_of_its_slowest_source(settings):
    """Of those that are being read; else the largest."""
    with TopicReader(settings) as reader:
        assert reached_ms(reader) is None
        write_events(settings, 0, [Frontier(0, 2, 50, ACTIVE)])
        write_events(settings, 1, [Frontier(1, 2, 30, ACTIVE)], [])
        assert reached_in_the_end(reader, 30) == 30
        write_events(settings, 0, [Frontier(1, 2, 40, ENDED)])
        assert reached_in_the_end(reader, 50) == 50
        write_events(settings, 0, [Frontier(0, 2, 90, ENDED)])
        assert reached_in_the_end(reader, 90) == 90
