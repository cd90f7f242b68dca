"""The in-process runtime: the same stages, fed from a file or a simulation.

Needs nothing but Python. It gives byte for byte what the workers on Kafka give
for the same canonical log.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

from rankstream.private_files import created_privately
from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS, SNAPSHOTS
from streams.comparisons.comparison import Comparison
from streams.comparisons.preference_fold import comparison_key, read_records
from streams.fold.canonical_fold import CanonicalFold
from streams.ingest.ingest import END_HEADER
from streams.learning.learn import Learn
from streams.partition_fold import preferences_among
from streams.stage import Change, Output, SourceRecord, Stage
from streams.topology import STAGES, n_partitions_of, written_topics

RECORDS_AT_ONCE = 256
"""Input records that are taken before they are passed on."""

_length = struct.Struct("<I")


def local_settings(settings: Settings) -> Settings:
    """The same settings with one partition everywhere."""
    return settings.with_kafka(input_partitions=1, partitions=1, learner_partitions=1)


class LocalPipeline:
    """Every stage of the topology in one process, called one after another.

    It has no roles without stages: `snapshots` is what `publish` would write to Redis,
    `comparisons` what `evaluate` would judge.

    Parameters
    ----------
    settings
        Their partition counts hold: take `local_settings` for one of each, or
        those of a cluster to fold a log that was dumped from it.
    now
        When a record is appended, epoch milliseconds.
    on_output
        Is shown every record that a stage writes, in order.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        now: Callable[[], int],
        on_output: Callable[[Output], None] | None = None,
    ) -> None:
        self._now = now
        self._watchers = [on_output] if on_output is not None else []
        written = written_topics()
        self._ingests: dict[str, list[Stage]] = {}
        self._inner: dict[str, list[Stage]] = {}
        self._readers: dict[tuple[str, int], list[Stage]] = {}
        for kind in STAGES:
            stages = [
                kind.build(settings, partition)
                for partition in range(n_partitions_of(kind, settings.kafka))
            ]
            if kind.source in written:
                self._inner[kind.name] = stages
            else:
                self._ingests[kind.source] = stages
            for partition, stage in enumerate(stages):
                self._readers.setdefault((kind.source, partition), []).append(stage)
        self.folds = cast("list[CanonicalFold]", self._inner["fold"])
        self.learners = cast("list[Learn]", self._inner["learn"])
        self._is_past_ingestion = False
        self._offsets: dict[tuple[str, int], int] = {}
        self._waiting = 0
        self._turn = 0
        self.snapshots: dict[bytes, bytes] = {}

    def show_also(self, on_output: Callable[[Output], None]) -> None:
        """Show every record that a stage writes to one more, in order."""
        self._watchers.append(on_output)

    def start(self) -> None:
        """Publish version 0 of every model."""
        self._pass_on()

    def start_past_ingestion(self) -> None:
        """Publish version 0 of every model; records of a log follow, not of input."""
        self._is_past_ingestion = True
        self._pass_on()

    def send(
        self,
        topic: str,
        value: bytes,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        """Take an input record."""
        self._turn = (self._turn + 1) % len(self._ingests[topic])
        self._give(topic, self._turn, value, key, headers)
        self._waiting += 1
        if self._waiting >= RECORDS_AT_ONCE:
            self._pass_on()

    def end(self) -> None:
        """End every source, which closes all windows."""
        for topic, ingests in self._ingests.items():
            for partition in range(len(ingests)):
                self._give(topic, partition, b"", None, (END_HEADER,))
        self._pass_on()

    def flush(self) -> None:
        """Pass on what waits, so that snapshots are up to date."""
        self._pass_on()

    def fold_events(self, partition: int, value: bytes) -> None:
        """Take a record of a canonical log, without ingestion."""
        self._is_past_ingestion = True
        self._give(EVENTS, partition, value)
        self._waiting += 1
        if self._waiting >= RECORDS_AT_ONCE:
            self._pass_on()

    def fold_log(self, topic: str, partition: int, value: bytes) -> None:
        """Take a record of a log as it is, and pass on its outputs at once.

        Ingestion is skipped: it would write frontiers of its own between those of
        the log.

        Raises
        ------
        ValueError
            Where no stage reads this partition.
        """
        self._is_past_ingestion = True
        readers = self._readers.get((topic, partition))
        if readers is None:
            n_partitions = sum(name == topic for name, _ in self._readers)
            raise ValueError(
                f"a partition must be below {n_partitions}; got {partition} of {topic}"
            )
        self._give(topic, partition, value)
        for stage in readers:
            self._collect(stage)

    def counters(self) -> dict[str, int]:
        """Counts of all stages, added up; times are the least of the stages."""
        total: dict[str, int] = {}
        for stages in self._inner.values():
            for stage in stages:
                _add(total, stage.counters(), "")
        for ingests in self._ingests.values():
            for ingest in ingests:
                _add(total, ingest.counters(), "ingestion_")
        return total

    def statistics(self) -> Iterator[Change]:
        """The state of the statistics that changed since the last call."""
        for fold in self.folds:
            fold.settle()
            for change in fold.changes():
                if change.topic == "statistics":
                    yield change

    def comparisons(self) -> list[Comparison]:
        """Every epoch of every experiment, merged over the partitions."""
        values: dict[bytes, bytes] = {}
        for fold in self.folds:
            for comparison in preferences_among(fold.consumers).comparisons():
                key = comparison_key(
                    comparison.name, comparison.settings.epoch, fold.partition
                )
                values[key] = comparison.encoded()
        return read_records(values).comparisons

    def _give(
        self,
        topic: str,
        partition: int,
        value: bytes,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        place = (topic, partition)
        offset = self._offsets.get(place, -1) + 1
        self._offsets[place] = offset
        at_ms = self._now()
        record = SourceRecord(topic, partition, offset, at_ms, key, value, headers)
        for stage in self._readers[place]:
            stage.fold(record)

    def _pass_on(self) -> None:
        self._waiting = 0
        if not self._is_past_ingestion:
            for ingests in self._ingests.values():
                for ingest in ingests:
                    self._collect(ingest)
        for stages in self._inner.values():
            for stage in stages:
                self._collect(stage)

    def _collect(self, stage: Stage) -> None:
        for output in stage.outputs():
            for on_output in self._watchers:
                on_output(output)
            if output.value is None:
                continue
            if (output.topic, output.partition) in self._readers:
                self._give(output.topic, output.partition, output.value)
            elif output.topic == SNAPSHOTS:
                model, _, _ = (output.key or b"").rpartition(b"/")
                self.snapshots[model] = output.value


def _add(total: dict[str, int], counts: dict[str, int], prefix: str) -> None:
    for name, count in counts.items():
        known = total.get(prefix + name)
        if known is None:
            total[prefix + name] = count
        elif name.endswith("_ms"):
            total[prefix + name] = min(known, count)
        else:
            total[prefix + name] = known + count


def write_changes(path: Path, changes: Iterable[Change]) -> int:
    """Write the last value of each key, framed; returns how many there are.

    The owner of the file alone may read it.
    """
    last = {change.key: change.value for change in changes}
    kept = [(key, last[key]) for key in sorted(last) if last[key] is not None]
    partial = path.with_suffix(path.suffix + ".partial")
    with created_privately(partial) as file:
        for pair in kept:
            for part in pair:
                file.write(_length.pack(len(part or b"")) + (part or b""))
    partial.rename(path)
    return len(kept)


def read_changes(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """What `write_changes` wrote.

    Raises
    ------
    ValueError
        Where the file is cut off, or something else wrote it; nothing was handed on.
    """
    data = path.read_bytes()
    bounds, start = [], 0
    while start < len(data):
        first = start + _length.size
        length = int.from_bytes(data[start:first], "little")
        start = first + length
        bounds.append((first, start))
    if start > len(data) or len(bounds) % 2:
        raise ValueError(
            f"{path} must be whole, as `rankstream replay --local --out` wrote it; it "
            f"is cut off or damaged at byte {bounds[-1][0] - _length.size:,} of "
            f"{len(data):,}: run the replay again"
        )
    parts = [data[first:last] for first, last in bounds]
    yield from zip(parts[::2], parts[1::2], strict=True)
