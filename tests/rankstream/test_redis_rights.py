"""Users of Redis as they are printed: enough for a role, and no command too many."""

import itertools
import shlex
from collections.abc import Callable
from typing import Any

import pytest
import redis

from rankstream.operations.answers.installation.access import access
from rankstream.redis_store.redis_access import USES, commands_of
from rankstream.settings import load_settings
from rankstream.snapshots import (
    CanarySwap,
    KnownCanary,
    Pointer,
    SnapshotStore,
    StoreUnavailable,
)
from tests.decision_factory import decision, rewrite
from tests.services import RedisService
from tests.snapshot_factory import envelope

PASSWORD = "canary-of-redis"  # noqa: S105  of a user that lives as long as a test


def publishes(store: SnapshotStore) -> None:
    """All that the role `publish` ever does."""
    store.ping()
    store.mend(["m"])
    store.publish_all([envelope(version) for version in range(1, 9)])
    store.publish_with("m", [], None)
    swap = CanarySwap(None, b"a canary")
    store.publish_with("m", [envelope(9)], swap)
    store.publish_with("m", [envelope(10)], CanarySwap(None, b""))
    store.mend(["m"])
    store.discard("m", Pointer(0, 10))
    store.put_documents({"experiments": {"a": b"1", "b": None}})
    store.documents("experiments")
    for number, order in ((1, [5, 4, 3, 2, 1, 0]), (2, [0, 1, 2, 3, 4, 5])):
        made = rewrite(number, {"q": decision(number, order=order)})
        store.put_decision_shards("rule", made.shards)
        pieces = [
            (b"", len(made.value)),
            *((x, len(y)) for x, y in made.shards.items()),
        ]
        store.switch_decisions(made.manifest, made.value)
        store.standing_decisions("rule", pieces, 0)
    store.forget_decisions("rule")


def ranks(store: SnapshotStore) -> None:
    """All that a service ever does."""
    store.ping()
    store.newest("m")
    store.newest("m", known_canary=KnownCanary(b"a", 8))
    store.documents("experiments")
    store.decisions("rule")
    list(store.decision_shards("rule", [b"digest"]))
    list(itertools.islice(store.notifications("m"), 2))  # the first comes at once


def looks(store: SnapshotStore) -> None:
    """All that the monitor and what reads only do."""
    store.ping()
    store.newest("m", known_canary=KnownCanary(b"a", 8))
    store.documents("experiments")
    store.decisions("rule")
    list(store.decision_shards("rule", [b"digest"]))
    store.standing(["m"])
    store.versions("m")
    store.models()
    store.load("m", Pointer(0, 1))
    store.server_facts()


def trains(store: SnapshotStore) -> None:
    """All that the role `train` does."""
    store.load("m", Pointer(0, 1))


DOES: dict[str, Callable[[SnapshotStore], None]] = {
    "publish": publishes,
    "rank": ranks,
    "serve": ranks,
    "monitor": looks,
    "train": trains,
}


@pytest.mark.parametrize("role", DOES)
def test_each_command_is_needed_and_no_other(
    role: str, redis_server: RedisService, namespace: str
) -> None:
    """Without one of them the role stops, and is told which."""
    settings = load_settings(None, {"RANKSTREAM_NAMESPACE": namespace})
    (found,) = access(settings, [role], principal=namespace)
    with redis.Redis.from_url(redis_server.url) as admin:
        whole = SnapshotStore(redis_server.url, namespace=namespace, keep=4)
        publishes(whole)
        whole.publish_with("m", [envelope(11)], CanarySwap(None, b"a canary"))
        whole.switch_decisions(rewrite(1, {}).manifest, b"manifest")
        for taken in ("", *commands_of(USES[role])):
            words = [each for each in shlex.split(found.redis) if each != f"+{taken}"]
            admin.execute_command(*words, f">{PASSWORD}")
            store = SnapshotStore(
                redis_server.url, namespace=namespace, keep=4, retries=0,
                username=namespace, password=PASSWORD,
            )  # fmt: skip
            if role == "publish":  # everything is new, also to the second try
                admin.delete("", *admin.keys(f"{namespace}:*"))
            admin.script_flush()  # who may load none must not find it
            if not taken:
                DOES[role](store)
            else:
                with pytest.raises(StoreUnavailable, match="Redis must allow us"):
                    DOES[role](store)
            store.close()
        admin.acl_deluser(namespace)
        whole.close()


def test_a_reader_cannot_write_and_nobody_leaves_the_namespace(
    redis_server: RedisService, namespace: str
) -> None:
    """Nor hear of what moves in another."""
    settings = load_settings(None, {"RANKSTREAM_NAMESPACE": namespace})
    (found,) = access(settings, ["rank"], principal=namespace)
    with redis.Redis.from_url(redis_server.url) as admin:
        admin.execute_command(*shlex.split(found.redis), f">{PASSWORD}")
        options: dict[str, Any] = {"username": namespace, "password": PASSWORD}
        own = SnapshotStore(redis_server.url, namespace=namespace, retries=0, **options)
        other = SnapshotStore(redis_server.url, namespace="a", retries=0, **options)
        with pytest.raises(
            StoreUnavailable, match="grant what `rankstream topics acls`"
        ):
            own.publish(envelope(1))
        for refused in (
            lambda: other.newest("m"),
            lambda: list(itertools.islice(other.notifications("m"), 2)),
        ):
            with pytest.raises(StoreUnavailable, match="must allow us a key"):
                refused()
        own.close()
        other.close()
        admin.acl_deluser(namespace)
