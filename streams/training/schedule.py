"""When a model is trained: at counts, at event times, and again after a refusal."""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from rankstream.configuration.training import Schedule
from rankstream.wire.envelope import Pointer
from rankstream.wire.models.curves import CurveRecord
from rankstream.wire.models.training import COUNT, SCHEMA, TIME, Position, RunRecord

NOWHERE = Position(SCHEMA, 0, [], -1, "")
"""Of a model that was never trained."""


def count_points(schedule: Schedule) -> list[int]:
    """Numbers of interactions at which a model is trained, ascending, each once.

    Those of `after`, and `interventions` points from `first` to `last` that are evenly
    spaced on a log scale.

    Examples
    --------
    >>> plan = Schedule(first=10, last=1_000, interventions=3, after=[50])
    >>> count_points(plan)
    [10, 50, 100, 1000]
    """
    return sorted({*schedule.after, *_log_points(schedule)})


def _log_points(schedule: Schedule) -> Iterator[int]:
    n, first, last = schedule.interventions, schedule.first, schedule.last
    if n == 1:
        yield first
    for number in range(n if n > 1 else 0):
        yield round(first * (last / first) ** (number / (n - 1)))


def least_watermark(
    watermarks: Collection[int | None], n_partitions: int
) -> int | None:
    """The least of all partitions; None before each of them has one.

    Event time is only where all are: one that begins late may come before the others,
    and a point that it has still to pass is not past.

    Parameters
    ----------
    watermarks
        Of the partitions that are known so far, ms; None of one that has none yet.

    Examples
    --------
    >>> [least_watermark(each, 2) for each in ([7, 5], [7, None], [7])]
    [5, None, None]
    """
    known = [each for each in watermarks if each is not None]
    return min(known) if known and len(known) == n_partitions else None


def position_after(
    before: Position | None, run: RunRecord | CurveRecord, n_partitions: int
) -> Position:
    """Where the schedule stands after a training, or a fit of a curve.

    Parameters
    ----------
    before
        Where it stood; None before the first intervention.
    n_partitions
        Of `events`.
    """
    known = before or NOWHERE
    at_ms = least_watermark([at_ms for _, at_ms in run.watermarks], n_partitions)
    return Position(
        SCHEMA,
        n_done=known.n_done + 1,
        counts=run.counts,
        watermark_ms=known.watermark_ms if at_ms is None else at_ms,
        intervention=run.intervention,
        request=run.request or known.request,
    )


def due(
    schedule: Schedule,
    position: Position | None,
    n_counted: int,
    watermark_ms: int | None,
) -> str | None:
    """Why a model is to be trained now; None where it is not.

    Each point is passed once, and several that were passed since the last intervention
    are one intervention. Points that an earlier schedule had are forgotten.

    Parameters
    ----------
    position
        After the last intervention; None before the first.
    n_counted
        Interactions that the statistics have counted, of all partitions.
    watermark_ms
        See `least_watermark`.

    Returns
    -------
    `COUNT` or `TIME`.
    """
    counted_before = position.n_counted if position else 0
    if any(counted_before < each <= n_counted for each in count_points(schedule)):
        return COUNT
    if watermark_ms is None:
        return None
    passed_ms = position.watermark_ms if position else -1
    if any(passed_ms < each <= watermark_ms for each in schedule.at_ms):
        return TIME
    return None


def n_passed(schedule: Schedule, n_counted: int, watermark_ms: int | None) -> int:
    """Points of a schedule that are passed, whether or not they led to a training.

    Examples
    --------
    >>> n_passed(Schedule(after=[10, 20], at=[5_000]), 10, 5_000)
    2
    """
    at_ms = -1 if watermark_ms is None else watermark_ms
    passed = [each for each in count_points(schedule) if each <= n_counted]
    return len(passed) + sum(each <= at_ms for each in schedule.at_ms)


class Next(NamedTuple):
    """The first points that a model is to be trained at; None where there is none."""

    n_counted: int | None
    at_ms: int | None


def next_points(schedule: Schedule, position: Position | None) -> Next:
    """What comes, or is due already, after the last intervention.

    Examples
    --------
    >>> next_points(Schedule(after=[10, 20]), None)
    Next(n_counted=10, at_ms=None)
    """
    known = position or NOWHERE
    counts = [each for each in count_points(schedule) if each > known.n_counted]
    times = [each for each in schedule.at_ms if each > known.watermark_ms]
    return Next(min(counts, default=None), min(times, default=None))


FIRST_WAIT_S = 10.0

LONGEST_WAIT_S = 600.0

_number = re.compile(r"\d[\d.,]*")


def form_of(why: str) -> str:
    """What reasons that differ in their numbers alone have in common."""
    return _number.sub("#", why)


class Standing(NamedTuple):
    """What the next try depends on, beside what is counted.

    Parameters
    ----------
    newest
        The version that it goes on from; None before there is one.
    n_passed
        Points of the schedule that are passed.
    """

    newest: Pointer | None
    n_passed: int


class _Held(NamedTuple):
    standing: Standing
    form: str
    wait_s: float
    until_s: float


class Retries:
    """Models whose last training was refused.

    Each is tried again after 10 s, and then ever later, up to 10 min; at once where
    another version is served, or a further point of the schedule is passed.
    """

    def __init__(self) -> None:
        self._held: dict[str, _Held] = {}
        self._left: dict[str, Pointer | None] = {}

    def is_held(self, name: str, standing: Standing, now_s: float) -> bool:
        """Whether a training that is due must wait."""
        if name in self._left and self._left[name] == standing.newest:
            return True
        held = self._held.get(name)
        return held is not None and held.standing == standing and now_s < held.until_s

    def refuse(self, name: str, why: str, standing: Standing, now_s: float) -> bool:
        """Take a refusal; whether the one before was of another kind.

        Reasons that differ in their numbers alone are of one kind.
        """
        form, held = form_of(why), self._held.get(name)
        is_new = held is None or held.form != form
        wait_s = FIRST_WAIT_S
        if held is not None and not is_new:
            wait_s = min(2.0 * held.wait_s, LONGEST_WAIT_S)
        self._held[name] = _Held(standing, form, wait_s, now_s + wait_s)
        return is_new

    def leave(self, name: str, standing: Standing) -> None:
        """Take that the schedule leaves it alone, until another version is served."""
        self._left[name] = standing.newest

    def forget(self, name: str) -> None:
        """Take that one was published."""
        self._held.pop(name, None)
        self._left.pop(name, None)
