"""Where answers come from: Kafka and Redis, the folder of a replay, or what was folded.

Kafka's client is not loaded for a folder, nor the runtime in process for Kafka.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from rankstream.operations.answers.folders import (
    CANDIDATES_FILE,
    SNAPSHOTS_FILE,
    statistics_in,
)
from rankstream.settings import Settings
from rankstream.wire.envelope import (
    CURVE,
    MAGIC,
    Pointer,
    Snapshot,
    SnapshotError,
    decode_snapshot,
    pointer_of,
)
from rankstream.wire.models.deployments import fitted_groups, learned_models
from rankstream.wire.nearest_name import suggestion
from rankstream.wire.topics import CANDIDATES, SNAPSHOTS, STATISTICS
from streams.statistics.reader import Statistics
from streams.training.model_lists import LearnedOnline

Items = Iterable[tuple[bytes, bytes | None]]

Snapshots = Mapping[bytes, bytes]
"""Envelopes by the names of their models."""


class LoggingPolicies(NamedTuple):
    """What is known of the policies that logged.

    Parameters
    ----------
    models
        Names of models that learn online.
    fitted_on
        Groups whose clicks an intervention was chosen from; see
        `models.estimators.adaptivity.basis_of`.
    """

    models: Container[str] = ()
    fitted_on: Mapping[str, frozenset[int] | None] = {}


@dataclass(frozen=True)
class CountedLog:
    """A log and what is known of its policies; all of it is read when it is asked for.

    Parameters
    ----------
    statistics
        What was counted.
    policies
        What is known of the policies that logged.
    candidates
        Gives keys and values of `candidates`, anew with each call.
    snapshot
        Gives a model's snapshot: of a version, or the one that is served.
    versions
        Gives keys and values of `snapshots`; None where there are no versions, as of
        a log in files.
    n_partitions
        Of `candidates`.
    is_of_kafka
        Whether it is what workers counted.
    """

    settings: Settings
    statistics: Statistics
    policies: LoggingPolicies
    candidates: Callable[[], Items]
    snapshot: Callable[[str, Pointer | None], Snapshot]
    versions: Callable[[], Items] | None
    n_partitions: int
    is_of_kafka: bool = False


def source_of(settings: Settings, folder: Path | None = None) -> CountedLog:
    """What workers counted, or what `replay --local --out` left in a folder.

    Raises
    ------
    ValueError
        Where the folder is not what it must be.
    """
    return _of_kafka(settings) if folder is None else _of_folder(settings, folder)


def counted_records(settings: Settings, folder: Path | None = None) -> Items:
    """Records of `statistics` as they are, from where `source_of` takes them.

    Raises
    ------
    ValueError
        As `source_of`.
    """
    if folder is not None:
        return _read(statistics_in(folder))
    return _records_of_kafka(settings, STATISTICS)


def source_of_replay(
    settings: Settings,
    statistics: Statistics,
    candidates: Callable[[], Items],
    snapshots: Snapshots,
    *,
    n_partitions: int,
) -> CountedLog:
    """What was folded in this process.

    Parameters
    ----------
    settings
        Those that it was folded under.
    """

    def learned() -> Iterable[str]:
        return _learned(map(decode_snapshot, snapshots.values()))

    return CountedLog(
        settings,
        statistics,
        LoggingPolicies(LearnedOnline(settings, learned)),
        candidates,
        partial(_among, snapshots),
        None,
        n_partitions,
    )


def _records_of_kafka(
    settings: Settings, topic: str
) -> Iterator[tuple[bytes, bytes | None]]:
    from producers.topic_reader import read_topic  # noqa: PLC0415

    for _, _, key, value in read_topic(settings, topic):
        if key is not None:
            yield key, value


def _of_kafka(settings: Settings) -> CountedLog:
    records = partial(_records_of_kafka, settings)
    deployed = DeployedGroups(settings)
    return CountedLog(
        settings,
        Statistics(records(STATISTICS)),
        LoggingPolicies(LearnedOnline(settings, deployed.learned), deployed),
        partial(records, CANDIDATES),
        partial(_in_redis, settings),
        partial(records, SNAPSHOTS),
        settings.kafka.partitions,
        is_of_kafka=True,
    )


def _in_redis(settings: Settings, model: str, place: Pointer | None) -> Snapshot:
    """A snapshot as `rankstream snapshots show` finds it."""
    from rankstream.operations.answers.models.snapshots import (  # noqa: PLC0415
        opened_store,
        snapshot_at,
    )

    with opened_store(settings) as store:
        found = snapshot_at(store, model, place)
        if found is None:
            known = store.models()
            there = ", ".join(known) or "none"
            meant = suggestion(model, known) or ": take one of these"
            raise ValueError(
                f"a model must have a snapshot in Redis, as {there}; {model!r} has "
                f"none{meant}, or a file of rankings"
            )
        return found


def _of_folder(settings: Settings, folder: Path) -> CountedLog:
    def features() -> Items:
        # A training leaves what it read; a replay leaves none.
        if (file := folder / CANDIDATES_FILE).exists():
            return _read(file)
        raise ValueError(
            "features of candidates must be there for a model to be valued; a folder "
            "of `replay --local` has none: give the events themselves with --log, or "
            "a file of rankings"
        )

    def snapshot(model: str, place: Pointer | None) -> Snapshot:
        return _among(dict(_snapshots_in(folder)), model, place)

    return CountedLog(
        settings,
        Statistics(_read(statistics_in(folder))),
        LoggingPolicies(LearnedOnline(settings, partial(learned_in, folder))),
        features,
        snapshot,
        partial(_snapshots_in, folder),
        settings.kafka.partitions,
    )


def _read(file: Path) -> Iterator[tuple[bytes, bytes]]:
    from streams.local import read_changes  # noqa: PLC0415

    yield from read_changes(file)


def _snapshots_in(folder: Path) -> Iterator[tuple[bytes, bytes]]:
    """Snapshots of a replay; none where it has no file of them."""
    file = folder / SNAPSHOTS_FILE
    if file.exists():
        yield from _read(file)


def _among(snapshots: Snapshots, model: str, place: Pointer | None) -> Snapshot:
    """A snapshot of those that a replay left, one of each model."""
    value = snapshots.get(model.encode())
    if value is None:
        known = sorted(key.decode() for key in snapshots)
        meant = suggestion(model, known) or ": name settings that have it with --config"
        raise ValueError(
            f"a model must be one that the replay has, {', '.join(known) or 'none'}; "
            f"got {model!r}{meant}"
        )
    found = decode_snapshot(value)
    if place not in (None, pointer_of(found)):
        raise ValueError(
            f"a replay has one version of {model!r}, {pointer_of(found)}; got {place}: "
            "leave the version out, or read Kafka's log"
        )
    return found


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
    try:
        snapshots = [decode_snapshot(value) for _, value in _snapshots_in(folder)]
    except SnapshotError as error:
        raise ValueError(
            f"{folder / SNAPSHOTS_FILE} must hold snapshots; {error}: run the replay "
            "again"
        ) from error
    return _learned(snapshots)


def _learned(snapshots: Iterable[Snapshot]) -> frozenset[str]:
    """Models with a version that was learned online: it has no name of its own."""
    return frozenset(
        each.model
        for each in snapshots
        if each.version and not each.intervention and each.kind != CURVE
    )
