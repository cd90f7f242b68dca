"""Which versions of which models rankers can read, and whether they are whole."""

import contextlib
import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from producers.readiness import Waiting, wait_for_redis
from rankstream.configuration.models import PROMOTED
from rankstream.operations.answers.as_builtins import Answer
from rankstream.settings import Settings
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    SnapshotError,
    SnapshotStore,
    decode_at,
    parent_pointer,
    pointer_of,
    store_of,
)
from rankstream.wire.nearest_name import suggestion


@dataclass(frozen=True)
class Version(Answer):
    """One of a model, in short.

    Parameters
    ----------
    created
        In UTC, or that it is the first.
    bytes
        Of its weights.
    """

    model: str
    version: str
    updates: int
    created: str
    kind: str
    features: int
    bytes: int


@dataclass(frozen=True)
class VersionDetails(Version):
    """All that is known of one; see `rankstream.wire.envelope.Snapshot`."""

    intervention: str
    parent: str | None
    hidden: list[int]
    normalisation: str
    features_hash: str
    feature_names: list[str]
    is_shifted: bool
    is_scaled: bool
    groups: list[int]
    sources: list[list[object]]
    created_ms: int

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """Those of a snapshot."""
        parent = parent_pointer(snapshot)
        return cls(
            **version_of(snapshot).to_dict(),
            intervention=snapshot.intervention or snapshot.model,
            parent=None if parent is None else str(parent),
            hidden=snapshot.hidden,
            normalisation=snapshot.normalisation,
            features_hash=snapshot.features_hash.hex(),
            feature_names=snapshot.feature_names,
            is_shifted=bool(snapshot.shift),
            is_scaled=bool(snapshot.scale),
            groups=snapshot.groups,
            sources=[list(source) for source in snapshot.sources],
            created_ms=snapshot.created_ms,
        )


@dataclass(frozen=True)
class CheckedVersion(Answer):
    """Whether a stored version is good; if not, why."""

    model: str
    version: str
    verdict: str

    @property
    def is_good(self) -> bool:
        """Whether rankers take it."""
        return self.verdict == "good"


@dataclass(frozen=True)
class ServedVersion(Answer):
    """What is served of a model.

    Parameters
    ----------
    is_trained
        Whether a training made it, or a promotion: what is learned online and
        followed has no name of its own.
    """

    model: str
    version: str
    created_ms: int
    updates: int
    is_trained: bool


@contextlib.contextmanager
def opened_store(settings: Settings) -> Iterator[SnapshotStore]:
    """What Redis keeps; waits until it answers."""
    wait_for_redis(settings.redis.url, Waiting())
    with contextlib.closing(store_of(settings)) as store:
        yield store


def moment_of(at_ms: int | None) -> str:
    """A time in UTC to the second; empty where it is not known, as it is beyond years.

    Anybody who can write the topic may say any time.
    """
    if at_ms is None:
        return ""
    try:
        moment = datetime.datetime.fromtimestamp(at_ms / 1_000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at_ms:,} ms since 1970"
    return moment.isoformat(timespec="seconds")


def version_of(snapshot: Snapshot) -> Version:
    """A snapshot in short."""
    at_ms = snapshot.created_ms
    return Version(
        snapshot.model,
        str(pointer_of(snapshot)),
        snapshot.updates,
        moment_of(at_ms) if at_ms else "before the first",
        snapshot.kind,
        snapshot.n_features,
        len(snapshot.weights),
    )


def snapshot_at(
    store: SnapshotStore, model: str, place: Pointer | None
) -> Snapshot | None:
    """A version of a model, else the one that is served; None where none is.

    Raises
    ------
    SnapshotError
        Where it is not there, or damaged.
    StoreUnavailable
    """
    if place is not None:
        return decode_at(store.load(model, place) or b"", model, place)
    answer = store.current(model)
    return None if answer is None else decode_at(answer[1] or b"", model, answer[0])


def versions(store: SnapshotStore, model: str | None) -> list[Version]:
    """Every version of a model, the newest first; of all models those that are served.

    Raises
    ------
    SnapshotError, StoreUnavailable
    """
    if model is None:
        found = [snapshot_at(store, each, None) for each in store.models()]
        return [version_of(snapshot) for snapshot in found if snapshot is not None]
    loaded = [(at, store.load(model, at)) for at in reversed(store.versions(model))]
    # A publisher may have trimmed the oldest since the list was read.
    return [version_of(decode_at(value, model, at)) for at, value in loaded if value]


def checked_versions(
    store: SnapshotStore, models: Sequence[str]
) -> list[CheckedVersion]:
    """Every stored version of models.

    Raises
    ------
    StoreUnavailable
    """
    return [
        CheckedVersion(model, str(place), reason or "good")
        for model in models
        for place, reason in store.verify(model)
    ]


def served_versions(store: SnapshotStore) -> list[ServedVersion]:
    """What is served of each model; what is damaged is left out.

    Raises
    ------
    StoreUnavailable
    """
    found = []
    for model, pointer in sorted(store.standing(store.models()).items()):
        with contextlib.suppress(SnapshotError):
            snapshot = decode_at(store.load(model, pointer) or b"", model, pointer)
            found.append(
                ServedVersion(
                    model,
                    str(pointer),
                    snapshot.created_ms,
                    snapshot.updates,
                    bool(snapshot.groups and snapshot.intervention),
                )
            )
    return found


def check_known(settings: Settings, store: SnapshotStore, model: str) -> None:
    """Refuse a name that neither Redis nor the settings know.

    Raises
    ------
    ValueError
    """
    known = sorted({*store.models(), *settings.models, *settings.curves})
    if model not in known:
        raise ValueError(
            f"a model must be one of {known}, of Redis and the settings; got "
            f"{model!r}{suggestion(model, known)}"
        )


def held_until(settings: Settings, model: str) -> str:
    """What ends a rollback: learned versions lie in earlier epochs, and never do.

    The schedule of a training leaves alone what was rolled back, and a request trains
    it on, in a later epoch.
    """
    follow = f"`rankstream snapshots follow {model}`"
    own = settings.models.get(model)
    if own is not None and own.versions == PROMOTED:
        return f"until `rankstream snapshots promote {model}`"
    intervene = f"`rankstream intervene {model}`"
    if model not in settings.models | settings.curves:
        return f"until {follow}, or, if it is trained by a schedule, {intervene}"
    if model in settings.schedules:
        return f"and its schedule leaves it alone, until {intervene} trains it on"
    return f"until {follow}"
