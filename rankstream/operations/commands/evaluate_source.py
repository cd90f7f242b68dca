"""What `rankstream evaluate` reads: Kafka and Redis, a folder of a replay, or files."""

import argparse
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from producers.stop_signal import Stop
from rankstream.operations.commands.deployed_groups import DeployedGroups, learned_in
from rankstream.operations.commands.folded_log import folded_log
from rankstream.operations.commands.log_asked import has_files
from rankstream.operations.local_results import SNAPSHOTS_FILE, statistics_in
from rankstream.operations.relevance import Trust
from rankstream.settings import Settings
from rankstream.wire.envelope import (
    Pointer,
    Snapshot,
    decode_at,
    decode_snapshot,
    pointer_of,
)
from rankstream.wire.topics import CANDIDATES, STATISTICS
from streams.local import local_settings
from streams.statistics.reader import Statistics
from streams.training.feature_records import FeatureRecords
from streams.training.learned_online import LearnedOnline

Items = Iterable[tuple[bytes, bytes | None]]


class Source(NamedTuple):
    """A log and what is known of its policies.

    Parameters
    ----------
    statistics
        What was counted.
    candidates
        Gives keys and values of `candidates`, anew with each call.
    snapshot
        Gives a model's snapshot: of a version, or the one that is served.
    trust
        What is known of the policies that logged.
    n_partitions
        Of `candidates`.
    """

    statistics: Statistics
    candidates: Callable[[], Items]
    snapshot: Callable[[str, Pointer | None], Snapshot]
    trust: Trust
    n_partitions: int

    def features_for(self, snapshot: Snapshot) -> FeatureRecords:
        """Features of candidates, of the snapshot's list."""
        return FeatureRecords(
            self.candidates(),
            snapshot.features_hash,
            snapshot.n_features,
            n_partitions=self.n_partitions,
        )


def source_of(
    arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> Source | None:
    """The source that was asked for; None if stopped.

    Raises
    ------
    ValueError
        Where files or a folder are not what they must be.
    TopicUnreadable
    """
    if arguments.local is not None:
        if has_files(arguments):
            raise ValueError(
                "a log must be a folder or files; got --local beside --queries and "
                "--clicks: leave out one"
            )
        return _of_folder(arguments.local, settings)
    if has_files(arguments):
        return _of_files(arguments, settings, stop)
    return _of_kafka(settings)


def _of_kafka(settings: Settings) -> Source:
    # Kafka's client is not loaded for files.
    from producers.topic_reader import read_topic  # noqa: PLC0415

    def records(topic: str) -> Items:
        return (
            (key, value)
            for _, _, key, value in read_topic(settings, topic)
            if key is not None
        )

    deployed = DeployedGroups(settings)
    return Source(
        Statistics(records(STATISTICS)),
        partial(records, CANDIDATES),
        partial(_of_redis, settings),
        Trust(LearnedOnline(settings, deployed.learned), deployed),
        settings.kafka.partitions,
    )


def _of_redis(settings: Settings, model: str, place: Pointer | None) -> Snapshot:
    """A snapshot as `rankstream snapshots show` finds it."""
    from producers.readiness import Waiting, wait_for_redis  # noqa: PLC0415
    from rankstream.snapshots import store_of  # noqa: PLC0415

    wait_for_redis(settings.redis.url, Waiting())
    store = store_of(settings)
    try:
        if place is None:
            answer = store.current(model)
            if answer is None:
                known = ", ".join(store.models()) or "none"
                raise ValueError(
                    f"a model must have a snapshot in Redis, as {known}; {model!r} has "
                    "none: take one of these, or a file of rankings"
                )
            return decode_at(answer[1] or b"", model, answer[0])
        return decode_at(store.load(model, place) or b"", model, place)
    finally:
        store.close()


def _of_folder(folder: Path, settings: Settings) -> Source:
    # Kafka needs no such file.
    from streams.local import read_changes  # noqa: PLC0415

    def no_features() -> Items:
        raise ValueError(
            "features of candidates must be there for a model to be valued; a folder "
            "of `replay --local` has none: give the events themselves with --log, or "
            "a file of rankings"
        )

    file = folder / SNAPSHOTS_FILE
    snapshots = dict(read_changes(file)) if file.exists() else {}
    return Source(
        Statistics(read_changes(statistics_in(folder))),
        no_features,
        partial(_among, snapshots),
        Trust(LearnedOnline(settings, partial(learned_in, folder))),
        settings.kafka.partitions,
    )


def _of_files(
    arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> Source | None:
    """Events in files, or a dump of `events`, folded in this process."""
    log = folded_log(arguments, local_settings(settings), stop)
    if log is None:
        return None
    snapshots = log.replay.pipeline.snapshots

    def learned() -> Iterable[str]:
        found = (decode_snapshot(value) for value in snapshots.values())
        return [each.model for each in found if each.version]

    return Source(
        Statistics((change.key, change.value) for change in log.changes()),
        log.candidates.items,
        partial(_among, snapshots),
        Trust(LearnedOnline(settings, learned)),
        log.settings.kafka.partitions,
    )


def _among(
    snapshots: dict[bytes, bytes], model: str, place: Pointer | None
) -> Snapshot:
    """A snapshot of those that a replay left, one of each model."""
    value = snapshots.get(model.encode())
    if value is None:
        known = ", ".join(sorted(key.decode() for key in snapshots)) or "none"
        raise ValueError(
            f"a model must be one that the replay has, {known}; got {model!r}: name "
            "settings that have it with --config"
        )
    found = decode_snapshot(value)
    if place not in (None, pointer_of(found)):
        raise ValueError(
            f"a replay has one version of {model!r}, {pointer_of(found)}; got {place}: "
            "leave the version out, or read Kafka's log"
        )
    return found
