"""One role of the pipeline as a Faust application.

Faust does membership, assignment, flow control and the life of the process. A
partition's state, outputs and resume position belong to its committer.
"""

import asyncio
import contextlib
import gc
import logging
import os
import time
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import faust
from faust.types import TP

from rankstream.settings import Settings
from rankstream.wire.topics import full_name
from streams.kafka.committer import Cluster, Committer
from streams.kafka.metrics import Gauges
from streams.kafka.transport import Transport
from streams.kafka.watermark_alignment import Progress, held_back
from streams.stage import LogRefused, SourceRecord
from streams.topology import StageKind, group_of

CONFIGURATION_EXIT = 78
"""Exit status where starting again would not help."""

FAILURE_EXIT = 70
"""Exit status where the parent is to start the process again."""

TURN_RECORDS = 64
"""Records after which an agent lets others have a turn."""

BUFFERED_RECORDS = 65_536
"""At four fifths of it Faust pauses for a second; the bound on bytes comes first."""

RESTORE_S = 1_800.0
"""How long opening partitions may take; given to Faust as its request timeout."""

log = logging.getLogger("rankstream.worker")


class StageApp(faust.App):
    """A Faust application whose partitions are committers."""

    def prepare(
        self, settings: Settings, kinds: Iterable[StageKind], cluster: Cluster
    ) -> None:
        """Say which stages run here; called once, before the start."""
        self.stage_settings = settings
        self.cluster = cluster
        self.kinds = {full_name(cluster.namespace, kind.source): kind for kind in kinds}
        self.open_committers: dict[TP, Committer] = {}
        self.gauges = Gauges(self.open_committers, self.lag_of)
        self.pump: asyncio.Task[None] | None = None
        self.is_closing = False
        self.n_revocations = 0
        self._held: set[TP] = set()
        self._opening = asyncio.Lock()
        self._hurry = asyncio.Event()
        self.on_partitions_revoked.connect(self.suspend_partitions)
        self.on_partitions_assigned.connect(self.keep_partitions)  # type: ignore[arg-type]

    def _create_directories(self) -> None:
        """Nothing of ours lies in Faust's directories."""

    def _crash(self, reason: BaseException) -> None:
        # A crash of any of Faust's services comes here; the others may never end.
        fail(reason)

    async def on_start(self) -> None:
        """Start committing: a plain task, as Faust's timers stop too early."""
        await self.guarded(super().on_start())
        self.pump = asyncio.get_running_loop().create_task(self.run_commits())
        self.gauges.serve(self.stage_settings.metrics)

    async def on_stop(self) -> None:
        """Stop reading, commit and checkpoint what was folded, close the partitions."""
        self.is_closing = True
        await super().on_stop()
        await self.suspend_partitions()
        if self.pump is not None:
            self.pump.cancel()
        await self.close_partitions(set(self.open_committers))
        log.info("event=stopped")

    async def open_partitions(
        self, committed: Mapping[TP, int | None]
    ) -> dict[TP, int]:
        """Fence, restore, and say where each assigned partition starts."""
        async with self._opening:
            await self.close_partitions(set(self.open_committers) - set(committed))
            found = await asyncio.gather(
                *(self._opened(place, at) for place, at in committed.items())
            )
        return {place: start for place, start in found if start is not None}

    async def suspend_partitions(self, *_: Any, **__: Any) -> None:
        """Commit and checkpoint every partition, before anybody else may open it.

        Faust revokes all partitions at every rebalance. A partition reassigned to the
        same worker resumes from memory. If another worker has written meanwhile, the
        next transaction is fenced, and that ends the process.
        """
        self.n_revocations += 1
        live = [one for one in self.open_committers.values() if not one.is_suspended]
        await self.guarded(
            asyncio.gather(
                *(one.commit(now_ms(), at_end=False, final=True) for one in live)
            )
        )
        for one in live:
            one.is_suspended = True

    async def keep_partitions(self, _: Any, *assigned: Any, **__: Any) -> None:
        """Close partitions that were not assigned again, also where none was."""
        await self.close_partitions(set(self.open_committers) - set(assigned[0]))

    async def close_partitions(self, places: set[TP]) -> None:
        """Close partitions that were taken away."""
        for place in places & set(self.open_committers):
            committer = self.open_committers.pop(place, None)
            if committer is not None:
                await self.guarded(committer.close())

    async def commit_partition(self, place: TP, committer: Committer) -> None:
        """One commit of one partition."""
        if committer.is_suspended:
            return
        consumer: Any = self.consumer
        last, position, highwater = consumer.progress(place)
        reached = position if committer.folded >= last else None
        at_end = (
            not self.rebalancing
            and reached is not None
            and highwater is not None
            and reached >= highwater
        )
        await committer.commit(now_ms(), at_end=at_end, reached=reached)

    def lag_of(self, place: TP) -> int:
        """Records of a partition that the broker has and the stage has not folded."""
        consumer: Any = self.consumer
        last, position, highwater = consumer.progress(place)
        if highwater is None or position is None:
            return 0
        folded = self.open_committers[place].folded
        return max(0, int(highwater - (position if folded >= last else folded + 1)))

    def not_held_back(self, places: set[TP]) -> set[TP]:
        """Without sources that are far ahead of others."""
        sources = {
            place: Progress(frontier_ms, is_behind=self.lag_of(place) > 0)
            for place, one in self.open_committers.items()
            if (frontier_ms := one.counts.get("frontier_ms")) is not None
        }
        held = held_back(sources, self.stage_settings.time.lead_ms)
        if held != self._held:
            names = ",".join(sorted(f"{at.topic}[{at.partition}]" for at in held))
            log.info("event=held-back partitions=%s", names or "none")
            self._held = held
        return places - held

    async def run_commits(self) -> None:
        """Commit every partition, again and again."""
        every_s = self.stage_settings.delivery.commit_s
        while True:
            started = time.monotonic()
            self._hurry.clear()
            await self.guarded(
                asyncio.gather(
                    *(
                        self.commit_partition(place, committer)
                        for place, committer in list(self.open_committers.items())
                    )
                )
            )
            spent_s = time.monotonic() - started
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.005, every_s - spent_s)):
                    await self._hurry.wait()

    async def guarded(self, work: Any) -> Any:
        """Do it, or end the process: nothing goes on after a failed commit."""
        try:
            return await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  whatever it is, this is the end
            fail(error)

    async def fold_events(self, stream: Any, kind: StageKind) -> None:
        """The body of an agent: fold records, which a later commit acknowledges."""
        n_taken = 0
        places: dict[int, TP] = {}
        consumer: Any = self.consumer
        async for event in stream.noack().events():
            message = event.message
            consumer.taken(message)
            place = places.get(message.partition)
            if place is None:
                place = TP(message.topic, message.partition)
                places[message.partition] = place
            committer = self.open_committers.get(place)
            if (
                committer is None
                or committer.is_suspended
                or message.generation_id != self.consumer_generation_id
            ):
                # The partition was taken away: its new owner reads the record again.
                event.ack()
                continue
            if committer.lock.locked() or committer.is_full:
                await self._turn_of(committer)
            try:
                committer.fold(_record_of(message, kind.source), event)
            except BaseException as error:  # noqa: BLE001  whatever it is
                fail(error)
            if committer.is_due:
                self._hurry.set()
            n_taken += 1
            if n_taken % TURN_RECORDS == 0:
                await asyncio.sleep(0)

    async def _turn_of(self, committer: Committer) -> None:
        while committer.lock.locked() or committer.is_full:
            if committer.is_full:
                self._hurry.set()
                committer.room.clear()
                await committer.room.wait()
            async with committer.lock:
                pass

    async def _opened(self, place: TP, committed: int | None) -> tuple[TP, int | None]:
        kind = self.kinds.get(place.topic)
        if kind is None or self.is_closing:
            return place, None
        known = self.open_committers.get(place)
        if known is not None:
            known.is_suspended = False
            known.stage.tick(now_ms(), at_end=False)
            return place, known.folded + 1
        committer = Committer(kind, place.partition, self.cluster, self.stage_settings)
        n_revocations = self.n_revocations
        start = await self.guarded(committer.open(committed, now_ms()))
        # Revoked while it was opened: it stays suspended until it is assigned again.
        committer.is_suspended = self.n_revocations != n_revocations
        self.open_committers[place] = committer
        return place, start


def _record_of(message: Any, topic: str) -> SourceRecord:
    headers = message.headers or ()
    return SourceRecord(
        topic,
        message.partition,
        message.offset,
        round(message.timestamp * 1_000) if message.timestamp else 0,
        message.key,
        message.value,
        tuple(headers.items() if isinstance(headers, Mapping) else headers),
    )


def build_app(
    settings: Settings, role: str, kinds: list[StageKind], cluster: Cluster
) -> StageApp:
    """The application of a role, ready to be run.

    Parameters
    ----------
    kinds
        The stages of this role, each on a topic of its own.
    """
    delivery = settings.delivery
    app = StageApp(
        group_of(settings, role),
        broker=[
            f"kafka://{one.strip()}" for one in settings.kafka.bootstrap.split(",")
        ],
        broker_credentials=_credentials_of(cluster.client),
        store="memory://",
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        stream_buffer_maxsize=BUFFERED_RECORDS,
        broker_session_timeout=delivery.session_timeout_s,
        broker_heartbeat_interval=delivery.session_timeout_s / 4,
        broker_request_timeout=RESTORE_S,
        consumer_group_instance_id=_instance_of(delivery.instance_id, role),
        autodiscover=False,
    )
    app.transport = Transport(
        app.conf.broker_consumer, app, loop=app.loop
    )  # the setter: Faust would make its own
    app.prepare(settings, kinds, cluster)
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


def _credentials_of(client: Mapping[str, Any]) -> Any:
    """What Faust makes aiokafka's options of, where the cluster wants credentials."""
    context = client.get("ssl_context")
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


def now_ms() -> int:
    """The wall clock, which only ingest hears."""
    return time.time_ns() // 1_000_000


def fail(error: BaseException) -> NoReturn:
    """Say why and end the process, with a status that says whether to start again."""
    if isinstance(error, LogRefused):
        log.error("event=refused reason=%s", error)
        status = CONFIGURATION_EXIT
    else:
        log.error(
            "event=failed error=%s reason=%s cause=%r",
            type(error).__name__, error, error.__cause__,
        )  # fmt: skip
        status = FAILURE_EXIT
    logging.shutdown()
    os._exit(status)
