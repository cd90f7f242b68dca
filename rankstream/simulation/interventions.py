"""Interventions of a simulation: trained in this process, or awaited from a worker."""

import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from producers.readiness import Waiting
from producers.simulation import PATIENCE_S, LearnerStuck
from producers.topic_reader import TopicReader
from rankstream.ranker import Ranker
from rankstream.sections import ModelSettings, Settings
from rankstream.wire.topics import STATISTICS, TRAINING
from rankstream.wire.training import (
    LEFT_ALONE,
    REFUSED,
    Position,
    RunRecord,
    Status,
    decode_record,
    decode_training_key,
)
from streams.fold import statistics_keys as keys
from streams.training.local_trainer import LocalTrainer
from streams.training.schedule import count_points

LOOK_EVERY = 50
"""Lists between two looks at whether a training is due."""

POLL_S = 0.3

SAY_AFTER_S = 5.0

N_LAST = 20_000
"""Records of each partition of the statistics among which the newest count is."""

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
    if not model.is_trained:
        raise ValueError(
            f"--interventions goes with models whose learner is 'trained'; {name!r} "
            f"has {model.learner!r}: leave it out, or name another model"
        )
    if not model.training.has_schedule:
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


class Interventions(Protocol):
    """Of the model that a simulation shows lists of."""

    def follow(self, n_shown: int) -> None:
        """Have done what is due after so many lists, or wait for it."""

    def end(self) -> None:
        """Have done what is due now that all lists are counted."""

    def run_of(self, intervention: str) -> RunRecord | None:
        """How a version was trained, where that is known."""

    def refusal(self) -> str:
        """Why the last training was refused; empty where it was not."""


class NoInterventions:
    """Of a model that learns online."""

    def follow(self, n_shown: int) -> None:
        """Nothing is due."""

    def end(self) -> None:
        """Nothing is due."""

    def run_of(self, intervention: str) -> RunRecord | None:
        """None was."""
        del intervention
        return None

    def refusal(self) -> str:
        """None was refused."""
        return ""


class OwnInterventions:
    """In this process."""

    def __init__(self, name: str, trainer: LocalTrainer) -> None:
        self._name = name
        self._trainer = trainer

    def follow(self, n_shown: int) -> None:
        """Train if it is due."""
        if n_shown % LOOK_EVERY == 0:
            self._trainer.flush()

    def end(self) -> None:
        """Train if it is due."""
        self._trainer.flush()

    def run_of(self, intervention: str) -> RunRecord | None:
        """The training of a version."""
        found = [x for x in self._trainer.runs if x.intervention == intervention]
        return found[-1] if found else None

    def refusal(self) -> str:
        """Why the last training was refused."""
        return self._trainer.refusals.get(self._name, "")


class AwaitedInterventions:
    """Those of the role `train`: lists wait for a training that is due.

    Parameters
    ----------
    max_behind
        Lists that may be shown after a point of the schedule before its version comes.
    is_stopped
        Ends waits.
    """

    def __init__(
        self,
        settings: Settings,
        ranker: Ranker,
        reader: TopicReader,
        max_behind: int,
        is_stopped: Callable[[], bool],
    ) -> None:
        name = ranker.model
        self._ranker = ranker
        self._reader = reader
        self._max_behind = max_behind
        self._runs: dict[str, RunRecord] = {}
        self._status: Status | None = None
        self._refused = ""
        self._position: Position | None = None
        self._is_stopped = is_stopped
        self._read()
        self._answered: Status | None = self._status
        self._n_before = self._counted()
        start = max(self._n_before, self._n_done_at())
        points = count_points(settings.models[name].training)
        self._points = [each for each in points if each > start]
        self._n_shown = 0

    def follow(self, n_shown: int) -> None:
        """Wait for a version that should have come by now.

        Raises
        ------
        LearnerStuck
            Where it does not come for long.
        """
        self._n_shown = n_shown
        self._await(n_shown - self._max_behind)

    def end(self) -> None:
        """Wait for the last one."""
        self._await(self._n_shown)

    def _await(self, n_counted: int) -> None:
        due = [each for each in self._points if each <= self._n_before + n_counted]
        if not due:
            return
        self._points = self._points[len(due) :]
        started_s, waiting = time.monotonic(), Waiting()
        self._ranker.refresh()
        while self._ranker.version < due[-1] and not self._is_stopped():
            self._read()
            if self._is_refused():
                break
            waited_s = time.monotonic() - started_s
            if waited_s > SAY_AFTER_S:
                waiting.waits(f"the role `train` to train {self._ranker.model!r}")
            if waited_s > PATIENCE_S:
                raise LearnerStuck(
                    f"{self._ranker.model!r} must be trained at {due[-1]:,} "
                    f"interactions; for {PATIENCE_S:.0f} s it was not: does a worker "
                    "run with the role `train`, and with these settings?"
                )
            time.sleep(POLL_S)
            self._ranker.refresh()
        waiting.over()

    def _is_refused(self) -> bool:
        status = self._status
        if status is None or status == self._answered:
            return False
        if status.state not in (REFUSED, LEFT_ALONE):
            return False
        self._answered, self._refused = status, status.said
        return True

    def run_of(self, intervention: str) -> RunRecord | None:
        """The training of a version, as the topic has it."""
        if intervention not in self._runs:
            self._read()
        return self._runs.get(intervention)

    def refusal(self) -> str:
        """Why a training that was waited for was refused."""
        return self._refused

    def _read(self) -> None:
        for record in self._reader.records(TRAINING):
            named = decode_training_key(record.key or b"")
            if named is None or record.value is None:
                continue
            value = decode_record(named.kind, record.value)
            if isinstance(value, RunRecord):
                self._runs[named.name] = value
            elif named.name == self._ranker.model and isinstance(value, Status):
                self._status = value
            elif named.name == self._ranker.model and isinstance(value, Position):
                self._position = value

    def _n_done_at(self) -> int:
        """Interactions that were counted at the last intervention."""
        return self._position.n_counted if self._position else 0

    def _counted(self) -> int:
        found: dict[int, int] = {}
        for record in self._reader.last_records(STATISTICS, N_LAST):
            if record.key == keys.counted_key(record.partition) and record.value:
                counted = keys.decode_counted(record.value)
                found[record.partition] = sum(counted.sources.values())
        return sum(found.values())
