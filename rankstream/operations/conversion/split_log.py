"""More partitions for the log of a namespace: from n to a multiple of n.

Whatever ingestion has written is folded first, as a worker would. Then the topics get
their partitions, each partition of the log is divided in a transaction of its own, and
ingestion, which would write to the new ones, comes last. A command that was interrupted
goes on where it ended, and until it is done no worker starts: settings, topics and
states differ.
"""

import asyncio
from collections.abc import Callable

import msgspec

from producers.brokers.topic_admin import TopicAdmin
from producers.topic_reader import TopicReader
from rankstream.operations.conversion.schema1 import ConversionRefused
from rankstream.operations.conversion.split_partition import (
    TRANSACTION_MS,
    Divider,
    Report,
    partitions_before,
)
from rankstream.operations.conversion.topics import wait_for_workers
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings
from rankstream.wire.topics import CANDIDATES, EVENTS, LATE
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import client_options
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.partition_life import Event
from streams.kafka.referring_state import ReferringState
from streams.kafka.state.joint_log import JointLog
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    check_missing,
    decode_position,
    encode_position,
)
from streams.kafka.state.state_log import StateLog, StateRead
from streams.source_records import SourceRecords
from streams.stage import Change, SourceRecord
from streams.topology import StageKind, topics_of
from streams.worker_roles import kinds_of

PINNED = "kafka.partitions"
"""The setting that the state of ingestion is bound to."""

Told = Callable[[str], None]


def split_log(settings: Settings, tell: Told, *, is_trial: bool = False) -> None:
    """Give the log of a namespace the partitions that the settings say.

    Parameters
    ----------
    tell
        Is told each step, a line of text.
    is_trial
        Only look whether it can be done, and tell what would be.

    Raises
    ------
    ConversionRefused, LogRefused
        Where a worker runs, or something does not allow it, with the remedy.
    """
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    try:
        for role in ("ingest", "fold"):
            wait_for_workers(admin, settings, role)
        work = _Split(settings, admin, tell)
        if is_trial:
            work.tell_plan()
        else:
            asyncio.run(work.run())
    finally:
        admin.close()


class _Split:
    """One run of the command; see `split_log`."""

    def __init__(self, settings: Settings, admin: TopicAdmin, tell: Told) -> None:
        self._settings = settings
        self._admin = admin
        self._tell = tell
        self._n_after = settings.kafka.partitions
        (self._fold,) = kinds_of("fold")
        self._cluster = Cluster(
            settings.namespace, client_options(settings.kafka), admin.topic_ids()
        )

    def tell_plan(self) -> None:
        """What a run would do.

        Raises
        ------
        ConversionRefused
            Where it would be refused.
        """
        n_there = self._n_there()
        if n_there == self._n_after:
            self._tell(
                f"{EVENTS} has {counted(n_there, 'partition')} already; a run divides "
                "what an interrupted one has left, if anything"
            )
            return
        for partition in range(n_there):
            children = range(partition, self._n_after, n_there)
            self._tell(
                f"{EVENTS}[{partition}] would be folded to its end, and divided into "
                f"{', '.join(map(str, children))}"
            )

    def _n_there(self) -> int:
        """Partitions of the log, of which the new number must be a multiple."""
        n_there = self._admin.n_partitions().get(EVENTS, 0)
        if not n_there or self._n_after % n_there:
            raise ConversionRefused(
                "kafka.partitions must be a multiple of the partitions of the topic "
                f"{EVENTS}, {n_there}; got {self._n_after}: a query then stays where "
                "it is or goes to a new one; choose another number, or fold the log in "
                "a new --namespace"
            )
        return n_there

    async def run(self) -> None:
        """All of it, from wherever an earlier run ended."""
        n_there = self._n_there()
        if n_there < self._n_after:
            await self._end_ingestion()
            for partition in range(n_there):
                await self._catch_up(partition, n_there)
        self._widen()
        read = await self._read(self._fold, 0)
        n_before = min(n_there, partitions_before(read, self._n_after))
        divider = Divider(self._fold, self._cluster, self._settings, n_before)
        for partition in range(n_before):
            report = await divider.divide(partition)
            self._tell(_sentence(partition, report))
        for kind in kinds_of("ingest"):
            for partition in range(self._settings.kafka.input_partitions):
                await self._extend(kind, partition)

    async def _end_ingestion(self) -> None:
        """End what is open of its transactions: nobody reads what comes behind them."""
        kinds = kinds_of("ingest")
        # One of them may have been written with the id of any other.
        joint = JointLog(self._cluster, kinds)
        logs = [
            StateLog(kind, partition, self._cluster, joint)
            for kind in kinds
            for partition in range(self._settings.kafka.input_partitions)
        ]
        try:
            for log in logs:
                await log.fence(TRANSACTION_MS)
            for log in logs:
                await log.read()
        finally:
            for log in logs:
                await log.close()

    async def _catch_up(self, partition: int, n_partitions: int) -> None:
        """Fold what no worker has folded yet, and write the state."""
        settings = self._settings.with_kafka(partitions=n_partitions)
        state = ReferringState(self._fold, partition, self._cluster)
        committer = Committer(self._fold, partition, state, settings)
        start = await committer.open(None)
        n_folded = 0
        try:
            with TopicReader(settings) as reader:
                # The end of a transaction may come after it was told of.
                ends = reader.written(EVENTS)
                for record in reader.records(EVENTS, {partition: start}, ends):
                    if committer.is_busy:
                        await committer.commit()
                    one = SourceRecord(EVENTS, *record)
                    committer.fold(SourceRecords.of([one]))
                    n_folded += 1
            committer.life.take(Event.REVOKED)
            await committer.commit_last()
        finally:
            await committer.close()
        if n_folded:
            self._tell(f"{EVENTS}[{partition}]: folded {counted(n_folded, 'record')}")

    def _widen(self) -> None:
        """The log first: once it is wide the command knows that all was folded."""
        wanted = {
            topic.name: topic.partitions for topic in topics_of(self._settings.kafka)
        }
        there = self._admin.n_partitions()
        (fold,) = kinds_of("fold")
        log = (EVENTS, LATE, CANDIDATES, *fold.state_topics)
        for name in log:
            if there.get(name, 0) < wanted[name]:
                self._admin.widen({name: wanted[name]})
                self._tell(f"{name}: {wanted[name]} partitions, {there[name]} before")

    async def _read(self, kind: StageKind, partition: int) -> StateRead:
        log = StateLog(kind, partition, self._cluster)
        try:
            await log.fence(TRANSACTION_MS)
            return await log.read()
        finally:
            await log.close()

    async def _extend(self, kind: StageKind, partition: int) -> None:
        """Let ingestion write to all partitions: its numbers begin in the new ones."""
        log = StateLog(kind, partition, self._cluster)
        place = kind.state_topics[0], POSITION_KEY
        try:
            await log.fence(TRANSACTION_MS)
            values, _, source = await log.read()
            packed = values.pop(place, None)
            if packed is None:
                check_missing(source, place[0], committed=None, n_keys=len(values))
                return
            position = decode_position(packed)
            stage = kind.build(self._settings, partition)
            stage.restore(Change(*each, value) for each, value in values.items())
            fingerprint = stage.fingerprint()
            moved = msgspec.structs.replace(
                position,
                fingerprint=fingerprint,
                checkpoint_fingerprint=fingerprint,
                settings=position.settings | {PINNED: self._n_after},
            )
            if moved != position:
                moved = msgspec.structs.replace(moved, number=position.number + 1)
                marker = Change(*place, encode_position(moved))
                await log.write([], [*stage.changes(), marker])
        finally:
            await log.close()


def _sentence(partition: int, report: Report | None) -> str:
    place = f"{EVENTS}[{partition}]"
    if report is None:
        return f"{place}: nothing to divide"
    shares = "; ".join(
        f"[{child}] {counted(n_scopes, 'scope')}, {counted(n_open, 'open event')}"
        for child, (n_scopes, n_open) in report.items()
    )
    return f"{place}: {shares}"
