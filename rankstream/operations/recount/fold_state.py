"""The fold's state topics, read while a worker may go on writing them."""

import time

from rankstream.settings import Settings
from rankstream.wire.topics import STATISTICS
from streams.fold.segments import STATE_TOPIC
from streams.kafka.state.resume_position import POSITION_KEY, decode_position
from streams.partition_fold import partition_fold
from streams.recount.recount import Found
from streams.recount.rules import Split
from streams.repartitioning.log_split import splits_of
from streams.stage import Change

ATTEMPTS = 20
BETWEEN_S = 0.5


class FoldState:
    """The fold's state topics, the last value of each key of each partition."""

    def __init__(self, settings: Settings) -> None:
        from producers.topic_reader import read_topic  # noqa: PLC0415

        self._of: dict[int, dict[tuple[str, bytes], bytes]] = {}
        self.positions = positions_of(settings)
        for topic in (STATISTICS, STATE_TOPIC):
            for partition, _, key, value in read_topic(settings, topic):
                of_it = self._of.setdefault(partition, {})
                place = (topic, key or b"")
                if value:
                    of_it[place] = value
                else:
                    of_it.pop(place, None)
        after = positions_of(settings)
        self.is_steady = {
            p: checkpoint for p, (checkpoint, _) in self.positions.items()
        } == {p: checkpoint for p, (checkpoint, _) in after.items()}

    def statistics(self) -> list[tuple[bytes, bytes]]:
        """Keys and values of statistics; what was counted once for each partition."""
        return [
            (key, value)
            for _, of_it in sorted(self._of.items())
            for (topic, key), value in sorted(of_it.items())
            if topic == STATISTICS
        ]

    def found(self, settings: Settings) -> dict[int, Found]:
        """What the state says of each partition."""
        found = {}
        for partition, (checkpoint_offset, offset) in self.positions.items():
            fold = partition_fold(partition, settings)
            values = self._of.get(partition, {})
            fold.restore(
                Change(topic, key, value)
                for (topic, key), value in values.items()
                if key != POSITION_KEY
            )
            splits = tuple(Split(*each) for each in splits_of(values))
            found[partition] = Found(checkpoint_offset, offset, fold.counters(), splits)
        return found


def steady_state(settings: Settings) -> FoldState:
    """The state as it was at one checkpoint of each partition."""
    for _ in range(ATTEMPTS):
        state = FoldState(settings)
        if state.is_steady:
            return state
        time.sleep(BETWEEN_S)
    raise RuntimeError(
        "the state must stand still while it is read; it moved each time: stop the "
        "worker, or raise delivery.state_s"
    )


def positions_of(settings: Settings) -> dict[int, tuple[int, int]]:
    """Checkpoint and offset of the fold's resume position, by partition."""
    from producers.topic_reader import read_topic  # noqa: PLC0415

    positions: dict[int, tuple[int, int]] = {}
    for partition, _, key, value in read_topic(settings, STATE_TOPIC):
        if key == POSITION_KEY and value:
            position = decode_position(value)
            positions[partition] = (position.checkpoint_offset, position.offset)
    return positions
