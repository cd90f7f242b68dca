"""What became of what was sent, asked of a real broker."""

import threading

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from producers import outcomes
from producers.brokers.connection import client_options
from producers.event_producer import EventProducer
from producers.outcomes import OutcomeWatch
from rankstream.wire.events import ACTIVE, ENDED, Frontier, encode_record
from rankstream.wire.topics import (
    CLICKS,
    EVENTS,
    LATE,
    dead_letters,
    full_name,
    worker_group,
)
from streams.dead_letter import Origin, dead_letter
from tests.worker_process import PATIENCE_S

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
    ).get(PATIENCE_S)
    client.close()


def set_aside(settings, outcome):
    """Write an event that was late, as the fold does."""
    client = KafkaProducer(**client_options(settings.kafka))
    name = full_name(settings.namespace, LATE)
    client.send(name, value=b"x", headers=[("outcome", outcome)]).get(
        timeout=PATIENCE_S
    )
    client.close()


def pass_time(settings, *frontiers):
    """Write to the log how far sources are, as ingestion does; gives the log's end."""
    client = KafkaProducer(**client_options(settings.kafka))
    name = full_name(settings.namespace, EVENTS)
    for sequence, each in enumerate(frontiers, 1):
        value = encode_record([1, each.source, sequence, [each]])
        placed = client.send(name, value=value, partition=0).get(PATIENCE_S)
    client.close()
    return {(EVENTS, 0): placed.offset + 1}


def read_up_to(settings, ends, role="ingest"):
    """Say that a role has read so far."""
    consumer = KafkaConsumer(
        **client_options(settings.kafka),
        group_id=worker_group(settings.namespace, role),
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
    watch = OutcomeWatch(settings)
    with EventProducer(settings) as producer:
        for number in range(10, 30):
            producer.send(CLICKS, event(number))
    return watch, producer.sent


def test_nothing_is_known_while_nobody_reads(sent):
    """And that is said at once."""
    watch, records = sent
    found = watch.outcomes(records, is_thorough=True)
    assert (found.n_letters, found.set_aside) == (0, {})
    assert found.n_unread == 20


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

    found = watch.outcomes(records, is_thorough=True)

    assert found.letters == {"not-adapted": 1}
    assert found.set_aside == {"orphan": 1}
    assert found.n_unread == 0
    assert not found.is_clean


@pytest.fixture
def soon(monkeypatch):
    """Who stands still is waited for briefly."""
    monkeypatch.setattr(outcomes, "STANDING_S", 3.0)


@pytest.mark.usefixtures("soon")
def test_an_end_waits_until_each_partition_was_begun(settings, sent, monkeypatch):
    """The first of what was sent is enough; nobody there, or nobody moves, is too."""
    watch, records = sent
    assert not watch.await_begun(records, is_thorough=True)  # nobody ever read
    starts = records.starts()
    assert len(starts) > 1
    read_up_to(settings, starts)
    assert not watch.await_begun(records, is_thorough=True)  # what others sent before
    begun = {place: start + 1 for place, start in starts.items()}
    last = max(begun)
    read_up_to(settings, {each: end for each, end in begun.items() if each != last})
    # However long a machine takes to say it.
    monkeypatch.setattr(outcomes, "STANDING_S", PATIENCE_S)
    later = threading.Timer(1.0, read_up_to, (settings, {last: begun[last]}))
    later.start()
    assert watch.await_begun(records, is_thorough=True)
    later.join()


@pytest.mark.usefixtures("soon")
def test_what_ingestion_has_not_read_is_counted(settings, sent):
    """It stands still, so it is not waited for without end."""
    watch, records = sent
    ends = {place: end - 1 for place, end in records.ends().items()}
    read_up_to(settings, ends)
    found = watch.outcomes(records, is_thorough=True)
    assert found.n_unread == len(ends)


@pytest.mark.usefixtures("soon")
def test_what_the_fold_has_not_read_is_not_known(settings, sent):
    """Ingestion is done with it, and still the join may refuse it."""
    watch, records = sent
    read_up_to(settings, records.ends())
    end = pass_time(settings, Frontier(0, 1, 100_000, ENDED))

    found = watch.outcomes(records, is_thorough=True, newest_click_ms=5)

    assert (found.n_unread, found.n_unjoined, found.is_clean) == (0, 1, False)
    read_up_to(settings, end, "fold")
    assert watch.outcomes(records, is_thorough=True, newest_click_ms=5).is_clean


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    ("frontier", "may_wait"),
    [
        (Frontier(0, 2, 30_004, ENDED), True),
        (Frontier(0, 2, 30_005, ENDED), False),
        (Frontier(1, 2, -1, ACTIVE), True),
    ],
)
def test_a_click_may_wait_until_its_time_has_passed(settings, sent, frontier, may_wait):
    """Half a minute by default; a source that says no time yet holds all back."""
    watch, records = sent
    read_up_to(settings, records.ends())
    end = pass_time(settings, frontier, Frontier(0, 2, frontier.at_ms, ENDED))
    read_up_to(settings, end, "fold")

    found = watch.outcomes(records, is_thorough=True, newest_click_ms=5)

    assert found.may_wait == may_wait
    assert found.is_clean != may_wait
    assert watch.outcomes(records, is_thorough=True).is_clean


def test_what_the_join_refuses_is_waited_for(settings, sent):
    """Its letters come after ingestion has read all."""
    watch, records = sent
    read_up_to(settings, records.ends())
    end = pass_time(settings, Frontier(0, 1, 100_000, ENDED))
    (_, partition), sent_end = max(records.ends().items())

    def judge():
        bury(settings, partition, sent_end - 1, "not-shown")
        read_up_to(settings, end, "fold")

    later = threading.Timer(6.0, judge)
    later.start()
    found = watch.outcomes(records, is_thorough=True, newest_click_ms=5)
    later.join()

    assert found.letters == {"not-shown": 1}
    assert found.is_known
