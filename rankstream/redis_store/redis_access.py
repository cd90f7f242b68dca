"""The least rights of each role in Redis, as they follow from the scripts it runs."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rankstream.configuration.redis_url import CLUSTER, redis_place
from rankstream.redis_store.decision_scripts import (
    CURRENT_DECISIONS,
    FORGET_DECISIONS,
    STANDING_DECISIONS,
    SWITCH_DECISIONS,
)
from rankstream.redis_store.redis_clients import prefix_of
from rankstream.redis_store.redis_scripts import (
    CURRENT,
    DISCARD,
    DOCUMENTS,
    MEND,
    PUBLISH,
    PUT_DOCUMENTS,
    STANDING,
)
from rankstream.settings import Settings


class Use(NamedTuple):
    """Scripts that a role runs, and commands that it asks for itself."""

    scripts: tuple[str, ...]
    commands: tuple[str, ...]


_RANKING = Use(
    (CURRENT, DOCUMENTS, CURRENT_DECISIONS),
    ("mget", "ping", "subscribe"),
)
_LOOKING = Use(
    (CURRENT, DOCUMENTS, CURRENT_DECISIONS, STANDING),
    ("get", "info", "lrange", "mget", "ping", "smembers", "time"),
)
_PUBLISHING = Use(
    (
        DISCARD, DOCUMENTS, FORGET_DECISIONS, MEND, PUBLISH, PUT_DOCUMENTS,
        STANDING_DECISIONS, SWITCH_DECISIONS,
    ),
    ("ping", "set"),
)  # fmt: skip

USES: Mapping[str, Use] = {
    "publish": _PUBLISHING,
    "train": Use((), ("get",)),
    "serve": _RANKING,
    "rank": _RANKING,
    "monitor": _LOOKING,
    "operate": Use(*(a + b for a, b in zip(_PUBLISHING, _LOOKING, strict=True))),
}
"""By the names of roles and programs; others do not reach Redis."""


OF_CLUSTERS = "cluster|slots", "command"
"""By which a client learns which node has which key, and where keys stand."""


def commands_of(use: Use) -> list[str]:
    """All commands of a role, those of its scripts among them.

    Examples
    --------
    >>> commands_of(Use(("return redis.call('GET', KEYS[1])",), ("ping",)))
    ['evalsha', 'get', 'ping', 'script|load']
    """
    said = re.findall(r"redis\.call\('(\w+)'", "".join(use.scripts))
    run = ("evalsha", "script|load") if use.scripts else ()
    return sorted({*use.commands, *run, *map(str.lower, said)})


def redis_user(roles: Iterable[str], settings: Settings) -> list[str]:
    """The words behind `ACL SETUSER NAME` of one who has all these roles.

    None where no role of them reaches Redis.
    """
    uses = [USES[role] for role in roles if role in USES]
    if not uses:
        return []
    prefix = prefix_of(settings.redis.url, settings.namespace)
    commands = sorted({each for use in uses for each in commands_of(use)})
    if redis_place(settings.redis.url).kind == CLUSTER:
        commands += OF_CLUSTERS
    words = ["on", "resetkeys", f"~{prefix}*", "resetchannels"]
    if {"publish", "subscribe"} & set(commands):
        words.append(f"&{prefix}pointer:*")
    return [*words, "-@all", *(f"+{each}" for each in commands)]
