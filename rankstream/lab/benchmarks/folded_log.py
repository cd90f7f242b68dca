"""The log of one partition, and its fold: no broker, no clock."""

from collections.abc import Iterable, Iterator

import numpy as np

from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.topics import EVENTS
from streams.fold.canonical_fold import CanonicalFold
from streams.partition_fold import partition_fold
from streams.stage import Change, SourceRecord

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
