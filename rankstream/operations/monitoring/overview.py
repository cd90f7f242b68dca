"""Everything that a monitor knows, kept up to date from outside the workers."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rankstream.configuration.training import Schedule
from rankstream.operations.answers.trainings import Counted
from rankstream.operations.monitoring.trainings import Interventions, LearnedCurves
from rankstream.wire.canary_reports import CanaryReport, decode_report
from rankstream.wire.decision_shards import DecisionError
from rankstream.wire.decisions import Manifest, decode_key, decode_manifest
from rankstream.wire.envelope import pointer_from
from rankstream.wire.model_evaluations import (
    ModelRates,
    ModelValues,
    decode_rates,
    decode_values,
)
from rankstream.wire.schemas import decoded
from rankstream.wire.verdicts import Verdict, decode_verdict

COURSE_POINTS = 240
"""Verdicts remembered of each experiment; when full, every second one is dropped."""

WORST = ("ok", "warning", "alarm")

OUTCOMES = (
    "applied_impressions",
    "applied_clicks",
    "pending",
    "duplicate",
    "late",
    "orphan",
    "dead_letter",
    "lag_records",
    "compared_unknown",
)
"""Counts of the workers that are shown, added up over partitions."""


class _Named(msgspec.Struct):
    """What a verdict of any release says."""

    experiment: str


_decode_named = msgspec.json.Decoder(_Named).decode


@dataclass
class Course:
    """How the intervals of one experiment went.

    Impressions, and [n_pairs, 3] mean and ends, NaN where nothing could be said.
    """

    points: deque[tuple[int, npt.NDArray[np.float32]]] = field(default_factory=deque)

    def add(self, verdict: Verdict) -> None:
        """Remember a verdict."""
        found = verdict.drawn_by
        ends = [[pair.mean, *pair.to_come] for pair in found.pairs]
        self.points.append((found.impressions, np.array(ends, np.float32)))
        if len(self.points) > COURSE_POINTS:
            self.points = deque(list(self.points)[::2])

    def of_pair(self, pair: int) -> list[list[float]]:
        """Impressions, mean and both ends, where something could be said."""
        return [
            [n, *map(float, ends[pair])]
            for n, ends in self.points
            if 0 <= pair < len(ends) and np.isfinite(ends[pair]).all()
        ]


@dataclass
class LearnerProgress:
    """How one model's learner went: event times and lists learned, as they were seen.

    A version that goes back, as of a model that begins anew, begins a new course.
    """

    points: deque[tuple[int, int]] = field(default_factory=deque)

    def add(self, created_ms: int, learned: int) -> None:
        """Remember a snapshot, once."""
        if self.points and learned < self.points[-1][1]:
            self.points.clear()
        if not self.points or learned > self.points[-1][1]:
            self.points.append((created_ms, learned))
        if len(self.points) > COURSE_POINTS:
            self.points = deque(list(self.points)[::2])

    def per_minute(self) -> float | None:
        """Lists learned in a minute of event time; None with fewer than two points."""
        (start_ms, before), (end_ms, now) = self.points[0], self.points[-1]
        if end_ms <= start_ms:
            return None
        return (now - before) * 60_000.0 / (end_ms - start_ms)


class Gathered:
    """Verdicts, counts and snapshots; for one writer and many readers.

    Parameters
    ----------
    trained
        Schedules of models that are trained, and of curves, in the settings.
    """

    def __init__(self, trained: Mapping[str, Schedule] | None = None) -> None:
        self._lock = threading.RLock()
        self._verdicts: dict[str, Verdict] = {}
        self._courses: dict[tuple[str, int], Course] = {}
        self._counts: dict[str, int] = {}
        self._snapshots: list[dict[str, Any]] = []
        self._progress: dict[str, LearnerProgress] = {}
        self._examination: list[dict[str, Any]] = []
        self._trained = frozenset(trained or {})
        self._interventions = Interventions(trained or {})
        self._curves = LearnedCurves()
        self._values: dict[str, ModelValues] = {}
        self._canaries: dict[str, CanaryReport] = {}
        self._rewrites: dict[str, Manifest] = {}
        self._trouble = ""
        self._losses: tuple[str, ...] = ()
        self._passed_over: set[str] = set()
        self._number = 0

    def take_verdict(self, value: bytes | None) -> None:
        """Take a record of `evaluations`; one that cannot be read is passed over.

        It is a verdict, or holds clicks per list of the interventions of a model, what
        versions of it are worth, or how its canary does. An experiment of which nothing
        else came yet is named in `overview`, once.
        """
        try:
            verdict = decode_verdict(value or b"")
        except msgspec.DecodeError:
            self._take_other(value or b"")
            return
        name, epoch = verdict.experiment, verdict.epoch
        with self._lock:
            self._courses.setdefault((name, epoch), Course()).add(verdict)
            held = self._verdicts.get(name)
            if held is None or held.epoch <= epoch:
                self._verdicts[name] = verdict
            self._passed_over.discard(name)
            self._moved()

    def _take_other(self, value: bytes) -> None:
        kinds: tuple[tuple[Callable[[bytes], Any], Callable[[Any], bool]], ...] = (
            (decode_rates, self._take_rates),
            (decode_values, partial(_keep, self._values)),
            (decode_report, partial(_keep, self._canaries)),
        )
        for decode, take in kinds:
            try:
                found = decode(value)
            except msgspec.DecodeError:
                continue
            with self._lock:
                if take(found):
                    self._moved()
            return
        self._pass_over(value)

    def _take_rates(self, rates: ModelRates) -> bool:
        self._interventions.take_rates(rates)
        return True

    def take_training(self, records: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Take keys and values of `training`."""
        with self._lock:
            changes = [
                taken.take(*each)
                for each in records
                for taken in (self._interventions, self._curves)
            ]
            if any(changes):
                self._moved()

    def take_decisions(self, key: bytes, value: bytes | None) -> None:
        """Take a record of `decisions`, of which rewrites are shown."""
        try:
            found = decode_key(key)
            made = decode_manifest(value) if found.is_manifest and value else None
        except DecisionError:
            return
        with self._lock:
            if found.is_manifest and self._rewrites.get(found.name) != made:
                self._rewrites.pop(found.name, None)
                if made is not None:
                    self._rewrites[found.name] = made
                self._moved()

    def _pass_over(self, value: bytes) -> None:
        try:
            name = decoded(_decode_named, value).experiment
        except msgspec.DecodeError:
            return
        with self._lock:
            if name not in self._verdicts and name not in self._passed_over:
                self._passed_over.add(name)
                self._moved()

    def set_counts(self, counts: Mapping[str, int]) -> None:
        """Take the counts of the workers."""
        kept = {name: counts[name] for name in OUTCOMES if name in counts}
        with self._lock:
            if kept != self._counts:
                self._counts = kept
                self._moved()

    def set_snapshots(self, snapshots: list[dict[str, Any]]) -> None:
        """Take what rankers can read."""
        with self._lock:
            found = [self._with_progress(each) for each in snapshots]
            if found != self._snapshots:
                self._snapshots = found
                self._moved()

    def _with_progress(self, snapshot: dict[str, Any]) -> dict[str, Any]:
        """A snapshot and how its model went; one that was trained has no pace."""
        model = snapshot["model"]
        learned = int(snapshot["version"].rpartition(".")[2])  # after the epoch
        if snapshot["is_trained"] or model in self._trained:
            found = {**snapshot, "learned": learned, "is_trained": True}
            return {**found, "per_minute": None, "course": []}
        progress = self._progress.setdefault(model, LearnerProgress())
        progress.add(snapshot["created_ms"], learned)
        gone = {"learned": learned, "per_minute": progress.per_minute()}
        return {**snapshot, **gone, "course": [list(each) for each in progress.points]}

    def set_counted(self, counted: Counted) -> None:
        """Take what the statistics hold, which schedules of trainings wait for."""
        with self._lock:
            if counted != self._interventions.counted:
                self._interventions.counted = counted
                self._moved()

    def set_examination(self, examination: list[dict[str, Any]]) -> None:
        """Take what is known of position bias, rank by rank."""
        with self._lock:
            if examination != self._examination:
                self._examination = examination
                self._moved()

    @property
    def trouble(self) -> str:
        """What cannot be reached; empty when all can."""
        with self._lock:
            return self._trouble

    def set_trouble(self, trouble: str) -> None:
        """Say what cannot be reached; empty when all can."""
        with self._lock:
            if trouble != self._trouble:
                self._trouble = trouble
                self._moved()

    def set_losses(self, losses: Iterable[str]) -> None:
        """Say which inputs were lost, a sentence each."""
        found = tuple(losses)
        with self._lock:
            if found != self._losses:
                self._losses = found
                self._moved()

    def overview(self) -> dict[str, Any]:
        """A line for each experiment, and everything else."""
        with self._lock:
            rows = [_row_of(each) for _, each in sorted(self._verdicts.items())]
            served = {x["model"]: x["version"].encode() for x in self._snapshots}
            curves = self._curves.overview(
                {model: pointer_from(each) for model, each in served.items()}
            )
            return {
                "number": self._number,
                "trouble": self._told(),
                "experiments": rows,
                "counts": dict(self._counts),
                "snapshots": list(self._snapshots),
                # What a learner fitted is of more lists, and has its groups.
                "examination": [] if curves else list(self._examination),
                "curves": curves,
                "interventions": self._interventions.overview(),
                "canaries": [
                    msgspec.to_builtins(each)
                    for _, each in sorted(self._canaries.items())
                ],
                "decisions": [
                    _row_of_rewrite(each) for _, each in sorted(self._rewrites.items())
                ],
                "values": [
                    msgspec.to_builtins(each)
                    for _, each in sorted(self._values.items())
                ],
            }

    def experiment(self, name: str, pair: int = 0) -> dict[str, Any] | None:
        """The verdict on one experiment, and the course of one of its pairs."""
        with self._lock:
            verdict = self._verdicts.get(name)
            if verdict is None:
                return None
            course = self._courses[name, verdict.epoch]
            return {"verdict": verdict, "pair": pair, "course": course.of_pair(pair)}

    def _told(self) -> str:
        losses = "; ".join(self._losses)
        refused = self._interventions.refused or self._curves.refused
        parts = (self._trouble, refused, self._unread(), f"{losses}." if losses else "")
        return " ".join(filter(None, parts))

    def _unread(self) -> str:
        if not self._passed_over:
            return ""
        names = ", ".join(sorted(self._passed_over))
        return (
            f"Verdicts on {names} were written by another release and are passed over; "
            "the role evaluate of this one writes new ones as soon as sums move."
        )

    def _moved(self) -> None:
        self._number += 1


def _keep(held: dict[str, Any], found: Any) -> bool:
    """Keep what is told of a model; whether it is news."""
    is_news = bool(held.get(found.model) != found)
    held[found.model] = found
    return is_news


def _row_of_rewrite(made: Manifest) -> dict[str, Any]:
    return {
        "rule": made.name,
        "intervention": made.intervention,
        "at_ms": made.at_ms,
        "decided": made.n_decisions,
        "left_out": made.n_left_out,
        "default": made.default,
    }


def _row_of(verdict: Verdict) -> dict[str, Any]:
    found = verdict.drawn_by
    states = [check.state for check in verdict.health]
    return {
        "name": verdict.experiment,
        "epoch": verdict.epoch,
        "method": verdict.method,
        "rankers": len(verdict.rankers),
        "impressions": found.impressions,
        "winner": found.winner,
        "health": max(states, key=WORST.index, default="ok"),
    }
