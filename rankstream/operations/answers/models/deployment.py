"""What is served of a model, changed by an operator, and how it came to be so."""

import asyncio
import contextlib
import getpass
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from producers.topic_reader import TopicReader
from rankstream.configuration.models import ONLINE
from rankstream.operations.answers.as_builtins import Answer
from rankstream.redis_store.redis_scripts import CanarySwap, mark_of
from rankstream.settings import Settings
from rankstream.snapshots import (
    Pointer,
    SnapshotStore,
    StoreUnavailable,
    decode_at,
    pointer_from,
)
from rankstream.wire.models.changes import FOLLOWED, ROLLED_BACK, Change, History
from rankstream.wire.models.deployments import Deployment
from rankstream.wire.topics import SNAPSHOTS
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import client_options
from streams.kafka.deployment.operator_change import Chosen, Wanted, change
from streams.training.model_records import ModelRecords


class RollbackRefused(RuntimeError):
    """What was asked for cannot be served.

    Operator action: name a version that `rankstream snapshots list MODEL` shows.
    """


class Changed(NamedTuple):
    """What is served now, and whether rankers can read it already.

    Parameters
    ----------
    why_not_yet
        Why Redis does not have it; empty where it has.
    """

    change: Change
    why_not_yet: str

    @property
    def place(self) -> Pointer:
        """The version that is served."""
        return pointer_from(self.change.version.encode())


@dataclass(frozen=True)
class RecordedChange(Answer):
    """One row of a model's history.

    Parameters
    ----------
    number
        From 1 without a gap; None of what was deployed before changes were recorded.
    at_ms
        By the clock of who made it.
    """

    number: int | None
    at_ms: int | None
    what: str
    version: str
    before: str
    by: str
    why: str
    evidence: dict[str, Any]


def operator() -> str:
    """Who decides: the user of this process, at its machine."""
    user = "somebody"
    with contextlib.suppress(OSError, KeyError, ImportError):
        user = getpass.getuser()
    return f"{user}@{socket.gethostname()}"


def roll_back(
    settings: Settings, store: SnapshotStore, wanted: Wanted, version: Pointer
) -> Changed:
    """Serve an old version and stay there.

    Raises
    ------
    SnapshotError, StoreUnavailable, RollbackRefused, DeploymentRefused, ChangeRefused
    WriterFenced, KafkaError
    """
    model = wanted.model
    envelope = store.load(model, version)
    if envelope is None:
        raise RollbackRefused(
            f"a version must be kept in Redis; {version} of {model!r} is not: "
            f"`rankstream snapshots list {model}` has those that are"
        )
    snapshot = decode_at(envelope, model, version)
    return made(settings, store, wanted, lambda _: Chosen(snapshot, ROLLED_BACK))


def follow_again(settings: Settings, store: SnapshotStore, wanted: Wanted) -> Changed:
    """Serve what is learned again, now and from now on.

    Raises
    ------
    StoreUnavailable, RollbackRefused, DeploymentRefused, ChangeRefused, WriterFenced
    KafkaError
    """
    model = wanted.model
    own = settings.models.get(model)
    if model in settings.curves or (own is not None and own.versions != ONLINE):
        raise RollbackRefused(
            f"a model must learn online to be followed; {model!r} does not: roll back "
            "to the version that is to be served, or make another one with `rankstream "
            f"intervene {model}` or `rankstream snapshots promote {model}`"
        )

    def choose(records: ModelRecords) -> Chosen:
        learned = records.learned_last.get(model)
        if learned is None:
            raise RollbackRefused(
                f"a model must have been learned; {model!r} was not: "
                "`rankstream snapshots list` has those that were"
            )
        if not records.newest[model].epoch:
            raise RollbackRefused(
                f"a model must be rolled back; {model!r} is not: it follows what "
                "is learned already"
            )
        return Chosen(learned, FOLLOWED)

    return made(settings, store, wanted, choose)


def made(
    settings: Settings,
    store: SnapshotStore,
    wanted: Wanted,
    choose: Callable[[ModelRecords], Chosen],
) -> Changed:
    """Change what is served, in the topic and then in Redis.

    Where Redis does not answer, it is changed all the same: the role `publish` brings
    it there.
    """
    cluster = Cluster(settings.namespace, client_options(settings.kafka), {})
    change_made, envelope = asyncio.run(change(settings, cluster, wanted, choose))
    try:
        if envelope and "withdrew" in change_made.evidence:
            # Pointer and canary move as one, or not yet.
            found = store.newest(wanted.model)
            held = mark_of((found.canary if found else None) or b"")
            store.publish_with(wanted.model, [envelope], CanarySwap(held, b""))
        elif envelope:
            store.publish(envelope)
    except StoreUnavailable as error:
        return Changed(change_made, str(error))
    return Changed(change_made, "")


def history(settings: Settings, model: str) -> list[RecordedChange]:
    """What became of a model, the oldest first.

    Of releases before changes were recorded there is what was deployed, without who and
    why.

    Raises
    ------
    TopicUnreadable
    DeploymentRefused
        Where something else wrote a note of a deployment.
    """
    records, of_all = ModelRecords(frozenset({model})), History()
    with TopicReader(settings) as reader:
        for record in reader.records(SNAPSHOTS):
            key = record.key or b""
            of_all.take(key, record.value)
            records.take_snapshot(key, record.value)
    rows = [
        _row(number, found)
        for number, found in sorted(of_all.changes.get(model, {}).items())
    ]
    known = {f"{model}@{row.version}" for row in rows}
    noted = [x for x in records.deployments() if x.model == model]
    before = [_before(x) for x in noted if x.intervention not in known]
    return sorted(before, key=lambda row: row.at_ms or 0) + rows


def _row(number: int, found: Change | None) -> RecordedChange:
    if found is None:
        said = "cannot be read: run the release that wrote it"
        return RecordedChange(number, None, said, "", "", "", "", {})
    return RecordedChange(
        number, found.at_ms, found.what, found.version, found.before, found.by,
        found.why, found.evidence,
    )  # fmt: skip


def _before(noted: Deployment) -> RecordedChange:
    version = noted.intervention.rpartition("@")[2]
    return RecordedChange(None, noted.at_ms, "deployed", version, "", "", "", {})
