"""What must have happened, from the records of the source alone."""

from collections import Counter
from typing import NamedTuple

import msgspec
from aiokafka import TopicPartition

from rankstream.wire.topics import full_name
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    ResumePosition,
    decode_position,
)
from tests.fakes.kafka import FakeKafka
from tests.streams.kafka.delivery.stage import (
    N_OUTS,
    N_SOURCES,
    NAMESPACE,
    OUT,
    SEQUENCE,
    Layout,
    Passed,
    passed_on,
)


class Sent(NamedTuple):
    """A record of the source."""

    offset: int
    key: bytes
    number: int


class Oracle:
    """Remembers all that was committed in the source, and judges what became of it."""

    def __init__(self, kafka: FakeKafka, layout: Layout) -> None:
        self._kafka = kafka
        self._layout = layout
        self._sent: dict[tuple[str, int], dict[int, Sent]] = {}
        self._moved: dict[int, int] = {}

    def place(self, topic: str, partition: int) -> TopicPartition:
        """A partition on the cluster."""
        return TopicPartition(full_name(NAMESPACE, topic), partition)

    def source(self, number: int) -> TopicPartition:
        """The partition of a source that has a number."""
        counted = self._layout[number]
        return self.place(counted.source, counted.partition)

    def state(self, number: int) -> TopicPartition:
        """The partition of its state."""
        counted = self._layout[number]
        return self.place(counted.state, counted.partition)

    def look(self) -> None:
        """Remember what can be read; called before records are deleted."""
        for partition in range(N_SOURCES):
            sent = self._sent.setdefault((self.topic_id(partition), partition), {})
            log = self._kafka.log(self.source(partition))
            for each in log.fetch(log.first, is_committed=True).records:
                assert each.content is not None
                key, value, _, _ = each.content
                sent[each.offset] = Sent(each.offset, key or b"", int(value or b"0"))

    def topic_id(self, partition: int) -> str:
        """Of the source as it is now."""
        return self._kafka.topics[self.source(partition).topic].topic_id

    def is_of_before(self, partition: int) -> bool:
        """Whether a partition was begun when the source was another topic."""
        position = self.position(partition)
        return position is not None and position.topic_id != self.topic_id(partition)

    def forget(self, partition: int) -> None:
        """Count on nothing that is deleted by now."""
        self._sent.pop((self.topic_id(partition), partition), None)
        self.look()

    def sent(self, partition: int) -> list[Sent]:
        """Everything committed in a partition of the source, in order.

        Of the source that its state was counted from, if there is a state.
        """
        self.look()
        position = self.position(partition)
        topic_id = self.topic_id(partition) if position is None else position.topic_id
        return [each for _, each in sorted(self._sent[topic_id, partition].items())]

    def position(self, partition: int) -> ResumePosition | None:
        """The resume position as it is committed."""
        packed = self._state(partition).get(POSITION_KEY)
        return None if packed is None else decode_position(packed)

    def faults_of_state(
        self, partition: int, n_folded: int, counts: Counter[bytes]
    ) -> list[str]:
        """What is wrong with a state that claims to have folded so many records."""
        if self.is_of_before(partition):
            return []  # it is refused, as nothing goes on from it
        sent = self.sent(partition)
        expected = Counter(each.key for each in sent[:n_folded])
        if n_folded <= len(sent) and counts == expected:
            return []
        return [f"state of {partition} after {n_folded}: {counts}, not {expected}"]

    def faults_of_stored_state(self) -> list[str]:
        """What is wrong with the state and resume position of each partition."""
        faults: list[str] = []
        for partition in range(N_SOURCES):
            position, state = self.position(partition), self._state(partition)
            if position is None or self.is_of_before(partition):
                continue
            n_folded = msgspec.msgpack.decode(state.pop(SEQUENCE), type=int)
            del state[POSITION_KEY]
            counts = Counter(
                {key: msgspec.msgpack.decode(each) for key, each in state.items()}
            )
            faults += self.faults_of_state(partition, n_folded, counts)
            behind = [
                each.offset
                for each in self.sent(partition)
                if each.offset <= position.checkpoint_offset
            ]
            if len(behind) != n_folded:
                faults.append(
                    f"position of {partition} covers {len(behind)}, state {n_folded}"
                )
        return faults

    def move_group(self, group: str, partition: int, offset: int) -> None:
        """Set what the group has committed; what its next commit covers replaces it."""
        place = self.source(partition)
        self._kafka.transactions.set_offset(group, place, offset)
        self._moved[partition] = offset

    def faults_of_group(self, group: str, partition: int) -> list[str]:
        """Where Kafka has another offset of the group than what is covered.

        A topic that is deleted takes the offsets of groups along.
        """
        offsets: dict[TopicPartition, int] = self._kafka.groups.get(group, {})
        committed = offsets.get(self.source(partition))
        position = self.position(partition)
        covered = None if position is None else position.next_offset
        if committed in {covered, self._moved.get(partition, covered)}:
            return []
        if committed is None and self.is_of_before(partition):
            return []
        return [f"the group has {committed} of {partition}, its position {covered}"]

    def faults_of_outputs(self, *, are_complete: bool) -> list[str]:
        """What was lost, passed on twice, or out of order."""
        faults: list[str] = []
        for out in range(N_OUTS):
            contents = self._kafka.committed(self.place(OUT, out))
            passed = [passed_on(each.value) for each in contents]
            for partition in range(N_SOURCES):
                found = [each for each in passed if each.source == partition]
                expected = [
                    Passed(partition, sequence, each.number)
                    for sequence, each in enumerate(self.sent(partition), 1)
                    if each.number % N_OUTS == out
                ]
                if self.is_of_before(partition):
                    found = self._of_before(partition, found)
                if not are_complete:
                    expected = expected[: len(found)]
                if found != expected:
                    faults.append(
                        f"outputs {out} of {partition}: {found}, not {expected}"
                    )
        return faults

    def _of_before(self, partition: int, found: list[Passed]) -> list[Passed]:
        """Without what comes last: records of another source, taken for its own.

        Those are the ones that a process folds until it notices.
        """
        position = self.position(partition)
        numbers = {
            each.number
            for (topic_id, of), sent in self._sent.items()
            if of == partition and position and topic_id != position.topic_id
            for each in sent.values()
        }
        n_of_now = 0
        while n_of_now < len(found) and found[-1 - n_of_now].number in numbers:
            n_of_now += 1
        return found[: len(found) - n_of_now]

    def is_lost(self, partition: int) -> bool | None:
        """Whether a worker that takes a partition over must refuse it.

        None where it may: records before the resume position are gone, but none that
        would be folded.
        """
        position = self.position(partition)
        if position is None:
            return False
        if self.is_of_before(partition):
            return True
        log = self._kafka.log(self.source(partition))
        needed = position.checkpoint_offset + 1
        if any(needed <= each.offset < log.first for each in self.sent(partition)):
            return True
        return False if log.first <= needed else None

    def _state(self, partition: int) -> dict[bytes, bytes]:
        last: dict[bytes, bytes] = {}
        for content in self._kafka.committed(self.state(partition)):
            last[content.key or b""] = content.value or b""
        return last
