"""Lines of a worker's log about commits."""

import logging

import pytest

from streams.kafka.partitions.backlog import Commit
from streams.kafka.partitions.commit_lines import CommitLines
from streams.stage import Change, Output


def test_commits_of_a_minute_are_one_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first is told at once; what follows is summed up."""
    seconds = [100]
    monkeypatch.setattr(
        "streams.kafka.partitions.commit_lines.time.monotonic", lambda: seconds[0]
    )
    caplog.set_level(logging.INFO, "rankstream.commit")
    lines = CommitLines("events[2]")
    outputs = [Output("events", 2, None, b"one")] * 2
    changes = [Change("state", b"key", b"value")] * 3
    for number in range(61):
        commit = Commit(outputs, changes, [], is_checkpoint=number % 10 == 0)
        lines.take(10 + number, commit)
        seconds[0] += 1
    lines.take(71, Commit([], [], [], is_checkpoint=False))
    assert [record.getMessage() for record in caplog.records] == [
        "event=commits partition=events[2] offset=10 commits=1 outputs=2 "
        "checkpoints=1 state_records=3",
        "event=commits partition=events[2] offset=70 commits=60 outputs=120 "
        "checkpoints=6 state_records=18",
    ]
