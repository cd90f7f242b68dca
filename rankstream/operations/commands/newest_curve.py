"""The newest curve of bias that a model published, for commands that correct by one."""

from collections.abc import Iterable
from pathlib import Path

from rankstream.operations.local_results import SNAPSHOTS_FILE
from rankstream.settings import Settings
from rankstream.wire.envelope import (
    CURVE,
    Snapshot,
    SnapshotError,
    decode_snapshot,
    pointer_of,
)
from rankstream.wire.topics import SNAPSHOTS

OPTION = "--curve"

HELP = (
    "a model whose learner is 'examination', of which the newest curve is taken "
    "(default: the only one of the settings, where it has a version)"
)


def curve_asked(
    settings: Settings, asked: str | None, folder: Path | None
) -> Snapshot | None:
    """The newest curve of the model that was asked for, else of the only one.

    Parameters
    ----------
    folder
        What `replay --local --out` wrote; None for Kafka.

    Returns
    -------
    None where none was asked for, and there is no version of the only one.

    Raises
    ------
    ValueError
        Where the model is no curve, or has no version.
    """
    name = settings.only_curve if asked is None else asked
    if asked is not None and asked not in settings.curves:
        raise ValueError(
            f"{OPTION} must be a model whose learner is 'examination', of "
            f"{sorted(settings.curves)}; got {asked!r}"
        )
    if not name:
        return None
    found = newest_curve(_records(settings, folder), name)
    if found is None and asked is not None:
        raise ValueError(
            f"{OPTION} must have a version; {asked!r} has none yet: `rankstream "
            f"intervene {asked}` fits one"
        )
    return found


def newest_curve(
    records: Iterable[tuple[bytes | None, bytes | None]], name: str
) -> Snapshot | None:
    """The newest curve of a model among records of `snapshots`.

    What cannot be read, or is a ranker, is passed over.
    """
    newest: Snapshot | None = None
    for key, value in records:
        if key != name.encode() or value is None:
            continue
        try:
            found = decode_snapshot(value)
        except SnapshotError:
            continue
        is_own = found.model == name and found.kind == CURVE
        if is_own and (newest is None or pointer_of(newest) <= pointer_of(found)):
            newest = found
    return newest


def _records(
    settings: Settings, folder: Path | None
) -> Iterable[tuple[bytes | None, bytes | None]]:
    if folder is not None:
        # Kafka needs no such file.
        from streams.local import read_changes  # noqa: PLC0415

        file = folder / SNAPSHOTS_FILE
        yield from read_changes(file) if file.exists() else ()
        return
    from producers.topic_reader import read_topic  # noqa: PLC0415

    for _, _, key, value in read_topic(settings, SNAPSHOTS):
        yield key, value
