"""Committed records of one partition, from its beginning and on for ever.

A plain consumer without a group, for readers that store no position, such as the
publisher of snapshots, which reads a compacted topic from its beginning.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from typing import Any, NamedTuple

from aiokafka import TopicPartition
from aiokafka.errors import KafkaError, UnknownTopicOrPartitionError

from rankstream.configuration.cluster import OAUTHBEARER
from rankstream.settings import KafkaSettings, secret
from rankstream.tls import tls_context
from rankstream.wire.topics import MAX_RECORD_BYTES, MIB
from streams.kafka.clients import TidyConsumer
from streams.kafka.token_file import PROVIDER, TokenFile

RETRY_S = 1.0
SAY_EVERY_S = 60.0
POLL_MS = 500

log = logging.getLogger("rankstream.committed_reader")


class CommittedBatch(NamedTuple):
    """Keys and values in order, and where they stand.

    Parameters
    ----------
    at_end
        Nothing more was committed.
    is_first
        Reading begins here, with the first record that is there.
    is_settled
        At the end, nothing under way either, by an answer that the broker gave since
        the batch before. Of three such batches in a row, the last is of a request that
        was made after the first.
    n_behind
        Offsets up to the end of what was committed, as of the broker's last answer.
    position
        The offset that is read next.
    """

    records: list[tuple[bytes | None, bytes | None]]
    at_end: bool
    is_first: bool = False
    is_settled: bool = False
    n_behind: int = 0
    position: int = 0


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """What any aiokafka client needs to reach the cluster."""
    options: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap,
        "security_protocol": kafka.security_protocol,
        **kafka.options,
    }
    context = tls_context(kafka)
    if context is not None:
        options["ssl_context"] = context
    if kafka.sasl_mechanism == OAUTHBEARER:
        options["sasl_mechanism"] = OAUTHBEARER
        options[PROVIDER] = TokenFile(kafka.oauth_token_file)
    elif kafka.security_protocol.startswith("SASL"):
        options["sasl_mechanism"] = kafka.sasl_mechanism or "PLAIN"
        options["sasl_plain_username"] = kafka.username
        options["sasl_plain_password"] = secret("KAFKA_PASSWORD", kafka.password_file)
    return options


async def committed_batches(
    kafka: KafkaSettings, topic: str, partition: int = 0
) -> AsyncGenerator[CommittedBatch, None]:
    """Batches of committed records, with an empty one now and then.

    Waits while the broker or the topic is missing. After an error it reads from the
    beginning again, and says so.

    Parameters
    ----------
    topic
        Its full name.
    """
    place = TopicPartition(topic, partition)
    waiting = Waiting(f"{topic}[{partition}] at {kafka.bootstrap}")
    while True:
        consumer = _consumer(kafka, place)
        try:
            await consumer.start()
            if partition not in (consumer.partitions_for_topic(topic) or ()):
                raise UnknownTopicOrPartitionError
            waiting.over()
            answered_ms, is_first = None, True
            while True:
                batch = await _batch(consumer, place)
                # The client has forgotten nothing if the broker falls silent.
                now_ms = consumer.last_poll_timestamp(place)
                is_settled = batch.is_settled and now_ms != answered_ms
                yield batch._replace(is_first=is_first, is_settled=is_settled)
                answered_ms, is_first = now_ms, False
        except KafkaError as error:
            waiting.say(error)
        finally:
            await consumer.stop()
        await asyncio.sleep(RETRY_S)


class Waiting:
    """Says what is waited for: at once, then once a minute, then that it is over."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._said_s: float | None = None

    def say(self, error: Exception) -> None:
        """Tell of a failure, unless that was told lately."""
        now = time.monotonic()
        if self._said_s is None or now - self._said_s >= SAY_EVERY_S:
            self._said_s = now
            log.warning("event=waiting for=%s reason=%s", self._what, error)

    def over(self) -> None:
        """Tell that it answers again, if the wait was told of."""
        if self._said_s is not None:
            log.info("event=reached what=%s", self._what)
        self._said_s = None


def _consumer(kafka: KafkaSettings, place: TopicPartition) -> TidyConsumer:
    consumer = TidyConsumer(
        **client_options(kafka),
        group_id=None,
        enable_auto_commit=False,
        # A seek to the beginning would race with the automatic reset.
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        max_partition_fetch_bytes=MAX_RECORD_BYTES + MIB,
        fetch_max_wait_ms=100,
    )
    consumer.assign([place])
    return consumer


async def _batch(consumer: TidyConsumer, place: TopicPartition) -> CommittedBatch:
    polled = await consumer.getmany(place, timeout_ms=POLL_MS, max_records=500)
    records = [(record.key, record.value) for record in polled.get(place, [])]
    position = await consumer.position(place)
    stable, last = consumer.last_stable_offset(place), consumer.highwater(place)
    return CommittedBatch(
        records,
        at_end=stable is not None and position >= stable,
        is_settled=last is not None and position >= last,
        n_behind=0 if stable is None else max(0, stable - position),
        position=position,
    )


class CompactedView:
    """Takes batches; shows whole readings only.

    Where reading begins anew, as after an outage, all that is there comes again. Until
    its end is reached the view stays as it was: old values never show once more, and a
    key that was removed meanwhile leaves.
    """

    def __init__(self) -> None:
        self._shown: dict[bytes, bytes] = {}
        self._anew: dict[bytes, bytes] | None = None

    def take(self, batch: CommittedBatch) -> bool:
        """Take what was read; whether the view may have changed."""
        if batch.is_first:
            self._anew = {}
        is_shown = self._anew is None
        into = self._shown if self._anew is None else self._anew
        for key, value in batch.records:
            if key is not None and value is None:
                into.pop(key, None)
            elif key is not None and value is not None:
                into[key] = value
        if self._anew is not None and batch.at_end:
            self._shown, self._anew = self._anew, None
            return True
        return is_shown and bool(batch.records)

    @property
    def values(self) -> Mapping[bytes, bytes]:
        """The last value of each key; not a copy."""
        return self._shown
