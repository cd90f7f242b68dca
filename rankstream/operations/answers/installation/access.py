"""The least rights of roles at Kafka and Redis, and the commands that grant them."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rankstream.operations.answers.as_builtins import Answer
from rankstream.redis_store.redis_access import USES, redis_user
from rankstream.settings import Settings
from rankstream.wire.rights import Right, granting
from streams.access import PROGRAMS, rights_of
from streams.worker_roles import ROLES

PLACE = "{role}"
"""Stands in the name of a principal for that of the role."""


@dataclass(frozen=True)
class RoleAccess(Answer):
    """What a role of a worker, or a program beside it, must be allowed.

    Parameters
    ----------
    principal
        Who it is for Kafka, such as `User:fold`.
    rights
        At brokers; each is a resource, its name, an operation, and whether the name is
        a prefix.
    commands
        Calls of `kafka-acls.sh` that grant them.
    redis
        The command of Redis that makes a user who has what it needs, but for the
        password; empty where it does not reach Redis. Roles of one user have the same
        command, with the rights of all of them: each one replaces what was before.
    """

    role: str
    summary: str
    principal: str
    rights: list[Right]
    commands: list[str]
    redis: str


def access(
    settings: Settings, roles: Iterable[str] = (), principal: str = ""
) -> list[RoleAccess]:
    """What each of these needs; without names all that the settings have work for.

    Parameters
    ----------
    principal
        With or without `User:`; `{role}` in it is the name of the role.

    Raises
    ------
    ValueError
        Where there is no such role, or braces hold anything else.
    """
    if unknown := re.search(r"[{}]", principal.replace(PLACE, "")):
        raise ValueError(
            f"a principal must have no braces but {PLACE}; got {principal!r}: "
            f"{unknown[0]} is not of one"
        )
    needed = [name for name, role in ROLES.items() if role.is_needed(settings)]
    names = list(dict.fromkeys(roles or (*needed, *PROGRAMS)))
    summaries = {name: each.summary for name, each in PROGRAMS.items()}
    summaries |= {name: each.summary for name, each in ROLES.items()}
    users = {name: _user_of(name, settings, principal) for name in names}
    return [
        _access_of(name, summaries.get(name, ""), settings, users) for name in names
    ]


def _user_of(name: str, settings: Settings, principal: str) -> str:
    return (principal or settings.kafka.username or PLACE).replace(PLACE, name)


def _access_of(
    name: str, summary: str, settings: Settings, users: Mapping[str, str]
) -> RoleAccess:
    rights, user = rights_of(name, settings), users[name]
    kind, colon, own = user.partition(":")
    who = user if colon else f"User:{user}"
    redis = ""
    if name in USES:
        together = [other for other, called in users.items() if called == user]
        words = redis_user(together, settings)
        redis = shlex.join(["ACL", "SETUSER", own or kind, *words])
    return RoleAccess(
        name,
        summary,
        who,
        rights,
        granting(rights, who, settings.kafka.bootstrap),
        redis,
    )
