"""Interventions of a simulation, and those that are trained in its own process."""

import math
from typing import NamedTuple, Protocol

from rankstream.configuration.models import TRAINED
from rankstream.operations.terminal.words import visible
from rankstream.settings import ModelSettings
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.training import REFUSED, RunRecord
from streams.training.local_trainer import LocalTrainer
from streams.training.progress import TrainingProgress
from streams.training.schedule import count_points, form_of

LOOK_EVERY = 50
"""Lists between two looks at whether a training is due."""

DECADE = 10

LEAST_SUPPORT = 1.0
"""Of a model without settings: simulations show each query to few users."""


class Schedule(NamedTuple):
    """So many interventions from `first` to `last`, as settings of training say it."""

    first: int
    last: int
    interventions: int


def schedule_over(n_impressions: int, n_interventions: int) -> Schedule:
    """A schedule within a simulation, evenly on a log scale.

    The first is after a tenth of the lists. What the last one made shows the rest,
    a stretch as long, on that scale, as those between two.

    Parameters
    ----------
    n_impressions
        Lists that are shown, at least ten for each intervention.
    n_interventions
        At least 1.

    Raises
    ------
    ValueError
        Where either is less.

    Examples
    --------
    >>> schedule_over(10_000, 3)
    Schedule(first=1000, last=4642, interventions=3)
    """
    if n_interventions < 1:
        raise ValueError(f"--interventions must be 1 or more; got {n_interventions}")
    if n_impressions < DECADE * n_interventions:
        raise ValueError(
            f"--impressions must be {DECADE * n_interventions} or more for "
            f"{n_interventions} interventions; got {n_impressions}"
        )
    last = round(n_impressions / DECADE ** (1 / n_interventions))
    return Schedule(n_impressions // DECADE, last, n_interventions)


def checked_schedule(
    name: str, model: ModelSettings, asked: int | None, n_impressions: int
) -> None:
    """Refuse what `--interventions` cannot be for a model whose settings there are.

    Raises
    ------
    ValueError
    """
    if asked is None:
        return
    if model.versions != TRAINED:
        raise ValueError(
            f"--interventions goes with models that are trained; versions of {name!r} "
            f"are {model.versions!r}: leave it out, or name another model"
        )
    if not model.training.has_points:
        wanted = schedule_over(n_impressions, asked)
        raise ValueError(
            f"the settings must say when {name!r} is trained, as the worker reads them "
            f"too: set interventions = {asked}, first = {wanted.first} and last = "
            f"{wanted.last} in [models.{name}.training]"
        )
    if (points := len(count_points(model.training))) != asked:
        raise ValueError(
            f"--interventions must be {points} or left out, as the schedule of "
            f"{name!r} in the settings has so many; got {asked}"
        )


class Line(Protocol):
    """Where it is said what goes on."""

    def note(self, words: str) -> None:
        """Show what goes on now."""

    def say(self, line: str) -> None:
        """Print a line that stays."""


class Refusals:
    """Says why trainings were refused, each reason once until another one comes.

    Reasons that differ in their numbers alone are one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._form = ""

    def say(self, line: Line, state: str, why: str) -> None:
        """Say it, where it was not said last."""
        if form_of(why) != self._form:
            line.say(f"training of {visible(self._name)} {state}: {visible(why)}")
        self._form = form_of(why)

    def forget(self) -> None:
        """One was not refused: the same reason is new again."""
        self._form = ""


class Interventions:
    """Of the model that a simulation shows lists of; none of one that learns online."""

    def show_on(self, line: Line) -> None:
        """Say there what goes on from now on."""

    def follow(self, n_shown: int) -> None:
        """Have done what is due after so many lists, or wait for it."""

    def end(self) -> None:
        """Have done what is due now that all lists are counted."""

    def run_of(self, intervention: str) -> RunRecord | None:
        """How a version was trained, where that is known."""
        del intervention
        return None

    def refusal(self) -> str:
        """Why the last training was refused; empty where it was not."""
        return ""

    def curves(self) -> list[CurveRecord]:
        """All fits of curves of bias, the first one first, where they are known.

        Of a worker `rankstream intervene --show` has them.
        """
        return []


class OwnInterventions(Interventions):
    """In this process."""

    def __init__(self, name: str, trainer: LocalTrainer) -> None:
        self._name = name
        self._trainer = trainer
        self._line: Line | None = None
        self._refusals = Refusals(name)
        self._refused_curves: dict[str, Refusals] = {}
        self._n_curves = 0

    def show_on(self, line: Line) -> None:
        """Say there how far a training is, and why one was refused."""
        self._line = line

        def tell(name: str, progress: TrainingProgress) -> None:
            line.note(f"training {visible(name)}: {progress.told()}")

        self._trainer.on_progress = tell

    def follow(self, n_shown: int) -> None:
        """Train if it is due."""
        if n_shown % LOOK_EVERY == 0:
            self._flush()

    def end(self) -> None:
        """Train if it is due."""
        self._flush()

    def _flush(self) -> None:
        if self._trainer.flush():
            self._refusals.forget()
        if self._line is not None:
            self._say_curves(self._line)
            if why := self.refusal():
                self._refusals.say(self._line, REFUSED, why)

    def _say_curves(self, line: Line) -> None:
        """Which curves there are since the last look, and why others are not."""
        for each in self.curves()[self._n_curves :]:
            known = sum(not math.isnan(alpha) for alpha in each.alpha)
            line.say(
                f"curve {visible(each.intervention)}: {known} of {each.n_ranks} ranks "
                f"known, {each.source}"
            )
            self._refused_curves.pop(each.model, None)
        self._n_curves = len(self.curves())
        for name, why in self._trainer.refusals.items():
            if name != self._name:
                told = self._refused_curves.setdefault(name, Refusals(name))
                told.say(line, REFUSED, why)

    def run_of(self, intervention: str) -> RunRecord | None:
        """The training of a version."""
        found = [x for x in self._trainer.runs if x.intervention == intervention]
        return found[-1] if found else None

    def refusal(self) -> str:
        """Why the last training was refused."""
        return self._trainer.refusals.get(self._name, "")

    def curves(self) -> list[CurveRecord]:
        """Those that were fitted here."""
        return self._trainer.curves
