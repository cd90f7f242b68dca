"""Statistics of a namespace on Kafka, converted partition by partition."""

import asyncio
import time
from collections.abc import Callable

from producers.brokers.cluster import KafkaAway
from producers.brokers.topic_admin import TopicAdmin
from rankstream.operations.conversion.partition import convert_partition
from rankstream.operations.conversion.schema1 import ConversionRefused
from rankstream.operations.conversion.scopes import Report
from rankstream.settings import Settings
from rankstream.wire.topics import STATISTICS
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import client_options
from streams.topology import STAGES, group_of, n_partitions_of, topics_of

LOOK_EVERY_S = 0.5

BEYOND_SESSION_S = 5.0
"""How much longer than its session a member that ended may stay in its group."""


def convert_topics(
    settings: Settings,
    *,
    is_trial: bool,
    on_done: Callable[[int, Report | None], None],
) -> None:
    """Convert every partition; those that are done already are passed over.

    Parameters
    ----------
    on_done
        Is told of each partition what was converted, None if nothing was.

    Raises
    ------
    ConversionRefused, LogRefused
        Where a worker runs, or a partition cannot be converted. Partitions before
        that one are converted.
    """
    kind = next(each for each in STAGES if STATISTICS in each.state_topics)
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    try:
        _check_topics(admin)
        wait_for_workers(admin, settings, kind.role)
        topic_ids = admin.topic_ids()
    finally:
        admin.close()
    cluster = Cluster(settings.namespace, client_options(settings.kafka), topic_ids)
    n_partitions = n_partitions_of(kind, settings.kafka)

    async def convert() -> None:
        for partition in range(n_partitions):
            report = await convert_partition(
                kind, partition, cluster, settings, is_trial=is_trial
            )
            on_done(partition, report)

    asyncio.run(convert())


def _check_topics(admin: TopicAdmin) -> None:
    problems = admin.problems()
    if problems:
        raise ConversionRefused("; ".join(problems))


def wait_for_workers(admin: TopicAdmin, settings: Settings, role: str) -> None:
    """Return once the group of a role is empty.

    A worker that stopped stays a member until its session has ended.

    Raises
    ------
    ConversionRefused
        Where it does not become empty.
    """
    group = group_of(settings.namespace, role)
    until_s = time.monotonic() + settings.delivery.session_timeout_s + BEYOND_SESSION_S
    while True:
        try:
            n_members = admin.n_members(group)
        except KafkaAway:  # the broker has not read its groups yet
            if time.monotonic() > until_s:
                raise
            n_members = 1
        if not n_members:
            return
        if time.monotonic() > until_s:
            raise ConversionRefused(
                f"all workers must be stopped; the group {group} has {n_members} of "
                "them: stop them with SIGTERM, and run the command again"
            )
        time.sleep(LOOK_EVERY_S)
