"""Whom clients of the cluster believe over TLS, and how they say who they are."""

import os
import ssl
from collections.abc import Mapping

from rankstream.settings import KafkaSettings, SettingsError, secret


def tls_context(
    kafka: KafkaSettings, environment: Mapping[str, str] = os.environ
) -> ssl.SSLContext | None:
    """What connections to the brokers are made with; None where they are plain.

    A broker must have a certificate of the authority, and for the name that it was
    asked by.

    Raises
    ------
    SettingsError
        Where a file is missing or holds something else.
    """
    if not kafka.security_protocol.endswith("SSL"):
        return None
    context = believing("kafka.ca_file", kafka.ca_file)
    if kafka.certificate_file:
        password = secret("KAFKA_KEY_PASSWORD", kafka.key_password_file, environment)
        try:
            context.load_cert_chain(
                kafka.certificate_file,
                kafka.key_file or None,
                # Of a key that is encrypted; OpenSSL would ask the terminal for it.
                password=lambda: password,
            )
        except OSError as error:
            raise SettingsError(
                "kafka.certificate_file and kafka.key_file must be a certificate and "
                f"its key, as PEM; got {kafka.certificate_file} and "
                f"{kafka.key_file or 'the same file'}: {_why(error)}; the password of "
                "an encrypted key is in kafka.key_password_file"
            ) from error
    return context


def believing(setting: str, file: str) -> ssl.SSLContext:
    """A context that believes the authorities in a file, else those of the system.

    Raises
    ------
    SettingsError
        Where the file is missing or holds something else.
    """
    try:
        return ssl.create_default_context(cafile=file or None)
    except OSError as error:
        raise SettingsError(
            f"{setting} must hold certificates as PEM; got {file}: {_why(error)}"
        ) from error


def _why(error: OSError) -> str:
    """What went wrong: of OpenSSL its own words, of files the system's."""
    reason = getattr(error, "reason", None)
    return str(reason or error.strerror or error)
