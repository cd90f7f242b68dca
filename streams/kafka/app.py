"""One role of the pipeline as a Faust application.

Faust does membership, flow control and the life of the process. Everything that
happens to partitions goes on to `streams.kafka.partitions.assignment`, which has the
rules.
"""

import asyncio
import gc
import logging
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NoReturn

import faust
from faust.tables import TableManager

from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS, full_name
from streams.kafka.append_time import AppendTimes, told_ms
from streams.kafka.clients import Cluster
from streams.kafka.partitions.assignment import Assignment
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.process import TopicPartition
from streams.kafka.processes.child_end import (
    CONFIGURATION_EXIT,
    FAILURE_EXIT,
    end_for_memory,
    tell_parent,
)
from streams.kafka.processes.kept_pages import keep_freed_pages
from streams.kafka.referring_state import ReferringState
from streams.kafka.source_watch import ClusterTopics, SourceWatch, known_topics
from streams.kafka.state.joint_log import JointLog
from streams.kafka.state.lost_records import AcceptedLoss, loss_of
from streams.kafka.status.metrics import Gauges
from streams.kafka.status.stage_times import StageTimes
from streams.kafka.status.status_page import Status
from streams.kafka.token_file import PROVIDER
from streams.kafka.transport import ReadProgress, Transport
from streams.source_records import SourceRecords
from streams.stage import LogRefused
from streams.topology import StageKind, group_of, written_topics

TURN_BYTES, TURNS = 64 * 1_024, 6
"""Bytes, as bundles are weighed, after which an agent lets others go on, and how far.

An answer of the broker passes through so many turns of the loop before the next request
leaves: with one turn a bundle, a commit would wait while others are folded.
"""

BUFFERED_RECORDS = 65_536
"""At four fifths of it Faust pauses for a second; the bound on bytes comes first."""

RESTORE_S = 1_800.0
"""How long opening partitions may take; given to Faust as its request timeout."""

log = logging.getLogger("rankstream.worker")


class NoTables(TableManager):
    """Faust's tables, of which there are none.

    Faust waits for a second in which some might be declared, and joins its group after
    that.
    """

    async def on_start(self) -> None:
        """Say at once that all of them are known."""
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()


class StageApp(faust.App):
    """A Faust application that tells an assignment what happens, and nothing else."""

    def prepare(
        self,
        settings: Settings,
        kinds: Iterable[StageKind],
        cluster: Cluster,
        status: Status,
        accepted: Iterable[AcceptedLoss] = (),
    ) -> None:
        """Say which stages run here; called once, before the start."""
        self.stage_settings = settings
        self.cluster = cluster
        self.accepted = tuple(accepted)
        self.kinds = {full_name(cluster.namespace, kind.source): kind for kind in kinds}
        self.joint = JointLog(cluster, tuple(self.kinds.values()))
        self.watch = self._watch()
        self.assignment = Assignment(
            self, settings, fail, self.watch.check, self._tell_ready
        )
        self.status = status
        self.times = {
            kind.name: StageTimes(has_joins=kind.source == EVENTS)
            for kind in self.kinds.values()
        }
        self.gauges = Gauges(
            self.assignment.committers,
            self.times,
            self.assignment.lag_of,
            self.clock_difference_s,
        )
        status.registry.register(self.gauges)
        self.append_times = AppendTimes()
        self.running: list[asyncio.Task[None]] = []
        self.on_partitions_revoked.connect(self.suspend_partitions)
        self.on_partitions_assigned.connect(self.keep_partitions)  # type: ignore[arg-type]

    def committer_of(self, place: TopicPartition) -> Committer | None:
        """What commits a partition, if its topic is the source of a stage here."""
        kind = self.kinds.get(place.topic)
        if kind is None:
            return None
        state = ReferringState(kind, place.partition, self.cluster, self.joint)
        lost = loss_of(self.accepted, kind.source, place.partition)
        times = self.times[kind.name]
        return Committer(kind, place.partition, state, self.stage_settings, lost, times)

    async def written(self) -> None:
        """Wait until nothing is being written."""
        await self.joint.written()

    def _watch(self) -> SourceWatch:
        names = dict.fromkeys(
            name
            for kind in self.kinds.values()
            for name in (kind.source, *kind.outputs, *kind.state_topics)
        )
        cluster = self.cluster
        known = known_topics(self.stage_settings, cluster.topic_ids, names)
        return SourceWatch(known, ClusterTopics(cluster.client))

    def progress(self, place: TopicPartition) -> ReadProgress:
        """How far a partition was read."""
        consumer: Any = self.consumer
        read: ReadProgress = consumer.progress(place)
        return read

    def clock_difference_s(self, place: TopicPartition) -> float | None:
        """How far this machine's clock is ahead of that of a partition's broker."""
        consumer: Any = self.consumer
        ahead_s: float | None = consumer.clocks.seconds(place)
        return ahead_s

    def _troubles(self) -> list[str]:
        """What the page is to say, once a second."""
        self.gauges.look()
        return list(self.assignment.troubles())

    def _create_directories(self) -> None:
        """Nothing of ours lies in Faust's directories."""

    def _crash(self, reason: BaseException) -> None:
        # A crash of any of Faust's services comes here; the others may never end.
        fail(reason)

    async def on_start(self) -> None:
        """Start committing: a plain task, as Faust's timers stop too early."""
        await self.assignment.guarded(super().on_start())
        loop, guarded = asyncio.get_running_loop(), self.assignment.guarded
        self.running = [
            loop.create_task(self.assignment.run_commits()),
            loop.create_task(guarded(self.watch.run())),
            loop.create_task(self.status.beat(self._troubles)),
        ]

    async def on_stop(self) -> None:
        """Stop reading, commit and checkpoint what was folded, close the partitions."""
        self.assignment.open_no_more()
        await super().on_stop()
        await self.assignment.suspend()
        for task in self.running:
            task.cancel()
        await self.assignment.keep(())
        log.info("event=stopped")

    async def open_partitions(
        self, committed: Mapping[TopicPartition, int | None]
    ) -> dict[TopicPartition, int]:
        """Hear what was assigned, from the transport; says where each starts."""
        if not self.assignment.committers:
            self.status.phases.ended("join")
        return await self.assignment.open(committed)

    def _tell_ready(self, committers: Collection[Committer]) -> None:
        """Log the phases of the start; of the opening, those that took longest."""
        phases = self.status.phases
        slowest = max(committers, key=lambda each: sum(each.opening))
        for name, seconds in slowest.opening._asdict().items():
            phases.lasted(name, seconds)
        phases.ended("caught-up", max(each.live_s for each in committers))
        log.info(
            "event=ready role=%s partitions=%d %s",
            self.status.role, len(committers), phases,
        )  # fmt: skip

    async def read_outside(self, place: TopicPartition, first: int, end: int) -> None:
        """Hear that what is to be read next of a partition is not there."""
        await self.assignment.read_outside(place, first, end)

    def not_held_back(self, places: set[TopicPartition]) -> set[TopicPartition]:
        """Tell the transport which partitions to fetch from."""
        return self.assignment.not_held_back(places)

    async def suspend_partitions(self, *_: Any, **__: Any) -> None:
        """Hear that all partitions are revoked, as at every rebalance."""
        await self.assignment.suspend()

    async def keep_partitions(self, _: Any, *assigned: Any, **__: Any) -> None:
        """Hear which partitions were assigned, also where none was."""
        consumer: Any = self.consumer
        if consumer.membership is not None:
            self.assignment.join(consumer.membership)
        await self.assignment.keep(assigned[0])

    async def fold_events(self, stream: Any, kind: StageKind) -> None:
        """The body of an agent: fold records, which a later commit acknowledges."""
        n_taken = 0
        places: dict[int, TopicPartition] = {}
        consumer: Any = self.consumer
        take, turn_of = self.assignment.take, self.assignment.turn_of
        is_input = kind.source not in written_topics()
        times_of = self.append_times.of if is_input else told_ms
        async for event in stream.noack().events():
            bundle = event.message
            place = places.get(bundle.partition)
            if place is None:
                place = TopicPartition(bundle.topic, bundle.partition)
                places[bundle.partition] = place
            consumer.taken(bundle.n_bytes)
            times_ms = times_of(place, bundle.records)
            records = SourceRecords.fetched(
                kind.source, place.partition, bundle.records, times_ms
            )
            while not take(
                place,
                records,
                event,
                # Asked each time: it may have been assigned anew meanwhile.
                is_current=bundle.generation_id == self.consumer_generation_id,
            ):
                await turn_of(place)
            bundle.records = ()  # it is held until a commit; they need not be
            n_taken += bundle.n_bytes
            if n_taken >= TURN_BYTES:
                n_taken = 0
                for _ in range(TURNS):
                    await asyncio.sleep(0)


def build_app(
    settings: Settings,
    role: str,
    kinds: list[StageKind],
    cluster: Cluster,
    accepted: Iterable[AcceptedLoss] = (),
    status: Status | None = None,
) -> StageApp:
    """The application of a role, ready to be run.

    Parameters
    ----------
    kinds
        The stages of this role, each on a topic of its own.
    accepted
        What is missing from inputs, and may be.
    status
        Is told how they fare, and given their metrics.
    """
    delivery = settings.delivery
    options: dict[str, Any] = {
        _OF_FAUST[name]: value for name, value in settings.kafka.options.items()
    }
    app = StageApp(
        group_of(settings.namespace, role),
        broker=[
            f"kafka://{one.strip()}" for one in settings.kafka.bootstrap.split(",")
        ],
        broker_credentials=_credentials_of(cluster.client),
        store="memory://",
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        consumer_auto_offset_reset="none",
        stream_buffer_maxsize=BUFFERED_RECORDS,
        broker_session_timeout=delivery.session_timeout_s,
        broker_heartbeat_interval=delivery.session_timeout_s / 4,
        broker_request_timeout=RESTORE_S,
        consumer_group_instance_id=_instance_of(delivery.instance_id, role),
        autodiscover=False,
        TableManager=NoTables,
        **options,
    )
    app.transport = Transport(
        app.conf.broker_consumer, app, loop=app.loop
    )  # the setter: Faust would make its own
    app.prepare(settings, kinds, cluster, status or Status(role), accepted)
    for kind in kinds:
        _declare(app, kind)
    return app


def _declare(app: StageApp, kind: StageKind) -> None:
    topic = app.topic(
        full_name(app.cluster.namespace, kind.source),
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        internal=False,
    )

    async def fold(stream: faust.StreamT[bytes]) -> None:
        await app.fold_events(stream, kind)

    app.agent(topic, name=f"fold-{kind.source}")(fold)


_OF_FAUST = {
    "client_id": "broker_client_id",
    "connections_max_idle_ms": "consumer_connections_max_idle_ms",
    "metadata_max_age_ms": "consumer_metadata_max_age_ms",
}
"""How Faust calls what `[kafka.options]` may give."""


def _credentials_of(client: Mapping[str, Any]) -> Any:
    """What Faust makes aiokafka's options of, where the cluster wants credentials."""
    context = client.get("ssl_context")
    if PROVIDER in client:
        return faust.OAuthCredentials(oauth_cb=client[PROVIDER], ssl_context=context)
    if "sasl_mechanism" in client:
        return faust.SASLCredentials(
            username=client["sasl_plain_username"],
            password=client["sasl_plain_password"],
            mechanism=client["sasl_mechanism"],
            ssl_context=context,
        )
    return faust.SSLCredentials(context=context) if context is not None else None


def _instance_of(instance_id: str, role: str) -> str | None:
    return f"{instance_id}-{role}" if instance_id else None


def run_app(app: StageApp) -> int:
    """Run until SIGTERM; returns the exit status."""
    # Objects of the folds hold no cycles; a collector that walks them only costs.
    gc.set_threshold(100_000, 50, 1_000)
    keep_freed_pages()
    worker = faust.Worker(
        app,
        loglevel="WARN",
        quiet=True,
        redirect_stdouts=False,
        override_logging=False,
    )
    worker.spinner = None  # it would write to the terminal whatever it is
    try:
        worker.execute_from_commandline()
    except SystemExit as status:
        return int(status.code or 0)
    return 0


def fail(error: BaseException) -> NoReturn:
    """Say why and end the process, with a status that says whether to start again."""
    if isinstance(error, MemoryError):
        end_for_memory()
    status = FAILURE_EXIT
    try:
        if isinstance(error, LogRefused):
            status = CONFIGURATION_EXIT
            tell_parent(str(error))
            log.error("event=refused reason=%s", error)
        else:
            tell_parent(f"{type(error).__name__}: {error}")
            log.error(
                "event=failed error=%s reason=%s cause=%r",
                type(error).__name__, error, error.__cause__,
            )  # fmt: skip
        logging.shutdown()
    finally:  # also where there is no room for words
        os._exit(status)
