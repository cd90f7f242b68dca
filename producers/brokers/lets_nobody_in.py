"""Why brokers that are there do not let us in, as the client tells its log alone.

The client tries for as long as it may, and then raises nothing but that its time was
over. What each attempt failed of stands in a line of its log.
"""

import contextlib
import logging
import re
from collections.abc import Iterator

from rankstream.configuration.cluster import OAUTHBEARER
from rankstream.settings import KafkaSettings

_LOGGER = "kafka.net.manager"
_SHOWN = "kafka.net"
"""Whether its lines are shown is asked of the logger above it."""


class _Ear(logging.Filter):
    """Hears errors that the client tells its log, also where nobody is shown them."""

    def __init__(self) -> None:
        super().__init__()
        self.listening: list[list[BaseException]] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep the error of a line; the line is shown as it would be without us."""
        given = record.args if isinstance(record.args, tuple) else ()
        errors = [each for each in given if isinstance(each, BaseException)]
        for heard in [*self.listening]:
            heard.extend(errors)
        return logging.getLogger(_SHOWN).isEnabledFor(record.levelno)


_EAR = _Ear()


@contextlib.contextmanager
def hearing() -> Iterator[list[BaseException]]:
    """What attempts to connect failed of, meanwhile."""
    logger = logging.getLogger(_LOGGER)
    logger.setLevel(logging.WARNING)
    logger.addFilter(_EAR)  # a second time does nothing
    heard: list[BaseException] = []
    _EAR.listening.append(heard)
    try:
        yield heard
    finally:
        _EAR.listening[:] = [each for each in _EAR.listening if each is not heard]


def why_away(
    error: object, heard: list[BaseException], kafka: KafkaSettings
) -> tuple[str, str]:
    """What is in the way, and what to do.

    Parameters
    ----------
    error
        What the client raised.
    heard
        What its attempts failed of: the last one that says more than that a connection
        ended is told. No word of a broker is repeated.
    """
    for each in reversed(heard):
        if found := _told(each, kafka):
            return found
    remedy = "start it, or name another with kafka.bootstrap"
    names = "kafka.security_protocol"
    if kafka.security_protocol != "PLAINTEXT":
        names += ", its mechanism, certificates or credentials"
    if kafka.security_protocol != "PLAINTEXT" or _is_hung_up(heard):
        remedy += f", or correct {names}"
    return type(error).__name__, remedy


def _is_hung_up(heard: list[BaseException]) -> bool:
    """Whether somebody was there, and ended the connection."""
    return any("socket disconnected" in str(each) for each in heard)


def _told(error: BaseException, kafka: KafkaSettings) -> tuple[str, str] | None:
    kind, said = type(error).__name__, str(error)
    if kind == "UnsupportedSaslMechanismError":
        got = kafka.sasl_mechanism
        return f"it does not take {got}", "correct kafka.sasl_mechanism"
    if kind == "SaslAuthenticationFailedError":
        ours = "kafka.username and its password"
        if kafka.sasl_mechanism == OAUTHBEARER:
            ours = "the token in kafka.oauth_token_file"
        return "it does not believe who we are", f"correct {ours}"
    if kind == "IllegalSaslStateError":
        return (
            "it asks for no password and no token",
            "correct kafka.security_protocol, or name another port",
        )
    if kind == "InvalidReceiveError":
        return (
            "it answers in no words of Kafka, as a port of TLS does",
            "correct kafka.security_protocol, or name another port",
        )
    return _told_of_tls(said, kafka)


def _told_of_tls(said: str, kafka: KafkaSettings) -> tuple[str, str] | None:
    found = re.search(r"\[SSL: (\w+)\]", said)
    if found is None:
        return None
    code = found[1]
    if code == "CERTIFICATE_VERIFY_FAILED":
        more = re.search(r"verify failed: ([^(]*[^(. ])", said)
        why = f", {more[1]}" if more else ""
        return (
            f"we do not believe its certificate{why}",
            "correct kafka.ca_file, or reach it by the name in its certificate",
        )
    if "CERTIFICATE" in code or "UNKNOWN_CA" in code:
        what = "correct" if kafka.certificate_file else "set"
        return (
            f"it does not believe our certificate, {code}",
            f"{what} kafka.certificate_file and kafka.key_file",
        )
    return (
        f"TLS fails, {code}",
        "correct kafka.security_protocol, or name another port",
    )
