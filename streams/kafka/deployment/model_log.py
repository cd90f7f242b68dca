"""The one writer of what is deployed of a model: transactions whose id names the model.

Trainers write by it, and the commands of operators. Whoever begins fences all others,
reads what they left, and then writes once. Of two at once the later fence wins, and the
other one writes nothing.
"""

from collections.abc import Sequence

from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from rankstream.wire.topics import (
    EVALUATIONS,
    SNAPSHOTS,
    TRAINING,
)
from streams.kafka.clients import Cluster
from streams.kafka.state.transactions import Transactions
from streams.kafka.state.whole_topics import Check, decided_end, whole_partition
from streams.stage import Output
from streams.training.model_records import ModelRecords


class WriterFenced(RuntimeError):
    """Another writer took a model over; nothing of this one was written.

    Operator action: of a trainer none, as it goes on with what the other one leaves; of
    a command, look at `rankstream snapshots history MODEL` and decide again.
    """


class ModelLog:
    """The one writer of a model's interventions, as long as nobody fences it.

    Parameters
    ----------
    name
        Of the model.
    timeout_ms
        After so long the broker aborts what its producer left.
    """

    def __init__(self, cluster: Cluster, name: str, timeout_ms: int) -> None:
        self._cluster = cluster
        self._name = name
        self._transactions = Transactions(
            cluster, f"rankstream-train-{name}", timeout_ms
        )

    async def fence(self) -> None:
        """Become the only writer; ends all that an earlier one has left."""
        await self._transactions.fence()
        try:
            # Also where a marker is missing: nobody could read on.
            await self._transactions.abort(
                [self._cluster.place(topic, 0) for topic in _TOPICS]
            )
        except _FENCED as error:
            raise self._taken() from error

    async def read(self, models: frozenset[str], check: Check) -> ModelRecords:
        """What both topics say, all that was begun before decided.

        Parameters
        ----------
        check
            Is called before each batch, and may raise.
        """
        records = ModelRecords(models)
        for topic, take in (
            (SNAPSHOTS, records.take_snapshot),
            (TRAINING, records.take_training),
        ):
            place = self._cluster.place(topic, 0)
            end = await decided_end(self._cluster, place)
            async for pairs in whole_partition(
                self._cluster, place, check, at_least=end
            ):
                for key, value in pairs:
                    take(key, value)
        return records

    async def write(self, outputs: Sequence[Output]) -> None:
        """All of it in one transaction; returns when that is committed.

        Raises
        ------
        WriterFenced
            Where another writer has the model now: nothing was written.
        """
        try:
            await self._transactions.commit(outputs)
        except _FENCED as error:
            raise self._taken() from error

    async def close(self) -> None:
        """Write no more."""
        await self._transactions.close()

    def _taken(self) -> WriterFenced:
        return WriterFenced(
            f"a model must have one writer at a time; another one has {self._name!r} "
            "now, a trainer or the command of an operator, and nothing of this one was "
            f"written: `rankstream snapshots history {self._name}` tells what it did"
        )


_TOPICS = SNAPSHOTS, TRAINING, EVALUATIONS
_FENCED = ProducerFenced, InvalidProducerEpoch
