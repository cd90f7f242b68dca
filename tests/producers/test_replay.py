"""Replay: pace, stop, resume, and what is refused."""

import json
import os
import time

import pytest

from producers.event_sink import EventTooLarge
from producers.replay import (
    Pace,
    ProgressFile,
    ProgressMismatch,
    TargetAhead,
    identity_of,
    progress_path,
    refuse_older,
    replay,
    utc,
)
from producers.stop_signal import Stop
from rankstream.wire.input_events import REFUSED_HEADER, Event
from rankstream.wire.topics import CLICKS, QUERIES

FLAT_OUT = Pace(None)


class Collected:
    """A sink that keeps what it takes; refuses what is called large."""

    def __init__(self, stop_after=None, stop=None):
        self.values = []
        self.headers = []
        self._stop_after = stop_after
        self._stop = stop

    def send(self, kind, value, key=None, headers=()):  # noqa: ARG002
        """Take or refuse one event."""
        self.headers.append(headers)
        if value == b"large":
            raise EventTooLarge("an event must fit; got large")
        self.values.append((kind, value))
        if len(self.values) == self._stop_after:
            self._stop.ask()

    def end(self):
        """Nothing."""


def events(n_events):
    """Events ten milliseconds apart."""
    return [Event(10 * n, QUERIES, b"%d" % n) for n in range(n_events)]


def test_stopped_and_resumed_equals_never_stopped():
    """At every place where it may stop."""
    log = events(20)
    whole = Collected()
    replay(log, whole, pace=FLAT_OUT, stop=Stop())
    for stop_after in range(1, 20):
        stop = Stop()
        first, second = Collected(stop_after, stop), Collected()
        state = replay(log, first, pace=FLAT_OUT, stop=stop)
        assert (state.done, state.is_complete) == (stop_after, False)
        state = replay(log, second, pace=FLAT_OUT, stop=Stop(), skip=state.done)
        assert (state.done, state.is_complete) == (20, True)
        assert first.values + second.values == whole.values


def test_what_could_not_be_adapted_goes_with_its_reason_and_waits_for_nothing():
    """Its time is no time: at the file's pace the next event would come in decades."""
    now_ms = 1_733_788_889_378
    refused = Event(0, CLICKS, b"x", "not-json: a document must be JSON")
    log = [refused, *(Event(now_ms + n, CLICKS, b"%d" % n) for n in range(3))]
    sink = Collected()

    state = replay(log, sink, pace=Pace(1.0), stop=Stop())

    assert state.is_complete
    header = (REFUSED_HEADER, b"not-json: a document must be JSON")
    assert sink.headers == [(header,), (), (), ()]


def test_a_refused_event_is_counted_and_the_rest_goes_on():
    """With the reason of the first."""
    sink = Collected()
    log = [
        Event(0, QUERIES, b"a"),
        Event(1, QUERIES, b"large"),
        Event(2, QUERIES, b"b"),
    ]
    state = replay(log, sink, pace=FLAT_OUT, stop=Stop())
    assert [value for _, value in sink.values] == [b"a", b"b"]
    assert (state.done, state.refused) == (3, 1)
    assert state.first_refused.startswith("event 1: an event must fit")


def test_pace_follows_event_time():
    """At a multiple of its speed, and never before."""
    started = time.monotonic()
    replay(events(31), Collected(), pace=Pace(1.0), stop=Stop())
    assert time.monotonic() - started >= 0.3
    pace = Pace(2.0)
    assert pace.due_in_s(1_000_000) == 0.0
    assert 4.0 < pace.due_in_s(1_010_000) <= 5.0
    assert pace.due_in_s(990_000) == 0.0
    with pytest.raises(ValueError, match="speed"):
        Pace(0.0)


def test_an_older_file_than_the_target_is_refused():
    """Naming the option that helps."""
    refuse_older(1_000, None, namespace="")
    refuse_older(1_000, 1_000, namespace="")
    refuse_older(None, 1_000, namespace="")
    with pytest.raises(TargetAhead, match="--namespace"):
        refuse_older(999, 1_000, namespace="shop")


def test_progress_survives_and_is_that_of_one_replay_only(tmp_path):
    """A changed file, option or target is refused, as is a damaged record."""
    log = tmp_path / "log.jsonl"
    log.write_text("{}")
    identity = identity_of([log], options={"form": "auto"}, target="here")
    path = tmp_path / "state" / "progress.json"
    assert ProgressFile(path, identity).load() == (0, False)
    ProgressFile(path, identity).save(17)
    assert ProgressFile(path, identity).load() == (17, False)
    ProgressFile(path, identity).save(20, is_complete=True)
    assert ProgressFile(path, identity).load() == (20, True)
    os.utime(log, ns=(1, 1))
    other = identity_of([log], options={"form": "auto"}, target="here")
    with pytest.raises(ProgressMismatch, match="changed: files"):
        ProgressFile(path, other).load()
    with pytest.raises(ProgressMismatch, match="changed: target"):
        ProgressFile(path, identity | {"target": "there"}).load()
    path.write_text(json.dumps([1]))
    with pytest.raises(ProgressMismatch, match="readable"):
        ProgressFile(path, identity).load()


def test_each_target_has_its_own_progress(tmp_path, monkeypatch):
    """In the user's state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    log = tmp_path / "log.jsonl"
    log.write_text("{}")
    paths = {
        progress_path(identity_of([log], options={}, target=target))
        for target in ("a", "b")
    }
    assert len(paths) == 2
    assert {path.parent for path in paths} == {tmp_path / "rankstream"}


def test_times_are_readable():
    """Also those that no calendar has."""
    assert utc(1_577_836_800_007) == "2020-01-01 00:00:00.007 UTC"
    assert utc(10**30) == f"{10**30} ms"
