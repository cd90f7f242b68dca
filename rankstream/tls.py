"""Whom clients of the cluster believe over TLS, and how they say who they are."""

import os
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rankstream.configuration.cluster import OAUTHBEARER
from rankstream.configuration.serve import is_loopback
from rankstream.settings import KafkaSettings, RedisSettings, SettingsError, secret

MOST_TOKEN_BYTES = 65_536
"""Of a file with a token; brokers take less."""


class TokenRefused(OSError):
    """A file holds no token that could be shown to a broker.

    Operator action: have the token written before the start, and rename what is new.
    """


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
    password = secret("KAFKA_KEY_PASSWORD", kafka.key_password_file, environment)
    _load_certificate(context, "kafka", kafka, password)
    return context


def redis_identity(
    redis: RedisSettings, environment: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """What an identity at Redis is made of (`rankstream.redis_store.redis_clients`).

    Files are looked at.

    Raises
    ------
    SettingsError
        Where a file is missing or holds something else.
    """
    password = secret("REDIS_KEY_PASSWORD", redis.key_password_file, environment)
    if redis.ca_file or redis.certificate_file:
        context = believing("redis.ca_file", redis.ca_file)
        _load_certificate(context, "redis", redis, password)
    return {
        "username": redis.username,
        "password": secret("REDIS_PASSWORD", redis.password_file, environment),
        "ca_file": redis.ca_file,
        "certificate_file": redis.certificate_file,
        "key_file": redis.key_file,
        "key_password": password,
        "sentinel_username": redis.sentinel_username,
        "sentinel_password": secret(
            "REDIS_SENTINEL_PASSWORD", redis.sentinel_password_file, environment
        ),
    }


def _load_certificate(
    context: ssl.SSLContext,
    section: str,
    named: KafkaSettings | RedisSettings,
    password: str,
) -> None:
    """Have a context show our own certificate, where a section names one."""
    if not named.certificate_file:
        return
    try:
        context.load_cert_chain(
            named.certificate_file,
            named.key_file or None,
            # Of a key that is encrypted; OpenSSL would ask the terminal for it.
            password=lambda: password,
        )
    except OSError as error:
        raise SettingsError(
            f"{section}.certificate_file and {section}.key_file must be a certificate "
            f"and its key, as PEM; got {named.certificate_file} and "
            f"{named.key_file or 'the same file'}: {_why(error)}; the password of an "
            f"encrypted key is in {section}.key_password_file"
        ) from error


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


def token_in(file: str) -> str:
    """The token that a file has now; others renew it there.

    Raises
    ------
    OSError
        Where the file cannot be read.
    TokenRefused
        Where it is empty, as while it is being written, or holds what no token is.
    """
    with Path(file).open("rb") as opened:
        raw = opened.read(MOST_TOKEN_BYTES + 1)
    token = raw.strip()
    if len(raw) > MOST_TOKEN_BYTES:
        raise TokenRefused(
            f"kafka.oauth_token_file must hold {MOST_TOKEN_BYTES:,} bytes at most; "
            f"{file} has more"
        )
    if not token:
        raise TokenRefused(f"kafka.oauth_token_file must hold a token; {file} is empty")
    if re.fullmatch(rb"[!-~]+", token) is None:
        raise TokenRefused(
            f"kafka.oauth_token_file must hold one token of printable ASCII; {file} "
            "has other bytes in it, such as a space, a line end or a mark of UTF"
        )
    return token.decode("ascii")


def in_the_clear(kafka: KafkaSettings) -> str:
    """A warning where others on the way can read who we are; empty for loopback.

    Examples
    --------
    >>> kafka = KafkaSettings(
    ...     "kafka:9092", security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN"
    ... )
    >>> print(in_the_clear(kafka))  # doctest: +ELLIPSIS
    kafka.security_protocol SASL_PLAINTEXT sends the password in the clear to kafka:...
    """
    secrets = {"PLAIN": "password", OAUTHBEARER: "token"}
    secret_of = secrets.get(kafka.sasl_mechanism)
    hosts = (each.strip().rpartition(":")[0] for each in kafka.bootstrap.split(","))
    if (
        kafka.security_protocol != "SASL_PLAINTEXT"
        or secret_of is None
        or all(is_loopback(host.strip("[]")) for host in hosts)
    ):
        return ""
    return (
        f"kafka.security_protocol SASL_PLAINTEXT sends the {secret_of} in the clear to "
        f"{kafka.bootstrap}, and whoever is on the way can read it: use SASL_SSL"
    )


def check_token(file: str) -> None:
    """Look at a token before anybody connects; a client would try again for ever.

    Raises
    ------
    SettingsError
        Where the file cannot be read, or holds what no token is.
    """
    try:
        token_in(file)
    except TokenRefused as error:
        raise SettingsError(
            f"{error}: have it written before the start, and rename what is new"
        ) from error
    except OSError as error:
        raise SettingsError(
            f"kafka.oauth_token_file must be readable; got {file}: {error.strerror}"
        ) from error


def _why(error: OSError) -> str:
    """What went wrong: of OpenSSL its own words, of files the system's."""
    reason = getattr(error, "reason", None)
    return str(reason or error.strerror or error)
