"""A Kafka in memory with statistics and features, and trainers that die on it."""

import asyncio
import copy
from typing import Any

import msgspec
from aiokafka import TopicPartition

from rankstream.configuration.canary import CanarySettings
from rankstream.ranker import Ranker
from rankstream.settings import (
    ModelSettings,
    Settings,
    TimeSettings,
    TrainingSettings,
    TrainSettings,
)
from rankstream.snapshots import decode_snapshot
from rankstream.wire.models.deployments import decode_deployment, is_deployment
from rankstream.wire.models.training import decode_record, decode_training_key
from rankstream.wire.topics import (
    CANDIDATES,
    DECISIONS,
    EVALUATIONS,
    PREFERENCES,
    SNAPSHOTS,
    STATISTICS,
    TRAINING,
)
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import CommittedBatch
from streams.local import LocalPipeline, local_settings
from streams.roles.decider import Decider
from streams.roles.trainer import Trainer
from streams.stage import Output
from tests.clicked_lists import EXAMINATION, N_FEATURES, Shown, show
from tests.fakes.clients import FakeClients
from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Content
from tests.fakes.points import Point, straight_on

TOPICS = (
    STATISTICS, CANDIDATES, PREFERENCES, SNAPSHOTS, TRAINING, EVALUATIONS, DECISIONS,
)  # fmt: skip
START_MS = 1_750_000_000_000

PLAN = TrainingSettings(
    after=[400, 800],
    epochs=3,
    batch=8,
    least_support=1.0,
    most_unsupported=1.0,
    examination=list(EXAMINATION),
)
MODEL = ModelSettings(features=N_FEATURES, versions="trained", training=PLAN)


def settings_with(*, canary: CanarySettings | None = None, **changes: Any) -> Settings:
    """One trained model, `m`, with these settings of its training changed.

    Nothing is valued between trainings.
    """
    plan = msgspec.structs.replace(PLAN, **changes)
    model = msgspec.structs.replace(MODEL, training=plan, canary=canary)
    time = TimeSettings(disorder_ms=500, click_window_ms=1_000, remember_ms=1_000)
    never = TrainSettings(value_every_s=0.0)
    return local_settings(Settings(models={"m": model}, time=time, train=never))


class World:
    """What there is on Kafka, and how it grows."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.kafka = _cluster()
        self._pipeline = LocalPipeline(
            settings, now=lambda: self._shown.at_ms, on_output=self._keep
        )
        self._shown = Shown(0, START_MS)
        self._pipeline.start()
        self._ranker = Ranker("m", source=lambda: self._pipeline.snapshots.get(b"m"))
        self._ranker.refresh()

    def copied(self) -> "World":
        """Another one with the same records, which does not grow."""
        other = copy.copy(self)
        other.kafka = _cluster()
        for topic in TOPICS:
            other.write(topic, *self.read(topic))
        return other

    def grow(self, n_lists: int, *, n_queries: int = 40) -> None:
        """So many lists more, shown and counted."""
        self._shown = show(
            self._pipeline, self._ranker, self._shown, n_lists, n_queries=n_queries
        )
        self._pipeline.flush()
        self.write(STATISTICS, *((x.key, x.value) for x in self._pipeline.statistics()))

    def write(self, topic: str, *pairs: tuple[bytes, bytes | None]) -> None:
        """Records, as somebody else commits them."""
        contents = [Content(key, value, (), 0) for key, value in pairs]
        if contents:
            self.kafka.produce(TopicPartition(topic, 0), contents)

    def read(self, topic: str) -> list[tuple[bytes, bytes | None]]:
        """All that was committed."""
        found = self.kafka.committed(TopicPartition(topic, 0))
        return [(each.key or b"", each.value) for each in found]

    def trainer(
        self, point: Point = straight_on, *, by: str = "t", **options: Any
    ) -> Trainer:
        """A trainer whose clients stop at points."""
        cluster = self.cluster(point)
        # Of `INSTANCE/WORKER`, as a status names it.
        instance, _, worker = by.rpartition("/")
        delivery = msgspec.structs.replace(self.settings.delivery, instance_id=instance)
        settings = msgspec.structs.replace(self.settings, delivery=delivery)
        return Trainer(settings, cluster, worker=worker, **options)

    def cluster(self, point: Point = straight_on) -> Cluster:
        """Clients that stop at points."""
        return Cluster("", {}, {}, FakeClients(self.kafka, point))

    def tell(self, trainer: Trainer | Decider) -> None:
        """Let it have read everything."""
        for source in trainer.sources:
            records = list(self.read(source.topic))
            batch = CommittedBatch(records, at_end=True, is_first=True, is_settled=True)  # type: ignore[arg-type]
            trainer.take(source, batch)

    def trained(self) -> list[bytes]:
        """Envelopes of what was trained, oldest first."""
        return [
            value
            for key, value in self.read(SNAPSHOTS)
            if key == b"m" and value is not None
        ]

    def records(self, kind: str) -> list[Any]:
        """Records of a kind in `training`, oldest first."""
        found = []
        for key, value in self.read(TRAINING):
            named = decode_training_key(key)
            if named is not None and named.kind == kind and value is not None:
                found.append(decode_record(kind, value))
        return found

    def assert_whole(self) -> None:
        """What was trained has its note, its record and its position, or nothing."""
        names = [decode_snapshot(each).intervention for each in self.trained()]
        noted = {
            key.removesuffix(b"/deployed").decode(): decode_deployment(value).groups
            for key, value in self.read(SNAPSHOTS)
            if value is not None and is_deployment(key, value)
        }
        notes = [*noted]
        # Who judges it leaves out whose clicks it was trained from.
        groups = [decode_snapshot(each).groups for each in self.trained()]
        assert all(groups)
        assert groups == [*noted.values()]
        positions = [each.intervention for each in self.records("position")]
        runs = [each.intervention for each in self.records("run")]
        done = [x.said.split()[0] for x in self.records("status") if x.state == "done"]
        assert names == notes == positions == runs == done

    def _keep(self, output: Output) -> None:
        if output.topic in (CANDIDATES, SNAPSHOTS):
            self.write(output.topic, (output.key or b"", output.value))


def _cluster() -> FakeKafka:
    kafka = FakeKafka()
    for topic in TOPICS:
        kafka.create(topic, 1)
    return kafka


class Killed(BaseException):
    """The process is gone."""


class Mortal:
    """A point that ends the process that comes to it the n-th time, for good.

    Attributes
    ----------
    n
        Points so far.
    """

    def __init__(self, at: int) -> None:
        self.n = 0
        self.dead = asyncio.Event()
        self._at = at

    async def __call__(self, what: str) -> None:
        """Go on, or die."""
        self.n += 1
        if self.n > self._at:
            self.dead.set()
            raise Killed(what)


class Paused:
    """A point at which the process stands still until it is let on."""

    def __init__(self, at: int) -> None:
        self.n = 0
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()
        self._at = at

    async def __call__(self, _: str) -> None:
        """Go on, or wait."""
        self.n += 1
        if self.n == self._at:
            self.reached.set()
            await self.go_on.wait()


async def turned(world: World, trainer: Trainer | Decider, n_turns: int = 1) -> None:
    """Turns of a role that has read everything."""
    stop = asyncio.Event()
    for _ in range(n_turns):
        world.tell(trainer)
        await trainer.turn(stop)
