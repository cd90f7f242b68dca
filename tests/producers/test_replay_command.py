"""`rankstream replay`, `feed` and `dump` on a real broker: stops, kills, resumes."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from kafka import KafkaProducer

from producers.brokers.connection import client_options
from producers.formats.canonical_dump import read_dump, read_header
from producers.topic_reader import read_records
from rankstream.wire.events import ACTIVE, Frontier, encode_event, encode_record
from rankstream.wire.topics import CLICKS, EVENTS, QUERIES, full_name
from tests.worker_process import PATIENCE_S

pytestmark = pytest.mark.broker

N_EVENTS = 4_000

MOST_ON_ITS_WAY = 10
"""Batches: five requests to each of two topics."""

START_MS = 1_600_000_000_000

SLOWLY = "0.2"
"""A replay at such a speed takes 20 s: it is stopped long before its end."""


@pytest.fixture
def log(tmp_path):
    """A file of events one millisecond apart, the later half first."""
    lines = []
    for number in range(N_EVENTS):
        event: dict[str, object] = {
            "impression_id": f"i{number // 2}",
            "query_id": "q",
            "at_ms": START_MS + number,
        }
        event |= {"position": 1} if number % 2 else {"shown": ["a", "b"]}
        lines.append(encode_event(event))
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines[N_EVENTS // 2 :] + lines[: N_EVENTS // 2]))
    return path


@pytest.fixture
def start(settings, tmp_path):
    """Start a command in this namespace."""
    environment = os.environ | {
        "RANKSTREAM_KAFKA__BOOTSTRAP": settings.kafka.bootstrap,
        "RANKSTREAM_KAFKA__INPUT_PARTITIONS": "2",
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }

    def command(*words, **options):
        line = [sys.executable, "-m", "rankstream", *map(str, words)]
        return subprocess.Popen(
            [*line, "--namespace", settings.namespace], env=environment,
            stderr=subprocess.PIPE, text=True, **options,
        )  # fmt: skip

    return command


def finished(process):
    """Exit status and standard error."""
    _, errors = process.communicate(timeout=PATIENCE_S)
    return process.returncode, errors


def sent(settings):
    """Values of all events in ingestion, and how many end records."""
    records = [r for topic in (QUERIES, CLICKS) for r in read_records(settings, topic)]
    values = Counter(record.value for record in records if record.value)
    return values, len(records) - values.total()


def progress(tmp_path, process):
    """What the progress file says, once it is there."""
    while process.poll() is None:
        for path in (tmp_path / "state" / "rankstream").glob("*.json"):
            count = json.loads(path.read_text())["acknowledged"]
            if count > 200:
                return count
        time.sleep(0.02)
    raise AssertionError(f"a replay must save its progress; {finished(process)}")


def test_a_replay_sends_all_in_order_and_ends(start, log, settings):
    """Sorted by time in each partition; one end record for each partition."""
    status, errors = finished(start("replay", log))
    assert status == 0, errors
    assert f"{N_EVENTS:,} events acknowledged" in errors
    values, n_ends = sent(settings)
    assert values == Counter(log.read_bytes().split(b"\n"))
    assert n_ends == 4
    for topic in (QUERIES, CLICKS):
        for partition in (0, 1):
            times = [
                json.loads(record.value)["at_ms"]
                for record in read_records(settings, topic)
                if record.value and record.partition == partition
            ]
            assert times == sorted(times)
    status, errors = finished(start("replay", log, "--resume"))
    assert status == 0
    assert "everything was sent already" in errors


@pytest.mark.parametrize("batch", ["1", "20"])
def test_killed_and_resumed_nothing_is_missing(start, log, settings, tmp_path, batch):
    """What is sent twice is at most what was under way, in the same partition."""
    words = ("replay", log, "--batch", batch)
    process = start(*words, "--speed", SLOWLY)
    saved = progress(tmp_path, process)
    process.kill()
    process.communicate()
    elements_ = input_elements(settings)
    assert len(elements_) >= saved
    status, errors = finished(start(*words, "--resume"))
    assert status == 0, errors
    going_on = re.search(r"going on after ([\d,]+) acknowledged", errors)
    assert going_on is not None
    resumed = int(going_on[1].replace(",", ""))
    assert saved <= resumed <= len(elements_)
    everything = input_elements(settings)
    assert {value for value, _ in everything} == set(log.read_bytes().split(b"\n"))
    assert len({*everything}) == N_EVENTS
    # What was on its way when it was killed may come after it was looked for.
    later = len(everything) - (len(elements_) + N_EVENTS - resumed)
    assert 0 <= later <= MOST_ON_ITS_WAY * int(batch)


@pytest.fixture
def two_files(tmp_path):
    """Options of a log whose clicks are in another file, in another order."""
    lists, clicks = tmp_path / "lists.csv", tmp_path / "clicks.csv"
    rows = range(N_EVENTS // 2)
    lists.write_text(
        "impression,item,at\n" + "".join(f"i{n},a,{START_MS + 2 * n}\n" for n in rows)
    )
    clicks.write_text(
        "impression,item,at\n"
        + "".join(f"i{n},a,{START_MS + 2 * n + 1}\n" for n in reversed(rows))
    )
    return ["--queries", lists, "--clicks", clicks]


def test_two_files_are_resumed_in_the_same_order(start, two_files, settings, tmp_path):
    """Nothing is missing, and what is said of the files must be the same."""
    process = start("replay", *two_files, "--speed", SLOWLY)
    saved = progress(tmp_path, process)
    process.kill()
    process.communicate()
    n_before = len(input_elements(settings))
    status, errors = finished(start("replay", *two_files, "--resume", "--session-join"))
    assert status == 2, errors
    status, errors = finished(start("replay", *two_files, "--resume"))
    assert status == 0, errors
    everything = input_elements(settings)
    assert len({*everything}) == N_EVENTS
    assert len(everything) <= n_before + N_EVENTS - saved
    ids = Counter(json.loads(value)["impression_id"] for value, _ in {*everything})
    assert ids == {f"i{n}": 2 for n in range(N_EVENTS // 2)}


def test_a_feed_of_files_sends_them_in_their_time(start, two_files, settings):
    """Each event once, and ends where that is asked for."""
    status, errors = finished(start("feed", *two_files, "--end"))
    assert status == 0, errors
    assert f"{N_EVENTS // 2:,} of {N_EVENTS // 2:,} clicks joined" in errors
    values, n_ends = sent(settings)
    assert (len(values), values.total(), n_ends) == (N_EVENTS, N_EVENTS, 4)


def test_times_in_seconds_send_nothing(start, log, settings):
    """The option is named, and converts them."""
    # Without their last three digits.
    log.write_text(re.sub(r'("at_ms": ?\d+)\d{3}', r"\1", log.read_text()))
    status, errors = finished(start("replay", log))
    assert status == 2
    assert "--option time_unit=s; nothing was sent" in errors
    assert sent(settings)[0].total() == 0
    status, errors = finished(start("replay", log, "--option", "time_unit=s"))
    assert status == 0, errors
    assert sent(settings)[0].total() == N_EVENTS


def input_elements(settings):
    """Value and partition of every event that ingestion holds."""
    found = []
    for topic in (QUERIES, CLICKS):
        for record in read_records(settings, topic):
            value = record.value or b""
            if value.startswith(b"["):
                found += [
                    (encode_event(event), record.partition)
                    for event in json.loads(value)
                ]
            elif value:
                found.append((value, record.partition))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_reports_exactly_what_is_there(start, log, settings, tmp_path, number):
    """And a resume sends exactly the rest."""
    process = start("replay", log, "--speed", SLOWLY)
    progress(tmp_path, process)
    process.send_signal(number)
    status, errors = finished(process)
    assert status == 130
    reported = re.search(r"([\d,]+) events acknowledged", errors)
    assert reported is not None
    values, n_ends = sent(settings)
    assert values.total() == int(reported[1].replace(",", ""))
    assert n_ends == 0
    status, errors = finished(start("replay", log, "--resume"))
    assert status == 0
    values, n_ends = sent(settings)
    assert values == Counter(log.read_bytes().split(b"\n"))
    assert n_ends == 4


def test_an_older_file_than_the_target_is_refused(start, log, settings):
    """Nothing of it is sent; with consent it is."""
    producer = KafkaProducer(**client_options(settings.kafka))
    for partition in (0, 1):
        frontier = Frontier(0, 4, START_MS + 1, ACTIVE)
        producer.send(
            full_name(settings.namespace, EVENTS),
            value=encode_record([1, 0, 1, [frontier]]),
            partition=partition,
        )
    producer.close()
    status, errors = finished(start("replay", log))
    assert status == 2
    assert "--namespace" in errors
    assert sent(settings)[0].total() == 0
    status, errors = finished(start("replay", log, "--accept-late", "--no-end"))
    assert status == 0, errors
    values, n_ends = sent(settings)
    assert (values.total(), n_ends) == (N_EVENTS, 0)


def test_a_broken_file_sends_nothing(start, log, settings):
    """Though only its last line is broken."""
    log.write_bytes(log.read_bytes() + b'\n{"at_ms": ')
    status, errors = finished(start("replay", log))
    assert status == 2
    assert f"log.jsonl:{N_EVENTS + 1}" in errors
    assert sent(settings)[0].total() == 0


def test_a_feed_passes_on_its_input(start, log, settings):
    """From a pipe to its end, junk included."""
    with log.open("rb") as content:
        status, errors = finished(start("feed", "--end", stdin=content))
    assert status == 0, errors
    assert f"{N_EVENTS:,} events acknowledged" in errors
    values, n_ends = sent(settings)
    assert values == Counter(log.read_bytes().split(b"\n"))
    assert n_ends == 4


def test_a_followed_file_is_fed_until_the_user_stops(start, settings, tmp_path):
    """What was read is acknowledged before the command ends."""
    path = tmp_path / "live.jsonl"
    path.write_bytes(b'{"impression_id":"i","at_ms":1,"position":1}\njunk\n')
    process = start("feed", "--follow", path, "--batch", "10")
    while sent(settings)[0].total() < 2 and process.poll() is None:
        time.sleep(0.1)
    with path.open("ab") as file:
        file.write(b'{"impression_id":"i","at_ms":2,"shown":["a"]}\n')
    while sent(settings)[0].total() < 3 and process.poll() is None:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    status, errors = finished(process)
    assert status == 0
    assert "3 events acknowledged\nno events, but sent: 1 line\n" in errors
    assert sent(settings)[0].total() == 3


def test_a_dump_holds_the_log_byte_for_byte(start, settings, tmp_path):
    """Partition by partition."""
    producer = KafkaProducer(**client_options(settings.kafka))
    topic = full_name(settings.namespace, EVENTS)
    for number in range(20):
        producer.send(topic, value=b"%d" % number, partition=number % 2)
    producer.close()
    path = tmp_path / "events.dump.zst"
    status, errors = finished(start("dump", path))
    assert status == 0, errors
    assert read_header(path) == (EVENTS, 2)
    assert list(read_dump(path)) == [
        (partition, b"%d" % number)
        for partition in (0, 1)
        for number in range(partition, 20, 2)
    ]
