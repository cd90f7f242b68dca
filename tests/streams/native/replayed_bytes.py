"""A replay with a core that is named: `replayed_bytes LIBRARY INTO`.

All that a fold writes goes into a file: outputs, state at checkpoints, and what is
written after the state was taken back. Prints the counts of the replays, as JSON.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from rankstream.lab.benchmarks.workload import DISORDER_MS, Workload, canonical_elements
from rankstream.settings import KafkaSettings, Settings, TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    DETERMINISTIC,
    ENDED,
    LOGGED,
    PLACKETT_LUCE,
    SCHEMA,
    Element,
    Frontier,
    encode_record,
)
from rankstream.wire.topics import EVENTS
from streams.native import compiler
from streams.stage import Change, SourceRecord, referred

SETTINGS = Settings(
    kafka=KafkaSettings(partitions=1, learner_partitions=2),
    time=TimeSettings(
        click_window_ms=60_000,
        disorder_ms=DISORDER_MS,
        remember_ms=40_000,
        # Some of what is counted leaves before the end.
        keep_ms=120_000,
    ),
)
RECORD_ELEMENTS = 60
RECORDS_BETWEEN = 7
"""Checkpoints are so many records apart."""


def disordered(plan: Workload, seed: int) -> list[tuple[int, Element]]:
    """Events of a log: some early, some very late, some twice, some never."""
    rng = np.random.default_rng(seed)
    found = []
    for _, at_ms, element in canonical_elements(plan, rng):
        lag_ms = rng.choice((0, 5_000, 50_000, 150_000), p=(0.8, 0.16, 0.02, 0.02))
        found += [(at_ms + int(lag_ms), element)] * int(rng.choice((0, 1, 1, 1, 2)))
    return sorted(found, key=lambda pair: pair[0])


def records(policy: int) -> Iterator[SourceRecord]:
    """A log whose windows close while it goes on."""
    plan = Workload(
        1_500, policy, n_queries=40, per_second=4.0, n_features=policy % 2,
        n_partitions=1,
    )  # fmt: skip
    events = disordered(plan, seed=policy)
    for sequence, start in enumerate(range(0, len(events), RECORD_ELEMENTS), 1):
        part = events[start : start + RECORD_ELEMENTS]
        is_last = start + RECORD_ELEMENTS >= len(events)
        at_ms = part[-1][0] + (86_400_000 if is_last else -DISORDER_MS)
        frontier = Frontier(0, 1, at_ms, ENDED if is_last else ACTIVE)
        elements = [*(element for _, element in part), frontier]
        value = encode_record([SCHEMA, 0, sequence, elements])
        yield SourceRecord(EVENTS, 0, sequence, 0, None, value, ())


def replayed(policy: int) -> Iterator[object]:
    """All that is written; at each checkpoint another fold takes over. Counts last."""
    # Loads the core: not before it is named.
    from streams.partition_fold import partition_fold  # noqa: PLC0415

    fold = partition_fold(0, SETTINGS)
    state: dict[tuple[str, bytes], Change] = {}
    log: list[Change] = []
    for record in records(policy):
        fold.fold(record)
        log.append(referred(EVENTS, record.offset, record.value or b""))
        fold.settle()
        yield fold.outputs()
        if record.offset % RECORDS_BETWEEN == 0:
            changes = list(fold.changes())
            yield changes
            state |= {(change.topic, change.key): change for change in changes}
            before, fold = fold, partition_fold(0, SETTINGS)
            fold.restore([*state.values(), *log])
            if fold.fingerprint() != before.fingerprint():
                raise AssertionError("a fold taken back must be the one of before")
    fold.settle()
    yield [*fold.outputs(), *fold.changes(), fold.fingerprint()]
    yield fold.counters()


def main() -> None:
    """Replay a log of each policy."""
    library, into = sys.argv[1:]

    def chosen() -> str:
        return library

    vars(compiler)["library_name"] = chosen
    total: dict[str, int] = {}
    with Path(into).open("wb") as file:
        for policy in (LOGGED, DETERMINISTIC, PLACKETT_LUCE):
            for written in replayed(policy):
                file.write(msgspec.msgpack.encode(written))
                if isinstance(written, dict):
                    total |= {k: n + total.get(k, 0) for k, n in written.items()}
    from streams.native.core_library import core  # noqa: PLC0415

    json.dump({"library": core._name, **total}, sys.stdout)


if __name__ == "__main__":
    main()
