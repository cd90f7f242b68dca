"""One intervention: read whole, trained beside the loop, written in one transaction."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import msgspec
from aiokafka.errors import KafkaError

from models.kernels.compilation import telling_of_compilation
from rankstream.deployment_rules import DeploymentRefused, check_room
from rankstream.settings import Settings
from rankstream.wire.bounds import LARGEST
from rankstream.wire.envelope import Pointer, Snapshot, SnapshotError, pointer_of
from rankstream.wire.models.training import (
    ASKED,
    DONE,
    LEFT_ALONE,
    REFUSED,
    SCHEMA,
    Record,
    Refusal,
    Status,
    encode_record,
    training_key,
)
from rankstream.wire.models.training import TRAINING as UNDER_WAY
from rankstream.wire.schemas import LogRefused
from rankstream.wire.topics import (
    CANDIDATES,
    SNAPSHOTS,
    STATISTICS,
    TRAINING,
)
from streams.kafka.clients import Cluster
from streams.kafka.deployment.canary_change import next_epoch
from streams.kafka.deployment.fenced_log import WriterFenced
from streams.kafka.deployment.model_log import ModelLog
from streams.kafka.state.whole_topics import Pair, built_of, whole_topic
from streams.kafka.training.background_thread import BackgroundThread, Stopped
from streams.kafka.training.deployed import brought_out, check_alone
from streams.stage import Output
from streams.statistics.reader import Statistics
from streams.training.curves.curve_snapshot import CurveOutcome, fit_curve
from streams.training.curves.known_curve import KnownCurve, published_curve
from streams.training.inputs import Inputs, TrainingRefused, feature_records_for
from streams.training.model_lists import LearnedOnline
from streams.training.model_records import ModelRecords
from streams.training.schedule import NOWHERE, position_after
from streams.training.trained_snapshot import Outcome, train_model
from streams.training.versions.logging_version import as_credited

BEAT_S = 5.0
"""How often a training says how far it is."""

LONGEST = 4_000
"""Characters of what is said of a model."""

Train = Callable[..., Outcome]

T = TypeVar("T")

log = logging.getLogger("rankstream.trainer")


class TrainingFailed(TrainingRefused):
    """Something that a training calls raised what it does not say of itself."""


class Ending(NamedTuple):
    """What became of it, what was written of that, and why it was refused.

    Parameters
    ----------
    cause
        What was raised, where that is to be seen with its traceback.
    """

    state: str
    written: Sequence[Output]
    why: str = ""
    cause: BaseException | None = None


class Intervention:
    """Reads, trains and publishes one model once; whoever begins it has fenced.

    Parameters
    ----------
    own
        Of the model.
    thread
        Has the task.
    by
        Names this trainer among others.
    train
        Makes a snapshot of inputs.
    """

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster,
        own: ModelLog,
        thread: BackgroundThread,
        *,
        by: str,
        train: Train = train_model,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._own = own
        self._task = thread.task
        self._by = by
        self._train = train
        self._thread = thread

    async def run(self, records: ModelRecords, at_ms: int) -> Ending:
        """Do it, or say why not.

        Parameters
        ----------
        records
            What was read after the fence.
        at_ms
            The least watermark of what was counted.

        Raises
        ------
        Stopped, WriterFenced
            Nothing was published.
        """
        task = self._task
        if task.reason != ASKED and records.is_put_back(task.name):
            said = (
                f"{task.name} was rolled back, so the schedule leaves it alone: "
                f"`rankstream intervene {task.name}` trains it on, in the next epoch"
            )
            log.info("event=left-alone model=%s reason=%s", task.name, said)
            return await self._end(LEFT_ALONE, [self._status(LEFT_ALONE, said)])
        try:
            check_alone(records, task.name)
            if self._is_curve:
                return await self._published(await self._fitted(records), records)
            check_room(self._settings, records.deployments(), at_ms=at_ms)
            outcome = await self._computed(_parent_of(task.name, records), records)
            return await self._published(outcome, records)
        except (TrainingRefused, DeploymentRefused, SnapshotError) as error:
            cause = error.__cause__ if isinstance(error, TrainingFailed) else None
            return await self._refused(records, str(error), cause)

    async def _computed(self, parent: Snapshot, records: ModelRecords) -> Outcome:
        """What a training makes of what is counted now."""
        name = self._task.name
        statistics = await self._statistics()
        known = partial(feature_records_for, self._settings, name)
        features = await self._beside(built_of(self._pairs(CANDIDATES), known))
        train = partial(
            self._train,
            name,
            self._settings,
            Inputs(statistics, features),
            parent,
            reason=self._task.reason,
            epoch=self._epoch_of(name, parent, records),
            on_progress=self._thread.take,
            online=LearnedOnline(self._settings, lambda: records.learned),
            **_curve_for(self._settings, name, records),
        )
        return await self._beside(asyncio.to_thread(self._made, train))

    def _epoch_of(
        self, name: str, parent: Snapshot, records: ModelRecords
    ) -> int | None:
        """The epoch of a new version; None for that of its parent."""
        if self._settings.models[name].canary is not None:
            # One that was withdrawn leaves its name behind.
            return next_epoch(records, name)
        return parent.epoch + 1 if records.is_put_back(name) else None

    async def _fitted(self, records: ModelRecords) -> CurveOutcome:
        """What a curve is by what is counted now."""
        name = self._task.name
        statistics = await self._statistics()
        before = records.newest.get(name)
        is_put_back = before is not None and records.is_put_back(name)
        fit = partial(
            fit_curve,
            name,
            self._settings,
            statistics,
            before,
            reason=self._task.reason,
            epoch=before.epoch + 1 if before and is_put_back else None,
            on_progress=self._thread.take,
            online=LearnedOnline(self._settings, lambda: records.learned),
        )
        return await self._beside(asyncio.to_thread(self._made, fit))

    async def _statistics(self) -> Statistics:
        log.info(
            "event=training model=%s reason=%s", self._task.name, self._task.reason
        )
        await self._own.write([self._status(UNDER_WAY, self._thread.said)])
        return await self._beside(built_of(self._pairs(STATISTICS), Statistics))

    @property
    def _is_curve(self) -> bool:
        return self._task.name in self._settings.curves

    def _made(self, make: Callable[[], T]) -> T:
        try:
            with telling_of_compilation(self._thread.compile):
                return make()
        except StopIteration as error:
            # No future takes it: who waits for it would do so for ever.
            raise _failed(error) from error

    def _pairs(self, topic: str) -> AsyncGenerator[list[Pair], None]:
        n_partitions = self._settings.kafka.partitions
        places = [self._cluster.place(topic, each) for each in range(n_partitions)]
        return whole_topic(self._cluster, places, self._thread.check)

    async def _beside(self, work: Awaitable[T]) -> T:
        """Do a part of it, and say now and then how far it is.

        Raises
        ------
        TrainingRefused
            Where it cannot be done.
        """
        working = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({working}, timeout=BEAT_S))[0]:
                await self._own.write([self._status(UNDER_WAY, self._thread.said)])
        except BaseException:  # stopped or not: no thread goes on that nobody reads
            self._thread.give_up()
            await asyncio.wait({working})
            raise
        try:
            return working.result()
        except (KafkaError, LogRefused, WriterFenced, Stopped, TrainingRefused):
            raise
        except Exception as error:
            # Whatever it is: a request that nobody answers is begun again for ever.
            raise _failed(error) from error

    async def _published(
        self, outcome: Outcome | CurveOutcome, before: ModelRecords
    ) -> Ending:
        """Write it, unless the model has another version by now."""
        snapshot, name = outcome.snapshot, self._task.name
        run = msgspec.structs.replace(outcome.run, request=self._task.request)
        now = await self._own.read(frozenset({name}), self._thread.check)
        was_at, is_at = (_newest_of(name, each) for each in (before, now))
        if was_at != is_at:
            raise TrainingRefused(
                f"a model must stay as it is while it is trained; {name!r} went from "
                f"{was_at} to {is_at} meanwhile: nothing was published"
            )
        if not self._is_curve:
            check_room(self._settings, now.deployments(), at_ms=run.created_ms)
        partitions = self._settings.kafka.partitions
        position = position_after(before.positions.get(name), run, partitions)
        told = _record("curve" if self._is_curve else "run", run.intervention, run)
        if len(told.key or b"") + len(told.value or b"") > LARGEST[TRAINING]:
            raise TrainingRefused(
                f"the record of a training must be at most {LARGEST[TRAINING]:,} "
                f"bytes; that of {name!r} takes {len(told.value or b''):,}: allow "
                "fewer epochs, or give features shorter names"
            )
        self._thread.check()
        log.info("event=intervention name=%s counted=%d", run.intervention, run.version)
        outputs, said = brought_out(
            self._settings, now, snapshot, run, f"train {self._by}"
        )
        return await self._end(
            DONE,
            [
                *outputs,
                told,
                _record("position", name, position),
                self._status(DONE, f"{run.intervention} {said}"),
            ],
        )

    async def _refused(
        self, records: ModelRecords, why: str, cause: BaseException | None
    ) -> Ending:
        """Say why nothing was published; a request is answered by that."""
        name, reason, request = self._task
        known = records.positions.get(name) or NOWHERE
        refusal = Refusal(
            SCHEMA, why[:LONGEST], _now_ms(), reason, request, known.intervention
        )
        written = [_record("refusal", name, refusal), self._status(REFUSED, why)]
        if request:
            answered = msgspec.structs.replace(known, request=request)
            written.append(_record("position", name, answered))
        ending = await self._end(REFUSED, written)
        return ending._replace(why=why, cause=cause)

    async def _end(self, state: str, written: list[Output]) -> Ending:
        await self._own.write(written)
        return Ending(state, written)

    def _status(self, state: str, said: str) -> Output:
        request = self._task.request
        status = Status(SCHEMA, state, said[:LONGEST], _now_ms(), request, self._by)
        return _record("status", self._task.name, status)


def _failed(error: Exception) -> TrainingFailed:
    said = f": {error}" if str(error) else ""
    return TrainingFailed(
        f"a training must end without an error; got {type(error).__name__}{said}; "
        "the log of the role `train` says where: mend that"
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _record(kind: str, name: str, record: Record) -> Output:
    return Output(TRAINING, 0, training_key(kind, name), encode_record(record))


def _newest_of(name: str, records: ModelRecords) -> Pointer | None:
    newest = records.newest.get(name)
    return None if newest is None else pointer_of(newest)


def _curve_for(
    settings: Settings, name: str, records: ModelRecords
) -> dict[str, KnownCurve]:
    """The newest curve that a model takes, where there is one."""
    named = settings.curve_for(settings.models[name])
    found = records.newest.get(named)
    if found is None:
        return {}
    return {"curve": as_credited(name, settings, published_curve(found))}


def _parent_of(name: str, records: ModelRecords) -> Snapshot:
    parent = records.newest.get(name)
    if parent is None:
        raise TrainingRefused(
            f"a model must have a version to begin from; {name!r} has none in "
            f"{SNAPSHOTS}: start the role `learn`, which publishes version 0"
        )
    return parent
