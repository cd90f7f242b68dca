"""What became of what was sent, asked of a real broker."""

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from producers.connection import client_options
from producers.event_producer import EventProducer
from producers.fates import FateWatch
from rankstream.wire.topics import CLICKS, LATE, dead_letters, full_name, worker_group
from streams.dead_letter import Origin, dead_letter

pytestmark = pytest.mark.broker


def event(number):
    """Some click."""
    return b'{"impression_id": "i%d", "at_ms": 5, "position": 1}' % number


def bury(settings, partition, offset, code):
    """Write a dead letter as ingestion does."""
    letter = dead_letter(Origin(CLICKS, partition, offset, 0), b"x", {"code": code})
    client = KafkaProducer(**client_options(settings.kafka))
    client.send(
        full_name(settings.namespace, dead_letters(CLICKS)),
        value=letter.value,
        headers=list(letter.headers),
        partition=partition,
    ).get(timeout=30)
    client.close()


def set_aside(settings, outcome):
    """Write an event that was late, as the fold does."""
    client = KafkaProducer(**client_options(settings.kafka))
    name = full_name(settings.namespace, LATE)
    client.send(name, value=b"x", headers=[("outcome", outcome)]).get(timeout=30)
    client.close()


def read_up_to(settings, ends):
    """Say that ingestion has read so far."""
    consumer = KafkaConsumer(
        **client_options(settings.kafka),
        group_id=worker_group(settings.namespace, "ingest"),
        enable_auto_commit=False,
    )
    places = {
        TopicPartition(full_name(settings.namespace, topic), partition): end
        for (topic, partition), end in ends.items()
    }
    consumer.assign(list(places))
    consumer.commit(
        {place: OffsetAndMetadata(end, "", -1) for place, end in places.items()}
    )
    consumer.close(autocommit=False)


@pytest.fixture
def sent(settings):
    """Where twenty clicks stand, after ten of somebody else; and a watch begun between.

    One of the others', and nothing else, is a dead letter already.
    """
    with EventProducer(settings) as other:
        for number in range(10):
            other.send(CLICKS, event(number))
    bury(settings, 0, 0, "malformed")
    set_aside(settings, b"late")
    watch = FateWatch(settings)
    with EventProducer(settings) as producer:
        for number in range(10, 30):
            producer.send(CLICKS, event(number))
    return watch, producer.sent


def test_nothing_is_known_while_nobody_reads(sent):
    """And that is said at once."""
    watch, records = sent
    fates = watch.fates(records, is_thorough=True)
    assert (fates.n_letters, fates.set_aside) == (0, {})
    assert fates.n_unread == 20


def test_its_own_dead_letters_are_counted_and_no_others(settings, sent):
    """By the places that they name."""
    watch, records = sent
    ends = records.ends()
    read_up_to(settings, ends)
    (_, partition), end = max(ends.items())
    bury(settings, partition, end - 1, "not-adapted")
    bury(settings, partition, 0, "malformed")
    bury(settings, partition, end, "time")
    set_aside(settings, b"orphan")

    fates = watch.fates(records, is_thorough=True)

    assert fates.letters == {"not-adapted": 1}
    assert fates.set_aside == {"orphan": 1}
    assert fates.n_unread == 0
    assert not fates.is_clean


def test_what_ingestion_has_not_read_is_counted(settings, sent):
    """It stands still, so it is not waited for without end."""
    watch, records = sent
    ends = {place: end - 1 for place, end in records.ends().items()}
    read_up_to(settings, ends)
    fates = watch.fates(records, is_thorough=True)
    assert fates.n_unread == len(ends)
