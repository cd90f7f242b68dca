"""A trained snapshot made again, from a dump of the log and the record of its run."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, NoReturn

import msgspec

from rankstream.configuration.curves import OF_SOME
from rankstream.configuration.former import curve_of_record, model_of_record
from rankstream.settings import Settings
from rankstream.wire.bounds import MODEL_BYTES
from rankstream.wire.envelope import Snapshot
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.snapshot_names import Parent, parent_of
from rankstream.wire.models.training import FeaturesUsed, RunRecord
from rankstream.wire.topics import CANDIDATES, EVENTS, STATISTICS
from streams.fold.canonical_fold import CanonicalFold
from streams.fold.statistics_fold import StatisticsFold
from streams.partition_fold import partition_fold
from streams.stage import SourceRecord
from streams.statistics import keys
from streams.statistics.reader import Statistics
from streams.training.curves.curve_snapshot import (
    CurveOutcome,
    fit_curve,
)
from streams.training.curves.known_curve import KnownCurve, curve_of_run
from streams.training.feature_records import UsedFeatures
from streams.training.inputs import (
    Inputs,
    feature_records_for,
    sets_known,
)
from streams.training.progress import TrainingProgress
from streams.training.trained_snapshot import Outcome, train_model

Record = tuple[bytes, bytes | None]
Events = Callable[[], Iterable[tuple[int, bytes]]]
"""Gives the records of a dump from its beginning: partition of `events`, and value."""


class VerificationRefused(RuntimeError):
    """A run cannot be made again from what was given, and the message says why.

    Operator action: as the message says.
    """


def made_again(
    settings: Settings, run: RunRecord, parent: Snapshot, events: Events
) -> Outcome:
    """The snapshot of a run and its record, made from the log alone.

    A curve that another model had published by then is that of the run: the log has
    what it was fitted on, but not which one was the newest.

    Parameters
    ----------
    settings
        Those that the log was counted under; settings of the model, shares of the
        splits, and the number of partitions are those of the run.
    parent
        The snapshot that the run began from.
    events
        Called once, and again where features came that no statistics knew of yet.

    Raises
    ------
    VerificationRefused
        Where parent, dump and run do not belong together.
    TrainingRefused
        Where training refuses what was counted.
    """
    return made_of(settings, run, parent, lambda own: _inputs(own, run, events))


def made_of(
    settings: Settings,
    run: RunRecord,
    parent: Snapshot,
    inputs_of: Callable[[Settings], Inputs],
    *,
    on_progress: Callable[[TrainingProgress], object] = lambda _: None,
) -> Outcome:
    """The snapshot of a run and its record, made from inputs that are there.

    Parameters
    ----------
    settings, parent
        As in `made_again`.
    inputs_of
        Gives the inputs of the run, of its settings.

    Raises
    ------
    VerificationRefused
        Where parent and run do not belong together, or the record was changed.
    TrainingRefused
        Where training refuses what was counted.
    """
    _check_parent(run, parent)
    curve = _curve_of(run)
    own = _settings_of(run, settings)
    return train_model(
        run.model, own, inputs_of(own), parent, reason=run.reason, epoch=run.epoch,
        curve=curve, online=frozenset(run.online), on_progress=on_progress,
    )  # fmt: skip


def curve_made_again(
    settings: Settings, run: CurveRecord, parent: Snapshot | None, events: Events
) -> CurveOutcome:
    """The curve of a fit and its record, made from the log alone; as `made_again`.

    Parameters
    ----------
    parent
        The version before; None of the first one.
    """

    def counted(own: Settings) -> Statistics:
        changes = _Refold(own, run).until_counts(events(), lambda _: None)
        return Statistics(changes)

    return curve_made_of(settings, run, parent, counted)


def curve_made_of(
    settings: Settings,
    run: CurveRecord,
    parent: Snapshot | None,
    statistics_of: Callable[[Settings], Statistics],
    *,
    on_progress: Callable[[TrainingProgress], object] = lambda _: None,
) -> CurveOutcome:
    """The curve of a fit and its record, made from statistics; as `made_of`."""
    given = None if parent is None else parent_of(parent)
    if given != run.parent:
        raise VerificationRefused(
            f"the version before {run.intervention} must be the one that its record "
            f"names, {_named(run.parent)}; got {_named(given)}: give that"
        )
    own = _settings_of(run, settings)
    found = fit_curve(
        run.model, own, statistics_of(own), parent,
        reason=run.reason, epoch=run.epoch, online=frozenset(run.online),
        on_progress=on_progress,
    )  # fmt: skip
    # They are what it was made of, in the words of the release that made it, which also
    # kept options that its estimator does not look at.
    curve = own.curves[run.model]
    unused = {k: run.options[k] for k in OF_SOME if not hasattr(curve, k)}
    made = msgspec.structs.replace(
        found.run, settings=run.settings, options=found.run.options | unused
    )
    return found._replace(run=made)


def _named(parent: Parent | None) -> str:
    if parent is None:
        return "none"
    return f"{parent.epoch}.{parent.version} with {parent.sha256.hex()[:16]}"


def _curve_of(run: RunRecord) -> KnownCurve | None:
    """The published curve that a run took, which its digest holds together."""
    found = curve_of_run(run.curve, run.ends)
    if found is not None and found.used() != run.curve:
        raise VerificationRefused(
            f"the curve of {run.intervention}, {run.curve.source}, must have the "
            f"digest {run.curve.version.hex()}; its numbers have another: the record "
            "was changed, take it from the topic again"
        )
    return found


def _check_parent(run: RunRecord, parent: Snapshot) -> None:
    got = parent_of(parent)
    if got != run.parent:
        raise VerificationRefused(
            f"the parent of {run.intervention} must be version {run.parent.epoch}."
            f"{run.parent.version} with the digest {run.parent.sha256.hex()[:16]}; got "
            f"{got.epoch}.{got.version} with {got.sha256.hex()[:16]}: give the "
            "snapshot that it was trained from"
        )


def _settings_of(run: RunRecord | CurveRecord, settings: Settings) -> Settings:
    statistics = msgspec.structs.replace(
        settings.statistics, split_shares=list(run.split_shares)
    )
    kafka = msgspec.structs.replace(settings.kafka, partitions=run.n_partitions)
    own: dict[str, Any] = {"models": {}, "curves": {}}
    if isinstance(run, CurveRecord):
        own["curves"] = {run.model: curve_of_record(run.settings)}
    else:
        # What was published was within the bound of then, which no record has.
        model = model_of_record(run.settings)
        model = msgspec.structs.replace(model, snapshot_bytes=MODEL_BYTES)
        own["models"] = {run.model: model}
    return msgspec.structs.replace(settings, kafka=kafka, statistics=statistics, **own)


def _inputs(settings: Settings, run: RunRecord, events: Events) -> Inputs:
    """Statistics at the counts of the run, and features that have its digest."""
    model = settings.models[run.model]
    refold = _Refold(settings, run)
    records = feature_records_for(settings, run.model, ())
    changes = refold.until_counts(events(), lambda record: records.add(*record))
    inputs = Inputs(Statistics(changes), records)
    sets = sets_known(run.model, model, inputs.statistics)
    used = UsedFeatures(sets, records, run.features)
    if not used.lacking:
        return inputs
    for key, value in _Refold(settings, run).features_after(events()):
        used.take(key, value)
        if not used.lacking:
            return inputs
    partition = min(used.lacking)
    known = {each.partition: each for each in run.features}
    wanted = known.get(partition, FeaturesUsed(partition, 0, b""))
    raise VerificationRefused(
        f"features of {run.intervention} must be the {wanted.n_records:,} records of "
        f"partition {partition} with the digest {wanted.digest.hex()}; the dump gives "
        "none such: dump the log of the namespace that it was trained in, from its "
        "beginning"
    )


class _Refold:
    """Folds of the partitions that a run names."""

    def __init__(self, settings: Settings, run: RunRecord | CurveRecord) -> None:
        self._run = run
        self._folds = {n: partition_fold(n, settings) for n, _ in run.counts}
        self._numbers = dict.fromkeys(self._folds, 0)

    def until_counts(  # noqa: C901  one loop over the dump
        self, events: Iterable[tuple[int, bytes]], on_features: Callable[[Record], None]
    ) -> Iterator[Record]:
        """Records of `statistics` at the counts; features up to there go elsewhere."""
        wanted = {*self._folds}
        for partition in sorted(wanted):
            if (yield from self._is_there(partition)):
                wanted.remove(partition)
        for partition, value in events:
            if not wanted:
                return
            if partition not in wanted:
                continue
            for record in self._fold(partition, value):
                on_features(record)
            if (yield from self._is_there(partition)):
                wanted.remove(partition)
        if wanted:
            self._refuse_short(min(wanted))

    def _refuse_short(self, partition: int) -> NoReturn:
        wanted, at_ms = self._wanted(partition)
        raise VerificationRefused(
            f"the dump must reach {wanted:,} counted interactions of partition "
            f"{partition} at the watermark {at_ms}, as {self._run.intervention} was "
            f"trained from; it ends at {_n_counted(self._folds[partition]):,}: dump "
            "the log again, from its beginning"
        )

    def _wanted(self, partition: int) -> tuple[int, int | None]:
        run = self._run
        return dict(run.counts)[partition], dict(run.watermarks).get(partition)

    def features_after(self, events: Iterable[tuple[int, bytes]]) -> Iterator[Record]:
        """Features of the log behind the counts of their partition."""
        reached = {each for each in self._folds if self._reaches(each)}
        for partition, value in events:
            if partition not in self._folds:
                continue
            records = [*self._fold(partition, value)]
            if partition in reached:
                yield from records
            elif self._reaches(partition):
                reached.add(partition)

    def _reaches(self, partition: int) -> bool:
        steps = self._is_there(partition)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return bool(end.value)

    def _fold(self, partition: int, value: bytes) -> Iterator[Record]:
        fold = self._folds[partition]
        self._numbers[partition] += 1
        offset = self._numbers[partition] - 1
        fold.fold(SourceRecord(EVENTS, partition, offset, 0, None, value, ()))
        for output in fold.outputs():
            if output.topic == CANDIDATES and output.key:
                yield output.key, output.value

    def _is_there(self, partition: int) -> Generator[Record, None, bool]:
        """Whether a partition is where the run was; gives what changed meanwhile."""
        fold, (wanted, watermark_ms) = self._folds[partition], self._wanted(partition)
        n = _n_counted(fold)
        if n < wanted:
            return False
        if n > wanted:
            raise VerificationRefused(
                f"the count of partition {partition}, {wanted:,}, must lie between "
                f"records of the dump, as checkpoints do; a record goes on to {n:,}: "
                "give the dump of the log that was counted, and the settings it was "
                "counted under"
            )
        fold.settle()
        counted = None
        for topic, key, value in fold.changes():
            if topic == STATISTICS:
                yield key, value
                if key == keys.counted_key(partition) and value:
                    counted = keys.decode_counted(value)
        return counted is not None and counted.watermark_ms == watermark_ms


def _n_counted(fold: CanonicalFold) -> int:
    """Interactions that a fold has counted."""
    for each in fold.consumers:
        if isinstance(each, StatisticsFold):
            return each.counters()["statistics_impressions"]
    raise TypeError("a fold must count statistics; this one does not")
