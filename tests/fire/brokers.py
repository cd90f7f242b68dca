"""The brokers of a run: one, or a cluster of which one at a time is killed."""

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from deploy.broker import Broker, cluster
from tests.fire.cluster import Missed

PATIENCE_S = 300.0


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
        number = self._leader(topic, partition)
        node = self._nodes[number - 1]
        began_s = time.monotonic()
        node.kill()
        self._until(
            lambda: self._leader(topic, partition) != number, "another broker leads"
        )
        led_s = time.monotonic() - began_s
        next_leader = self._leader(topic, partition)
        time.sleep(max(0.0, away_s - led_s))
        node.start()
        self._until(self._is_in_sync, "every replica is in sync")
        return (
            f"broker {number} led {topic}[{partition}], broker {next_leader} after "
            f"{led_s:.1f} s; all in sync after {time.monotonic() - began_s:.1f} s"
        )

    def _leader(self, topic: str, partition: int) -> int:
        for each in self._partitions(topic):
            if each["partition_index"] == partition:
                return int(each["leader_id"])
        return -1

    def _is_in_sync(self) -> bool:
        return all(
            len(each["isr_nodes"]) == len(each["replica_nodes"])
            for each in self._partitions()
        )

    def _partitions(self, topic: str | None = None) -> list[dict[str, Any]]:
        names = None if topic is None else [topic]
        running = [node.bootstrap for node in self._nodes if node.is_running]
        admin = KafkaAdminClient(bootstrap_servers=running)
        with contextlib.closing(admin):
            described = admin.describe_topics(names)
        return [each for one in described for each in one["partitions"]]

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with contextlib.suppress(KafkaError):
                if holds():
                    return
            if time.monotonic() > deadline:
                raise Missed(f"{what}: that must come; it did not in {PATIENCE_S} s")
            time.sleep(0.2)

    def _each(self, action: Callable[[Broker], None]) -> None:
        with ThreadPoolExecutor(len(self._nodes)) as together:
            list(together.map(action, self._nodes))
