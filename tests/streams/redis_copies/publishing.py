"""The role `publish` without Kafka: what its topics have is told, turn by turn."""

import asyncio
from collections.abc import Mapping

from rankstream.experiment_records import ExperimentRecord, encode_record
from rankstream.snapshots import SnapshotStore, StoreUnavailable
from streams.kafka.committed_reader import CommittedBatch
from streams.roles.publisher import Publisher
from tests.snapshot_factory import envelope


class Publishing:
    """A publisher whose turns are taken by hand."""

    def __init__(self, store: SnapshotStore, *, keep: int = 4) -> None:
        self.publisher = Publisher(store, keep=keep)

    def give(self, *versions: int, model: str = "m", n_features: int = 3) -> None:
        """More of the topic of snapshots."""
        records: list[tuple[bytes | None, bytes | None]] = [
            (
                f"{model}/0.{version}".encode(),
                envelope(version, model=model, n_features=n_features),
            )
            for version in versions
        ]
        self._take(0, records)

    def show(self, records: Mapping[str, ExperimentRecord]) -> None:
        """More of the topic of experiments."""
        values = {name: encode_record(name, each) for name, each in records.items()}
        self._take(1, [(name.encode(), each) for name, each in values.items()])

    def turn(self) -> None:
        """Look at Redis, and write what it lacks.

        Raises
        ------
        StoreUnavailable
        """
        # Now, not when the second is over.
        self.publisher._checked_s = float("-inf")
        asyncio.run(self.publisher.turn(asyncio.Event()))

    def is_level(self) -> bool:
        """Whether Redis holds all of it, after another turn."""
        snapshots, experiments = self.publisher.snapshots, self.publisher.experiments
        try:
            self.turn()
            snapshots.compare(snapshots.look(snapshots.models()))
            return not snapshots.work() and not experiments.compare(experiments.look())
        except StoreUnavailable:
            return False

    def _take(
        self, source: int, records: list[tuple[bytes | None, bytes | None]]
    ) -> None:
        # The view of a compacted topic is replaced by what comes first.
        batch = CommittedBatch(records, at_end=True)
        self.publisher.take(self.publisher.sources[source], batch)
