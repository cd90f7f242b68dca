"""A user of Redis who has nothing but the keys of one namespace."""

import contextlib
from collections.abc import Iterator

import redis


@contextlib.contextmanager
def redis_user(url: str, name: str, password: str, namespace: str) -> Iterator[str]:
    """The user's name, for as long as the context lasts."""
    with redis.Redis.from_url(url) as admin:
        admin.acl_setuser(
            name, enabled=True, passwords=[f"+{password}"],
            keys=[f"{namespace}:*"], reset_channels=True, channels=[f"{namespace}:*"],
            categories=["+@all", "-@admin", "-@dangerous"],
        )  # fmt: skip
        try:
            yield name
        finally:
            admin.acl_deluser(name)
