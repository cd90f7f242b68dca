"""How kafka-python reaches the cluster, from the settings."""

import shlex
from typing import Any

from rankstream.configuration.cluster import OAUTHBEARER
from rankstream.settings import KafkaSettings, Settings, SettingsError, secret
from rankstream.tls import check_token, tls_context


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Options that every client takes; secrets come from a variable or a file.

    Raises
    ------
    SettingsError
        Where the settings name half of a way to identify ourselves, or files that
        cannot be read.
    """
    options: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap.split(","),
        "security_protocol": kafka.security_protocol,
        **kafka.options,
    }
    if kafka.security_protocol.startswith("SASL_") != bool(kafka.sasl_mechanism):
        raise SettingsError(
            "kafka.sasl_mechanism must be set with a security protocol of SASL, and "
            f"only then; got {kafka.sasl_mechanism!r} with {kafka.security_protocol}"
        )
    if kafka.sasl_mechanism == OAUTHBEARER:
        # The parent of a worker has options too, and no client.
        from producers.brokers.token_file import TokenFile  # noqa: PLC0415

        check_token(kafka.oauth_token_file)
        options["sasl_mechanism"] = OAUTHBEARER
        options["sasl_oauth_token_provider"] = TokenFile(kafka.oauth_token_file)
    elif kafka.sasl_mechanism:
        password = secret("KAFKA_PASSWORD", kafka.password_file)
        if not (kafka.username and password):
            raise SettingsError(
                "SASL needs kafka.username and a password; set "
                "RANKSTREAM_KAFKA_PASSWORD or kafka.password_file"
            )
        options["sasl_mechanism"] = kafka.sasl_mechanism
        options["sasl_plain_username"] = kafka.username
        options["sasl_plain_password"] = password
    context = tls_context(kafka)
    if context is not None:
        options["ssl_context"] = context
    return options


def topics_command(settings: Settings, *words: str, namespace: str = "") -> str:
    """The command about these topics, or those of another namespace."""
    said = ["rankstream", "topics", *words]
    if settings.file:
        said += ["--config", settings.file]
    if chosen := namespace or settings.namespace:
        said += ["--namespace", chosen]
    return shlex.join(said)
