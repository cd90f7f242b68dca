"""The consumer group of the role `adapt`: one worker reads every partition.

A group of consumers says which. The others stand by. One reads all, as documents of
several partitions are passed on in one order, and a second reader would pass on its
own beside that (`streams.adaptation.merge`).
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from aiokafka import ConsumerRebalanceListener, TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import (
    ConsumerProtocolMemberAssignment,
    ConsumerProtocolMemberMetadata,
)
from aiokafka.errors import NoOffsetForPartitionError

from streams.kafka.clients import TidyConsumer
from streams.kafka.header_names import tell_all_names

tell_all_names()


HAS_ALL = b"1"
"""What a member says of itself that had every partition last."""


class OnlyOne(AbstractPartitionAssignor):  # type: ignore[misc]
    """Gives every partition to one member: who had them, else the first by its id.

    aiokafka takes classes, so each member has one of its own (`assignor`).
    """

    name = "rankstream-only-one"
    version = 0
    said = b""

    @classmethod
    def assign(
        cls,
        cluster: ClusterMetadata,
        members: Mapping[str, ConsumerProtocolMemberMetadata],
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        """All to one, nothing to the others."""
        chosen = min(
            members, key=lambda name: (members[name].user_data != HAS_ALL, name)
        )
        found = {
            topic: sorted(cluster.partitions_for_topic(topic) or ())
            for topic in sorted(members[chosen].subscription)
        }
        return {
            member: ConsumerProtocolMemberAssignment(
                cls.version, list(found.items()) if member == chosen else [], b""
            )
            for member in members
        }

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        """What a member says of itself."""
        return ConsumerProtocolMemberMetadata(cls.version, list(topics), cls.said)

    @classmethod
    def on_assignment(cls, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Remember whether this is the one."""
        cls.said = HAS_ALL if any(each for _, each in assignment.assignment) else b""


def assignor() -> type[OnlyOne]:
    """What one member takes part with."""
    return type("OnlyOneOfMember", (OnlyOne,), {})


class SourceMember(ConsumerRebalanceListener):  # type: ignore[misc]
    """One worker's place in the group, and its reader.

    Attributes
    ----------
    turn
        Held while partitions are read: they are revoked between two turns.
    generation
        Rises with each assignment and each revocation.
    assigned
        What this worker is to read; None while that is being decided.
    """

    def __init__(
        self,
        client: Mapping[str, Any],
        topics: Collection[str],
        *,
        group: str,
        instance: str | None,
        session_s: float,
    ) -> None:
        self.turn = asyncio.Lock()
        self.generation = 0
        self.assigned: frozenset[TopicPartition] | None = None
        self._topics = topics
        self.consumer = TidyConsumer(
            **client,
            group_id=group,
            group_instance_id=instance,
            enable_auto_commit=False,
            # Reading never jumps, neither to the oldest record nor to the newest.
            auto_offset_reset="none",
            isolation_level="read_committed",
            partition_assignment_strategy=(assignor(),),
            session_timeout_ms=round(session_s * 1_000),
            heartbeat_interval_ms=round(session_s * 250),
            fetch_max_wait_ms=100,
        )

    async def start(self) -> None:
        """Join the group."""
        self.consumer.subscribe(list(self._topics), listener=self)
        await self.consumer.start()

    async def stop(self) -> None:
        """Leave it for good: a static member would be waited for."""
        coordinator = getattr(self.consumer, "_coordinator", None)
        if coordinator is not None:
            coordinator._group_instance_id = None  # noqa: SLF001
        await self.consumer.stop()

    async def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ARG002
        """End the turn, then have nothing."""
        async with self.turn:
            self.generation += 1
            self.assigned = None

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Note what is to be read from the next turn on."""
        self.generation += 1
        self.assigned = frozenset(assigned)

    async def read(
        self, places: Collection[TopicPartition], timeout_ms: int, most: int
    ) -> Mapping[TopicPartition, list[Any]]:
        """What came of these partitions.

        Raises
        ------
        OffsetOutOfRangeError
            Where what is to be read next is not in its topic.
        """
        if not places:
            await asyncio.sleep(timeout_ms / 1_000)
            return {}
        try:
            found: Mapping[TopicPartition, list[Any]] = await self.consumer.getmany(
                *places, timeout_ms=timeout_ms, max_records=most
            )
        except NoOffsetForPartitionError:
            # Found by a fetch that began before it was sought where to start.
            return {}
        return found
