"""State that refers to what its source holds, read back with the records it needs.

The fold does not write a list whose window is open once more: its state says where in
`events` that stands. Retention must leave it there for as long; a start says otherwise.
"""

from streams.kafka.state.resume_position import (
    POSITION_KEY,
    SourcePartition,
    StateRefused,
    decode_position,
)
from streams.kafka.state.state_log import StateLog, StateRead
from streams.kafka.whole_batches import POLL_MS, each_of
from streams.stage import referred


class ReferringState(StateLog):
    """The state of a partition, with the records of its source that it refers to."""

    async def read(self) -> StateRead:
        """Read everything that was committed, and what it refers to.

        Raises
        ------
        StateRefused
            Where the source does not hold that any more.
        """
        found = await super().read()
        packed = found.items.get((self._kind.state_topics[0], POSITION_KEY))
        first = self._kind.refers_from(found.items)
        if packed is None or first is None:
            return found
        position, source = decode_position(packed), found.source
        last = position.checkpoint_offset
        if position.topic_id != source.topic_id or source.end <= last:
            return found  # of another source, which whoever goes on from it refuses
        check_held(source, first, last)
        records = await self._records(first, last)
        for offset, value in records.items():
            topic, key, _ = referred(self._kind.source, offset, value)
            found.items[topic, key] = value
        return found._replace(n_records=found.n_records + len(records))

    async def _records(self, first: int, last: int) -> dict[int, bytes]:
        """Values of the source by offset, both ends included."""
        place, consumer = self._source, self._consumer()
        values: dict[int, bytes] = {}
        try:
            await consumer.start()
            consumer.assign([place])
            consumer.seek(place, first)
            while await consumer.position(place) <= last:
                fetched = await consumer.getmany(place, timeout_ms=POLL_MS)
                for record in each_of(fetched.get(place, ())):
                    if record.offset <= last and record.value is not None:
                        values[record.offset] = record.value
        finally:
            await consumer.stop()
        return values


def check_held(source: SourcePartition, first: int, last: int) -> None:
    """Refuse a state that refers to what its source holds no longer.

    Raises
    ------
    StateRefused
        With the offsets that are missing.
    """
    if source.first <= first:
        return
    missing = f"{first}-{min(source.first - 1, last)}"
    raise StateRefused(
        f"{source.name} must still hold offset {first}, which lists with an open "
        f"window refer to; it begins at {source.first}: offsets {missing} left it, as "
        "its retention is shorter than the window and the time that the worker was "
        "away, or as somebody deleted them. Use a new --namespace"
    )
