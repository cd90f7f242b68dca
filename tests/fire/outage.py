"""An outage of the broker under live senders that nobody holds back.

    python -m tests.fire.outage --seconds 110

Default settings throughout. Two services show lists and hear clicks, each with clients
of kafka-python as they are by default, which keep what they cannot send. Every event
must be applied: none late, none an orphan, none refused. Prints JSON; ends with 1 where
that is not so.
"""

import argparse
import json
import re
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from kafka import KafkaProducer

from deploy.broker import Broker
from deploy.process import free_port
from deploy.redis_server import Redis
from producers.event_producer import EventProducer
from rankstream.wire.topics import CLICKS, QUERIES, full_name
from tests.worker_process import configured, running, settings_of

LISTS_PER_S = 20.0
N_SERVICES = 2
BEFORE_S = 40.0
AFTER_S = 100.0
LAST_CLICK_MS = 15_000
TURN_S = 0.1
DRAIN_S = 120.0
A_DAY_MS = 86_400_000
"""What cannot be sent is kept for so long; the default would drop it after 2 min."""

ASIDE = ("late", "orphan", "duplicate", "dead_letter", "pending")
"""Counters of the fold; of ingestion only the third is there."""


class Service(threading.Thread):
    """Shows lists, each of which is clicked once, some seconds later."""

    def __init__(self, number: int, bootstrap: str, n_partitions: int) -> None:
        super().__init__(daemon=True)
        self.n_sent = 0
        self.stopped = threading.Event()
        self._number = number
        self._rng = np.random.default_rng(number)
        self._n_partitions = n_partitions
        self._clicks: list[tuple[int, dict[str, Any]]] = []
        self._producers = {
            topic: KafkaProducer(
                bootstrap_servers=bootstrap, delivery_timeout_ms=A_DAY_MS
            )
            for topic in (QUERIES, CLICKS)
        }

    def run(self) -> None:
        """Serve until stopped, and until the last list was clicked and sent."""
        while not self.stopped.is_set() or self._clicks:
            now_ms = int(time.time() * 1_000)
            if not self.stopped.is_set():
                for _ in range(
                    int(self._rng.poisson(LISTS_PER_S * TURN_S / N_SERVICES))
                ):
                    self._show(now_ms)
            due = [each for each in self._clicks if each[0] <= now_ms]
            self._clicks = [each for each in self._clicks if each[0] > now_ms]
            for at_ms, named in due:
                self._send(CLICKS, named | {"at_ms": at_ms, "position": 1})
            time.sleep(TURN_S)
        for producer in self._producers.values():
            producer.flush(DRAIN_S)
            producer.close()

    def _show(self, now_ms: int) -> None:
        name = f"{self._number}-{self.n_sent}"
        named = {"impression_id": name, "query_id": f"q{self._rng.integers(50)}"}
        self._send(QUERIES, named | {"at_ms": now_ms, "shown": ["a", "b", "c"]})
        delay_ms = int(self._rng.integers(300, LAST_CLICK_MS))
        self._clicks.append((now_ms + delay_ms, named))

    def _send(self, topic: str, event: dict[str, Any]) -> None:
        partition = int(self._rng.integers(self._n_partitions))
        self._producers[topic].send(
            full_name(NAMESPACE, topic), json.dumps(event).encode(), partition=partition
        )
        self.n_sent += 1


NAMESPACE = "outage"


def counted(port: int) -> Counter[str]:
    """Counters on a metrics page, summed over partitions."""
    found: Counter[str] = Counter()
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=10) as page:
        for line in page.read().decode().splitlines():
            match = re.match(r"rankstream_(\w+?)(?:_total)?\{.*\} (\S+)", line)
            if match:
                found[match[1]] += int(float(match[2]))
    return found


def outage(seconds: float, folder: Path) -> dict[str, Any]:
    """Do it; the result is what is printed."""
    broker, redis, port = Broker(folder / "kafka"), Redis(folder / "redis"), free_port()
    try:
        broker.start()
        redis.start()
        more = f"[metrics]\nport = {port}\n"
        config = configured(folder, broker.bootstrap, redis.url, NAMESPACE, more)
        settings = settings_of(config)
        n_partitions = settings.kafka.input_partitions
        services = [
            Service(number, broker.bootstrap, n_partitions)
            for number in range(N_SERVICES)
        ]
        with running(config, folder / "worker.log") as worker:
            for service in services:
                service.start()
            time.sleep(BEFORE_S)
            broker.stop()
            time.sleep(seconds)
            broker.start()
            time.sleep(AFTER_S)
            for service in services:
                service.stopped.set()
            for service in services:
                service.join()
            with EventProducer(settings) as producer:
                producer.end()
            n_sent = sum(service.n_sent for service in services)
            result = _drained(port, n_sent)
            result["log"] = [
                line for line in worker.said().splitlines() if "event=fail" in line
            ]
    finally:
        redis.kill()
        broker.kill()
    return {"outage_s": seconds, "sent": n_sent, **result}


def _drained(port: int, n_sent: int) -> dict[str, Any]:
    """What became of the events, once that is known of all of them."""
    deadline = time.monotonic() + DRAIN_S
    while True:
        ingest, fold = counted(port), counted(port + 1)
        fold["dead_letter"] += ingest["dead_letter"]
        aside = {name: fold[name] for name in ASIDE}
        applied = fold["applied_impressions"] + fold["applied_clicks"]
        is_known = applied + sum(aside.values()) >= n_sent and not aside["pending"]
        if is_known or time.monotonic() > deadline:
            return {"applied": applied, **aside, "ok": applied == n_sent}
        time.sleep(1.0)


def main() -> int:
    """Parse the options, do it, print the result."""
    parser = argparse.ArgumentParser(prog="python -m tests.fire.outage")
    parser.add_argument("--seconds", type=float, default=110.0)
    with tempfile.TemporaryDirectory() as folder:
        result = outage(parser.parse_args().seconds, Path(folder))
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    return 0 if result["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
