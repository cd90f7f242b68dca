"""`--strict` with a worker that runs: the status tells what the join said."""

import subprocess
import sys
import time

import pytest

from rankstream.wire.events import encode_event
from tests.worker_process import PATIENCE_S, configured, running

pytestmark = pytest.mark.broker

START_MS = time.time_ns() // 1_000_000 - 3_600_000
BETWEEN_MS = 100_000
"""Silence closes the windows of a replay, and not those of the next one."""

N_LISTS = 40

# A stage that gets no core for as long is taken for idle, and what it brings is late.
TIMES = """[time]
click_window_ms = 20_000
disorder_ms = 2_000
idle_ms = 6_000
"""


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
        status, said = replay(log_of(tmp_path / "good.jsonl", 3, has_wrong=False))
        assert status == 0, said
