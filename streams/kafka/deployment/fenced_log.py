"""The one writer of something that is deployed: transactions whose id names it.

Whoever begins fences all others, reads what they left, and then writes once. Of two at
once the later fence wins, and the other one writes nothing.
"""

from collections.abc import Callable, Sequence
from typing import ClassVar

from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from streams.kafka.clients import Cluster
from streams.kafka.state.transactions import Transactions
from streams.kafka.state.whole_topics import Check, decided_end, whole_partition
from streams.stage import Output
from streams.topology import writer_of


class WriterFenced(RuntimeError):
    """Another writer took it over; nothing of this one was written.

    Operator action: of a role none, as it goes on with what the other one leaves; of a
    command, look at what is served now, as the message says, and decide again.
    """


class FencedLog:
    """The one writer of something, as long as nobody fences it.

    Parameters
    ----------
    name
        Of what it writes.
    timeout_ms
        After so long the broker aborts what its producer left.

    Attributes
    ----------
    role
        Whose writers have its transactions' ids.
    topics
        To whose first partitions it writes.
    """

    role: ClassVar[str]
    topics: ClassVar[tuple[str, ...]]

    def __init__(self, cluster: Cluster, name: str, timeout_ms: int) -> None:
        self._cluster = cluster
        self._name = name
        writer = writer_of(self.role, name)
        self._transactions = Transactions(cluster, writer, timeout_ms)

    def _taken(self) -> WriterFenced:
        """Says that another writer has it."""
        raise NotImplementedError

    async def fence(self) -> None:
        """Become the only writer; ends all that an earlier one has left."""
        await self._transactions.fence()
        try:
            # Also where a marker is missing: nobody could read on.
            await self._transactions.abort(
                [self._cluster.place(topic, 0) for topic in self.topics]
            )
        except _FENCED as error:
            raise self._taken() from error

    async def read_topic(
        self, topic: str, take: Callable[[bytes, bytes | None], object], check: Check
    ) -> None:
        """Take what a topic says, all that was begun before decided.

        Parameters
        ----------
        check
            Is called before each batch, and may raise.
        """
        place = self._cluster.place(topic, 0)
        end = await decided_end(self._cluster, place)
        async for pairs in whole_partition(self._cluster, place, check, at_least=end):
            for key, value in pairs:
                take(key, value)

    async def write(self, outputs: Sequence[Output]) -> None:
        """All of it in one transaction; returns when that is committed.

        Raises
        ------
        WriterFenced
            Where another writer has it now: nothing was written.
        """
        try:
            await self._transactions.commit(outputs)
        except _FENCED as error:
            raise self._taken() from error

    async def close(self) -> None:
        """Write no more."""
        await self._transactions.close()


_FENCED = ProducerFenced, InvalidProducerEpoch
