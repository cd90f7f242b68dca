"""Interventions of a simulation on Kafka, which the role `train` makes."""

import time
from collections.abc import Callable

from producers.readiness import Waiting
from producers.simulation import PATIENCE_S, LearnerStuck
from producers.topic_reader import TopicReader
from rankstream.lab.simulation.interventions import Interventions, Line, Refusals
from rankstream.operations.terminal.words import visible
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.wire.models.training import (
    DONE,
    LEFT_ALONE,
    REFUSED,
    Position,
    RunRecord,
    Status,
    decode_record,
    decode_training_key,
)
from rankstream.wire.models.training import TRAINING as UNDER_WAY
from rankstream.wire.topics import STATISTICS, TRAINING
from streams.statistics import keys
from streams.training.schedule import count_points

POLL_S = 0.3

LOOK_S = 1.0
"""How often it is looked, between lists, what the role says."""

SAY_AFTER_S = 5.0

N_LAST = 20_000
"""Records of each partition of the statistics among which the newest count is."""


class AwaitedInterventions(Interventions):
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
        self._next: dict[int, int] = {}
        self._line: Line | None = None
        self._refusals = Refusals(name)
        self._read()
        self._looked_s = time.monotonic()
        self._answered: Status | None = self._status
        self._n_before = self._counted()
        start = max(self._n_before, self._n_done_at())
        points = count_points(settings.models[name].training)
        self._points = [each for each in points if each > start]
        self._n_shown = 0

    def show_on(self, line: Line) -> None:
        """Say there what the role says: how far it is, and why it refuses."""
        self._line = line

    def follow(self, n_shown: int) -> None:
        """Hear what the role says, and wait for a version that should have come by now.

        Raises
        ------
        LearnerStuck
            Where it does not come for long.
        """
        self._n_shown = n_shown
        if time.monotonic() - self._looked_s >= LOOK_S:
            self._read()
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
            self._note()
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
        self._answered = status
        return True

    def _note(self) -> None:
        """Show what the role does, where it says so."""
        if self._line is None:
            return
        status, name = self._status, visible(self._ranker.model)
        said = f"waiting for a training of {name}"
        if status is not None and status.state == UNDER_WAY:
            said = f"training {name}: {visible(status.said)}"
        self._line.note(said)

    def run_of(self, intervention: str) -> RunRecord | None:
        """The training of a version, as the topic has it."""
        if intervention not in self._runs:
            self._read()
        return self._runs.get(intervention)

    def refusal(self) -> str:
        """Why the last training was refused; empty where it was not."""
        return self._refused

    def _read(self) -> None:
        self._looked_s = time.monotonic()
        for record in self._reader.records(TRAINING, self._next or None):
            self._next[record.partition] = record.offset + 1
            named = decode_training_key(record.key or b"")
            if named is None or record.value is None:
                continue
            value = decode_record(named.kind, record.value)
            if isinstance(value, RunRecord):
                self._runs[named.name] = value
            elif named.name == self._ranker.model and isinstance(value, Status):
                self._hear(value)
            elif named.name == self._ranker.model and isinstance(value, Position):
                self._position = value

    def _hear(self, status: Status) -> None:
        """Take what the role says now; what it said before the start is not said."""
        self._status = status
        if self._line is None:
            return
        if status.state in (REFUSED, LEFT_ALONE):
            self._refused = status.said
            self._refusals.say(self._line, status.state, status.said)
        elif status.state == DONE:
            self._refused = ""
            self._refusals.forget()

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
