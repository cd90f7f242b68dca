"""Fetches of a trickle: what few records come is gathered before it is asked for.

A fetch that waits at the broker for more is looked at there whenever something is
appended to one of its partitions, and all of them with it: what a record costs would
grow with partitions. So who has read all that was there waits here, and asks for what
came meanwhile.
"""

import asyncio
from typing import Any

from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import Fetcher

from streams.kafka.clients import TidyConsumer

QUIET_MS = 500
"""How long a fetch waits where nothing comes; the first record ends it. So often is an
answer without any noticed."""


class GatheringFetcher(Fetcher):  # type: ignore[misc]
    """aiokafka's, with a pause between two fetches of which neither is large.

    Attributes
    ----------
    apart_s
        Seconds from an answer with all that was there to the next fetch.
    """

    apart_s = 0.0
    _came_from: frozenset[int] = frozenset()

    async def _proc_fetch_request(
        self, assignment: Any, node_id: int, request: Any
    ) -> bool:
        if node_id in self._came_from and not _has_more(assignment, request):
            try:
                await asyncio.sleep(self.apart_s)
            except asyncio.CancelledError:
                return False  # its partitions are given away, as below
        came = await super()._proc_fetch_request(assignment, node_id, request)
        node = frozenset({node_id})
        self._came_from = self._came_from | node if came else self._came_from - node
        return bool(came)


def _has_more(assignment: Any, request: Any) -> bool:
    """Whether a broker had more of these partitions than was read, when last asked.

    Of one that was assigned since, it was not asked yet.
    """
    return any(
        (end := assignment.state_value(TopicPartition(topic, partition)).lso) is None
        or offset < end
        for topic, partitions in request.topics
        for partition, offset, _ in partitions
    )


class GatheringConsumer(TidyConsumer):
    """A consumer that fetches so."""

    apart_s = 0.0

    async def start(self) -> None:
        """Connect."""
        await super().start()
        self._fetcher.__class__ = GatheringFetcher
        self._fetcher.apart_s = self.apart_s
