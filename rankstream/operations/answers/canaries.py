"""What is going out of a model: begun, looked at, and ended by an operator."""

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec

from models.evaluation.canary import Judgement
from models.training.largest_loss import Fall
from producers.topic_reader import TopicReader
from rankstream.configuration.canary import CanarySettings
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.promotion import Candidate, PromotionRefused
from rankstream.settings import Settings
from rankstream.snapshots import Snapshot
from rankstream.wire.canaries import Canary
from rankstream.wire.changes import WITHDRAWN, Change
from rankstream.wire.topics import PREFERENCES, SNAPSHOTS
from streams.comparisons.canary_verdicts import judged
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import client_options
from streams.kafka.deployment.canary_change import Decided, begun, ended
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
        if _ranks(served) == _ranks(candidate.snapshot):
            raise ChangeRefused(
                f"a canary must rank otherwise than what is served; {candidate.name} "
                f"has the weights of {model}@{served.epoch}.{served.version}: nothing "
                "could be learned, and nothing was changed"
            )
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


def end(settings: Settings, wanted: Wanted) -> Change:
    """Serve it to nobody any more.

    Raises
    ------
    ChangeRefused, WriterFenced, KafkaError
    """
    model = wanted.model

    def make(records: ModelRecords) -> tuple[Change, list[Output]]:
        canary = records.canaries.get(model)
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
        raise ChangeRefused(
            f"a model must have one canary at a time; {canary.intervention} is going "
            f"out to {canary.share:.3g} of sessions: wait until it has ended, or end "
            f"it with `rankstream snapshots canary {model} --end`"
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


__all__ = ["CanaryState", "PromotionRefused", "begin", "end", "state"]
