"""Everything that a monitor knows, kept up to date from outside the workers."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from rankstream.configuration.training import Schedule
from rankstream.operations.answers.as_builtins import as_builtins
from rankstream.operations.answers.comparisons.attention import attention_to
from rankstream.operations.answers.comparisons.experiment_standing import (
    Standing,
    standing_of,
)
from rankstream.operations.answers.installation.first_steps import steps_of
from rankstream.operations.answers.models.trainings import Counted
from rankstream.operations.monitoring.courses import Course, LearnerProgress
from rankstream.operations.monitoring.flow import Flow
from rankstream.operations.monitoring.parts import Parts, away_of
from rankstream.operations.monitoring.trainings import Interventions, LearnedCurves
from rankstream.wire.decision_shards import DecisionError
from rankstream.wire.decisions import Manifest, decode_key, decode_manifest
from rankstream.wire.envelope import pointer_from
from rankstream.wire.models.canary_reports import CanaryReport, decode_report
from rankstream.wire.models.model_evaluations import (
    ModelRates,
    ModelValues,
    decode_rates,
    decode_values,
)
from rankstream.wire.schemas import decoded
from rankstream.wire.verdicts import Verdict, decode_verdict

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
        self._parts = Parts()
        self._flow = Flow()
        self._steps: list[bool] = []
        self._notes: dict[str, str] = {}
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
        return {**snapshot, **gone, "course": progress.shown()}

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
    def number(self) -> int:
        """Moves with all that is news."""
        with self._lock:
            return self._number

    @property
    def trouble(self) -> str:
        """What cannot be reached or read; empty when all can."""
        with self._lock:
            said = self._parts.trouble, *self._notes.values()
            return "; ".join(filter(None, said))

    def heard(self, part: str, at_ms: int) -> None:
        """Say that a part answered, and when by the monitor's clock."""
        with self._lock:
            if self._parts.heard(part, at_ms):
                self._moved()

    def missed(self, part: str, trouble: str, at_ms: int) -> None:
        """Say that a part did not answer, why, and when it was asked."""
        with self._lock:
            if self._parts.missed(part, trouble, at_ms):
                self._moved()

    def take_flow(
        self, pages: Mapping[str, Mapping[str, int] | None], at_s: float
    ) -> None:
        """Take the counts of roles' pages, None of those that do not answer.

        Parameters
        ----------
        at_s
            When they were looked at, by a monotonic clock.
        """
        with self._lock:
            before = self._flow.all()
            for role, counts in pages.items():
                if counts is None:
                    self._flow.forget(role)
                else:
                    self._flow.take(role, counts, at_s)
            if self._flow.all() != before:
                self._moved()

    def set_steps(self, done: list[bool]) -> None:
        """Say which of the first steps are done."""
        with self._lock:
            if done != self._steps:
                self._steps = done
                self._moved()

    def note(self, about: str, said: str) -> None:
        """Say something of what was read; an empty sentence takes it back."""
        with self._lock:
            if said != self._notes.get(about, ""):
                self._notes[about] = said
                self._moved()

    def overview(self) -> dict[str, Any]:
        """A line for each experiment, and everything else; see `docs/monitor.md`."""
        with self._lock:
            rows = [self._row_of(each) for _, each in sorted(self._verdicts.items())]
            served = {x["model"]: x["version"].encode() for x in self._snapshots}
            curves = self._curves.overview(
                {model: pointer_from(each) for model, each in served.items()}
            )
            parts = self._parts.all()
            return {
                "number": self._number,
                "now_ms": time.time_ns() // 1_000_000,
                "away": as_builtins(away_of(parts)),
                "parts": as_builtins(parts),
                "trouble": self._told(),
                "steps": as_builtins(steps_of(self._steps)),
                "experiments": rows,
                "counts": dict(self._counts),
                "flow": as_builtins(self._flow.all()),
                "snapshots": list(self._snapshots),
                # What a learner fitted is of more lists, and has its groups.
                "examination": [] if curves else list(self._examination),
                "curves": curves,
                "interventions": self._interventions.overview(),
                "canaries": _told_of(self._canaries),
                "decisions": [
                    _row_of_rewrite(each) for _, each in sorted(self._rewrites.items())
                ],
                "values": _told_of(self._values),
            }

    @property
    def is_begun(self) -> bool:
        """Whether there is anything to show but steps."""
        with self._lock:
            held = self._verdicts, self._canaries, self._rewrites, self._values
            return any(map(bool, held)) or self.has_interventions

    @property
    def has_interventions(self) -> bool:
        """Whether anything is known of trainings."""
        with self._lock:
            return self._interventions.is_begun

    def experiment(self, name: str, pair: int = 0) -> dict[str, Any] | None:
        """The verdict on one experiment, its standing, what warns, and a course."""
        with self._lock:
            verdict = self._verdicts.get(name)
            if verdict is None:
                return None
            return {
                "verdict": verdict,
                "standing": self._standing_of(verdict).to_dict(),
                "attention": [x.to_dict() for x in attention_to(verdict.health)],
                "pair": pair,
                "course": self._courses[name, verdict.epoch].of_pair(pair),
            }

    def _row_of(self, verdict: Verdict) -> dict[str, Any]:
        standing = self._standing_of(verdict)
        attention = attention_to(verdict.health)
        return {
            "name": verdict.experiment,
            "epoch": verdict.epoch,
            "method": verdict.method,
            "rankers": len(verdict.rankers),
            "impressions": verdict.drawn_by.impressions,
            "winner": verdict.drawn_by.winner,
            "state": standing.state,
            "words": standing.words,
            "is_safe_to_stop": standing.is_safe_to_stop,
            "health": attention[0].state if attention else "ok",
            "warnings": len(attention),
        }

    def _standing_of(self, verdict: Verdict) -> Standing:
        course = self._courses[verdict.experiment, verdict.epoch]
        return standing_of(verdict, course.pace())

    def _told(self) -> str:
        refused = self._interventions.refused or self._curves.refused
        parts = (*self._notes.values(), refused, self._unread())
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


def _told_of(held: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [msgspec.to_builtins(each) for _, each in sorted(held.items())]
