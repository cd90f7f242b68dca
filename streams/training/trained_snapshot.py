"""A snapshot trained from statistics and features: a pure function of what it is given.

Values of items are corrected under a curve of bias that training groups have no part
in, a linear ranker is trained on them from where the parent stands, stopped on queries
that it does not learn from, and brought to a temperature that explores. What it would
be clicked is estimated from groups that it has seen nothing of.
"""

import hashlib
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

import msgspec
import numpy as np

from models.counts.fixed_point import Int64
from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.splits import Shares, Splits, split_groups
from models.training.exploration import Exploration, explored
from models.training.linear_training import Epoch, Trained, TrainingPlan, train
from models.training.reward import Reward, estimated_reward
from rankstream.ranking.checked_weights import CheckedWeights, checked_weights
from rankstream.sections import ModelSettings, Settings, TrainingSettings
from rankstream.wire.envelope import (
    Pointer,
    Snapshot,
    SnapshotError,
    encode_snapshot,
    features_hash,
    intervention_of,
    pointer_of,
)
from rankstream.wire.training import (
    SCHEMA,
    CurveUsed,
    FeaturesUsed,
    Parent,
    RunRecord,
    sha256_of,
)
from streams.fold.native.placing import placements_of_scores
from streams.fold.statistics_columns import Columns
from streams.fold.statistics_reader import Statistics
from streams.training.estimated_curve import EstimatedCurve, estimated_curve
from streams.training.feature_records import FeatureRecords, features_used
from streams.training.gathering import FeaturesRefused, Gathered, Scaling
from streams.training.model_lists import scopes_for
from streams.training.query_sums import APART, SELECTED_ON, TRAINED_ON

GIVEN = "given"
"""The source of a curve that settings have."""


class TrainingRefused(RuntimeError):
    """A model cannot be trained from what there is, and the message says why.

    Operator action: as the message says; nothing was published.
    """


class Inputs(NamedTuple):
    """What a training reads.

    Parameters
    ----------
    statistics
        Of all partitions of `events`.
    features
        Of the model's list; see `feature_records_for`.
    """

    statistics: Statistics
    features: FeatureRecords

    @property
    def counts(self) -> dict[int, int]:
        """Interactions that were counted, by partition of `events`, sorted."""
        found: dict[int, int] = {}
        for one in self.statistics.counted:
            found |= one.sources
        return dict(sorted(found.items()))

    @property
    def watermarks(self) -> dict[int, int | None]:
        """That of each partition, sorted; None before there is one."""
        found = {
            source: one.watermark_ms
            for one in self.statistics.counted
            for source in one.sources
        }
        return dict(sorted(found.items()))

    @property
    def watermark_ms(self) -> int:
        """The least watermark; 0 before there is one."""
        known = [x for x in self.watermarks.values() if x is not None]
        return min(known, default=0)


class Progress(NamedTuple):
    """How far a training is.

    Parameters
    ----------
    stage
        `reading`, `epoch` or `judging`.
    number
        Queries that were read; the number of the epoch; else 0.
    loss, held_out_dcg
        Of the epoch.
    """

    stage: str
    number: int = 0
    loss: float | None = None
    held_out_dcg: float | None = None


class Outcome(NamedTuple):
    """A trained snapshot, and the record of how it came to be."""

    snapshot: Snapshot
    run: RunRecord


def list_hash(model: ModelSettings) -> bytes:
    """The hash of the model's list of features."""
    return features_hash(model.feature_names or model.features)


def feature_records_for(
    model: ModelSettings, items: Iterator[tuple[bytes, bytes | None]]
) -> FeatureRecords:
    """Those of records of `candidates` that a model is trained from."""
    return FeatureRecords(items, list_hash(model), model.features)


def features_known(name: str, model: ModelSettings, inputs: Inputs) -> FeaturesUsed:
    """Which records of features a training of these inputs reads."""
    is_wanted = scopes_for(name, model)
    wanted = (scope for scope in inputs.statistics.scopes() if is_wanted(scope))
    sets = (
        (query, [one.candidate_set for one in of_query if not one.is_growing])
        for query, of_query in groupby(wanted, lambda scope: scope.query)
    )
    return features_used(inputs.features, sets)


def train_model(
    name: str,
    settings: Settings,
    inputs: Inputs,
    parent: Snapshot,
    *,
    reason: str,
    epoch: int | None = None,
    on_progress: Callable[[Progress], object] = lambda _: None,
) -> Outcome:
    """Train the model of a name.

    Parameters
    ----------
    parent
        The snapshot that is served: training goes on from its weights.
    reason
        Why it is trained; see `rankstream.wire.training`.
    epoch
        Of the snapshot; if not given that of its parent, or the next one where the
        parent has this version, or a later one, already.
    on_progress
        Is told how far it is, from this thread; what it raises ends the training.

    Raises
    ------
    TrainingRefused
        Where nothing can be trained from this, in words.
    RuntimeError
        Where the folder for temporary files is full.
    """
    return _Run(name, settings, inputs, parent, on_progress).outcome(reason, epoch)


class _Run:
    def __init__(
        self,
        name: str,
        settings: Settings,
        inputs: Inputs,
        parent: Snapshot,
        on_progress: Callable[[Progress], object],
    ) -> None:
        self._name = name
        self._model = settings.models[name]
        self._plan: TrainingSettings = self._model.training
        self._shares = settings.statistics.split_shares
        self._inputs = inputs
        self._parent = parent
        self._tell = on_progress

    def outcome(self, reason: str, epoch: int | None) -> Outcome:
        weights = self._checked_parent()
        splits = self._splits()
        pointer = self._pointer(epoch)
        curve = self._curve()
        seen, free = self._groups(splits, curve)
        gathered = self._gathered(weights, splits, curve.curve, free)
        trained, made = self._trained(weights, gathered)
        reward = self._reward(made, gathered, curve.curve, free)
        snapshot = self._snapshot(pointer, made.weights, seen)
        run = RunRecord(
            schema=SCHEMA,
            model=self._name,
            intervention=snapshot.intervention,
            epoch=pointer.epoch,
            version=pointer.version,
            created_ms=snapshot.created_ms,
            reason=reason,
            counts=list(self._inputs.counts.items()),
            watermarks=list(self._inputs.watermarks.items()),
            features=gathered.features_used(),
            settings=msgspec.to_builtins(self._model),
            split_shares=list(self._shares),
            seed=self._plan.seed,
            parent=parent_of(self._parent),
            curve=curve_used(curve),
            groups=list(splits.training),
            sizes=gathered.sizes(self._plan.least_support),
            epochs=[
                (each.number, each.loss, each.held_out_dcg) for each in trained.epochs
            ],
            best_epoch=trained.best_epoch,
            scale=made.scale,
            temperature=made.temperature,
            least_exposure=made.least_exposure,
            reward=reward.clicks,
            reward_reason=reward.reason,
            sha256=sha256_of(encode_snapshot(snapshot)),
        )
        return Outcome(snapshot, run)

    def _checked_parent(self) -> CheckedWeights:
        model, parent = self._model, self._parent
        if model.kind != "linear":
            raise TrainingRefused(
                f"models.{self._name}.kind must be 'linear' to be trained from sums; "
                f"got {model.kind!r}: give the model another name and kind, or train "
                "another one"
            )
        expected = model.features, list_hash(model), model.kind, model.normalisation
        got = parent.n_features, parent.features_hash, parent.kind, parent.normalisation
        if expected != got:
            told = (*map(_told, (got, expected)),)
            raise TrainingRefused(
                f"version {pointer_of(parent)} of {self._name!r}, the parent, must be "
                f"of the model's list of features and form, {told[1]}; it is of "
                f"{told[0]}: restore models.{self._name}, or serve a version of them"
            )
        try:
            return checked_weights(parent, None)
        except SnapshotError as error:
            raise TrainingRefused(
                f"the parent of {self._name!r} must have finite weights; {error}: "
                "serve another version"
            ) from error

    def _splits(self) -> Splits:
        counted = self._inputs.statistics.counted
        if not sum(self._inputs.counts.values()):
            raise TrainingRefused(
                f"{self._name!r} must have interactions to be trained from; none are "
                "counted: wait until windows close"
            )
        shares = Shares(*self._shares, held_out=self._plan.held_out)
        try:
            return split_groups(counted[0].groups, shares)
        except ValueError as error:
            raise TrainingRefused(
                f"{self._name!r} cannot be trained: {error}"
            ) from error

    def _pointer(self, epoch: int | None) -> Pointer:
        version, parent = sum(self._inputs.counts.values()), self._parent
        if epoch is None:
            epoch = parent.epoch + (parent.version >= version)
        pointer = Pointer(epoch, version)
        if pointer <= pointer_of(parent):
            raise TrainingRefused(
                f"a version of {self._name!r} must come after its parent, "
                f"{pointer_of(parent)}; got {pointer}: train in epoch "
                f"{parent.epoch + 1}"
            )
        return pointer

    def _columns(self) -> Iterator[Columns]:
        is_wanted = scopes_for(self._name, self._model)
        return self._inputs.statistics.columns(is_wanted=is_wanted)

    def _curve(self) -> "_Known":
        if self._plan.examination:
            return _Known(position_curve(self._plan.examination), GIVEN, ())
        n_groups = self._inputs.statistics.counted[0].groups
        chunks = self._told_of(self._columns())
        curve, source, groups = estimated_curve(chunks, n_groups, Shares(*self._shares))
        if curve is None:
            raise TrainingRefused(
                f"clicks on lists of {self._sources()} must tell where users look from "
                "what they like; items were hardly clicked, or always stood at the "
                f"same ranks: set models.{self._name}.training.examination, or wait "
                "for lists that differ"
            )
        return _Known(curve, source, groups)

    def _told_of(self, chunks: Iterator[Columns]) -> Iterator[Columns]:
        for chunk in chunks:
            self._tell(Progress("reading"))
            yield chunk

    def _groups(
        self, splits: Splits, curve: "_Known"
    ) -> tuple[list[int], tuple[int, ...]]:
        """Whose clicks the snapshot is from, and selection groups that are free."""
        parent = self._parent
        if parent.version and not parent.groups:
            # Its clicks are of groups that nobody knows.
            return [], ()
        seen = {*splits.training, *curve.groups, *parent.groups}
        return sorted(seen), tuple(x for x in splits.selection if x not in seen)

    def _gathered(
        self,
        weights: CheckedWeights,
        splits: Splits,
        curve: BiasCurve,
        free: tuple[int, ...],
    ) -> Gathered:
        scaling = Scaling(weights, self._model.normalisation)
        gathered = Gathered(scaling, self._inputs.features, splits)
        split_of = _split_of(splits, free)
        try:
            gathered.take(
                self._columns(),
                curve,
                split_of,
                lambda n: self._tell(Progress("reading", n)),
            )
        except FeaturesRefused as error:
            raise TrainingRefused(
                f"{self._name!r} cannot be trained: {error}"
            ) from error
        self._check(gathered)
        return gathered

    def _check(self, gathered: Gathered) -> None:
        if not gathered.n_queries:
            raise TrainingRefused(
                f"{self._name!r} must have lists to be trained from; none of "
                f"{self._sources()} are counted: serve that model, or set "
                f"models.{self._name}.learns_from"
            )
        if gathered.n_queries == gathered.n_without_features:
            others = self._inputs.features.n_others
            more = (
                f"; {others:,} records are of other lists of features" if others else ""
            )
            raise TrainingRefused(
                f"{self._name!r} must have features to be trained from; none of its "
                f"{self._model.features} were logged with lists of {self._sources()}"
                f"{more}: rank by `rankstream.ranker`, whose lists have "
                "`candidate_features`, or log them as docs/events.md says"
            )
        for file, told, remedy in (
            (gathered.training, "to learn from", "lower"),
            (gathered.held_out, "held out, to tell where to stop", "raise"),
        ):
            if not file.n_impressions[TRAINED_ON]:
                raise TrainingRefused(
                    f"{self._name!r} must have queries {told}; none has lists of the "
                    f"training groups and features: wait for more queries, or {remedy} "
                    f"models.{self._name}.training.held_out, {self._plan.held_out:g}"
                )

    def _trained(
        self, weights: CheckedWeights, gathered: Gathered
    ) -> tuple[Trained, Exploration]:
        plan = TrainingPlan(
            cutoff=self._plan.cutoff,
            epochs=self._plan.epochs,
            batch=self._plan.batch,
            learning_rate=self._plan.learning_rate,
            patience=self._plan.patience,
            least_gain=self._plan.least_gain,
            seed=self._plan.seed,
        )
        start = weights.weights.astype(np.float64)
        training, held_out = gathered.chunks(self._plan.least_support)
        try:
            trained = train(start, training, held_out, plan, on_epoch=self._tell_epoch)
            made = explored(
                trained.weights,
                training,
                temperature=self._plan.temperature,
                floor=self._plan.exposure_floor,
                cutoff=self._plan.cutoff,
                placements=placements_of_scores,
            )
        except ValueError as error:
            raise TrainingRefused(
                f"{self._name!r} cannot be trained: {error}"
            ) from error
        if not np.isfinite(made.weights).all():
            raise TrainingRefused(
                f"weights of {self._name!r} must be finite; training gave others: "
                f"lower models.{self._name}.training.learning_rate"
            )
        return trained, made

    def _tell_epoch(self, epoch: Epoch) -> None:
        told = Progress("epoch", epoch.number, epoch.loss, epoch.held_out_dcg)
        self._tell(told)

    def _reward(
        self,
        made: Exploration,
        gathered: Gathered,
        curve: BiasCurve,
        free: tuple[int, ...],
    ) -> Reward:
        self._tell(Progress("judging"))
        judged = gathered.judged(self._plan.least_support)
        if not free:
            return Reward(
                None, 0.0, "no selection group is left that it saw no clicks of"
            )
        if not judged.n_impressions:
            return Reward(None, 0.0, "the selection groups have no lists")
        return estimated_reward(
            made.weights,
            judged,
            curve,
            cutoff=self._plan.cutoff,
            most_unsupported=self._plan.most_unsupported,
            placements=placements_of_scores,
        )

    def _snapshot(
        self,
        pointer: Pointer,
        weights: np.ndarray[tuple[int], np.dtype[np.float64]],
        groups: list[int],
    ) -> Snapshot:
        parent, model = self._parent, self._model
        return Snapshot(
            model=self._name,
            epoch=pointer.epoch,
            version=pointer.version,
            parent=parent.version,
            created_ms=self._inputs.watermark_ms,
            kind=model.kind,
            hidden=model.hidden,
            normalisation=model.normalisation,
            n_features=model.features,
            features_hash=parent.features_hash,
            sources=list(self._inputs.counts.items()),
            updates=parent.updates + 1,
            weights=weights.astype("<f4").tobytes(),
            intervention=intervention_of(self._name, pointer),
            feature_names=model.feature_names,
            shift=parent.shift,
            scale=parent.scale,
            groups=groups,
            log_candidates=model.logs_candidates,
        )

    def _sources(self) -> str:
        return ", ".join(map(repr, self._model.sources_of(self._name)))


class _Known(NamedTuple):
    """A curve that there is; as `EstimatedCurve`."""

    curve: BiasCurve
    source: str
    groups: tuple[int, ...]


def curve_used(known: _Known) -> CurveUsed:
    """A curve as a run records it."""
    curve = known.curve
    digest = hashlib.blake2b(digest_size=16)
    for part in (curve.alpha, curve.beta):
        digest.update(np.asarray(part, "<f8").tobytes())
    digest.update(bytes([curve.is_ratio_only]))
    return CurveUsed(
        curve.alpha.tolist(),
        curve.beta.tolist(),
        curve.is_ratio_only,
        known.source,
        list(known.groups),
        digest.digest(),
    )


def parent_of(snapshot: Snapshot) -> Parent:
    """A parent as a run records it."""
    digest = sha256_of(encode_snapshot(snapshot))
    return Parent(snapshot.epoch, snapshot.version, digest)


def _split_of(splits: Splits, free: tuple[int, ...]) -> Int64:
    split_of = np.full(splits.n_groups, APART, np.int64)
    split_of[list(splits.training)] = TRAINED_ON
    split_of[list(free)] = SELECTED_ON
    return split_of


def _told(form: tuple[int, bytes, str, str]) -> str:
    n_features, digest, kind, normalisation = form
    return f"{n_features} features ({digest.hex()}), {kind}, {normalisation}"
