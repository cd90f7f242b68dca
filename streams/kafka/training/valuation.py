"""One valuation of what is served: read whole, valued beside the loop, written."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from rankstream.settings import Settings
from rankstream.wire.model_evaluations import ModelValues, encode_values
from rankstream.wire.topics import (
    CANDIDATES,
    EVALUATIONS,
    STATISTICS,
)
from streams.estimation.served_curves import ServedCurves
from streams.estimation.served_values import Served, values_of
from streams.kafka.clients import Cluster
from streams.kafka.sent_record import send_record
from streams.kafka.state.whole_topics import Pair, built_of, whole_topic
from streams.kafka.training.background_thread import BackgroundThread
from streams.statistics.reader import Statistics
from streams.training.feature_records import HELD_BYTES, FeatureRecords
from streams.training.inputs import Inputs

VALUES = b"/values"
"""How keys of values end; they begin with the model."""

LOOK_S = 0.5
"""How often it is looked whether it is to give way."""

T = TypeVar("T")

log = logging.getLogger("rankstream.trainer")


class Lists(NamedTuple):
    """What the log has: statistics, and features by the hash of their list."""

    statistics: Statistics
    features: dict[bytes, FeatureRecords]


class Valuation:
    """Reads the log once, and values models one after another.

    Parameters
    ----------
    cluster
        Where to read and write.
    thread
        How it is told to give up.
    gives_way
        Whether something goes first.
    """

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster,
        thread: BackgroundThread,
        gives_way: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._thread = thread
        self._gives_way = gives_way

    async def read(self, served: Sequence[Served]) -> Lists:
        """Statistics, and features of all candidates that these versions rank by."""
        statistics = await self._beside(built_of(self._pairs(STATISTICS), Statistics))
        wanted = {each.newest.features_hash: each.newest.n_features for each in served}

        def features(records: Iterator[Pair]) -> dict[bytes, FeatureRecords]:
            n_partitions = self._settings.kafka.partitions
            held_bytes = HELD_BYTES // len(wanted)
            found = {
                name: FeatureRecords(
                    (), name, n, n_partitions=n_partitions, held_bytes=held_bytes
                )
                for name, n in wanted.items()
            }
            for record in records:
                for each in found.values():
                    each.add(*record)
            return found

        reading = built_of(self._pairs(CANDIDATES), features)
        return Lists(statistics, await self._beside(reading))

    async def write(self, served: Served, lists: Lists, curves: ServedCurves) -> bool:
        """Value a model and write it; False where no features were logged of it."""
        features = lists.features[served.newest.features_hash]
        if not len(features):
            return False
        inputs, check = Inputs(lists.statistics, features), self._thread.check

        def valued() -> ModelValues:
            return values_of(served, inputs, curves.of(served.model), check)

        values = await self._beside(asyncio.to_thread(valued))
        key = served.model.encode() + VALUES
        await send_record(self._cluster, EVALUATIONS, key, encode_values(values))
        log.info("event=values model=%s lists=%d", values.model, values.lists)
        return True

    def _pairs(self, topic: str) -> AsyncGenerator[list[Pair], None]:
        n_partitions = self._settings.kafka.partitions
        places = [self._cluster.place(topic, each) for each in range(n_partitions)]
        return whole_topic(self._cluster, places, self._thread.check)

    async def _beside(self, work: Awaitable[T]) -> T:
        """Do a part of it, and give way meanwhile.

        Raises
        ------
        Stopped
            Where nobody waits for it, or something goes first.
        """
        working = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({working}, timeout=LOOK_S))[0]:
                if self._gives_way():
                    self._thread.give_up()
        except BaseException:  # no thread goes on that nobody reads
            self._thread.give_up()
            await asyncio.wait({working})
            raise
        return working.result()
