"""Records of the log that a stored state of the fold refers to."""

from collections.abc import Iterator, Mapping

from producers.topic_reader import TopicReader
from rankstream.wire.topics import EVENTS
from streams.fold.segments import STATE_TOPIC, first_referred
from streams.kafka.state.resume_position import POSITION_KEY, decode_position
from streams.stage import Change, referred


def referred_records(
    reader: TopicReader, partition: int, state: Mapping[tuple[str, bytes], bytes]
) -> Iterator[Change]:
    """What is restored with a state, by topic and key, of a partition."""
    first = first_referred(state)
    packed = state.get((STATE_TOPIC, POSITION_KEY))
    if first is None or packed is None:
        return
    end = decode_position(packed).checkpoint_offset + 1
    for record in reader.records(EVENTS, {partition: first}, {partition: end}):
        if record.offset < end:
            yield referred(EVENTS, record.offset, record.value or b"")
