"""When a role is done with a log: its resume positions reach the log's end.

A resume position is committed in one transaction with all that it covers. Silence says
nothing: on a busy machine a stage is silent while it has much left to do.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from producers.topic_reader import TopicReader
from rankstream.lab.benchmarks.pipeline_bed import BenchmarkFailed
from rankstream.settings import Settings
from streams.kafka.state.resume_position import POSITION_KEY, decode_position, start_of
from streams.worker_roles import kinds_of

PATIENCE_S = 900.0
"""So long no position may move: a worker may compile first, on a busy machine."""

LOOK_S = 0.5

TAIL_RECORDS = 8
"""A transaction ends with the resume position and a marker of Kafka's own.

Reading all of the state would take time from the stage that is measured.
"""

Offsets = Mapping[tuple[str, int], int]
"""By topic and partition."""


class ResumePositions:
    """Up to where the stages of a role have committed outputs and state.

    Parameters
    ----------
    reader
        Must be open for as long as this is called.
    """

    def __init__(self, reader: TopicReader, role: str) -> None:
        self._reader = reader
        self._kinds = kinds_of(role)
        self._known: dict[tuple[str, int], int] = {}

    def ends(self) -> dict[tuple[str, int], int]:
        """The offset behind the last record of each partition that has any."""
        return {
            (kind.source, partition): end
            for kind in self._kinds
            for partition, (first, end) in self._reader.bounds(kind.source).items()
            if end > first
        }

    def __call__(self) -> Offsets:
        """The first offset of each partition that its state does not cover."""
        for kind in self._kinds:
            for record in self._reader.last_records(kind.state_topics[0], TAIL_RECORDS):
                if record.key == POSITION_KEY and record.value is not None:
                    reached = start_of(decode_position(record.value))
                    self._known[kind.source, record.partition] = reached
        return self._known


def await_end(settings: Settings, role: str, check: Callable[[], Any]) -> None:
    """Wait until a role has folded its sources up to their present end.

    All that it writes is committed then, its state included.

    Parameters
    ----------
    check
        Raises where there is nothing to wait for any more.

    Raises
    ------
    BenchmarkFailed
        Where nothing moves for `PATIENCE_S`.
    """
    with TopicReader(settings) as reader:
        positions = ResumePositions(reader, role)
        await_positions(positions.ends(), positions, check)


def await_positions(
    ends: Offsets,
    positions: Callable[[], Offsets],
    check: Callable[[], Any],
    *,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Any] = time.sleep,
) -> None:
    """Wait until every position is at its end or behind it.

    Raises
    ------
    BenchmarkFailed
        Where none moves for `patience_s` seconds; names what was reached.
    """
    moved_s, known = clock(), dict[tuple[str, int], int]()
    while True:
        check()
        now = dict(positions())
        if all(now.get(place, -1) >= end for place, end in ends.items()):
            return
        if now != known:
            moved_s, known = clock(), now
        elif clock() - moved_s >= patience_s:
            raise BenchmarkFailed(_stuck(ends, now, patience_s))
        sleep(LOOK_S)


def _stuck(ends: Offsets, now: Offsets, patience_s: float) -> str:
    """What was reached and what was not."""
    reached: list[str] = []
    missing: list[str] = []
    for (topic, partition), end in sorted(ends.items()):
        got = now.get((topic, partition))
        into = missing if got is None or got < end else reached
        at = "no position" if got is None else f"{got:,}"
        into.append(f"{topic}[{partition}] at {at} of {end:,}")
    return (
        "resume positions must reach the end of their log; none moved for "
        f"{patience_s:,.0f} s: not at the end: {', '.join(missing)}; at the end: "
        f"{', '.join(reached) or 'none'}; give the machine to the benchmark alone"
    )
