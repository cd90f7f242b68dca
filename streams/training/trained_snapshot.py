"""A snapshot trained from statistics and features: a pure function of what it is given.

Values of items are corrected under a curve of bias that training groups have no part
in, a ranker is trained on them from where the parent stands, stopped on queries
that it does not learn from, and brought to a temperature that explores. Where it could
then lose more than is allowed it goes back towards the parent. What it would be clicked
is estimated from groups that it has seen nothing of.
"""

from collections.abc import Callable, Container, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from models.counts.fixed_point import Int64
from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.choice import Choice, Unknown, asked_for, choice_of_sums
from models.estimators.splits import Shares, Splits
from models.training.bounded_step import BoundedStep
from models.training.exploration import Exploration, explored
from models.training.ranker_training import Epoch
from models.training.reward import Reward, estimated_reward
from rankstream.configuration.former import recorded_model
from rankstream.configuration.training import LOGGING_LOSS, SELECTED
from rankstream.ranking.checked_weights import CheckedWeights
from rankstream.wire.envelope import TREES, Snapshot, encode_snapshot
from rankstream.wire.models.snapshot_names import parent_of, sha256_of
from rankstream.wire.models.training import SCHEMA, RunRecord
from streams.native.placing import placements_of_scores
from streams.statistics.columns import IMPRESSIONS, Columns
from streams.training.checks import Checks
from streams.training.curves.estimated_curve import (
    estimated_curve,
    interventions_learned_online,
)
from streams.training.curves.known_curve import GIVEN, KnownCurve, ends_used
from streams.training.feature_records import FeaturesRefused
from streams.training.gathering import Gathered, Scaling
from streams.training.inputs import Inputs, TrainingRefused
from streams.training.item_tables import (
    APART,
    SELECTED_ON,
    TRAINED_ON,
    EstimatedValues,
    EstimatorRefused,
    ItemTables,
    PooledSums,
)
from streams.training.model_lists import LearnedOnline, scopes_for
from streams.training.progress import TrainingProgress
from streams.training.versions.bounded_version import after_bound, bounded_version
from streams.training.versions.fitted_kind import fitted_kind
from streams.training.versions.fitted_ranker import Fitted
from streams.training.versions.following_version import following
from streams.training.versions.ranged_parent import ranged

if TYPE_CHECKING:
    from rankstream.settings import Settings


class Outcome(NamedTuple):
    """A trained snapshot, and the record of how it came to be."""

    snapshot: Snapshot
    run: RunRecord


def train_model(  # noqa: PLR0913  all that a training depends on
    name: str,
    settings: "Settings",
    inputs: Inputs,
    parent: Snapshot,
    *,
    reason: str,
    epoch: int | None = None,
    on_progress: Callable[[TrainingProgress], object] = lambda _: None,
    curve: KnownCurve | None = None,
    online: Container[str] | None = None,
) -> Outcome:
    """Train the model of a name.

    Parameters
    ----------
    parent
        The snapshot that is served: training goes on from its weights.
    reason
        Why it is trained; see `rankstream.wire.models.training`.
    epoch
        Of the snapshot; if not given that of its parent, or the next one where the
        parent has this version, or a later one, already.
    on_progress
        Is told how far it is, from this thread; what it raises ends the training.
    curve
        The newest version of the curve that the settings name, if there is one;
        see `rankstream.settings.Settings.curve_for`.
    online
        As that of `streams.training.curves.curve_snapshot.fit_curve`, for a curve that
        the training estimates itself.

    Raises
    ------
    TrainingRefused
        Where nothing can be trained from this, in words.
    RuntimeError
        Where the folder for temporary files is full.

    References
    ----------
    Oosterhuis (PhD thesis, 2020), sections 5.5 and 8.6.
    """
    model = settings.models[name]
    training, validation, selection = settings.statistics.split_shares
    shares = Shares(training, validation, selection, model.training.held_out)
    checks = Checks(name, model, inputs, parent)
    awaited = "" if curve else settings.curve_for(model)
    if online is None:
        online = LearnedOnline(settings, tuple)
    run = _Run(checks, shares, on_progress, curve, awaited, online)
    return run.outcome(reason, epoch)


class _Run:
    def __init__(
        self,
        checks: Checks,
        shares: Shares,
        on_progress: Callable[[TrainingProgress], object],
        curve: KnownCurve | None,
        awaited: str,
        online: Container[str],
    ) -> None:
        self._online, self._learned = online, list[str]()
        self._beside = 0, 0
        self._published, self._awaited = curve, awaited
        self._checks = checks
        self._name, self._model, self._inputs, self._parent = checks
        self._plan = self._model.training
        self._shares = shares
        self._tell = on_progress

    def outcome(self, reason: str, epoch: int | None) -> Outcome:
        splits = self._checks.splits(self._shares)
        self._checks = ranged(self._checks)
        weights = self._checks.weights_of_parent()
        pointer = self._checks.pointer(epoch)
        known = self._curve()
        self._checks.judges(splits, (*known.groups, *self._parent.groups))
        seen, free = self._groups(splits, known)
        choice = self._choice()
        gathered = self._gathered(weights, splits, (known.curve, choice), free)
        fitted, made = self._trained(weights, gathered, known.curve)
        bounded = self._bounded(fitted, made, gathered, known.curve)
        made = after_bound(self._name, self._model, fitted, bounded, made, gathered)
        reward = self._reward(fitted, made, gathered, known.curve, free)
        snapshot = following(self._checks, pointer, fitted.ranker, made.weights, seen)
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
            settings=recorded_model(self._model),
            split_shares=list(self._shares[:3]),
            seed=self._plan.seed,
            parent=parent_of(self._parent),
            curve=known.used(),
            groups=list(splits.training),
            sizes=gathered.sizes(self._plan.least_support),
            epochs=[(*each,) for each in fitted.trained.epochs],
            best_epoch=fitted.trained.best_epoch,
            scale=made.scale,
            temperature=made.temperature,
            least_exposure=made.least_exposure,
            reward=reward.clicks,
            reward_reason=reward.reason,
            sha256=sha256_of(encode_snapshot(snapshot)),
            n_partitions=self._inputs.features.n_partitions,
            loss=fitted.loss,
            losses=fitted.tried,
            estimator=choice.estimator,
            online=self._learned,
            largest_loss=bounded.fall.largest_loss,
            least_ratio=_known(bounded.fall.least_ratio),
            step=bounded.step,
            n_beside=self._beside[0],
            n_lists=self._beside[1],
            ends=ends_used(known.ends),
            lightgbm=version("lightgbm") if self._model.grows_trees else None,
        )
        return Outcome(snapshot, run)

    def _columns(self) -> Iterator[Columns]:
        is_wanted = scopes_for(self._model.sources_of(self._name))
        return self._inputs.statistics.columns(is_wanted=is_wanted)

    def _curve(self) -> KnownCurve:
        """Given, published (trust too), or estimated here, of position bias alone."""
        if self._plan.examination:
            return KnownCurve(position_curve(self._plan.examination), GIVEN, ())
        if self._published:
            return self._published
        if self._awaited:
            raise TrainingRefused(
                f"{self._name!r} must have a curve to be trained with; "
                f"{self._awaited!r} has no version yet: fit it, `rankstream intervene "
                f"{self._awaited}`, or give it a schedule that comes first"
            )
        n_seen = 0

        def seen() -> Iterator[Columns]:
            nonlocal n_seen
            for n_seen, chunk in enumerate(self._columns(), 1):  # noqa: B007  asked for below
                self._tell(TrainingProgress("reading"))
                yield chunk
            self._tell(TrainingProgress("curve"))

        n_groups = self._inputs.statistics.counted[0].groups
        self._learned = interventions_learned_online(
            self._inputs.statistics, self._online
        )
        found = estimated_curve(seen(), n_groups, self._shares, online=self._learned)
        self._checks.lists(n_seen)
        if found.curve is None:
            raise TrainingRefused(
                f"clicks on lists of {self._checks.sources()} must tell where users "
                "look from what they like; in the training and validation groups items "
                "were hardly clicked, or always stood at the same ranks: set "
                f"models.{self._name}.training.examination (`rankstream train` has "
                "--examination), or wait for lists that differ"
            )
        return KnownCurve(
            found.curve, found.source, found.groups, found.warning, found.ends
        )

    def _groups(
        self, splits: Splits, known: KnownCurve
    ) -> tuple[list[int], tuple[int, ...]]:
        """Whose clicks the snapshot is from, and selection groups that it is not from.

        None of either where the parent's are not known.
        """
        parent = self._parent
        if parent.version and not parent.groups:
            return [], ()
        seen = {*splits.training, *known.groups, *parent.groups}
        return sorted(seen), tuple(x for x in splits.selection if x not in seen)

    def _reading(self) -> Iterator[Columns]:
        for chunk in self._columns():
            yield chunk
            self._tell(TrainingProgress("reading"))

    def _choice(self) -> Choice:
        if self._plan.estimator:
            return asked_for(self._plan.estimator)
        n_beside = n_lists = 0
        for chunk in self._reading():
            if chunk.has_policies().any():
                return choice_of_sums(has_known=True)
            n_beside += int(chunk.n_placed().sum())
            n_lists += int(chunk.cells[:, IMPRESSIONS].sum())
        if n_beside:
            self._beside = n_beside, n_lists
        return choice_of_sums(has_known=False, has_beside=n_beside > 0)

    def _tables(self, choice: Choice, curve: BiasCurve, split_of: Int64) -> ItemTables:
        """How values are made: of sums that say what to clip by, else by a count."""
        if not self._plan.estimator:
            return PooledSums(curve, split_of, choice.unknown)
        n_impressions = 0
        for chunk in self._reading():
            counts = split_of[chunk.cells[:, 1]] == TRAINED_ON
            if choice.unknown is Unknown.LEFT_OUT:
                counts &= chunk.has_policies()
            n_impressions += int(chunk.cells[counts, IMPRESSIONS].sum())
        # Of none there is nothing to learn from, which is refused later.
        n_impressions = max(n_impressions, 1)
        return EstimatedValues(choice.estimator, curve, split_of, n_impressions)

    def _gathered(
        self,
        weights: CheckedWeights,
        splits: Splits,
        by: tuple[BiasCurve, Choice],
        free: tuple[int, ...],
    ) -> Gathered:
        curve, choice = by
        is_beside = self._model.kind == SELECTED
        scaling = Scaling(weights, self._model.normalises_queries, is_beside)
        try:
            how = self._tables(choice, curve, _split_of(splits, free))
            gathered = Gathered(scaling, self._inputs.features, splits, how)
            gathered.take(
                self._columns(), lambda n: self._tell(TrainingProgress("reading", n))
            )
        except (FeaturesRefused, EstimatorRefused) as error:
            raise self._refused(error) from error
        self._checks.lists(gathered.n_queries)
        self._checks.gathered(gathered)
        return gathered

    def _trained(
        self, weights: CheckedWeights, gathered: Gathered, curve: BiasCurve
    ) -> tuple[Fitted, Exploration]:
        try:
            if self._plan.loss == LOGGING_LOSS:
                # Few models draw lists of comparisons.
                from streams.training.versions.logging_version import (  # noqa: PLC0415
                    logging_version,
                )

                start = weights.weights.astype(np.float64)
                on_epoch = self._telling(self._model.kind)
                return logging_version(self._model, start, gathered, curve, on_epoch)
            fitted = fitted_kind(self._model, weights, gathered, self._telling)
            made = explored(
                fitted.trained.weights,
                gathered.chunks(self._plan.least_support)[0],
                temperature=self._plan.temperature,
                floor=self._plan.exposure_floor,
                cutoff=self._plan.cutoff,
                placements=placements_of_scores,
                ranker=fitted.ranker,
            )
        except ValueError as error:
            raise self._refused(error) from error
        if not np.isfinite(made.weights).all():
            raise TrainingRefused(
                f"weights of {self._name!r} must be finite; training gave others: "
                f"lower models.{self._name}.training.learning_rate"
            )
        return fitted, made

    def _bounded(
        self,
        fitted: Fitted,
        made: Exploration,
        gathered: Gathered,
        curve: BiasCurve,
    ) -> BoundedStep:
        def look() -> None:
            self._tell(TrainingProgress("bounding"))

        try:
            return bounded_version(self._model, fitted, made, gathered, curve, look)
        except ValueError as error:
            raise self._refused(error) from error

    def _telling(self, kind: str) -> Callable[[Epoch], object]:
        stage, most = "epoch", self._plan.epochs
        if kind == TREES:
            stage, most = "round", self._plan.trees.rounds
        return lambda epoch: self._tell(TrainingProgress(stage, *epoch, most))

    def _refused(self, error: ValueError) -> TrainingRefused:
        return TrainingRefused(f"{self._name!r} cannot be trained: {error}")

    def _reward(
        self,
        fitted: Fitted,
        made: Exploration,
        gathered: Gathered,
        curve: BiasCurve,
        free: tuple[int, ...],
    ) -> Reward:
        self._tell(TrainingProgress("judging"))
        if not free:
            return Reward(None, 0.0, "it has, or may have, seen clicks of all groups")
        judged = gathered.judged(self._plan.least_support)
        if not judged.n_impressions:
            return Reward(None, 0.0, "the selection groups have no lists")
        return estimated_reward(
            made.weights,
            judged,
            curve,
            cutoff=self._plan.cutoff,
            most_unsupported=self._plan.most_unsupported,
            placements=placements_of_scores,
            ranker=fitted.ranker,
        )


def _known(ratio: float) -> float | None:
    return None if np.isinf(ratio) else ratio


def _split_of(splits: Splits, free: tuple[int, ...]) -> Int64:
    split_of = np.full(splits.n_groups, APART, np.int64)
    split_of[list(splits.training)] = TRAINED_ON
    split_of[list(free)] = SELECTED_ON
    return split_of
