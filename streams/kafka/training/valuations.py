"""Values of what is served, again and again, while no training is due.

It stores nothing: values are a function of what is counted, so another worker that
values the same log writes the same.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from aiokafka.errors import KafkaError

from rankstream.settings import Settings, SettingsError
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    SnapshotError,
    StoreUnavailable,
    decode_at,
    pointer_of,
    store_of,
)
from streams.estimation.served_curves import ServedCurves
from streams.estimation.served_snapshots import ServedSnapshots
from streams.estimation.served_values import Served
from streams.kafka.clients import Cluster
from streams.kafka.training.background_thread import BackgroundThread, Stopped, Task
from streams.kafka.training.memory import MemoryLimit, give_back_free_pages
from streams.kafka.training.valuation import Valuation
from streams.statistics.keys import Counted
from streams.training.model_lists import LearnedOnline
from streams.training.retries import form_of

REST = 9.0
"""A valuation is followed by so many times its own duration without one."""

ALL = "all"
"""Names no model where what all of them need cannot be read."""

Load = Callable[[str, Pointer], Snapshot]
"""Gives a version of a model that `snapshots` has no more."""

log = logging.getLogger("rankstream.trainer")


class _State(NamedTuple):
    """What values of a model depend on; of equal states they are equal."""

    served: Pointer
    curves: tuple[tuple[str, Pointer], ...]
    counted: tuple[tuple[int, int, int], ...]


class Valuations:
    """Values the newest version of each model that logs its candidates.

    Beside it the version that a trained one came from, and what was logged.

    Parameters
    ----------
    cluster
        Where to read and write.
    load
        Gives versions from elsewhere, if not from Redis; may raise SnapshotError or
        StoreUnavailable.
    """

    def __init__(
        self, settings: Settings, cluster: Cluster, load: Load | None = None
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._load = load or _of_redis(settings)
        models = [name for name, x in settings.models.items() if x.logs_candidates]
        self._snapshots = ServedSnapshots(models)
        self._curves = ServedSnapshots([*settings.curves])
        self._valued: dict[str, _State] = {}
        self._refused: dict[str, str] = {}
        self._next_s = -1.0
        self._counts = {"values_written": 0, "values_refused": 0}

    def take_snapshot(self, key: bytes, value: bytes | None) -> None:
        """Take a record of `snapshots`."""
        self._snapshots.take(key, value)
        self._curves.take(key, value)

    def counters(self) -> dict[str, int]:
        """What happened so far."""
        return dict(self._counts)

    async def turn(
        self,
        stop: asyncio.Event,
        counted: Mapping[int, Counted],
        gives_way: Callable[[], bool],
    ) -> None:
        """Value what changed, if it is time.

        Parameters
        ----------
        counted
            What the statistics hold, by partition.
        gives_way
            Whether something goes first, meanwhile too.
        """
        every_s, began_s = self._settings.train.value_every_s, time.monotonic()
        if not every_s or began_s < self._next_s or stop.is_set() or gives_way():
            return
        changed = self._changed(counted)
        if not changed:
            return
        try:
            await self._value(changed, stop, gives_way)
        except Stopped:
            # It begins anew as soon as its share of the time allows.
            every_s = 0.0
        finally:
            ended_s = time.monotonic()
            rest_s = REST * (ended_s - began_s)
            self._next_s = max(began_s + every_s, ended_s + rest_s)
            give_back_free_pages()

    def _changed(self, counted: Mapping[int, Counted]) -> dict[str, _State]:
        """Models of which lists or versions were not valued yet."""
        known = tuple(
            (partition, sum(one.sources.values()), one.n_left)
            for partition, one in sorted(counted.items())
        )
        if not sum(n for _, n, _ in known):
            return {}
        curves = tuple(
            (name, pointer_of(x)) for name, x in sorted(self._curves.newest.items())
        )
        found = {
            name: _State(pointer_of(snapshot), curves, known)
            for name, snapshot in sorted(self._snapshots.newest.items())
        }
        return {name: x for name, x in found.items() if self._valued.get(name) != x}

    async def _value(
        self,
        changed: Mapping[str, _State],
        stop: asyncio.Event,
        gives_way: Callable[[], bool],
    ) -> None:
        memory = MemoryLimit(self._settings.train.memory_mb, "a valuation")
        thread = BackgroundThread(Task(", ".join(changed), "values"), stop, memory)
        valuation = Valuation(self._settings, self._cluster, thread, gives_way)
        try:
            served = [await self._served(name) for name in changed]
            lists = await valuation.read(served)
        except (KafkaError, Stopped):
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, trainings go on
            self._refuse(ALL, error)
            return
        self._refused.pop(ALL, None)
        newest = dict(self._curves.newest)
        learned = frozenset(self._snapshots.learned)
        online = LearnedOnline(self._settings, lambda: learned)
        curves = ServedCurves(
            self._settings, lists.statistics, newest, thread.check, online
        )
        for each in served:
            try:
                is_written = await valuation.write(each, lists, curves)
            except (KafkaError, Stopped):
                raise
            except Exception as error:  # noqa: BLE001  others are valued all the same
                self._refuse(each.model, error)
                continue
            self._counts["values_written"] += is_written
            self._valued[each.model] = changed[each.model]
            self._refused.pop(each.model, None)

    async def _served(self, name: str) -> Served:
        """What is to be valued of a model, as it is now."""
        snapshots, lacking = self._snapshots, {}
        at = snapshots.lacking_parent(name)
        if at is not None:
            try:
                snapshots.add_parent(await asyncio.to_thread(self._load, name, at))
            except (SnapshotError, StoreUnavailable, SettingsError) as error:
                lacking[f"{name}@{at}"] = str(error)
        learned = frozenset(snapshots.learned)
        return Served(
            snapshots.newest[name],
            snapshots.parent(name),
            lacking,
            LearnedOnline(self._settings, lambda: learned),
            dict(snapshots.fitted_on),
        )

    def _refuse(self, name: str, error: Exception) -> None:
        """Say why there are no values, once for each kind of reason."""
        self._counts["values_refused"] += 1
        if self._refused.get(name) != form_of(str(error)):
            self._refused[name] = form_of(str(error))
            log.warning(
                "event=values-refused model=%s reason=%s", name, error,
                exc_info=error,
            )  # fmt: skip


def _of_redis(settings: Settings) -> Load:
    """Versions that Redis keeps."""

    def load(model: str, at: Pointer) -> Snapshot:
        store = store_of(settings, retries=0)
        try:
            return decode_at(store.load(model, at) or b"", model, at)
        finally:
            store.close()

    return load
