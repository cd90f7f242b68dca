"""The cluster: how it is reached, and what it is (brokers, transactions, clock)."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, TransactionalIdNotFoundError

from producers.brokers.connection import client_options
from producers.brokers.lets_nobody_in import hearing, why_away
from rankstream.settings import Settings

RECONNECT_MS = 1_000
"""Between knocks at a broker that is away, at most: it is found soon after it is back,
however long an attempt may take."""


class KafkaAway(RuntimeError):
    """No broker answers, or none lets us in.

    Operator action: start the broker, or correct what the message names.
    """


class KafkaRefused(RuntimeError):
    """The cluster does not do what it was asked for.

    Operator action: grant or repair what the message names.
    """


PAUSES_S = (0.2, 0.4, 0.8, 1.6)
"""Between questions to a cluster that is not ready yet."""


@dataclass(frozen=True)
class ClusterFacts:
    """What is known of a cluster.

    Parameters
    ----------
    versions
        Of its brokers by their ids; empty of one that does not answer here.
    addresses
        Of the same brokers, as they give them to clients.
    why_no_transactions
        Empty where a coordinator of transactions answers.
    ahead_ms
        How far the clock of this machine is ahead of the cluster's controller; None
        where the cluster does not tell its time (before Kafka 3.3, or without KRaft).
    within_ms
        How much of that may be the way of the answer.
    """

    versions: Mapping[int, tuple[int, ...]]
    addresses: Mapping[int, str]
    why_no_transactions: str
    ahead_ms: float | None
    within_ms: float


def connected_admin(settings: Settings, timeout_ms: int) -> KafkaAdminClient:
    """A client for what administrators ask a cluster.

    Raises
    ------
    KafkaAway
        Where no broker answers in that time.
    """
    options = client_options(settings.kafka)
    with hearing() as heard:
        try:
            return KafkaAdminClient(
                **options,
                bootstrap_timeout_ms=timeout_ms,
                reconnect_backoff_max_ms=RECONNECT_MS,
            )
        except (KafkaError, OSError) as error:
            why, remedy = why_away(error, heard, settings.kafka)
            raise KafkaAway(
                f"Kafka must answer at {settings.kafka.bootstrap}; {why}: {remedy}"
            ) from error


def cluster_facts(settings: Settings, *, timeout_ms: int = 5_000) -> ClusterFacts:
    """Ask the cluster; nothing is written.

    Raises
    ------
    KafkaAway, KafkaRefused
    """
    client = connected_admin(settings, timeout_ms)
    try:
        brokers = client.describe_cluster()["brokers"]
        ahead_ms, within_ms = _clock(client)
        return ClusterFacts(
            {
                each["broker_id"]: _version(client, each["broker_id"])
                for each in brokers
            },
            {each["broker_id"]: f"{each['host']}:{each['port']}" for each in brokers},
            _why_no_transactions(
                client, f"{settings.namespace or 'rankstream'}-doctor"
            ),
            ahead_ms,
            within_ms,
        )
    except KafkaError as error:
        raise KafkaRefused(
            f"Kafka must let us describe the cluster; it says: {error}"
        ) from error
    finally:
        client.close()


def _version(client: KafkaAdminClient, node: int) -> tuple[int, ...]:
    try:
        found = client.get_broker_version_data(node)
    except (KafkaError, OSError):
        return ()
    return tuple(found.broker_version) if found else ()


def _why_no_transactions(client: KafkaAdminClient, name: str) -> str:
    """Ask for a transaction that nobody has: who knows so, keeps transactions.

    A new cluster makes its topic of transactions when it is first asked.
    """
    why = ""
    for pause_s in (*PAUSES_S, 0.0):
        try:
            client.describe_transactions([name])
        except TransactionalIdNotFoundError:
            return ""
        except (KafkaError, OSError) as error:
            why = f"{type(error).__name__}: {error}"
            if not getattr(error, "retriable", False):
                return why
        time.sleep(pause_s)
    return why


def _clock(client: KafkaAdminClient) -> tuple[float | None, float]:
    """How far our clock is ahead of the controller's, and how exact that is.

    Whoever leads the quorum says of itself that it is caught up now.
    """
    sent_s = time.time()
    try:
        quorum = client.describe_metadata_quorum()
    except (KafkaError, OSError):
        return None, 0.0
    come_s = time.time()
    there_ms = _caught_up_ms(quorum)
    if there_ms is None:
        return None, 0.0
    return 500.0 * (sent_s + come_s) - there_ms, 500.0 * (come_s - sent_s)


def _caught_up_ms(quorum: Mapping[str, Any]) -> int | None:
    for topic in quorum["topics"]:
        for partition in topic["partitions"]:
            for voter in partition.get("current_voters") or ():
                at_ms: int = voter.get("last_caught_up_timestamp") or -1
                if voter["replica_id"] == partition["leader_id"] and at_ms > 0:
                    return at_ms
    return None
