"""When trained models are trained next, in words."""

import datetime
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from producers.topic_reader import Record
from rankstream.settings import TrainingSettings
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.training import Position
from streams.statistics import keys
from streams.training.schedule import least_watermark, next_points


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
        self._known: dict[int, keys.Counted] = {}

    def seen(self, records: Iterable[Record]) -> Iterator[Record]:
        """The same records, those of counts noted; one of another release is not."""
        for record in records:
            if record.key == keys.counted_key(record.partition) and record.value:
                try:
                    self._known[record.partition] = keys.decode_counted(record.value)
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
    training: TrainingSettings,
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
    >>> plan, so_far = TrainingSettings(after=[500]), Counted(120)
    >>> next_in_words("m", plan, None, so_far, is_left_alone=False)
    'next intervention at 500 interactions (120 counted so far)'
    """
    by_hand = f"by hand: rankstream intervene {model}"
    if is_left_alone:
        return f"next intervention {by_hand} (the schedule leaves it alone)"
    if not training.has_schedule:
        return f"next intervention {by_hand}"
    points = next_points(training, position)
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


def moment(at_ms: int) -> str:
    """A time as people read it.

    Examples
    --------
    >>> moment(1_750_000_000_000)
    '2025-06-15 15:06:40'
    """
    try:
        at = datetime.datetime.fromtimestamp(at_ms / 1_000.0, datetime.UTC)
    except (OverflowError, ValueError, OSError):  # after the year 9999
        return f"{at_ms:,} ms"
    return at.strftime("%Y-%m-%d %H:%M:%S")
