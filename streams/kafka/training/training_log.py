"""What a trainer writes of one model, in transactions whose id names the model."""

from collections.abc import Sequence

from aiokafka.errors import InvalidProducerEpoch, ProducerFenced

from rankstream.wire.topics import (
    EVALUATIONS,
    MAX_RECORD_BYTES,
    MIB,
    SNAPSHOTS,
    TRAINING,
    full_name,
)
from streams.kafka.clients import Producer
from streams.kafka.state.state_log import Cluster, delivered
from streams.kafka.state.whole_topics import Check, decided_end, whole_partition
from streams.stage import Output
from streams.training.model_records import ModelRecords


class TrainerFenced(RuntimeError):
    """Another trainer took a model over; nothing of this one was published.

    Operator action: none, if two workers are meant to run; else stop one of them.
    """


class TrainingLog:
    """The one writer of a model's interventions.

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
        self._timeout_ms = timeout_ms
        self._producer: Producer | None = None

    async def fence(self) -> None:
        """Become the only writer; ends all that an earlier one has left."""
        cluster = self._cluster
        transactions = f"rankstream-train-{self._name}"
        self._producer = producer = cluster.clients.producer(
            **cluster.client,
            transactional_id=full_name(cluster.namespace, transactions),
            transaction_timeout_ms=self._timeout_ms,
            request_timeout_ms=self._timeout_ms,
            acks="all",
            max_request_size=MAX_RECORD_BYTES + MIB,
            linger_ms=0,
        )
        await producer.start()
        # Where a partition lacks the marker of a transaction that has ended
        # (KAFKA-20734) this one's marker ends that too: nobody could read on.
        try:
            await producer.begin_transaction()
            await self._send([Output(each, 0, b"nothing", b"") for each in _TOPICS])
            await producer.abort_transaction()
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
        TrainerFenced
            Where another trainer has the model now: nothing was written.
        """
        producer = self._producer
        if producer is None:
            raise ValueError("fence must be called before write")
        try:
            await producer.begin_transaction()
            await self._send(outputs)
            await producer.commit_transaction()
        except _FENCED as error:
            raise self._taken() from error

    async def close(self) -> None:
        """Write no more."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def _send(self, outputs: Sequence[Output]) -> None:
        producer = self._producer
        if producer is None:
            raise ValueError("fence must be called before anything is sent")
        await delivered(
            [
                await producer.send(
                    self._cluster.place(each.topic, each.partition).topic,
                    partition=each.partition,
                    key=each.key,
                    value=each.value,
                )
                for each in outputs
            ]
        )

    def _taken(self) -> TrainerFenced:
        return TrainerFenced(
            f"a model must have one trainer; another one has {self._name!r} now, and "
            "nothing of this one was published: it goes on with what the other leaves"
        )


_TOPICS = SNAPSHOTS, TRAINING, EVALUATIONS
_FENCED = ProducerFenced, InvalidProducerEpoch
