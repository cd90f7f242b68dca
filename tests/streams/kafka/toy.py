"""A small stage with everything that the shell has to keep exact, and its recount."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from rankstream.wire.topics import COMPACTED
from streams.kafka.state.resume_position import POSITION_KEY
from streams.stage import Change, Output, SourceRecord
from tests.worker_process import PATIENCE_S

ROOT = Path(__file__).resolve().parents[3]
PARTITIONS = 4
N_KEYS = 500
SOURCE, STATE, OUT = "toy", "toy-state", "toy-out"

_pack = msgspec.msgpack.encode
_unpack = msgspec.msgpack.decode


class Toy:
    """Counts per key, and passes every record on with a sequence number."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._counts: Counter[bytes] = Counter()
        self._changed: set[bytes] = set()
        self._sequence = 0
        self._passed: list[int] = []

    def fold(self, record: SourceRecord) -> None:
        """Take a record: a key, and a number for a value."""
        key = record.key or b""
        self._counts[key] += 1
        self._changed.add(key)
        self._sequence += 1
        self._passed.append(int.from_bytes((record.value or b"")[:8], "big"))

    def tick(self, *, at_end_ms: int) -> None:
        """Hear no clock."""

    def settle(self) -> None:
        """Leave nothing for later."""

    def outputs(self) -> list[Output]:
        """What was passed on, with the number of its first."""
        if not self._passed:
            return []
        first = self._sequence - len(self._passed) + 1
        value = _pack((first, self._passed))
        self._passed = []
        return [Output(OUT, self._partition, None, value)]

    def changes(self) -> list[Change]:
        """Every count that changed, and the sequence."""
        changed = [Change(STATE, k, _pack(self._counts[k])) for k in self._changed]
        self._changed.clear()
        return [*changed, Change(STATE, b"sequence", _pack(self._sequence))]

    def restore(self, items: Iterable[Change]) -> None:
        """Take it back."""
        for _, key, value in items:
            if key == b"sequence":
                self._sequence = _unpack(value or b"")
            else:
                self._counts[key] = _unpack(value or b"")

    def fingerprint(self) -> bytes:
        """How much was counted."""
        return _pack([self._sequence, self._counts.total(), len(self._counts)])

    def counters(self) -> dict[str, int]:
        """Count what was consumed."""
        return {"consumed": self._sequence}


class ToyRun:
    """Topics of a run, its workers, what was sent, and the verdict."""

    def __init__(self, bootstrap: str, namespace: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.namespace = namespace
        self.sent: dict[int, list[tuple[bytes, int]]] = {
            p: [] for p in range(PARTITIONS)
        }
        self.logs = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self.create({SOURCE: {}, STATE: COMPACTED, OUT: {}})

    def name(self, topic: str) -> str:
        """A topic's name on the cluster."""
        return f"{self.namespace}.{topic}"

    def create(self, topics: dict[str, dict[str, str]]) -> None:
        """Create topics."""
        wanted = {
            self.name(topic): {
                "num_partitions": PARTITIONS,
                "replication_factor": 1,
                "configs": configs,
            }
            for topic, configs in topics.items()
        }
        self._admin.create_topics(wanted, wait_for_metadata=True)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self._admin.delete_topics([self.name(topic)])
        time.sleep(1.0)

    def delete_records(self, before: int) -> None:
        """Delete the records of partition 0 before an offset, as retention does."""
        place = TopicPartition(self.name(SOURCE), 0)
        self._admin.delete_records({place: before})

    def add_partitions(self, n_partitions: int) -> None:
        """Give the source more partitions."""
        self._admin.create_partitions({self.name(SOURCE): n_partitions})

    def send(self, n_records: int, size: int = 8) -> None:
        """Send some records to partition 0; returns when they are there."""
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, acks="all")
        for _ in range(n_records):
            number = len(self.sent[0])
            value = number.to_bytes(8, "big").ljust(size, b".")
            producer.send(self.name(SOURCE), key=b"k", value=value, partition=0)
            self.sent[0].append((b"k", number))
        producer.close()

    def topic_id(self) -> str:
        """The source's id."""
        (described,) = self._admin.describe_topics([self.name(SOURCE)])
        return str(described["topic_id"])

    def start(
        self, instance: str = "", *lost: str, **environment: str
    ) -> subprocess.Popen[bytes]:
        """Start a worker; offsets of partition 0 may be lost."""
        log = (self.logs / f"worker-{len(self.workers)}.log").open("wb")
        worker = subprocess.Popen(
            [
                sys.executable, "-m", "tests.streams.kafka.toy_worker",
                self.bootstrap, self.namespace, self.topic_id(), instance, *lost,
            ],
            cwd=ROOT, env={**os.environ, **environment}, stdout=log,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        log.close()
        self.workers.append(worker)
        return worker

    def said(self, worker: subprocess.Popen[bytes]) -> str:
        """What a worker has logged."""
        return (self.logs / f"worker-{self.workers.index(worker)}.log").read_text()

    def wait_for(self, worker: subprocess.Popen[bytes], words: str) -> None:
        """Wait until a worker has logged something."""
        wait_until(lambda: words in self.said(worker))

    @contextmanager
    def load(self, per_s: int, size: int = 8) -> Iterator[None]:
        """Records that come as long as the context lasts."""
        enough = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(self._send, per_s, size, enough)
            try:
                yield
            finally:
                enough.set()
            sending.result()

    def _send(self, per_s: int, size: int, enough: threading.Event) -> None:
        producer = KafkaProducer(
            bootstrap_servers=self.bootstrap, linger_ms=20, batch_size=131_072,
            acks="all", enable_idempotence=True, delivery_timeout_ms=120_000,
        )  # fmt: skip
        futures = []
        number = sum(map(len, self.sent.values()))
        while not enough.wait(0.1):
            for _ in range(per_s // 10):
                partition = number % PARTITIONS
                key = f"{partition}-{number * 7919 % N_KEYS}".encode()
                value = number.to_bytes(8, "big").ljust(size, b".")
                futures.append(
                    producer.send(
                        self.name(SOURCE), key=key, value=value, partition=partition
                    )
                )
                self.sent[partition].append((key, number))
                number += 1
        producer.flush()
        assert not any(future.failed() for future in futures)
        producer.close()

    def read(self, topic: str, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Committed records of a partition."""
        place = TopicPartition(self.name(topic), partition)
        consumer = KafkaConsumer(
            bootstrap_servers=self.bootstrap, isolation_level="read_committed",
            auto_offset_reset="earliest", enable_auto_commit=False,
        )  # fmt: skip
        try:
            consumer.assign([place])
            end = consumer.end_offsets([place])[place]
            while consumer.position(place) < end:
                for records in consumer.poll(timeout_ms=200).values():
                    yield from ((record.key, record.value) for record in records)
        finally:
            consumer.close()

    def passed_on(self, partition: int) -> list[int]:
        """Numbers that came out, as they came; -1 where their sequence breaks."""
        numbers: list[int] = []
        for _, value in self.read(OUT, partition):
            first, some = _unpack(value)
            if first != len(numbers) + 1:
                numbers.append(-1)
            numbers += some
        return numbers

    def counts(self, partition: int) -> dict[bytes, int]:
        """Counts in the state topic."""
        last = dict(self.read(STATE, partition))
        return {
            k: _unpack(v)
            for k, v in last.items()
            if k not in (POSITION_KEY, b"sequence")
        }

    def n_passed_on(self) -> int:
        """How many of what was sent came out, once or more often."""
        return sum(len({*self.passed_on(p)} - {-1}) for p in range(PARTITIONS))

    def wait_for_all(self) -> None:
        """Wait until everything has come out."""
        wanted = sum(map(len, self.sent.values()))
        wait_until(lambda: self.n_passed_on() >= wanted)

    def verdict(self) -> dict[str, int]:
        """What was lost, counted twice or passed on wrongly; after a graceful stop."""
        lost = double = wrong = 0
        for partition, sent in self.sent.items():
            expected = Counter(key for key, _ in sent)
            counted = Counter(self.counts(partition))
            lost += (expected - counted).total()
            double += (counted - expected).total()
            wrong += self.passed_on(partition) != [number for _, number in sent]
        return {"lost": lost, "double": double, "wrong": wrong}

    def close(self) -> None:
        """End what still runs."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()
        self._admin.close()


def wait_until(is_true: Callable[[], bool]) -> None:
    """Wait, and fail if it never comes."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < deadline, "waited for too long"
        time.sleep(0.1)
