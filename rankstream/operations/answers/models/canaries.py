"""What is going out of a model: begun, looked at, and ended by an operator."""

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any

import msgspec

from models.evaluation.canary_judgement import Judgement
from models.training.largest_loss import Fall
from producers.topic_reader import TopicReader
from rankstream.configuration.canary import CanarySettings
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.models.promotion import Candidate
from rankstream.settings import Settings
from rankstream.snapshots import Snapshot, SnapshotStore, decode_at, pointer_of
from rankstream.wire.models.canaries import Canary, decode_canary
from rankstream.wire.models.changes import WITHDRAWN, Change
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import PREFERENCES, SNAPSHOTS
from streams.comparisons.canary_verdicts import judged
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import client_options
from streams.kafka.deployment.canary_change import (
    Decided,
    begun,
    ended,
    removed,
)
from streams.kafka.deployment.operator_change import (
    ChangeRefused,
    Wanted,
    check_seen,
    write_once,
)
from streams.stage import Output
from streams.training.model_records import ModelRecords


@dataclass(frozen=True)
class CanaryState(Answer):
    """A version that is going out, and what was counted of it.

    Parameters
    ----------
    canary, before
        MODEL@EPOCH.VERSION, and EPOCH.VERSION that all others are served.
    stage, stages, share
        The present one, of how many, and its share of sessions.
    begun_ms
        When this stage began.
    judgement
        By all lists so far.
    """

    canary: str
    before: str
    stage: int
    stages: int
    share: float
    begun_ms: int
    judgement: Judgement

    def to_dict(self) -> dict[str, Any]:
        """It by names, with the verdict in words."""
        return {**super().to_dict(), "words": self.judgement.words}

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`."""
        return {**super().gives(), "words": str}


def check_new(store: SnapshotStore, wanted: Wanted, candidate: Candidate) -> None:
    """Refuse early what `begin` would refuse after a while, by what Redis has.

    Raises
    ------
    ChangeRefused, StoreUnavailable
    """
    found = store.newest(wanted.model)
    if found is None:
        return
    if found.canary:
        with contextlib.suppress(SchemaRefused, msgspec.DecodeError):
            _refuse_second(decode_canary(found.canary))
    served = decode_at(found.envelope or b"", wanted.model, found.pointer)
    _check_other(served, candidate)


def begin(
    settings: Settings, wanted: Wanted, candidate: Candidate, fall: Fall | None
) -> Change:
    """Serve a version to the first share of sessions.

    Parameters
    ----------
    fall
        How far it could fall behind what is served; None where no list tells.

    Raises
    ------
    ChangeRefused, WriterFenced, DeploymentRefused, KafkaError
    """
    model = wanted.model
    own = settings.models[model]
    rules = (own.canary or CanarySettings()).rules()

    def make(records: ModelRecords) -> tuple[Change, list[Output]]:
        check_seen(settings, wanted, records)
        served = records.newest.get(model)
        if served is None:
            raise ChangeRefused(
                f"a model must have a version to be compared with; {model!r} has none: "
                "start the role `learn`, which publishes version 0"
            )
        _check_alone(records, model)
        _check_other(served, candidate)
        _check_again(records, wanted, candidate)
        snapshot = msgspec.structs.replace(
            candidate.snapshot,
            model=model,
            epoch=served.epoch,
            parent=served.version,
            parent_epoch=served.epoch,
            log_candidates=own.logs_candidates,
        )
        told: dict[str, Any] = {"from": candidate.name}
        if fall is not None:
            told |= {"largest_loss": fall.largest_loss, "least_ratio": fall.least_ratio}
        decided = Decided(wanted.by, wanted.why, told)
        return begun(settings, records, snapshot, rules, decided)

    return _written(settings, model, make)


def going_out(settings: Settings, model: str) -> str:
    """The canary of a model, MODEL@EPOCH.VERSION; empty where there is none.

    Raises
    ------
    TopicUnreadable
    """
    records = ModelRecords(frozenset({model}))
    with TopicReader(settings) as reader:
        for record in reader.records(SNAPSHOTS):
            records.take_snapshot(record.key or b"", record.value)
    canary = records.canaries.get(model)
    return canary.intervention if canary else ""


def end(settings: Settings, wanted: Wanted, seen: str) -> Change:
    """Serve it to nobody any more.

    Parameters
    ----------
    seen
        The canary that is to end; empty of one that cannot be read.

    Raises
    ------
    ChangeRefused, WriterFenced, KafkaError
    """
    model = wanted.model

    def make(records: ModelRecords) -> tuple[Change, list[Output]]:
        canary = records.canaries.get(model)
        if canary is None and model in records.unreadable_canaries:
            decided = Decided(wanted.by, wanted.why, {"withdrew": "unreadable"})
            return removed(records, model, decided)
        if canary is not None and canary.intervention != seen:
            raise ChangeRefused(
                f"a canary must be the one that was seen when its end was decided; "
                f"{canary.intervention} goes out now, and {seen or 'none'} was seen: "
                f"look at `rankstream snapshots canary {model}`"
            )
        if canary is None:
            raise ChangeRefused(
                f"a model must have a canary to be ended; {model!r} has none: "
                f"`rankstream snapshots history {model}` tells how the last one ended"
            )
        return ended(records, canary, WITHDRAWN, Decided(wanted.by, wanted.why))

    return _written(settings, model, make)


def state(settings: Settings, model: str) -> CanaryState | None:
    """What is going out of a model; None where nothing is.

    Raises
    ------
    TopicUnreadable
    SchemaRefused, ValueError
        Where sums are those of another release, or lack a guardrail.
    """
    records = ModelRecords(frozenset({model}))
    values: dict[bytes, bytes] = {}
    with TopicReader(settings) as reader:
        for record in reader.records(SNAPSHOTS):
            records.take_snapshot(record.key or b"", record.value)
        canary = records.canaries.get(model)
        if canary is None:
            return None
        for record in reader.records(PREFERENCES):
            if record.value is None:
                values.pop(record.key or b"", None)
            else:
                values[record.key or b""] = record.value
    return _state(canary, judged(canary, values, settings))


def _state(canary: Canary, judgement: Judgement) -> CanaryState:
    return CanaryState(
        canary.intervention, canary.before, canary.stage, len(canary.rules.shares),
        canary.share, canary.begun_ms, judgement,
    )  # fmt: skip


def _check_alone(records: ModelRecords, model: str) -> None:
    canary = records.canaries.get(model)
    if canary is not None:
        _refuse_second(canary)
    if model in records.unreadable_canaries:
        raise ChangeRefused(
            f"a model must have one canary at a time; {model!r} has one that cannot be "
            f"read: end it with `rankstream snapshots canary {model} --end`"
        )


def _refuse_second(canary: Canary) -> None:
    raise ChangeRefused(
        f"a model must have one canary at a time; {canary.intervention} is going out "
        f"to {100.0 * canary.share:g} % of sessions: wait until it has ended, or end "
        f"it with `rankstream snapshots canary {canary.model} --end`"
    )


def _check_other(served: Snapshot, candidate: Candidate) -> None:
    if _ranks(served) == _ranks(candidate.snapshot):
        raise ChangeRefused(
            f"a canary must rank otherwise than what is served; {candidate.name} has "
            f"the weights of {served.model}@{pointer_of(served)}: nothing could be "
            "learned, and nothing was changed"
        )


def _check_again(records: ModelRecords, wanted: Wanted, candidate: Candidate) -> None:
    """Refuse a version that was withdrawn, unless there is a reason to try again."""
    changes = records.history.changes.get(wanted.model, {})
    begun = {
        each.version
        for each in changes.values()
        if each and each.evidence.get("from") == candidate.name
    }
    for number, each in changes.items():
        if each and each.what == WITHDRAWN and each.version in begun and not wanted.why:
            raise ChangeRefused(
                f"a version that was withdrawn must have a reason to go out again; "
                f"{candidate.name} was, in row {number} of `rankstream snapshots "
                f"history {wanted.model}`: say --why TEXT"
            )


def _ranks(snapshot: Snapshot) -> tuple[Any, ...]:
    """What decides the order of items."""
    return (
        snapshot.kind, snapshot.hidden, snapshot.normalisation, snapshot.weights,
        snapshot.shift, snapshot.scale,
    )  # fmt: skip


def _written(settings: Settings, model: str, make: Any) -> Change:
    cluster = Cluster(settings.namespace, client_options(settings.kafka), {})
    made, _ = asyncio.run(write_once(settings, cluster, model, make))
    return made
