"""How it stands with the trainings of each model: refused, under way, and due next."""

import textwrap
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from producers.stop_signal import Stop
from producers.topic_reader import TopicReader
from rankstream.operations.commands.intervene_log import Trainings, read_trainings
from rankstream.operations.monitoring.schedules import (
    Counted,
    CountedSoFar,
    moment,
    next_in_words,
)
from rankstream.operations.terminal.plain_text import visible
from rankstream.settings import Settings
from rankstream.wire.topics import STATISTICS
from rankstream.wire.training import LEFT_ALONE, Refusal, Status
from rankstream.wire.training import TRAINING as UNDER_WAY
from streams.training.schedule import Next, next_points

N_LAST = 20_000
"""Records of each partition of the statistics among which the newest count is."""

WIDTH = 100

ALIVE_MS = 60_000
"""A list shows what a trainer said last for so long."""

SILENT_S = 15.0
"""A trainer that says nothing while one waits so long, three beats, is not at work."""

LOOK_S = 0.5


class ModelStanding(NamedTuple):
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
    if name in settings.models:
        training = settings.models[name].training
        due = next_in_words(name, training, position, counted, is_left_alone=is_left)
        points = next_points(training, position)
    return ModelStanding(
        name,
        doing,
        bool(asked) and (position is None or position.request != asked),
        next(reversed(found.refused.get(name, [])), None),
        due,
        points,
    )


def lines_of(standing: ModelStanding) -> list[str]:
    """It in words, no line wider than `WIDTH`."""
    name, doing, is_asked, refusal, due, _ = standing
    said = []
    is_left = doing is not None and doing.state == LEFT_ALONE
    if doing is not None and not is_left:
        said.append(f"now: {doing.said}")
    if is_asked:
        said.append("somebody asked for a training, which is not done yet")
    if refusal is not None:
        after = f", after {refusal.after}" if refusal.after else ""
        at = f"{moment(refusal.at_ms)} UTC"
        said.append(f"last refused {at} (by {refusal.reason}){after}: {refusal.said}")
    if doing is not None and is_left:
        said.append(f"left alone: {doing.said}")
    elif due:
        said.append(due)
    return [line for each in said for line in wrapped(f"{name}: {each}")]


def wrapped(text: str) -> Sequence[str]:
    """Lines of a text of no more than `WIDTH`, unless a word is longer."""
    return textwrap.wrap(
        visible(text),
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def standing_as_builtins(standing: ModelStanding) -> dict[str, Any]:
    """It for JSON."""
    n_counted, at_ms = standing.points
    return {
        "model": standing.model,
        "status": msgspec.to_builtins(standing.doing and _named(standing.doing)),
        "is_asked": standing.is_asked,
        "refused": standing.refusal and _named(standing.refusal),
        "next": {"interactions": n_counted, "at_ms": at_ms, "said": standing.due},
    }


def _named(record: Status | Refusal) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}
