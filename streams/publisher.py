"""Committed snapshots from Kafka to Redis, forwards only and idempotently.

Learning never waits for Redis; an empty Redis is filled again with the same versions.
"""

import asyncio
import logging
import random
from collections import OrderedDict
from typing import Protocol

from rankstream.snapshots import SnapshotError, StoreUnavailable

log = logging.getLogger("rankstream.publisher")

PAUSE_S = 1.0
"""Between looks at Redis while nothing is new, and after a failure."""


class Store(Protocol):
    """What the publisher needs of Redis."""

    def publish(self, envelope: bytes) -> bool:
        """Bring a snapshot in."""

    def current(self, model: str) -> object | None:
        """Pointer and bytes, or None."""


class Publisher:
    """Keeps the newest snapshots of each model, and brings them to Redis.

    Parameters
    ----------
    keep
        Versions of each model that are kept to fill an empty Redis again.
    """

    def __init__(self, store: Store, *, keep: int) -> None:
        self._store = store
        self._keep = keep
        self._known: dict[str, OrderedDict[bytes, bytes]] = {}
        self._waiting: dict[str, OrderedDict[bytes, bytes]] = {}
        self._news = asyncio.Event()
        self.published = 0

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Take a record of `snapshots`; only the last `keep` of a model wait."""
        if key is None:
            return
        model = key.rpartition(b"/")[0].decode()
        if value is None:
            for each in (self._known, self._waiting):
                each.get(model, OrderedDict()).pop(key, None)
            return
        for each in (self._known, self._waiting):
            versions = each.setdefault(model, OrderedDict())
            versions[key] = value
            while len(versions) > self._keep:
                versions.popitem(last=False)
        self._news.set()

    async def run(self) -> None:
        """Publish what waits, for ever; rides out any absence of Redis."""
        is_down = False
        while True:
            try:
                await asyncio.to_thread(self.push)
                await asyncio.to_thread(self.refill)
                if is_down:
                    log.info("event=redis-back")
                is_down = False
            except StoreUnavailable as error:
                if not is_down:
                    log.warning("event=redis-away reason=%s", error)
                is_down = True
                await asyncio.sleep(PAUSE_S * (0.5 + random.random()))  # noqa: S311
                continue
            try:
                await asyncio.wait_for(self._news.wait(), PAUSE_S)
            except TimeoutError:
                continue

    def push(self) -> None:
        """Publish what waits, oldest first.

        Raises
        ------
        StoreUnavailable
            What was not published waits on.
        """
        self._news.clear()
        for versions in list(self._waiting.values()):
            for key in list(versions):
                value = versions.get(key)
                if value is not None:
                    self._publish(value)
                versions.pop(key, None)

    def refill(self) -> None:
        """Where Redis has lost a model, let all that is known of it wait again."""
        for model, versions in list(self._known.items()):
            if versions and self._store.current(model) is None:
                self._waiting[model] = OrderedDict(versions)
                self._news.set()

    def _publish(self, value: bytes) -> None:
        try:
            self.published += self._store.publish(value)
        except SnapshotError as error:
            log.error("event=snapshot-refused reason=%s", error)  # noqa: TRY400
