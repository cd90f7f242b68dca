"""What is the matter with an installation: each part looked at, with what to do."""

from collections.abc import Iterator
from dataclasses import dataclass

from producers.brokers.cluster import (
    ClusterFacts,
    KafkaAway,
    KafkaRefused,
    cluster_facts,
)
from producers.brokers.topic_admin import TopicAdmin
from producers.patience import TimedOut, patience
from producers.readiness import shown_url, why_no_kafka
from producers.topic_reader import TopicReader, TopicUnreadable
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.installation.clocks import clock_finding
from rankstream.operations.answers.installation.finding import FAILS, OK, WARNS, Finding
from rankstream.operations.answers.installation.health import (
    accepted_losses,
    loss_in_words,
)
from rankstream.operations.answers.installation.installed import installation_findings
from rankstream.operations.answers.installation.redis_standing import (
    RedisStanding,
    redis_standing,
)
from rankstream.settings import Settings, SettingsError
from rankstream.tls import in_the_clear
from streams.topology import topics_of

LEAST_KAFKA = (2, 5)
"""Producers that commit as members of a group need it."""

TIMEOUT_MS = 5_000
"""How long one question to the cluster may take."""

RUNBOOKS = {
    " must exist": "where it was there before, see docs/runbooks/lost-topic.md",
    " must have a leader": "docs/runbooks/lost-broker.md",
    " replicas in sync": "docs/runbooks/lost-broker.md",
}
"""What is found of topics, and the page that says step by step what to do."""


@dataclass(frozen=True)
class Diagnosis(Answer):
    """What was found, part by part; `is_fine` where nothing fails."""

    is_fine: bool
    findings: list[Finding]


def diagnosis(settings: Settings) -> Diagnosis:
    """Look at what runs here, at Kafka and its topics, at Redis, and at all clocks.

    Nothing is written, and nobody is waited for.
    """
    findings = [*installation_findings()]
    cluster, of_kafka = _of_kafka(settings)
    findings += of_kafka
    if cluster is not None:
        findings += _of_topics(settings)
    redis, of_redis = redis_standing(settings)
    findings += of_redis
    findings += _of_clocks(settings, cluster, redis)
    return Diagnosis(all(x.state != FAILS for x in findings), findings)


def _of_kafka(settings: Settings) -> tuple[ClusterFacts | None, list[Finding]]:
    where = f"Kafka at {settings.kafka.bootstrap}"
    warning = in_the_clear(settings.kafka)
    warned = [Finding("kafka", WARNS, warning)] if warning else []
    why = why_no_kafka(settings.kafka)
    if why:
        remedy = "start it (docs/how-to/install.md), or correct kafka.bootstrap"
        said = f"{where} must answer; {why}: {remedy}"
        return None, [Finding("kafka", FAILS, said), *warned]
    try:
        found = cluster_facts(settings, timeout_ms=TIMEOUT_MS)
    except (KafkaAway, KafkaRefused, SettingsError) as error:
        return None, [Finding("kafka", FAILS, str(error)), *warned]
    return found, [*brokers_found(found, where), _of_transactions(found), *warned]


def brokers_found(found: ClusterFacts, where: str) -> Iterator[Finding]:
    """Whether each broker answers, and is new enough."""
    for node, version in found.versions.items():
        address = found.addresses[node]
        if not version:
            yield Finding(
                "kafka",
                FAILS,
                f"each broker must answer under the address that it gives; broker "
                f"{node} does not, at {address}: start it, or correct its "
                "advertised.listeners",
            )
        elif version < LEAST_KAFKA:
            yield Finding(
                "kafka",
                FAILS,
                f"brokers must be of Kafka {_dotted(LEAST_KAFKA)} or later; broker "
                f"{node}, {address}, is of {_dotted(version)}: upgrade it",
            )
    versions = sorted({_dotted(x) for x in found.versions.values() if x})
    if all(version >= LEAST_KAFKA for version in found.versions.values()):
        n_brokers = len(found.versions)
        brokers = "1 broker" if n_brokers == 1 else f"{n_brokers} brokers"
        yield Finding("kafka", OK, f"{where}: {brokers} of {', '.join(versions)}")


def _of_transactions(found: ClusterFacts) -> Finding:
    if found.why_no_transactions:
        return Finding(
            "kafka",
            FAILS,
            "a coordinator of transactions must answer, or no worker commits; "
            f"{found.why_no_transactions}: see that __transaction_state has a leader, "
            "and that we may describe transactional ids",
        )
    return Finding("kafka", OK, "transactions have a coordinator")


def _of_topics(settings: Settings) -> Iterator[Finding]:
    """What `topics check` says, and losses that an operator accepted."""
    topics = topics_of(settings.kafka)
    try:
        admin = TopicAdmin(settings, topics, timeout_ms=TIMEOUT_MS)
        try:
            checked = admin.checked()
        finally:
            admin.close()
    except (KafkaAway, KafkaRefused) as error:
        yield Finding("topics", FAILS, str(error))
        return
    for problem in checked.problems:
        yield Finding("topics", FAILS, with_runbook(problem))
    for danger in checked.dangers:
        yield Finding("topics", WARNS, with_runbook(danger))
    if not (checked.problems or checked.dangers):
        yield Finding("topics", OK, f"all {len(topics)} topics are as they must be")
    yield from _of_losses(settings)


def with_runbook(said: str) -> str:
    """A sentence on a topic, with the page to follow where there is one."""
    return "; ".join(
        [said, *(page for words, page in RUNBOOKS.items() if words in said)]
    )


def _of_losses(settings: Settings) -> Iterator[Finding]:
    try:
        with patience(1e-3 * TIMEOUT_MS), TopicReader(settings) as reader:
            losses = accepted_losses(reader)
    except (TopicUnreadable, TimedOut) as error:
        yield Finding("topics", FAILS, str(error))
        return
    for each in losses:
        yield Finding("topics", WARNS, loss_in_words(each))


def _of_clocks(
    settings: Settings, cluster: ClusterFacts | None, redis: RedisStanding | None
) -> Iterator[Finding]:
    if cluster is not None and cluster.ahead_ms is None:
        yield Finding(
            "clocks",
            WARNS,
            "the cluster does not tell its time (it is older than Kafka 3.3, without "
            "KRaft, or does not let us describe it): compare its clock by hand",
        )
    elif cluster is not None and cluster.ahead_ms is not None:
        yield clock_finding(
            f"Kafka at {settings.kafka.bootstrap}",
            cluster.ahead_ms,
            cluster.within_ms,
            settings.time.ahead_ms,
        )
    if redis is not None:
        where = f"Redis at {shown_url(settings.redis.url)}"
        yield clock_finding(where, redis.ahead_ms, redis.within_ms, None)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
