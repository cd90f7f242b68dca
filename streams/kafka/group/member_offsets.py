"""Offsets in a transaction that only a member of the group's generation may commit.

aiokafka's producer names the group, not the member, so the broker takes its offsets
from whoever has an open transaction. The third version of the request names both
(KIP-447), and is all that is added here.
"""

from typing import Any, ClassVar

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.client import CoordinationType
from aiokafka.errors import GroupAuthorizationFailedError, ProducerFenced
from aiokafka.producer.sender import Sender, TxnOffsetCommitHandler
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Int64,
    Schema,
    TaggedFields,
)

from streams.kafka.group.membership import Membership

TXN_OFFSET_COMMIT = 28
"""The number of the request."""

REFUSALS = {22: "of another generation", 25: "no member", 82: "another instance"}
"""Error codes that say that a member was voted out, and what it is."""

_TEXT = CompactString("utf-8")


class VotedOut(ProducerFenced):  # type: ignore[misc]
    """The group has gone on without this member: nothing of it was committed.

    Operator action: none; the worker starts again from the last commit.
    """


class _Answer(Response):  # type: ignore[misc]
    API_KEY = TXN_OFFSET_COMMIT
    API_VERSION = 3
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "errors",
            CompactArray(
                ("topic", _TEXT),
                (
                    "partition_errors",
                    CompactArray(
                        ("partition", Int32),
                        ("error_code", Int16),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _Asked(RequestStruct):  # type: ignore[misc]
    API_KEY = TXN_OFFSET_COMMIT
    API_VERSION = 3
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("transactional_id", _TEXT),
        ("group_id", _TEXT),
        ("producer_id", Int64),
        ("producer_epoch", Int16),
        ("generation_id", Int32),
        ("member_id", _TEXT),
        ("group_instance_id", _TEXT),
        (
            "topics",
            CompactArray(
                ("topic", _TEXT),
                (
                    "partitions",
                    CompactArray(
                        ("partition", Int32),
                        ("offset", Int64),
                        ("leader_epoch", Int32),
                        ("metadata", _TEXT),
                        ("tags", TaggedFields),
                    ),
                ),
                ("tags", TaggedFields),
            ),
        ),
        ("tags", TaggedFields),
    )


class _Request(Request[_Asked]):  # type: ignore[misc]
    API_KEY: ClassVar[int] = TXN_OFFSET_COMMIT

    def __init__(self, *fields: Any) -> None:
        self._fields = fields

    def build(self, request_struct_class: type[_Asked]) -> _Asked:
        return request_struct_class(*self._fields)


class _Handler(TxnOffsetCommitHandler):  # type: ignore[misc]
    def __init__(
        self, sender: Any, offsets: Any, group_id: str, member: Membership
    ) -> None:
        super().__init__(sender, offsets, group_id)
        self._member = member

    def create_request(self) -> _Request:
        """The request, with the member's generation and names."""
        writer, member = self._sender._txn_manager, self._member  # noqa: SLF001
        by_topic: dict[str, list[Any]] = {}
        for place, at in sorted(self._offsets.items()):
            partition: Any = (place.partition, at.offset, -1, at.metadata, {})
            by_topic.setdefault(place.topic, []).append(partition)
        return _Request(
            writer.transactional_id,
            self._group_id,
            writer.producer_id,
            writer.producer_epoch,
            member.generation,
            member.member_id,
            member.instance_id or None,
            [(topic, partitions, {}) for topic, partitions in by_topic.items()],
            {},
        )

    def handle_response(self, response: Any) -> Any:
        """As aiokafka's, which knows nothing of members.

        Raises
        ------
        VotedOut
            Where the group has gone on without this one.
        """
        plain = []
        for topic, partitions, _ in response.errors:
            for partition, code, _ in partitions:
                if code in REFUSALS:
                    raise VotedOut(
                        f"offsets of {topic}[{partition}] must be of a member of "
                        f"{self._group_id}; {self._member.member_id} of generation "
                        f"{self._member.generation} is {REFUSALS[code]}"
                    )
            plain.append((topic, [(each, code) for each, code, _ in partitions]))
        response.errors = plain
        return super().handle_response(response)


class _Sender(Sender):  # type: ignore[misc]
    member: Membership | None = None

    async def _do_txn_offset_commit(self, offsets: Any, group_id: str) -> None:
        if self.member is None or not offsets:
            await super()._do_txn_offset_commit(offsets, group_id)
            return
        try:
            node = await self._find_coordinator(CoordinationType.GROUP, group_id)
        except GroupAuthorizationFailedError as error:
            self._txn_manager.error_transaction(error)
            return
        await _Handler(self, offsets, group_id, self.member).do(node)


class MemberProducer(AIOKafkaProducer):  # type: ignore[misc]
    """A producer of aiokafka's that can commit the offsets of a member."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._sender.__class__ = _Sender

    async def send_offsets_to_transaction(
        self,
        offsets: dict[TopicPartition, Any],
        group_id: str,
        member: Membership | None = None,
    ) -> None:
        """Let a group have committed these offsets, if the transaction is committed.

        Parameters
        ----------
        member
            Who commits; without one the broker asks no member's generation.
        """
        self._sender.member = member
        await super().send_offsets_to_transaction(offsets, group_id)
