"""Whether a version is better than what is served, and its promotion."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import msgspec

from models.evaluation.promotion_looks import error_of_look, interval_of_look
from models.training.largest_loss import Fall
from rankstream.configuration.models import PROMOTED
from rankstream.operations.answers.as_builtins import as_builtins
from rankstream.operations.answers.models.deployment import Changed, made
from rankstream.operations.answers.policies import policies_of
from rankstream.operations.answers.sources import CountedLog
from rankstream.operations.answers.values import (
    Fitting,
    ValueOptions,
    values_of,
)
from rankstream.settings import Settings
from rankstream.snapshots import Pointer, Snapshot, SnapshotStore, decode_at, pointer_of
from rankstream.wire.models.changes import LOOKED
from rankstream.wire.models.changes import PROMOTED as WAS_PROMOTED
from rankstream.wire.nearest_name import suggestion
from streams.kafka.deployment.operator_change import ChangeRefused, Chosen, Wanted
from streams.training.model_records import ModelRecords

ALPHA = 0.05
"""How often one of all looks at what is served may promote what is no better."""


class PromotionRefused(RuntimeError):
    """A version may not be promoted to where it was to go.

    Operator action: name a model with `versions = "promoted"`, and a version that ranks
    by its features.
    """


@dataclass(frozen=True)
class Evidence:
    """By how much a version is better than what is served, on groups of neither.

    Parameters
    ----------
    difference, error
        Clicks per list, or what else `weights` says, and the standard error.
    degrees
        Of freedom of the error.
    groups
        Whose clicks it is from: neither version was fitted on them.
    estimator
        Of the values of items.
    lists
        That were counted in these groups, of candidates that both rank.
    reason
        Why there is no interval; empty where there is one.
    fall
        How far the version could fall behind what is served, whatever users like.
    """

    difference: float
    error: float
    degrees: int
    groups: tuple[int, ...]
    estimator: str
    lists: int
    reason: str
    fall: Fall

    def at_look(self, look: int) -> dict[str, Any]:
        """Figures of a look, as the history has them."""
        level = error_of_look(look, ALPHA)
        low, high = interval_of_look(self.difference, self.error, self.degrees, level)
        figures = {
            "difference": self.difference,
            "low": low,
            "high": high,
            "confidence": 1.0 - level,
            "look": look,
            "largest_loss": self.fall.largest_loss,
            "least_ratio": self.fall.least_ratio,
            "lists": self.lists,
            "groups": list(self.groups),
            "estimator": self.estimator,
        }
        return {k: v for k, v in figures.items() if not _is_endless(v)}


def _is_endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


class Candidate(NamedTuple):
    """A version that is to be promoted."""

    model: str
    snapshot: Snapshot

    @property
    def name(self) -> str:
        """MODEL@EPOCH.VERSION of where it comes from."""
        return f"{self.model}@{pointer_of(self.snapshot)}"


def candidate_of(
    settings: Settings, store: SnapshotStore, model: str, source: str, place: Pointer
) -> Candidate:
    """The version that is named, where it may be promoted to a model.

    Raises
    ------
    PromotionRefused, SnapshotError, StoreUnavailable
    """
    to = settings.models.get(model)
    promoted = [k for k, x in settings.models.items() if x.versions == PROMOTED]
    if to is None or to.versions != PROMOTED:
        raise PromotionRefused(
            f"a model must have versions = {PROMOTED!r} to be promoted to; {model!r} "
            f"has {'no section' if to is None else repr(to.versions)}: its learner "
            f"owns its name. Set models.{model}.versions, or name another"
            f"{suggestion(model, promoted)}"
        )
    envelope = store.load(source, place)
    if envelope is None:
        raise PromotionRefused(
            f"a version must be kept in Redis to be promoted; {place} of {source!r} is "
            f"not: `rankstream snapshots list {source}` has those that are; a model "
            "that learns online makes many, and redis.keep_versions says how many stay"
        )
    snapshot = decode_at(envelope, source, place)
    served = _served(store, model)
    if served is not None and _features(served) != _features(snapshot):
        raise PromotionRefused(
            f"a version must rank by the features of what is served; {source}@{place} "
            f"has {snapshot.n_features} and {model} has {served.n_features}, or others "
            "of that number: promote one that has the same"
        )
    return Candidate(source, snapshot)


def _features(snapshot: Snapshot) -> tuple[int, bytes]:
    return snapshot.n_features, snapshot.features_hash


def _served(store: SnapshotStore, model: str) -> Snapshot | None:
    answer = store.current(model)
    return None if answer is None else decode_at(answer[1] or b"", model, answer[0])


def evidence_of(
    source: CountedLog,
    candidate: Candidate,
    model: str,
    *,
    fitting: Fitting,
    valuing: Fitting,
) -> Evidence:
    """Value a version beside what is served, on groups that neither was fitted on.

    Raises
    ------
    NothingToValue
        Where no list tells of both.
    """
    policies = policies_of([candidate.name, model], source, {}, against=model)
    found = values_of(
        source, policies, ValueOptions(), fitting=fitting, valuing=valuing
    )
    (row,) = (each for each in found.rows if each.name == candidate.name)
    at = found.comparison.names.index(candidate.name)
    differences = found.comparison.differences
    reason = row.reason or differences.reasons[at]
    return Evidence(
        row.difference,
        math.nan if reason else float(differences.errors[at]),
        differences.degrees,
        found.question.groups,
        found.question.estimator,
        found.coverage.n_lists,
        reason,
        found.falls[candidate.name],
    )


def promote(
    settings: Settings,
    store: SnapshotStore,
    wanted: Wanted,
    candidate: Candidate,
    evidence: Evidence | None,
) -> Changed:
    """Serve a version under the name of a model, if its evidence holds.

    Parameters
    ----------
    evidence
        None: whatever the evidence, as `wanted.why` says.

    Raises
    ------
    ChangeRefused, WriterFenced, DeploymentRefused, KafkaError
    """
    choose = partial(_chosen, settings, wanted.model, candidate, evidence)
    return made(settings, store, wanted, choose)


def _chosen(
    settings: Settings,
    model: str,
    candidate: Candidate,
    evidence: Evidence | None,
    records: ModelRecords,
) -> Chosen:
    before = records.newest.get(model)
    if before is None:
        raise ChangeRefused(
            f"a model must have a version to be compared with; {model!r} has none: "
            "start the role `learn`, which publishes version 0"
        )
    told: dict[str, Any] = {"from": candidate.name}
    if evidence is None:
        return _promoted(settings, model, candidate, before, {**told, "forced": True})
    figures = evidence.at_look(records.history.n_looks(model) + 1)
    told |= as_builtins(figures)
    if evidence.reason:
        told["reason"] = evidence.reason
    if figures.get("low", -math.inf) > 0.0:
        return _promoted(settings, model, candidate, before, told)
    return Chosen(None, LOOKED, told)


def _promoted(
    settings: Settings,
    model: str,
    candidate: Candidate,
    before: Snapshot,
    told: dict[str, Any],
) -> Chosen:
    snapshot = msgspec.structs.replace(
        candidate.snapshot,
        model=model,
        epoch=before.epoch,
        parent=before.version,
        parent_epoch=before.epoch,
        log_candidates=settings.models[model].logs_candidates,
    )
    return Chosen(snapshot, WAS_PROMOTED, told)
