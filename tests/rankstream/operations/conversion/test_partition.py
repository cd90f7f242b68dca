"""Which partitions may be converted; the takeover converts some on Kafka."""

import msgspec
import pytest

from rankstream.operations.conversion.partition import stopped_partition
from rankstream.operations.conversion.schema1 import ConversionRefused
from rankstream.wire.topics import STATISTICS, state_topic
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    ResumePosition,
    Source,
    StateRefused,
    encode_position,
)
from streams.kafka.state.state_log import StateRead
from streams.statistics.keys import counted_key
from streams.worker_roles import kinds_of

(FOLD,) = kinds_of("fold")
STATE = state_topic("fold")
POSITION = ResumePosition(2, 9, 9, b"f", b"f", "id", 7, 10, 4, FOLD.since - 1)
SOURCE = Source("events[1]", "id", 4, 0, 20)
encode = msgspec.msgpack.Encoder().encode
OLD, NEW, OTHER = encode(["counts"]), counted_key(1), b"state"


def read(*keys: bytes, **fields: object) -> StateRead:
    """A state with such keys of statistics, and a position with such fields."""
    position = msgspec.structs.replace(POSITION, **fields)
    items = {(STATISTICS, key): b"value" for key in keys}
    items[STATE, OTHER] = b"join"
    items[STATE, POSITION_KEY] = encode_position(position)
    return StateRead(items, len(items), SOURCE)


@pytest.mark.parametrize("keys", [(OLD,), ()])
def test_a_partition_that_was_stopped_is_converted(keys: tuple[bytes, ...]) -> None:
    """Also one that has counted nothing; all else is kept as it is."""
    stopped = stopped_partition(FOLD, 1, read(*keys))

    assert stopped is not None
    assert stopped.position == POSITION
    assert stopped.old == dict.fromkeys(keys, b"value")
    assert stopped.others == {(STATE, OTHER): b"join"}


def test_a_partition_that_is_done_or_was_never_used_is_passed_over() -> None:
    """So a conversion goes on where it ended."""
    for version in range(FOLD.since, FOLD.version + 1):
        assert stopped_partition(FOLD, 1, read(NEW, stage_version=version)) is None
    assert stopped_partition(FOLD, 1, StateRead({}, 0, SOURCE)) is None


@pytest.mark.parametrize(
    ("keys", "fields", "said"),
    [
        ((OLD, NEW), {}, "must hold statistics of one release; of 2 keys 1 are of"),
        ((OLD,), {"stage_version": FOLD.version}, "one release; of 1 keys 1 are of"),
        ((OLD,), {"checkpoint_offset": 7}, "stopped gracefully; .* offset 7, .* to 9"),
        ((OLD,), {"stage_version": 99}, "must be of version 1; it is of 99"),
        ((OLD,), {"topic_id": "another"}, "it was created anew"),
        ((OLD,), {"offset": 30, "checkpoint_offset": 30}, "it was truncated"),
    ],
)
def test_what_cannot_be_converted_is_refused(
    keys: tuple[bytes, ...], fields: dict[str, object], said: str
) -> None:
    """Mixed statistics, a kill, another release, another log."""
    with pytest.raises((ConversionRefused, StateRefused), match=said):
        stopped_partition(FOLD, 1, read(*keys, **fields))


def test_statistics_without_a_position_are_refused() -> None:
    """As a worker refuses them."""
    state = read(OLD)
    del state.items[STATE, POSITION_KEY]
    with pytest.raises(StateRefused, match="must have a resume position"):
        stopped_partition(FOLD, 1, state)
