"""A model trained once, beside no stream, from sums and features that are recorded.

What it makes is what the role `train` makes of the same sums, features and parent: both
call `train_model`, and `fit_curve` before it where the model takes a curve.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from rankstream.settings import ModelSettings, Settings
from rankstream.wire.envelope import Snapshot
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.training import ASKED, RunRecord
from streams.learning.model_fold import ModelFold
from streams.statistics.reader import Statistics
from streams.training.curves.curve_snapshot import CurveOutcome, fit_curve
from streams.training.curves.known_curve import KnownCurve, published_curve
from streams.training.inputs import Inputs, feature_records_for
from streams.training.progress import TrainingProgress
from streams.training.trained_snapshot import Outcome, train_model
from streams.training.verification import curve_made_of, made_of

Tell = Callable[[TrainingProgress], object]


class Recorded(NamedTuple):
    """What a training reads, the last value of each key.

    Parameters
    ----------
    statistics
        Of the topic `statistics`, of all its partitions.
    candidates
        Of the topic `candidates`: features.
    """

    statistics: Mapping[bytes, bytes | None]
    candidates: Mapping[bytes, bytes | None]

    def sums(self) -> Statistics:
        """The statistics, to be read once more."""
        return Statistics(self.statistics.items())

    def inputs_for(self, settings: Settings, name: str) -> Inputs:
        """What the model of a name reads of it; `kafka.partitions` hold."""
        features = feature_records_for(settings, name, self.candidates.items())
        return Inputs(self.sums(), features)


class TrainedOnce(NamedTuple):
    """A trained snapshot, and the curve that was fitted for it; None where none was."""

    outcome: Outcome
    fitted: CurveOutcome | None


def first_version(name: str, model: ModelSettings) -> Snapshot:
    """Version 0 of a model, as the role `learn` publishes it."""
    return ModelFold(name, model).snapshot()


def train_once(
    name: str,
    settings: Settings,
    recorded: Recorded,
    parent: Snapshot,
    *,
    on_progress: Tell = lambda _: None,
) -> TrainedOnce:
    """Train the model of a name as if it was asked for now, its curve first.

    Parameters
    ----------
    settings
        With the model, and with the curve that it takes, if it takes one; numbers of
        partitions are those that were counted.
    parent
        What training goes on from.
    on_progress
        Is told how far it is; what it raises ends the training.

    Raises
    ------
    TrainingRefused
        Where nothing can be trained, or the curve cannot be fitted, in words.
    """
    fitted, curve = None, None
    if named := settings.curve_for(settings.models[name]):
        fitted = fit_curve(
            named, settings, recorded.sums(), None,
            reason=ASKED, on_progress=on_progress,
        )  # fmt: skip
        curve = published_curve(fitted.snapshot)
    outcome = train_model(
        name, settings, recorded.inputs_for(settings, name), parent,
        reason=ASKED, on_progress=on_progress, curve=curve,
    )  # fmt: skip
    return TrainedOnce(outcome, fitted)


def trained_again(
    run: RunRecord,
    fit: CurveRecord | None,
    recorded: Recorded,
    parent: Snapshot,
    *,
    on_progress: Tell = lambda _: None,
) -> TrainedOnce:
    """The same from the records of both, which say under which settings it was made.

    The curve is fitted anew too, and its numbers are those that are trained with.

    Raises
    ------
    VerificationRefused
        Where parent and run do not belong together.
    TrainingRefused
    """
    fitted, own = None, run
    if fit is not None:
        fitted = curve_made_of(
            Settings(), fit, None, lambda _: recorded.sums(), on_progress=on_progress
        )
        own = _with_curve(run, published_curve(fitted.snapshot))
    outcome = made_of(
        Settings(), own, parent,
        lambda of_run: recorded.inputs_for(of_run, run.model),
        on_progress=on_progress,
    )  # fmt: skip
    return TrainedOnce(outcome, fitted)


def _with_curve(run: RunRecord, curve: KnownCurve) -> RunRecord:
    return msgspec.structs.replace(run, curve=curve.used())
