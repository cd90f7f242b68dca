"""How kafka-python reaches the cluster, from the settings."""

from typing import Any

from rankstream.settings import KafkaSettings, secret


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Options that every client takes; secrets come from a variable or a file."""
    options: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap.split(","),
        "security_protocol": kafka.security_protocol,
    }
    if kafka.sasl_mechanism:
        options["sasl_mechanism"] = kafka.sasl_mechanism
        options["sasl_plain_username"] = kafka.username
        options["sasl_plain_password"] = secret("KAFKA_PASSWORD", kafka.password_file)
    if kafka.ca_file:
        options["ssl_cafile"] = kafka.ca_file
    return options
