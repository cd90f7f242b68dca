"""Services that nobody holds back: they show lists and hear clicks, whatever goes on.

Their clients are kafka-python's as they are by default, except that they keep what
cannot be sent. Every list must be applied, with every click.
"""

import json
import threading
import time
from typing import Any

import numpy as np
from kafka import KafkaProducer

from rankstream.settings import Settings
from rankstream.wire.routing import (
    normalised_query,
    partition_of_route,
    route_of_query,
)
from rankstream.wire.topics import CLICKS, QUERIES, full_name
from tests.fire.events import KEEP_MS
from tests.fire.expectations import Expected, Shown
from tests.fire.lists import query_event

LISTS_PER_S = 10.0
"""Of each service."""

CLICKED_SHARE = 0.8
LAST_CLICK_MS = 15_000
TURN_S = 0.1
FLUSH_S = 120.0
N_QUERIES = 50
NUMBERS = 1_000_000_000
"""Of lists that a service may show; so their names are its own."""

A_DAY_MS = 86_400_000
"""What cannot be sent is kept for so long; the default would drop it after 2 min."""


class LiveService(threading.Thread):
    """One of them, in a thread.

    Parameters
    ----------
    number
        Which one, from 1.
    expected
        Is told of every list and click when it is given to the client.
    """

    def __init__(self, number: int, settings: Settings, expected: Expected) -> None:
        super().__init__(daemon=True)
        self.n_sent = 0
        self.failure: BaseException | None = None
        self._number = number * NUMBERS
        self._expected = expected
        self._rng = np.random.default_rng(number)
        self._n_inputs = settings.kafka.input_partitions
        self._n_partitions = settings.kafka.partitions
        self._stopped = threading.Event()
        self._clicks: list[tuple[int, Shown, dict[str, Any]]] = []
        self._names = {
            topic: full_name(settings.namespace, topic) for topic in (QUERIES, CLICKS)
        }
        self._producers = {
            topic: KafkaProducer(
                bootstrap_servers=settings.kafka.bootstrap, delivery_timeout_ms=A_DAY_MS
            )
            for topic in self._names
        }

    def run(self) -> None:
        """Serve until stopped, and until the last list was clicked."""
        try:
            while not self._stopped.is_set() or self._clicks:
                self._turn(int(time.time() * 1_000))
                time.sleep(TURN_S)
        except BaseException as error:  # noqa: BLE001  the main thread must hear
            self.failure = error

    def finish(self) -> None:
        """Show no more; wait until the last click is there."""
        self._stopped.set()
        self.join()
        for producer in self._producers.values():
            producer.flush(FLUSH_S)
            producer.close()

    def _turn(self, now_ms: int) -> None:
        if not self._stopped.is_set():
            for _ in range(int(self._rng.poisson(LISTS_PER_S * TURN_S))):
                self._show(now_ms)
        due = [each for each in self._clicks if each[0] <= now_ms]
        self._clicks = [each for each in self._clicks if each[0] > now_ms]
        for _, shown, event in due:
            position = int(self._rng.integers(1, len(shown.items) + 1))
            shown.marks.append((now_ms, position, "click"))
            self._send(CLICKS, event | {"at_ms": now_ms, "position": position})

    def _show(self, now_ms: int) -> None:
        self._number += 1
        name = f"query {self._rng.integers(N_QUERIES)}"
        event = query_event(self._rng, self._number, name, now_ms)
        query = normalised_query(name)
        partition = partition_of_route(route_of_query(query), self._n_partitions)
        shown = Shown(
            query,
            event["intervention"],
            tuple(event["shown"]),
            (now_ms // KEEP_MS, partition),
        )
        self._expected.shown[event["impression_id"]] = shown
        self._send(QUERIES, event)
        if self._rng.random() < CLICKED_SHARE:
            delay_ms = int(self._rng.integers(300, LAST_CLICK_MS))
            named = {"impression_id": event["impression_id"], "query_id": name}
            self._clicks.append((now_ms + delay_ms, shown, named))

    def _send(self, topic: str, event: dict[str, Any]) -> None:
        partition = int(self._rng.integers(self._n_inputs))
        value = json.dumps(event).encode()
        self._producers[topic].send(self._names[topic], value, partition=partition)
        self.n_sent += 1
