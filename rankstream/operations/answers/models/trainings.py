"""Trainings of models: made, refused, under way, asked for, and due next."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from producers.stop_signal import Stop
from producers.topic_reader import Record, TopicReader
from rankstream.configuration.training import Schedule
from rankstream.operations.answers.as_builtins import Answer, as_builtins
from rankstream.operations.terminal.words import moment
from rankstream.settings import Settings
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.training import (
    LEFT_ALONE,
    Position,
    Refusal,
    RunRecord,
    Status,
    decode_record,
    decode_training_key,
)
from rankstream.wire.models.training import TRAINING as UNDER_WAY
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import STATISTICS, TRAINING
from streams.statistics.keys import Counted as StoredCounts
from streams.statistics.keys import counted_key, decode_counted
from streams.training.schedule import Next, least_watermark, next_points

N_LAST = 20_000
"""Records of each partition of the statistics among which the newest count is."""

ALIVE_MS = 60_000
"""A list shows what a trainer said last for so long."""

SILENT_S = 15.0
"""A trainer that says nothing while one waits so long, three beats, is not at work."""

LOOK_S = 0.5

MADE = ("run", "curve")
"""Kinds of records of what was made from the log."""


def run_from(name: str, value: bytes, kind: str = "run") -> RunRecord | CurveRecord:
    """The run of an intervention, or the fit of a curve, from its record.

    Raises
    ------
    SchemaRefused, ValueError
        Where another release wrote it, or something else.
    """
    try:
        found: RunRecord | CurveRecord = decode_record(kind, value)
    except msgspec.DecodeError as error:
        raise ValueError(
            f"a {kind} in {TRAINING} must be readable; {error}, of {name!r:.200}: "
            "something else wrote it: begin anew in another --namespace"
        ) from error
    return found


class Counted(NamedTuple):
    """What the statistics hold: interactions, and the least watermark.

    `n` is of the partitions that are known; None before any is, as the other is before
    all are.
    """

    n: int | None = None
    watermark_ms: int | None = None


class CountedSoFar:
    """Keeps the newest counts of each partition of the statistics."""

    def __init__(self, n_partitions: int) -> None:
        self._n_partitions = n_partitions
        self._known: dict[int, StoredCounts] = {}

    def seen(self, records: Iterable[Record]) -> Iterator[Record]:
        """The same records, those of counts noted; one of another release is not."""
        for record in records:
            if record.key == counted_key(record.partition) and record.value:
                try:
                    self._known[record.partition] = decode_counted(record.value)
                except SchemaRefused:
                    self._known.pop(record.partition, None)
            yield record

    @property
    def counted(self) -> Counted:
        """Of all partitions together."""
        if not self._known:
            return Counted()
        times = [each.watermark_ms for each in self._known.values()]
        return Counted(
            sum(sum(each.sources.values()) for each in self._known.values()),
            least_watermark(times, self._n_partitions),
        )


def next_in_words(
    model: str,
    schedule: Schedule,
    position: Position | None,
    counted: Counted,
    *,
    is_left_alone: bool,
) -> str:
    """When a model is trained next.

    Parameters
    ----------
    position
        After its last intervention; None before the first.
    is_left_alone
        Whether the schedule waits until somebody asks, as after a rollback.

    Examples
    --------
    >>> plan, so_far = Schedule(after=[500]), Counted(120)
    >>> next_in_words("m", plan, None, so_far, is_left_alone=False)
    'next intervention at 500 interactions (120 counted so far)'
    """
    by_hand = f"by hand: rankstream intervene {model}"
    if is_left_alone:
        return f"next intervention {by_hand} (the schedule leaves it alone)"
    if not schedule.has_points:
        return f"next intervention {by_hand}"
    points = next_points(schedule, position)
    said = []
    if points.n_counted is not None:
        known = "" if counted.n is None else f" ({counted.n:,} counted so far)"
        said.append(f"at {points.n_counted:,} interactions{known}")
    if points.at_ms is not None:
        at_ms = counted.watermark_ms
        known = "" if at_ms is None else f" (now {moment(at_ms)})"
        said.append(f"at {moment(points.at_ms)} of event time{known}")
    if not said:
        return f"next intervention {by_hand} (no point of its schedule is left)"
    return f"next intervention {', or '.join(said)}"


class Heard(NamedTuple):
    """Where a record stands, and when the broker took it, by its own clock."""

    offset: int
    at_ms: int


class Trainings(NamedTuple):
    """Runs and fits by intervention, oldest first; all else by model, the last of each.

    Parameters
    ----------
    asked
        Ids of requests, oldest first, so far as they are kept.
    refused
        Refusals, oldest first, so far as they are kept.
    heard
        Of each status.
    """

    runs: dict[str, RunRecord | CurveRecord]
    statuses: dict[str, Status]
    positions: dict[str, Position]
    asked: dict[str, list[str]]
    refused: dict[str, list[Refusal]]
    heard: dict[str, Heard]

    def models(self) -> set[str]:
        """All that there is a word of."""
        named = {run.model for run in self.runs.values()}
        return named.union(*self[1:])


def read_trainings(reader: TopicReader) -> Trainings:
    """What the topic says; what cannot be read is passed over, but for runs.

    Raises
    ------
    SchemaRefused, ValueError
        Where a run is another release's, or something else wrote it.
    """
    found = Trainings({}, {}, {}, {}, {}, {})
    for record in reader.records(TRAINING):
        named = decode_training_key(record.key or b"")
        if named is None or record.value is None:
            continue
        kind, name = named
        if kind in MADE:
            found.runs[name] = run_from(name, record.value, kind)
            continue
        try:
            value: Any = decode_record(kind, record.value)
        except (SchemaRefused, msgspec.DecodeError):
            continue
        if kind == "status":
            found.statuses[name] = value
            found.heard[name] = Heard(record.offset, record.timestamp_ms)
        elif kind == "position":
            found.positions[name] = value
        elif kind == "request":
            found.asked.setdefault(name, []).append(value.id)
        else:
            found.refused.setdefault(name, []).append(value)
    return found


@dataclass(frozen=True)
class ModelStanding(Answer):
    """Of one model.

    Parameters
    ----------
    doing
        What a trainer does with it now, or why the schedule leaves it alone; None where
        neither is so.
    is_asked
        Whether a request waits.
    refusal
        The last one; None where there was none.
    due
        What is next, in words; empty of a model without settings.
    points
        The same as numbers.
    """

    model: str
    doing: Status | None
    is_asked: bool
    refusal: Refusal | None
    due: str
    points: Next

    def to_dict(self) -> dict[str, Any]:
        """It for JSON."""
        n_counted, at_ms = self.points
        return {
            "model": self.model,
            "status": as_builtins(self.doing),
            "is_asked": self.is_asked,
            "refused": as_builtins(self.refusal),
            "next": {"interactions": n_counted, "at_ms": at_ms, "said": self.due},
        }

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`."""
        return {
            "model": str,
            "status": Status | None,
            "is_asked": bool,
            "refused": Refusal | None,
            "next": {"interactions": int | None, "at_ms": int | None, "said": str},
        }


def at_work(
    reader: TopicReader, stop: Stop, name: str, on_wait: Callable[[], object]
) -> Status | None:
    """What a trainer says of what it does now; None where nobody is at work.

    Who was killed leaves a status as if it were at work. So the next one is waited for:
    that holds whatever the clocks are of who trains and who asks.

    Parameters
    ----------
    stop
        Ends the wait; nothing is known then.
    on_wait
        Is called once, where it is to be waited.
    """
    found = read_trainings(reader)
    first, until_s = found.heard.get(name), time.monotonic() + SILENT_S
    if _under_way(name, found):
        on_wait()
    while (status := _under_way(name, found)) and not stop.asked:
        if found.heard[name] != first:
            return status
        if time.monotonic() >= until_s:
            break
        stop.wait(LOOK_S)
        found = read_trainings(reader)
    return None


def _under_way(name: str, found: Trainings) -> Status | None:
    status = found.statuses.get(name)
    return status if status is not None and status.state == UNDER_WAY else None


def _said_lately(name: str, found: Trainings) -> Status | None:
    """The same of a list, which waits for nobody; by the broker's clock."""
    status, now_ms = _under_way(name, found), time.time_ns() // 1_000_000
    return status if status and now_ms - found.heard[name].at_ms < ALIVE_MS else None


def counted_now(reader: TopicReader, n_partitions: int) -> Counted:
    """What the statistics have counted."""
    so_far = CountedSoFar(n_partitions)
    for _ in so_far.seen(reader.last_records(STATISTICS, N_LAST)):
        pass
    return so_far.counted


def standing_of(
    settings: Settings, name: str, found: Trainings, counted: Counted
) -> ModelStanding:
    """How it stands with a model."""
    status, position = found.statuses.get(name), found.positions.get(name)
    is_left = status is not None and status.state == LEFT_ALONE
    doing = status if is_left else _said_lately(name, found)
    asked = found.asked.get(name, [""])[-1]
    due, points = "", Next(None, None)
    if name in settings.models | settings.curves:
        schedule = settings.schedules.get(name, Schedule())
        due = next_in_words(name, schedule, position, counted, is_left_alone=is_left)
        points = next_points(schedule, position)
    return ModelStanding(
        name,
        doing,
        bool(asked) and (position is None or position.request != asked),
        next(reversed(found.refused.get(name, [])), None),
        due,
        points,
    )
