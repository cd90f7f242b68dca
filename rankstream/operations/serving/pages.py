"""What tells of the server: whether it lives and is ready, what it counted, its API."""

from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus

import msgspec
from prometheus_client import Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rankstream.experiments import Experiments
from rankstream.operations.serving.calls import Answer, Call
from rankstream.operations.serving.http.limits import InFlight
from rankstream.operations.serving.sender import Sender
from rankstream.ranker import Ranker
from streams.kafka.status.exposition import process_registry, written
from streams.kafka.status.metrics import unit_of

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

Family = CounterMetricFamily | GaugeMetricFamily

_to_json = msgspec.json.Encoder().encode


class Counts(Collector):
    """What the server counts, for Prometheus."""

    def __init__(
        self, room: InFlight, sender: Sender, rankers: dict[str, Ranker]
    ) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self.n_connections = 0
        self.aborted = 0
        self.is_ready: Callable[[], bool] = lambda: False
        self._room = room
        self._sender = sender
        self._rankers = rankers
        self.registry = process_registry()
        self.registry.register(self)
        self.seconds = Histogram(
            "rankstream_serve_seconds",
            "time from the head of a request to its answer, by path",
            ["path"],
            unit="seconds",
            buckets=BUCKETS,
            registry=self.registry,
        )

    def collect(self) -> list[Metric]:
        """Families of what is counted elsewhere."""
        found = [_family(*row) for row in self._plain()]
        answers = CounterMetricFamily(
            "rankstream_serve_answers",
            "requests by path and the status of their answer",
            labels=["path", "status"],
        )
        for (path, status), n in sorted(self.answers.items()):
            answers.add_metric((path, str(status)), n)
        return [answers, *found, *self._of_models()]

    def _plain(self) -> Iterator[tuple[str, str, float]]:
        """What has no labels; counters end with `_total`."""
        yield "ready", "1 where requests may be sent here, else 0", self.is_ready()
        sender, room = self._sender, self._room
        yield "events_sent_total", "events that Kafka has acknowledged", sender.sent
        yield "events_failed_total", "events that Kafka did not take", sender.failed
        yield "no_room_total", "requests that were refused for room", room.refused
        yield "aborted_total", "connections closed as too slow", self.aborted
        yield "under_way_bytes", "requests and records that are under way", room.taken
        yield "connections", "connections that are open", self.n_connections

    def _of_models(self) -> Iterator[Metric]:
        for name, said, value_of in OF_MODELS:
            family = _family(name, said, labels=["model"])
            for model, ranker in self._rankers.items():
                value = value_of(ranker)
                if value is not None:
                    family.add_metric([model], value)
            yield family
        failures = _family(
            "redis_failures_total",
            "looks at Redis that found something wrong, or no Redis",
            labels=["model", "reason"],
        )
        for model, ranker in self._rankers.items():
            for reason, n in ({"unavailable": 0} | ranker.failures).items():
                failures.add_metric([model, reason], n)
        yield failures


def _created_s(ranker: Ranker) -> float | None:
    """None before a version has learned from any list."""
    created_ms = ranker.snapshot.created_ms if ranker.version >= 0 else 0
    return created_ms / 1_000.0 if created_ms > 0 else None


OF_MODELS: tuple[tuple[str, str, Callable[[Ranker], float | None]], ...] = (
    ("model_version", "version that is served", lambda each: each.version),
    (
        "model_created_timestamp_seconds",
        "event time of the last list that the served version learned from",
        _created_s,
    ),
    ("redis_up", "1 where Redis answered last, else 0", lambda each: not each.awaited),
)
"""What each model has: a metric, what it says, and its value; None for none."""


def _family(
    name: str, said: str, value: float | None = None, labels: list[str] | None = None
) -> Family:
    """A counter where the name ends with `_total`, else a gauge."""
    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
    return kind(
        f"rankstream_serve_{name}", said, value, labels=labels, unit=unit_of(name)
    )


class Pages:
    """Answers that need no body."""

    def __init__(
        self,
        counts: Counts,
        sender: Sender,
        rankers: dict[str, Ranker],
        experiments: Experiments,
        description: bytes,
    ) -> None:
        self.is_draining = False
        self._counts = counts
        self._sender = sender
        self._rankers = rankers
        self._experiments = experiments
        self._description = description
        counts.is_ready = lambda: not self.reasons()

    async def health(self, call: Call) -> Answer:
        """Whether it answers at all."""
        del call
        return Answer(b'{"status":"alive"}')

    async def readiness(self, call: Call) -> Answer:
        """Whether requests may be sent here, and if not, why."""
        del call
        reasons = self.reasons()
        status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
        body = _to_json({"ready": not reasons, "reasons": reasons})
        return Answer(body, status)

    def reasons(self) -> list[str]:
        """Why it is not ready; none where it is."""
        found = ["it is being stopped"] if self.is_draining else []
        if self._sender.trouble:
            found.append(f"Kafka: {self._sender.trouble}")
        found += [
            f"model {name}: no snapshot yet"
            for name, ranker in self._rankers.items()
            if ranker.version < 0
        ]
        return found

    async def metrics(self, call: Call) -> Answer:
        """What was counted."""
        body, kind = written(self._counts.registry, call.header(b"accept"))
        return Answer(body, kind=kind.encode())

    async def description(self, call: Call) -> Answer:
        """The API as OpenAPI 3.1."""
        del call
        return Answer(self._description)
