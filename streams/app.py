"""One role of the pipeline as a Faust application.

Faust does what it is good at: membership, assignment, flow control, the life of the
process. What a partition knows is the business of its checkpointer.
"""

import asyncio
import gc
import logging
import os
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import faust
from faust.types import TP

from rankstream.settings import Settings
from rankstream.topics import full_name
from streams.checkpoint import Checkpointer, Cluster, StageKind, StateRefused
from streams.metrics import Gauges
from streams.stage import SourceRecord
from streams.transport import Transport

CONFIGURATION_EXIT = 78
"""Exit status where starting again would not help."""

FAILURE_EXIT = 70
"""Exit status where the parent is to start the process again."""

TURN_RECORDS = 64
"""Records after which an agent lets others have a turn."""

log = logging.getLogger("rankstream.worker")


class StageApp(faust.App):
    """A Faust application whose partitions are checkpointers."""

    def prepare(
        self, settings: Settings, kinds: Iterable[StageKind], cluster: Cluster
    ) -> None:
        """Say which stages run here; called once, before the start."""
        self.stage_settings = settings
        self.cluster = cluster
        self.kinds = {full_name(cluster.namespace, kind.source): kind for kind in kinds}
        self.open_checkpointers: dict[TP, Checkpointer] = {}
        self.gauges = Gauges(self.open_checkpointers)
        self.parked: dict[TP, Checkpointer] = {}
        self.n_revocations = 0
        self.pump: asyncio.Task[None] | None = None
        self.on_partitions_revoked.connect(self.give_back)  # type: ignore[arg-type]

    async def give_back(self, _: Any, *taken: Any, **__: Any) -> None:
        """Checkpoint and cut what is taken away, before anybody else may open it.

        Faust takes all away at every rebalance; what comes back is remembered, in case
        nobody else has had it.
        """
        self.n_revocations += 1
        revoked: Iterable[TP] = taken[0]
        places = set(revoked) & set(self.open_checkpointers)
        kept = {place: self.open_checkpointers[place] for place in places}
        await self.close_partitions(places)
        self.parked.update(kept)

    async def on_start(self) -> None:
        """Start checkpointing: a plain task, as Faust's timers stop too early."""
        await super().on_start()
        self.pump = asyncio.get_running_loop().create_task(self.run_checkpoints())
        self.gauges.serve(self.stage_settings.metrics)

    async def on_stop(self) -> None:
        """Take no more, checkpoint what was folded, cut, and let go."""
        await super().on_stop()
        await self.close_partitions(set(self.open_checkpointers))
        if self.pump is not None:
            self.pump.cancel()
        log.info("event=stopped")

    async def open_partitions(
        self, committed: Mapping[TP, int | None]
    ) -> dict[TP, int]:
        """Fence, restore, and say where each assigned partition starts."""
        await self.close_partitions(set(self.open_checkpointers) - set(committed))
        starts: dict[TP, int] = {}
        n_revocations = self.n_revocations
        for place, at in committed.items():
            kind = self.kinds.get(place.topic)
            if kind is None:
                continue
            known = self.open_checkpointers.get(place)
            if known is None:
                known = await self.guarded(self.opened(place, kind, at))
                if self.n_revocations != n_revocations:
                    # Taken away while it was opened: its next owner waits for it.
                    await known.close()
                    return {}
                known.stage.tick(now_ms(), at_end=False)
                self.open_checkpointers[place] = known
            starts[place] = known.next_offset
        self.parked.clear()
        return starts

    async def opened(
        self, place: TP, kind: StageKind, committed: int | None
    ) -> Checkpointer:
        """A partition's checkpointer: the parked one, if nobody wrote since."""
        parked = self.parked.pop(place, None)
        if parked is not None and await parked.reopen():
            return parked
        fresh = Checkpointer(
            kind, place.partition, self.cluster, self.stage_settings.delivery
        )
        await fresh.open(committed)
        return fresh

    async def close_partitions(self, places: set[TP]) -> None:
        """Checkpoint and cut partitions that go, then let go of them."""
        for place in places & set(self.open_checkpointers):
            checkpointer = self.open_checkpointers[place]
            await self.guarded(self.checkpoint(place, checkpointer, final=True))
            del self.open_checkpointers[place]
            await checkpointer.close()

    async def checkpoint(
        self, place: TP, checkpointer: Checkpointer, *, final: bool = False
    ) -> None:
        """One checkpoint of one partition."""
        at_end = not final and await self.is_at_end(place, checkpointer)
        await checkpointer.checkpoint(now_ms(), at_end=at_end, final=final)

    async def is_at_end(self, place: TP, checkpointer: Checkpointer) -> bool:
        """Whether the broker has nothing more, and nothing waits in between."""
        consumer: Any = self.consumer
        if self.rebalancing or place not in consumer.assignment():
            return False
        highwater = consumer.highwater(place)
        if highwater is None:
            return False
        read = consumer._read_offset.get(place)  # noqa: SLF001  no other way to ask
        if read is not None and checkpointer.folded < read < highwater:
            return False
        return bool(highwater == 0 or await consumer.position(place) >= highwater)

    async def run_checkpoints(self) -> None:
        """Checkpoint every partition, again and again."""
        every_s = self.stage_settings.delivery.checkpoint_s
        while True:
            started = time.monotonic()
            await self.guarded(
                asyncio.gather(
                    *(
                        self.checkpoint(place, checkpointer)
                        for place, checkpointer in list(self.open_checkpointers.items())
                    )
                )
            )
            spent_s = time.monotonic() - started
            await asyncio.sleep(max(0.005, every_s - spent_s))

    async def guarded(self, work: Any) -> Any:
        """Do it, or end the process: nothing goes on after a failed checkpoint."""
        try:
            return await work
        except asyncio.CancelledError:
            raise
        except StateRefused as error:
            log.error("event=refused reason=%s", error)
            _end(CONFIGURATION_EXIT)
        except BaseException as error:  # noqa: BLE001  whatever it is, this is the end
            log.error("event=failed error=%s reason=%s", type(error).__name__, error)
            _end(FAILURE_EXIT)

    async def fold_events(self, stream: Any, kind: StageKind) -> None:
        """The body of an agent: fold what comes, acknowledge nothing."""
        n_taken = 0
        async for event in stream.noack().events():
            message = event.message
            place = TP(message.topic, message.partition)
            checkpointer = self.open_checkpointers.get(place)
            if checkpointer is None:
                # Taken away meanwhile: its next owner reads it again.
                event.ack()
                continue
            record = SourceRecord(
                kind.source,
                message.partition,
                message.offset,
                (message.timestamp_type and int(message.timestamp * 1_000)) or 0,
                message.key,
                message.value,
                tuple(message.headers.items())
                if isinstance(message.headers, Mapping)
                else tuple(message.headers or ()),
            )
            await self.guarded(_fold(checkpointer, record, event))
            n_taken += 1
            if n_taken % TURN_RECORDS == 0:
                await asyncio.sleep(0)


async def _fold(checkpointer: Checkpointer, record: SourceRecord, event: Any) -> None:
    if checkpointer.lock.locked():
        async with checkpointer.lock:
            checkpointer.fold(record, event)
    else:
        checkpointer.fold(record, event)


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
    prefix = settings.namespace or "rankstream"
    app = StageApp(
        f"{prefix}-{role}",
        broker=f"kafka://{settings.kafka.bootstrap}",
        broker_credentials=cluster.client.get("faust_credentials"),
        store="memory://",
        datadir=Path(tempfile.gettempdir()) / "rankstream",  # nothing is kept there
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        stream_buffer_maxsize=_buffer_of(kinds),
        broker_session_timeout=delivery.session_timeout_s,
        broker_heartbeat_interval=delivery.session_timeout_s / 4,
        broker_request_timeout=max(90.0, delivery.session_timeout_s),
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


def _buffer_of(kinds: list[StageKind]) -> int:
    """Records that may wait in memory; those of our own topics hold many events."""
    return 16_384 if any(kind.name.startswith("ingest") for kind in kinds) else 1_024


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


def _end(status: int) -> None:
    logging.shutdown()
    os._exit(status)
