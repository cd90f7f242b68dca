"""Live lines: pipes, files that grow, rotation."""

import json
import os
import threading
import time

import pytest

from producers.event_sink import EventTooLarge
from producers.feed import feed, lines_of_descriptor, lines_of_followed
from producers.formats.adapted import LiveAdapter
from producers.stop_signal import Stop
from rankstream.adapters.adapter import AdapterOptions
from rankstream.wire.topics import CLICKS, QUERIES
from tests.worker_process import PATIENCE_S

CLICK = b'{"impression_id": "i", "at_ms": 5, "position": 1}'
QUERY = b'{"impression_id": "i", "at_ms": 5, "shown": ["a"]}'


AT_S = 1_733_788_889


class Collected:
    """A sink that keeps what it takes."""

    def __init__(self):
        self.values = []

    def send(self, kind, value, key=None, headers=()):  # noqa: ARG002
        """Take one event; refuses what says so."""
        if b"large" in value:
            raise EventTooLarge("large")
        name = f"{kind} {headers[0][1].decode()}" if headers else kind
        self.values.append((name, value))

    def send_raw(self, kind, value):
        """Take bytes that may be no event."""
        self.values.append((f"{kind} raw", value))


def test_kinds_are_told_by_fields_and_nothing_is_dropped():
    """What is no event goes to ingestion too."""
    sink = Collected()
    large = CLICK.replace(b'"i"', b'"large"')
    fed = feed(iter([QUERY, CLICK, None, b"junk", large]), sink)
    assert sink.values == [(QUERIES, QUERY), (CLICKS, CLICK), ("clicks raw", b"junk")]
    assert (fed.lines, fed.unrecognised, fed.refused) == (4, 1, 1)


@pytest.mark.parametrize(
    "line",
    [
        QUERY.replace(b"5", b'"five"'),
        QUERY.replace(b'"at_ms": 5, ', b""),
        QUERY[:-1],
        b'{"impression_id": "i", "at_ms": 5.5, "candidates": ["a"]}',
    ],
)
def test_a_query_with_one_bad_field_dies_as_a_query(line):
    """It goes to ingestion of queries, whose dead letters keep it."""
    sink = Collected()
    feed(iter([line]), sink)
    assert sink.values == [("queries raw", line)]


def test_a_query_without_its_list_dies_as_a_query():
    """No click has candidates."""
    sink, line = Collected(), QUERY.replace(b"shown", b"candidates")
    feed(iter([line]), sink)
    assert sink.values == [(QUERIES, line)]


def test_a_named_kind_holds_for_every_line():
    """Ingestion judges."""
    sink = Collected()
    feed(iter([CLICK, b"junk"]), sink, kind="query")
    assert sink.values == [(QUERIES, CLICK), ("queries raw", b"junk")]


def test_lines_of_another_format_are_adapted_or_go_with_the_reason():
    """One line may hold several documents, and a click what its list was asked for."""
    sink = Collected()
    adapt = LiveAdapter("metarank", AdapterOptions())
    shown = (
        b'{"event": "ranking", "id": "r", "timestamp": 5, "items": [{"id": "a"}], '
        b'"fields": [{"name": "query", "value": "q"}]}'
    )
    click = (
        b'{"event": "interaction", "id": "e", "ranking": "r", "timestamp": 6, '
        b'"item": "a", "type": "click"}'
    )
    large = click.replace(b'"e"', b'"large"')
    lines = [b"[" + shown + b"," + click + b"]", b"junk", b'{"event": "item"}', large]

    fed = feed(iter(lines), sink, adapt=adapt)

    assert [name for name, _ in sink.values[:2]] == [QUERIES, CLICKS]
    assert len(sink.values) == 3
    assert sink.values[2][0].startswith(f"{CLICKS} not-json: ")
    assert sink.values[2][1] == b"junk"
    assert b'"query_id":"q"' in sink.values[1][1]
    assert (fed.lines, fed.refused, adapt.adapted.documents) == (4, 1, 5)
    assert (adapt.adapted.silent, adapt.adapted.refused) == (1, {"not-json": 1})


def test_lines_that_look_like_another_format_are_noted():
    """They go to the dead letters; their sender should hear of the option."""
    sink = Collected()
    fed = feed(iter([b'{"action_name": "click"}', b"junk"]), sink)
    assert (fed.unrecognised, fed.resembled) == (2, {"ubi": 1})


def test_the_first_time_in_another_unit_is_told_at_once():
    """Each unit once, and the lines are sent all the same."""
    heard = []
    lines = [QUERY.replace(b"5", b"%d" % at) for at in (AT_S, AT_S + 1, AT_S * 10**6)]
    feed(iter([CLICK, *lines]), Collected(), on_unit=lambda *told: heard.append(told))
    assert heard == [("s", AT_S), ("us", AT_S * 10**6)]


def test_a_unit_that_is_said_converts_our_own_events():
    """What is in another one goes with the reason."""
    sink = Collected()
    adapt = LiveAdapter("rankstream", AdapterOptions(time_unit="s"))
    lines = [QUERY.replace(b"5", b"%d" % at) for at in (AT_S, AT_S * 1_000)]
    feed(iter(lines), sink, adapt=adapt)
    (_, converted), (name, value) = sink.values
    assert json.loads(converted) == json.loads(QUERY) | {"at_ms": AT_S * 1_000}
    assert (name[:13], value) == ("queries time:", lines[1])


def test_a_pipe_gives_lines_as_they_come_and_ends():
    """Cut anywhere; the last line needs no end; silence is None."""
    reader, writer = os.pipe()
    was_silent = threading.Event()

    def write():
        for part in (b"on", b"e\ntwo\r\n\nth", b"ree"):
            os.write(writer, part)
            time.sleep(0.05)
        was_silent.wait(PATIENCE_S)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    lines = []
    for line in lines_of_descriptor(reader, Stop()):
        if line is None:
            was_silent.set()
        lines.append(line)
    thread.join()
    os.close(reader)
    assert [line for line in lines if line] == [b"one", b"two", b"three"]
    assert None in lines


def collect(path, steps, *, n_lines, **options):
    """Follow a file while `steps` happen; the lines until there are so many."""
    stop, found = Stop(), []
    steps = iter(steps)
    deadline = time.monotonic() + PATIENCE_S
    for line in lines_of_followed(path, stop, **options):
        if line is not None:
            found.append(line)
        else:
            next(steps, lambda: None)()
        if len(found) >= n_lines or time.monotonic() > deadline:
            stop.ask()
    return found


def test_a_followed_file_is_read_through_rotation(tmp_path):
    """Growth, a late last line, renaming and a new file: each line once, in order."""
    path = tmp_path / "log"

    def append(text, target=path):
        with target.open("a") as file:
            file.write(text)

    def rotate():
        path.rename(tmp_path / "log.1")
        append("three\n", tmp_path / "log.1")
        append("four\n")

    steps = [
        lambda: append("one\ntw"),
        lambda: append("o\n"),
        rotate,
        lambda: append("five\n"),
    ]
    found = collect(path, steps, n_lines=5)
    assert found == [b"one", b"two", b"three", b"four", b"five"]


def test_a_followed_file_that_is_cut_is_read_from_its_beginning(tmp_path):
    """As log rotation by copy and truncate does."""
    path = tmp_path / "log"
    path.write_text("one\ntwo\n")
    steps = [lambda: path.write_text("six\n")]
    assert collect(path, steps, n_lines=3) == [b"one", b"two", b"six"]


@pytest.mark.parametrize("from_end", [True, False])
def test_a_followed_file_may_be_taken_from_its_end(from_end, tmp_path):
    """Only what comes from now on."""
    path = tmp_path / "log"
    path.write_text("old\n")

    def append():
        with path.open("a") as file:
            file.write("new\n")

    found = collect(path, [append], n_lines=1 if from_end else 2, from_end=from_end)
    assert found == ([b"new"] if from_end else [b"old", b"new"])
