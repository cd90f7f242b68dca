"""Which first steps are done: by the ends of topics, in the order of the steps."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from producers.topic_reader import TopicReader
from rankstream.operations.answers.installation.first_steps import steps_done
from rankstream.wire.topics import CLICKS, EVALUATIONS, EVENTS, QUERIES, STATISTICS


class Ends:
    """A cluster of two partitions a topic, of which the last may be written to."""

    def __init__(self, written: Mapping[str, int]) -> None:
        self._written = written

    def partitions(self, topic: str) -> list[int]:
        """Both."""
        del topic
        return [0, 1]

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """Where each begins and ends."""
        return {0: (0, 0), 1: (0, self._written.get(topic, 0))}


@pytest.mark.parametrize(
    ("place", "topic"), [(1, QUERIES), (2, CLICKS), (3, STATISTICS), (4, EVALUATIONS)]
)
def test_one_partition_that_was_written_to_is_a_step(place: int, topic: str) -> None:
    """Of its own topic, and of no other."""
    reader: Any = Ends({topic: 1, EVENTS: 5})
    done = steps_done(cast(TopicReader, reader))
    assert done == [number in (0, place) for number in range(5)]
