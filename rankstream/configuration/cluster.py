"""Where Kafka and Redis are, how often stages commit, and where workers' pages are."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from rankstream.configuration.client_options import client_option_faults
from rankstream.configuration.redis_url import redis_url_faults, shown
from rankstream.configuration.section import (
    Fault,
    Positive,
    PositiveFloat,
    Section,
)
from rankstream.wire.topics import LEAST_DAYS

Days = Annotated[int, msgspec.Meta(ge=-1)]

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
OAUTHBEARER = "OAUTHBEARER"
UNWATCHED, MOST_S = 5, 5.0
"""So many times as far apart are commits that only windows wait for, and seconds at
most: commands wait for a stage as long as it goes on."""

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)


class KafkaSettings(Section, frozen=True):
    """The cluster. Passwords come from a variable or a file only.

    `events_days` and `interactions_days` say how long these topics keep a record: 0 as
    long as statistics may have counted it, -1 without end.
    """

    bootstrap: str = "127.0.0.1:9092"
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    username: str = ""
    password_file: str = ""
    oauth_token_file: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password_file: str = ""
    options: dict[str, int | str | bool | float] = {}
    input_partitions: Positive = 4
    partitions: Positive = 4
    learner_partitions: Positive = 4
    replication_factor: Positive = 1
    events_days: Days = 0
    interactions_days: Days = 0


class RedisSettings(Section, frozen=True):
    """Where snapshots lie for rankers."""

    url: str = "redis://127.0.0.1:6379/0"
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    key_password_file: str = ""
    sentinel_username: str = ""
    sentinel_password_file: str = ""
    keep_versions: Positive = 50


class DeliverySettings(Section, frozen=True):
    """How often stages commit, and how often the fold writes its state.

    A role that takes longer than `stop_s` to stop is killed.
    """

    commit_s: PositiveFloat = 1.0
    state_s: PositiveFloat = 5.0
    state_records: Positive = 2_000
    transaction_timeout_ms: Positive = 60_000
    session_timeout_s: PositiveFloat = 10.0
    stop_s: PositiveFloat = 30.0
    instance_id: str = ""

    @property
    def longest_s(self) -> dict[str, float]:
        """What commits must be less than apart, in seconds, by the setting's name."""
        return {
            "session_timeout_s": self.session_timeout_s,
            "transaction_timeout_ms": self.transaction_timeout_ms / 1_000,
        }

    @property
    def unwatched_commit_s(self) -> float:
        """Seconds between commits that only windows wait for.

        Examples
        --------
        >>> DeliverySettings(commit_s=0.1).unwatched_commit_s
        0.5
        >>> DeliverySettings(commit_s=7.0).unwatched_commit_s
        7.0
        """
        most_s = min(MOST_S, *(each_s / 2 for each_s in self.longest_s.values()))
        return max(self.commit_s, min(UNWATCHED * self.commit_s, most_s))


class MetricsSettings(Section, frozen=True):
    """The pages of a worker's processes; port 0 means none."""

    host: str = "127.0.0.1"
    port: int = 0


def kafka_faults(kafka: KafkaSettings) -> Iterator[Fault]:
    """Each setting of `[kafka]` that cannot be so."""
    yield from _of_connection(kafka)
    yield from _of_identity(kafka)
    yield from client_option_faults(kafka.options)
    yield from _of_retention(kafka)


def _of_connection(kafka: KafkaSettings) -> Iterator[Fault]:
    if "@" in kafka.bootstrap:
        yield (
            "kafka.bootstrap",
            "kafka.bootstrap must not carry credentials; set kafka.username and "
            "RANKSTREAM_KAFKA_PASSWORD or kafka.password_file",
        )
    protocol = kafka.security_protocol
    if protocol not in PROTOCOLS:
        setting = "kafka.security_protocol"
        yield setting, f"{setting} must be one of {list(PROTOCOLS)}; got {protocol!r}"
    for name in ("ca_file", "certificate_file"):
        if getattr(kafka, name) and not protocol.endswith("SSL"):
            # Whoever names one believes that nobody listens.
            setting = f"kafka.{name}"
            yield (
                setting,
                f"{setting} must be set with security_protocol SSL or SASL_SSL only; "
                f"got {protocol}",
            )
    for name in ("key_file", "key_password_file"):
        if getattr(kafka, name) and not kafka.certificate_file:
            setting = f"kafka.{name}"
            yield (
                setting,
                f"{setting} must be set with kafka.certificate_file; it is missing",
            )


def _of_identity(kafka: KafkaSettings) -> Iterator[Fault]:
    mechanism, setting = kafka.sasl_mechanism, "kafka.sasl_mechanism"
    if mechanism and mechanism not in MECHANISMS:
        yield setting, f"{setting} must be one of {list(MECHANISMS)}; got {mechanism!r}"
    if bool(kafka.oauth_token_file) != (mechanism == OAUTHBEARER):
        setting = "kafka.oauth_token_file"
        yield (
            setting,
            f"{setting} must be set with kafka.sasl_mechanism {OAUTHBEARER}, and only "
            f"then; got {kafka.oauth_token_file!r} with {mechanism!r}",
        )


def _of_retention(kafka: KafkaSettings) -> Iterator[Fault]:
    for name in ("events_days", "interactions_days"):
        days = getattr(kafka, name)
        if 0 < days < LEAST_DAYS:
            # A worker that ended on a Friday evening is seen on Monday.
            yield (
                f"kafka.{name}",
                f"kafka.{name} must be {LEAST_DAYS} or more, 0 or -1; got {days}",
            )


def delivery_faults(delivery: DeliverySettings) -> Iterator[Fault]:
    """Each setting of `[delivery]` that cannot be so."""
    for name, most_s in delivery.longest_s.items():
        if delivery.commit_s >= most_s:
            yield (
                "delivery.commit_s",
                f"delivery.commit_s must be less than delivery.{name}, {most_s:g} s; "
                f"got {delivery.commit_s:g}",
            )


def redis_faults(redis: RedisSettings) -> Iterator[Fault]:
    """Each setting of `[redis]` that cannot be so."""
    for name in ("ca_file", "certificate_file"):
        if getattr(redis, name) and not redis.url.startswith("rediss"):
            yield (
                f"redis.{name}",
                f"redis.{name} must be set with a url of rediss only; got "
                f"{shown(redis.url)}",
            )
    for name in ("key_file", "key_password_file"):
        if getattr(redis, name) and not redis.certificate_file:
            yield (
                f"redis.{name}",
                f"redis.{name} must be set with redis.certificate_file; it is missing",
            )
    for name in ("sentinel_username", "sentinel_password_file"):
        if getattr(redis, name) and "+sentinel:" not in redis.url:
            yield (
                f"redis.{name}",
                f"redis.{name} must be set with a url of sentinels only; got "
                f"{shown(redis.url)}",
            )
    yield from redis_url_faults(redis.url)
