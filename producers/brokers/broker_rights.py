"""Which rights brokers do not give us, of those that a program needs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import (
    AuthorizationError,
    GroupAuthorizationFailedError,
    KafkaError,
    TopicAuthorizationFailedError,
)

from rankstream.settings import Settings
from rankstream.wire.rights import (
    CREATE,
    DESCRIBE,
    GROUP,
    TOPIC,
    WRITER,
    Right,
    granting,
)

ACLS = "rankstream topics acls"
"""The command that prints what each role needs."""

NOT_ALLOWED = TopicAuthorizationFailedError.errno


def lacking(client: KafkaAdminClient, rights: Sequence[Right]) -> list[Right]:
    """Those of these that we have not, as far as brokers tell.

    Whether we may write by a transactional id is asked for by whether we may describe
    it, which follows from it: brokers tell no more. Nothing is asked for about
    clusters, nor about topics that are to be created.

    Raises
    ------
    KafkaError
    """
    wanted = [each for each in rights if each.resource == TOPIC]
    names = sorted({each.name for each in wanted})
    allowed = {
        topic["name"]: _allowed(topic)
        for topic in (client.describe_topics(names) if names else ())
    }
    found = [
        each
        for each in wanted
        if each.operation != CREATE and not _has(allowed.get(each.name), each)
    ]
    return found + [each for each in rights if _is_denied(client, each)]


def _allowed(topic: Mapping[str, Any]) -> set[str] | None:
    """Operations on a topic; None of one that is not there."""
    if topic["error_code"] == NOT_ALLOWED:
        return set()
    told = topic.get("authorized_operations")
    return None if topic["error_code"] or not told else set(told)


def _has(allowed: set[str] | None, right: Right) -> bool:
    return allowed is None or _kafka_name(right.operation) in allowed


def _kafka_name(operation: str) -> str:
    """As the client calls it: `DescribeConfigs` is DESCRIBE_CONFIGS."""
    return "".join(f"_{x}" if x.isupper() else x for x in operation)[1:].upper()


def _is_denied(client: KafkaAdminClient, right: Right) -> bool:
    """Whether a broker says so of a group, or of what writes."""
    ask = _QUESTIONS.get(right.resource)
    if ask is None:
        return False
    # Whoever grants each name by itself has granted the first one too.
    name = f"{right.name}0" if right.is_prefix else right.name
    try:
        return not _has(ask(client, name), right)
    except AuthorizationError:
        return True
    except KafkaError:
        return False  # it has no such group or writer, or is not ready to say


def _of_group(client: KafkaAdminClient, name: str) -> set[str] | None:
    described = client.describe_groups([name])[name]
    if GroupAuthorizationFailedError.message in (described["error"] or ""):
        return set()
    return None if described["error"] else set(described["authorized_operations"])


def _of_writer(client: KafkaAdminClient, name: str) -> set[str] | None:
    client.describe_transactions([name])
    return None


_QUESTIONS: dict[str, Callable[[KafkaAdminClient, str], set[str] | None]] = {
    GROUP: _of_group,
    WRITER: _of_writer,
}


def refusals(rights: Iterable[Right], settings: Settings) -> list[str]:
    """A sentence for each, with the command that grants it."""
    kafka = settings.kafka
    principal = f"User:{kafka.username or 'NAME'}"
    return [
        f"{each.refusal}: run `{granting([each], principal, kafka.bootstrap)[0]}`"
        for each in rights
    ]


_DENIED = "AuthorizationFailedError"


def why_denied(error: object, settings: Settings, *rights: Right) -> str:
    """What grants what was denied, behind the words of an error; else empty.

    Parameters
    ----------
    rights
        Those that the error is about, where that is known.
    """
    # That nobody may write at all comes as another error, in whose words it stands.
    if not (isinstance(error, AuthorizationError) or _DENIED in f"{error!r}"):
        return ""
    said = refusals(rights, settings)
    return f": {'; '.join(said) or f'grant what `{ACLS}` prints'}"


def undescribed(client: KafkaAdminClient, names: Sequence[str]) -> list[Right]:
    """Topics of these that we may not even see, which others take for missing."""
    if not names:
        return []
    return [
        Right(TOPIC, topic["name"], DESCRIBE)
        for topic in client.describe_topics(list(names))
        if topic["error_code"] == NOT_ALLOWED
    ]
