"""Models trained beside the in-process runtime, by the schedule of a worker."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from rankstream.deployment_rules import DeploymentRefused, check_room
from rankstream.settings import Settings
from rankstream.wire.envelope import decode_snapshot, encode_snapshot
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.deployments import SCHEMA, Deployment
from rankstream.wire.models.training import ASKED, Position, RunRecord
from rankstream.wire.topics import CANDIDATES
from streams.stage import Change, Output
from streams.statistics.reader import Statistics
from streams.training.curves.curve_snapshot import CurveOutcome, fit_curve
from streams.training.curves.known_curve import KnownCurve, published_curve
from streams.training.inputs import Inputs, TrainingRefused, feature_records_for
from streams.training.progress import TrainingProgress
from streams.training.schedule import due, position_after
from streams.training.trained_snapshot import Outcome, train_model
from streams.training.versions.logging_version import as_credited


class Pipeline(Protocol):
    """What it needs of `streams.local.LocalPipeline`."""

    snapshots: dict[bytes, bytes]

    def flush(self) -> None:
        """Pass on what waits."""

    def counters(self) -> dict[str, int]:
        """Counts of all stages."""

    def statistics(self) -> Iterable[Change]:
        """The state of the statistics that changed since the last call."""

    def show_also(self, on_output: Callable[[Output], None]) -> None:
        """Show every record that a stage writes to one more."""


class LocalTrainer:
    """Trains what is due, and serves it in the pipeline.

    It takes the statistics of the pipeline, which gives each change once: ask
    `statistics` for them.

    Parameters
    ----------
    settings
        Those of the pipeline.
    pipeline
        Before its first record.

    Attributes
    ----------
    runs
        Records of all trainings, in their order.
    curves
        Records of all fits of curves, in their order.
    positions
        Where the schedule of each model stands.
    refusals
        Why the last training of a model was refused; it is tried again as soon as
        more is counted.
    on_progress
        Is told of which model a training is how far; what it raises ends the training.
    """

    def __init__(self, settings: Settings, pipeline: Pipeline) -> None:
        self.runs: list[RunRecord] = []
        self.curves: list[CurveRecord] = []
        self.positions: dict[str, Position] = {}
        self.refusals: dict[str, str] = {}
        self.on_progress: Callable[[str, TrainingProgress], object] = lambda _, __: None
        self._settings = settings
        self._pipeline = pipeline
        self._statistics: dict[bytes, bytes | None] = {}
        self._candidates: dict[bytes, bytes] = {}
        self._refused_at: dict[str, int] = {}
        self._deployments: list[Deployment] = []
        pipeline.show_also(self._take)

    def flush(self) -> list[RunRecord]:
        """Pass on what waits, and train what is due by then, curves first."""
        self._pipeline.flush()
        counters = self._pipeline.counters()
        n_counted = counters["statistics_impressions"]
        watermark_ms = counters["watermark_ms"]
        done = []
        for name, schedule in self._settings.schedules.items():
            if self._refused_at.get(name) == n_counted:
                continue
            position = self.positions.get(name)
            reason = due(schedule, position, n_counted, watermark_ms)
            if reason is None:
                continue
            try:
                if name in self._settings.curves:
                    self.fit(name, reason)
                else:
                    done.append(self.train(name, reason).run)
            except TrainingRefused as error:
                self.refusals[name] = str(error)
                self._refused_at[name] = n_counted
        return done

    def train(self, name: str, reason: str = ASKED) -> Outcome:
        """Train a model from all that was counted, and serve it.

        Raises
        ------
        TrainingRefused
            As `train_model`, or where statistics keep no more interventions apart;
            what is served stays.
        """
        features = self._candidates.items()
        inputs = Inputs(
            Statistics(self.statistics().items()),
            feature_records_for(self._settings, name, features),
        )
        self._check_room(inputs.watermark_ms)
        parent = decode_snapshot(self._pipeline.snapshots[name.encode()])
        found = train_model(
            name, self._settings, inputs, parent,
            reason=reason, on_progress=partial(self.on_progress, name),
            curve=self._curve_of(name),
        )  # fmt: skip
        self._pipeline.snapshots[name.encode()] = encode_snapshot(found.snapshot)
        run, partitions = found.run, self._settings.kafka.partitions
        self.positions[name] = position_after(self.positions.get(name), run, partitions)
        self._deployments.append(
            Deployment(SCHEMA, run.intervention, run.created_ms, found.snapshot.groups)
        )
        self.refusals.pop(name, None)
        self.runs.append(run)
        return found

    def fit(self, name: str, reason: str = ASKED) -> CurveOutcome:
        """Fit a curve on all that was counted; trainings from now on take it.

        Raises
        ------
        TrainingRefused
            As `fit_curve`; the curve before stays.
        """
        before = self._pipeline.snapshots.get(name.encode())
        found = fit_curve(
            name, self._settings, Statistics(self.statistics().items()),
            None if before is None else decode_snapshot(before),
            reason=reason, on_progress=partial(self.on_progress, name),
        )  # fmt: skip
        self._pipeline.snapshots[name.encode()] = encode_snapshot(found.snapshot)
        run, partitions = found.run, self._settings.kafka.partitions
        self.positions[name] = position_after(self.positions.get(name), run, partitions)
        self.refusals.pop(name, None)
        self.curves.append(run)
        return found

    def _curve_of(self, name: str) -> KnownCurve | None:
        """The newest curve that a model takes; None where there is none yet."""
        named = self._settings.curve_for(self._settings.models[name])
        envelope = self._pipeline.snapshots.get(named.encode())
        if envelope is None:
            return None
        known = published_curve(decode_snapshot(envelope))
        return as_credited(name, self._settings, known)

    def _check_room(self, at_ms: int) -> None:
        try:
            check_room(self._settings, self._deployments, at_ms=at_ms)
        except DeploymentRefused as error:
            raise TrainingRefused(str(error)) from error

    def statistics(self) -> dict[bytes, bytes | None]:
        """The last value of each key of the statistics, up to now."""
        for change in self._pipeline.statistics():
            self._statistics[change.key] = change.value
        return self._statistics

    def _take(self, output: Output) -> None:
        # What leaves is still asked for by statistics of a moment ago.
        if output.topic == CANDIDATES and output.key and output.value:
            self._candidates[output.key] = output.value
