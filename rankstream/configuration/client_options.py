"""Options of Kafka's clients that settings may give, and why they may give no other."""

from collections.abc import Iterator, Mapping

from rankstream.configuration.section import Fault

OPTIONS: dict[str, type] = {
    "client_id": str,
    "connections_max_idle_ms": int,
    "metadata_max_age_ms": int,
}
"""What every client that is used takes under this name, and of which type."""

MOST_NAME = 200
"""Characters of `client_id`, which each request carries."""

LEAST_MS, MOST_MS = 1_000, 86_400_000
"""Of options in milliseconds: a second and a day."""

OWN = "it is a setting of [kafka] by its own name"
_PLACES = "records would not be where they are looked for"
_SIZES = "a record as large as its topic takes could not pass"
_TWICE = "a record that is sent again would count twice"
_TRANSACTION = "a request lasts as long as delivery.transaction_timeout_ms says"

BREAKING = {
    "acks": "a record that counts as sent could be lost with its broker",
    "allow_auto_create_topics": "a topic would have the wrong partitions",
    "auto_offset_reset": "reading would jump over what is missing, without a word",
    "bootstrap_servers": OWN,
    "compression_type": "a record could pass that unpacks to more than its topic takes",
    "enable_auto_commit": "a position would be committed without what it covers",
    "enable_idempotence": _TWICE,
    "fetch_max_bytes": _SIZES,
    "group_id": "a role would go on where another group is",
    "group_instance_id": "delivery.instance_id names the members of all roles",
    "isolation_level": "records of transactions that were aborted would count",
    "key_deserializer": "what crosses a topic is bytes",
    "key_serializer": "what crosses a topic is bytes",
    "linger_ms": "a commit would wait for it",
    "max_batch_size": _SIZES,
    "max_in_flight_requests_per_connection": "records would change places",
    "max_partition_fetch_bytes": _SIZES,
    "max_request_size": _SIZES,
    "partition_assignment_strategy": "a stage would lose its place beside its state",
    "partitioner": _PLACES,
    "request_timeout_ms": _TRANSACTION,
    "retries": _TWICE,
    "session_timeout_ms": "delivery.session_timeout_s says it",
    "transaction_timeout_ms": _TRANSACTION,
    "transactional_id": "two writers of one state would not shut each other out",
    "value_deserializer": "what crosses a topic is bytes",
    "value_serializer": "what crosses a topic is bytes",
}
"""The promise that each of these would break."""


def client_option_faults(options: Mapping[str, int | str | float]) -> Iterator[Fault]:
    """Each option of `[kafka.options]` that cannot be given."""
    for given, value in options.items():
        setting, name = f"kafka.options.{given}", given.replace(".", "_")
        why = OWN if name.startswith(("sasl_", "security_", "ssl_")) else ""
        if why := BREAKING.get(name, why):
            yield setting, f"{setting} must not be set: {why}"
        elif given not in OPTIONS:
            yield (
                setting,
                f"kafka.options must be among {', '.join(OPTIONS)}; got {given!r}",
            )
        elif type(value) is not OPTIONS[given]:  # true is an integer too
            wanted = "text" if OPTIONS[given] is str else "a positive integer"
            yield setting, f"{setting} must be {wanted}; got {value!r}"
        else:
            yield from _beyond(setting, value)


def _beyond(setting: str, value: float | str) -> Iterator[Fault]:
    """A value that a client takes, and cannot work with."""
    if not isinstance(value, str):
        if not LEAST_MS <= value <= MOST_MS:
            yield setting, f"{setting} must be {LEAST_MS} to {MOST_MS} ms; got {value}"
    elif not (0 < len(value) <= MOST_NAME and value.isascii() and value.isprintable()):
        yield (
            setting,
            f"{setting} must be 1 to {MOST_NAME} printable characters of ASCII; got "
            f"{value[:40]!a}",
        )
