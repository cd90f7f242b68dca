"""What tells of the server: whether it lives and is ready, what it counted, its API."""

from collections import Counter
from http import HTTPStatus

import msgspec
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rankstream.experiments import Experiments
from rankstream.operations.serving.calls import Answer, Call
from rankstream.operations.serving.limits import Room
from rankstream.operations.serving.sender import Sender
from rankstream.ranker import Ranker

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

_to_json = msgspec.json.Encoder().encode


class Counts(Collector):
    """What the server counts, for Prometheus."""

    def __init__(self, room: Room, sender: Sender, rankers: dict[str, Ranker]) -> None:
        self.answers: Counter[tuple[str, int]] = Counter()
        self.n_connections = 0
        self.aborted = 0
        self._room = room
        self._sender = sender
        self._rankers = rankers
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.seconds = Histogram(
            "rankstream_serve_seconds",
            "time from the head of a request to its answer",
            ["path"],
            buckets=BUCKETS,
            registry=self.registry,
        )

    def collect(self) -> list[Metric]:
        """Families of what is counted elsewhere."""
        answers = CounterMetricFamily(
            "rankstream_serve_answers", "answers by status", labels=["path", "status"]
        )
        for (path, status), n in sorted(self.answers.items()):
            answers.add_metric((path, str(status)), n)
        versions = GaugeMetricFamily(
            "rankstream_serve_model_version", "served version", labels=["model"]
        )
        for name, ranker in self._rankers.items():
            versions.add_metric((name,), ranker.version)
        plain: list[
            tuple[type[CounterMetricFamily | GaugeMetricFamily], str, str, float]
        ]
        plain = [
            (CounterMetricFamily, "events_sent", "Kafka has them", self._sender.sent),
            (
                CounterMetricFamily,
                "events_failed",
                "Kafka refused",
                self._sender.failed,
            ),
            (CounterMetricFamily, "no_room", "refused for room", self._room.refused),
            (CounterMetricFamily, "aborted", "closed for slowness", self.aborted),
            (
                GaugeMetricFamily,
                "under_way_bytes",
                "requests, records",
                self._room.taken,
            ),
            (GaugeMetricFamily, "connections", "open ones", self.n_connections),
        ]
        found: list[Metric] = [answers, versions]
        for kind, name, said, value in plain:
            found.append(kind(f"rankstream_serve_{name}", said, value=value))
        return found


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
        del call
        body = generate_latest(self._counts.registry)
        return Answer(body, kind=b"text/plain; version=0.0.4; charset=utf-8")

    async def description(self, call: Call) -> Answer:
        """The API as OpenAPI 3.1."""
        del call
        return Answer(self._description)
