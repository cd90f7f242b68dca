"""The brokers of a run: one, or a cluster of which one at a time is killed."""

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from deploy.broker import Broker, cluster
from tests.fire.cluster import Missed

PATIENCE_S = 300.0

COORDINATED = "__transaction_state"
"""Who leads a partition of it coordinates the transactions that lie there."""

NOBODY = -1
"""Leads a partition until another broker does."""

OPEN = ["Ongoing", "PrepareCommit"]
"""States of transactions whose process waits for their coordinator, now or soon."""

T = TypeVar("T")


class Brokers:
    """All of them.

    Parameters
    ----------
    n_nodes
        1, or more that are one cluster with a replica of everything on each.
    """

    def __init__(self, folder: Path, n_nodes: int = 1) -> None:
        self._nodes = cluster(folder, n_nodes) if n_nodes > 1 else [Broker(folder)]

    @property
    def bootstrap(self) -> str:
        """Where clients connect."""
        return ",".join(node.bootstrap for node in self._nodes)

    @property
    def n_nodes(self) -> int:
        """How many there are."""
        return len(self._nodes)

    def start(self) -> None:
        """Start all that do not run, side by side: one waits for most of them."""
        self._each(Broker.start)

    def stop(self) -> None:
        """SIGTERM to all."""
        self._each(Broker.stop)

    def kill(self) -> None:
        """SIGKILL to all."""
        self._each(Broker.kill)

    def kill_leader(self, topic: str, partition: int, away_s: float) -> str:
        """Kill -9 who leads a partition; it comes back, and catches up.

        Raises
        ------
        Missed
            If nobody leads afterwards, or it does not catch up in five minutes.
        """
        number = self._leaders(topic)[partition]
        replaced = self._kill(number, topic, away_s)
        return f"broker {number} led {topic}[{partition}], {replaced}"

    def kill_coordinator(self, away_s: float) -> str:
        """The same to who coordinates a transaction that has begun and not ended."""
        number, name = self._until(self._open_transaction, "a transaction is open")
        replaced = self._kill(number, COORDINATED, away_s)
        return f"broker {number} coordinated {name}, {replaced}"

    def _kill(self, number: int, topic: str, away_s: float) -> str:
        node = self._nodes[number - 1]
        began_s = time.monotonic()
        node.kill()
        self._until(
            lambda: not {number, NOBODY} & {*self._leaders(topic).values()},
            "another broker leads",
        )
        led_s = time.monotonic() - began_s
        time.sleep(max(0.0, away_s - led_s))
        node.start()
        self._until(self._is_in_sync, "every replica is in sync")
        in_sync_s = time.monotonic() - began_s
        return f"another after {led_s:.1f} s; all in sync after {in_sync_s:.1f} s"

    def _leaders(self, topic: str) -> dict[int, int]:
        return {
            each["partition_index"]: int(each["leader_id"])
            for each in self._partitions(topic)
        }

    def _open_transaction(self) -> tuple[int, str] | None:
        """Who coordinates one, and its id."""
        with contextlib.closing(self._admin()) as admin:
            listed = admin.list_transactions(state_filters=OPEN)
        return next(
            (
                (number, each.transactional_id)
                for number, found in listed.items()
                for each in found
            ),
            None,
        )

    def _is_in_sync(self) -> bool:
        return all(
            len(each["isr_nodes"]) == len(each["replica_nodes"])
            for each in self._partitions()
        )

    def _partitions(self, topic: str | None = None) -> list[dict[str, Any]]:
        names = None if topic is None else [topic]
        with contextlib.closing(self._admin()) as admin:
            described = admin.describe_topics(names)
        return [each for one in described for each in one["partitions"]]

    def _admin(self) -> KafkaAdminClient:
        running = [node.bootstrap for node in self._nodes if node.is_running]
        return KafkaAdminClient(bootstrap_servers=running)

    def _until(self, ask: Callable[[], T | None], what: str) -> T:
        """The first answer that says anything."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(KafkaError):
                if answer := ask():
                    return answer
            if time.monotonic() > deadline:
                raise Missed(f"{what}: that must come; it did not in {PATIENCE_S} s")
            time.sleep(0.2)

    def _each(self, action: Callable[[Broker], None]) -> None:
        with ThreadPoolExecutor(len(self._nodes)) as together:
            list(together.map(action, self._nodes))
