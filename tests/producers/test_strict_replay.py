"""`--strict` with a worker that runs: the status tells what the join said."""

import subprocess
import sys
import time

import pytest

from producers.topic_reader import LogTime, TopicReader
from rankstream.settings import load_settings
from rankstream.wire.events import encode_event
from rankstream.wire.topics import EVENTS, LATE, worker_group
from tests.worker_process import PATIENCE_S, configured, running, waited_until

pytestmark = pytest.mark.broker

START_MS = time.time_ns() // 1_000_000 - 3_600_000
BETWEEN_MS = 100_000
"""Silence closes the windows of a replay, and not those of the next one."""

N_LISTS = 40

TIMES = """[time]
click_window_ms = 20_000
disorder_ms = 2_000
idle_ms = 1_000
"""
"""Sources are idle before each replay: one that ends must not pass time for all."""


def log_of(path, run, *, has_wrong):
    """Lists with a click each, and a click on an item that was not shown, or none."""
    events = []
    start_ms = START_MS + run * BETWEEN_MS
    for number in range(N_LISTS):
        list_id = {"impression_id": f"{run}-{number}", "query_id": f"q{number % 3}"}
        at_ms = start_ms + number
        events += [
            list_id | {"at_ms": at_ms, "shown": ["a", "b"]},
            list_id | {"at_ms": at_ms + 500, "position": 1},
        ]
    if has_wrong:
        wrong = {"impression_id": f"{run}-7", "query_id": "q1", "item_id": "z"}
        events.append(wrong | {"at_ms": start_ms + 900})
    path.write_bytes(b"\n".join(map(encode_event, events)))
    return path


def test_what_the_join_refuses_is_in_the_status(
    kafka, redis_server, namespace, tmp_path
):
    """However often it is asked, and with windows that stay open; nothing else is."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, TIMES)

    def replay(file, *words):
        command = [
            sys.executable,
            "-m",
            "rankstream",
            "replay",
            str(file),
        ]
        command += ["--strict", "--config", str(config), *words]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False,
            timeout=PATIENCE_S,
        )  # fmt: skip
        return done.returncode, done.stderr

    with running(config, tmp_path / "worker.log"):
        for run in range(3):
            file = log_of(tmp_path / "bad.jsonl", run, has_wrong=True)
            status, said = replay(file, "--no-end")
            assert status == 1, said
            # A worker that has only just been started may not be heard of in time.
            assert "1 dead letter: 1 not-shown" in said or not run, said
        for run in range(3, 6):
            status, said = replay(log_of(tmp_path / "good.jsonl", run, has_wrong=False))
            assert status == 0, said
    # All sources have ended, and what comes now is read when a worker is there again.
    status, said = replay(log_of(tmp_path / "good.jsonl", 6, has_wrong=False))
    assert "not read by ingestion yet: " in said
    settings = load_settings(config)
    with (
        running(config, tmp_path / "worker.log"),
        TopicReader(settings) as reader,
    ):
        waited_until(lambda: is_joined(reader, settings), tmp_path / "worker.log")
        assert not list(reader.records(LATE))


def is_joined(reader, settings):
    """Whether the join has read all, and the last replay was part of it."""
    ends = reader.written(EVENTS)
    if LogTime(reader).look() <= START_MS + 6 * BETWEEN_MS:
        return False
    fold = worker_group(settings.namespace, "fold")
    return reader.committed(fold, EVENTS, ends) == ends
