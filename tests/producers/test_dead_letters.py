"""Dead letters on a real broker: read, counted, shown, sent again."""

import argparse
import json
import time

import pytest
from kafka import KafkaProducer

from producers.brokers.connection import client_options
from producers.dead_letters import (
    HEADER_PREFIX,
    DeadLetter,
    NoSuchLetter,
    counts,
    letter_of,
    outlook,
    read_letter,
    read_letters,
)
from producers.topic_reader import Record, TopicReader, read_records
from rankstream.operations.commands.dlq import run as dlq
from rankstream.wire.topics import CLICKS, QUERIES, dead_letters, full_name
from streams.dead_letter import Origin, dead_letter

HOSTILE = (
    b"", b"\x00", b"\xff\xfe junk", b"[bold red]x", b"\x1b[31mred", b"{" * 5_000,
    b'{"impression_id": "i1", "at_ms": 5}',
    b'{"impression_id": "i2", "at_ms": 900000, "item_id": "a"}',
)  # fmt: skip


TIMES = {"window_ms": 300, "disorder_ms": 30, "now_ms": 300, "ahead_ms": 10}


def reason(code):
    """Headers as ingest writes them."""
    return {"stage": "validate", "code": code, "exception.message": f"why [{code}]",
            "timestamp": "17"}  # fmt: skip


def write(settings, outputs):
    """Letters into their topics, as the stage does."""
    producer = KafkaProducer(**client_options(settings.kafka))
    for output in outputs:
        producer.send(
            full_name(settings.namespace, output.topic),
            value=output.value,
            key=output.key,
            headers=list(output.headers),
            partition=output.partition,
        )
    producer.close()


@pytest.fixture
def letters(settings):
    """Hostile letters of clicks with key and headers, one of queries, one cut off."""
    outputs = [
        dead_letter(Origin(CLICKS, 1, n, 0), value, reason(f"code-{n % 2}"),
                           b"key", (("mine", b"\x00\x1b"),))
        for n, value in enumerate(HOSTILE)
    ]  # fmt: skip
    outputs.append(dead_letter(Origin(QUERIES, 0, 4, 2), b"junk", reason("not-json")))
    cut = reason("too-large") | {"truncated": "true"}
    outputs.append(dead_letter(Origin(QUERIES, 0, 5, 0), b"cut o", cut))
    write(settings, outputs)
    return outputs


@pytest.mark.broker
@pytest.mark.usefixtures("letters")
def test_letters_are_read_with_their_own_bytes(settings):
    """Our headers are told apart from theirs; places name them."""
    with TopicReader(settings) as reader:
        found = list(read_letters(reader, sources=[CLICKS]))
        assert [letter.value for letter in found] == list(HOSTILE)
        assert {letter.headers for letter in found} == {(("mine", b"\x00\x1b"),)}
        assert {letter.key for letter in found} == {b"key"}
        assert found[2].reasons == {"topic": CLICKS, "partition": "1", "offset": "2",
                                    "index": "0"} | reason("code-0")  # fmt: skip
        assert read_letter(reader, found[3].place) == found[3]
        assert len(list(read_letters(reader, code="code-1"))) == len(HOSTILE) // 2
        assert counts(read_letters(reader)) == {
            (CLICKS, "validate", "code-0"): 4,
            (CLICKS, "validate", "code-1"): 4,
            (QUERIES, "validate", "not-json"): 1,
            (QUERIES, "validate", "too-large"): 1,
        }
        for place in ("clicks/1/99", "clicks/x", "events/0/0", "clicks/0/0"):
            with pytest.raises(NoSuchLetter):
                read_letter(reader, place)


def test_the_outlook_is_that_of_the_join():
    """Late where the window closed, orphan where the disorder passed, cut off, junk."""
    values = {
        QUERIES: [b'{"at_ms": 0, "shown": []}', b'{"at_ms": 1, "shown": []}'],
        CLICKS: [b'{"at_ms": 270}', b'{"at_ms": 271}', b"junk"],
    }
    cut = ((HEADER_PREFIX + "truncated", b"true"),)
    found = [
        letter_of(source, Record(0, 0, 0, None, value, ()))
        for source, each in values.items()
        for value in each
    ]
    found.append(letter_of(CLICKS, Record(0, 0, 0, None, b"cut", cut)))
    expected = outlook(found, reached_ms=300, **TIMES)
    assert (expected.letters, expected.sendable) == (6, 5)
    assert (expected.too_late, expected.unrecognised, expected.truncated) == (2, 1, 1)
    fresh = outlook(found, reached_ms=None, **TIMES)
    assert fresh.too_late == 0
    assert [
        outlook(found, reached_ms=None, **TIMES | {"now_ms": now_ms}).too_early
        for now_ms in (259, 260, 261)
    ] == [2, 1, 0]


@pytest.fixture
def run(settings, monkeypatch, capfd):
    """The command in this namespace; returns status, output and errors."""
    monkeypatch.setenv("RANKSTREAM_KAFKA__BOOTSTRAP", settings.kafka.bootstrap)
    monkeypatch.setenv("RANKSTREAM_KAFKA__INPUT_PARTITIONS", "2")
    monkeypatch.setenv("COLUMNS", "200")

    def command(**options):
        arguments = {
            "config": None, "namespace": settings.namespace, "place": None,
            "topic": None, "code": None, "limit": 50, "raw": False, "dry_run": False,
            "json": False,
        }  # fmt: skip
        status = dlq.run(argparse.Namespace(**(arguments | options)))
        printed = capfd.readouterr()
        return status, printed.out, printed.err

    return command


@pytest.mark.broker
@pytest.mark.usefixtures("letters")
def test_the_command_shows_anything_without_harm(run):
    """No escape sequence and no markup of a letter reaches the terminal."""
    for options in ({"action": "list"}, {"action": "count"}):
        status, out, _ = run(**options)
        assert status == 0
        assert "\x1b[31m" not in out
    _, listed, _ = run(action="list")
    assert "[bold red]x" in listed
    assert "why [code-1]" in listed
    _, shown, _ = run(action="show", place="clicks/1/4")
    assert "code-0" in shown
    assert r"\x1b[31mred" in shown
    _, raw, _ = run(action="show", place="clicks/1/6", raw=True)
    assert raw.encode() == HOSTILE[6]
    status, _, err = run(action="list", code="none")
    assert (status, err) == (1, "there are no such dead letters\n")
    with pytest.raises(ValueError, match="needs a place"):
        run(action="show")


@pytest.mark.broker
@pytest.mark.usefixtures("letters")
def test_replayed_letters_are_the_original_bytes(run, settings):
    """Said first how many; a dry run sends nothing; cut ones stay."""
    status, _, err = run(action="replay", dry_run=True)
    assert status == 0
    assert err.startswith("9 of 10 dead letters can be sent again; 0 of them are too")
    assert list(read_records(settings, CLICKS)) == []
    status, _, err = run(action="replay")
    assert status == 1
    assert "9 dead letters acknowledged" in err
    assert "1 are cut off" in err
    again = list(read_records(settings, CLICKS))
    assert [record.value for record in again] == list(HOSTILE)
    assert {(r.key, r.headers) for r in again} == {(b"key", (("mine", b"\x00\x1b"),))}
    (query,) = read_records(settings, QUERIES)
    assert (query.value, query.key, query.headers) == (b"junk", None, ())
    assert json.loads(again[6].value or b"")["at_ms"] == 5
    assert len(list(read_records(settings, dead_letters(CLICKS)))) == len(HOSTILE)


@pytest.mark.broker
def test_letters_whose_time_has_not_come_are_told_before_they_are_sent(run, settings):
    """They would come back; nothing is said of them where there are none."""
    ahead = time.time_ns() // 1_000_000 + 3_600_000
    values = [b'{"at_ms": %d}' % at_ms for at_ms in (5, ahead)]
    found = [
        dead_letter(Origin(CLICKS, 0, n, 0), value, reason("code"))
        for n, value in enumerate(values)
    ]
    write(settings, found[:1])
    _, _, err = run(action="replay", dry_run=True)
    assert "time.ahead_ms" not in err
    write(settings, found[1:])
    _, out, err = run(action="replay", dry_run=True, json=True)
    assert "1 are still further ahead than time.ahead_ms" in err
    assert json.loads(out)["too_early"] == 1


def test_a_narrow_terminal_cuts_no_word_of_a_reason(monkeypatch, capsys):
    """The columns that matter less go first."""
    monkeypatch.setenv("COLUMNS", "80")
    reason = "Object contains unknown field `impressions_of_the_list` - at `$`"
    reasons = {"code": "malformed", "exception.message": reason}
    letter = DeadLetter(
        CLICKS, 0, 17, 5, None, b'{"impression_id": "i"}' * 9, (), reasons
    )
    assert dlq._list([letter], argparse.Namespace(json=False)) == 0
    said = capsys.readouterr().out
    assert "`impressions_of_the_list`" in said
    assert "clicks/0/17" in said
    assert "\u2026" not in said
