"""One partition's log for the fold alone, and the fold of it: no broker, no clock."""

import gc
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np

from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.topics import EVENTS
from streams.fold.canonical_fold import CanonicalFold
from streams.partition_fold import partition_fold
from streams.stage import Change, SourceRecord

Result = TypeVar("Result")

ONE_PARTITION = KafkaSettings(partitions=1, learner_partitions=1)


def folded_records(plan: Workload) -> Iterator[tuple[SourceRecord, int]]:
    """The records of a log of one partition, each with its number of events."""
    written = canonical_records(plan, np.random.default_rng(1))
    for offset, (partition, value, n_events) in enumerate(written):
        yield SourceRecord(EVENTS, partition, offset, 0, None, value, ()), n_events


def fold_all(
    settings: Settings, records: Iterable[SourceRecord]
) -> tuple[CanonicalFold, list[Change]]:
    """A fold that took all records, and its state; outputs are dropped."""
    fold = partition_fold(0, settings)
    for record in records:
        fold.fold(record)
        fold.outputs()
        fold.settle()
    return fold, list(fold.changes())


def in_fresh_process(work: Callable[..., Result], *arguments: object) -> Result:
    """What a function of a module gives in a process that has done nothing yet."""
    own = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=own) as pool:
        return pool.submit(work, *arguments).result()


def resident() -> int:
    """Bytes of this process in memory, after what is garbage has gone."""
    gc.collect()
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")
