"""Which policies followed from clicks, and whose: read where somebody asks."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from rankstream.operations.local_results import SNAPSHOTS_FILE
from rankstream.settings import Settings
from rankstream.wire.deployments import fitted_groups, learned_models
from rankstream.wire.envelope import CURVE, MAGIC, SnapshotError, decode_snapshot
from rankstream.wire.topics import SNAPSHOTS


class DeployedGroups(Mapping[str, frozenset[int]]):
    """Groups by intervention; those that are not there are not known.

    The topic `snapshots`, which has all kept versions of all models, is read when the
    first name is asked for of which settings do not tell what it is.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _records(self) -> list[tuple[bytes, bytes]]:
        """Keys with their values, of snapshots only how they begin."""
        # Kafka's client is loaded only where it is needed.
        from producers.topic_reader import TopicReader  # noqa: PLC0415

        with TopicReader(self._settings) as reader:
            if not reader.partitions(SNAPSHOTS):
                return []
            records = (
                (x.key or b"", x.value or b"") for x in reader.records(SNAPSHOTS)
            )
            return [
                (key, MAGIC if value.startswith(MAGIC) else value)
                for key, value in records
                if value
            ]

    @cached_property
    def _groups(self) -> dict[str, frozenset[int]]:
        return fitted_groups(self._records)

    def learned(self) -> frozenset[str]:
        """Models that learned online, also such as no settings name any more."""
        return learned_models(self._records)

    def __getitem__(self, intervention: str) -> frozenset[int]:
        if "@" not in intervention:
            raise KeyError(intervention)
        return self._groups[intervention]

    def __iter__(self) -> Iterator[str]:
        return iter(self._groups)

    def __len__(self) -> int:
        return len(self._groups)


def learned_in(folder: Path) -> frozenset[str]:
    """Models that learned in a replay, whose last snapshots lie in its folder.

    Raises
    ------
    ValueError
        Where the file is damaged.
    """
    from streams.local import read_changes  # noqa: PLC0415  Kafka needs no such file

    file = folder / SNAPSHOTS_FILE
    if not file.exists():
        return frozenset()
    try:
        snapshots = [decode_snapshot(value) for _, value in read_changes(file)]
    except SnapshotError as error:
        raise ValueError(
            f"{file} must hold snapshots; {error}: run the replay again"
        ) from error
    return frozenset(
        each.model for each in snapshots if each.version and each.kind != CURVE
    )
