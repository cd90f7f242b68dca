"""One valuation of what is served: read whole, valued beside the loop, written."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from rankstream.settings import Settings
from rankstream.wire.models.model_evaluations import ModelValues, encode_values
from rankstream.wire.topics import EVALUATIONS
from streams.estimation.served_curves import ServedCurves
from streams.estimation.served_values import Served, values_of
from streams.kafka.clients import Cluster
from streams.kafka.logged_lists import LoggedLists, logged_lists
from streams.kafka.sent_record import send_record
from streams.kafka.training.background_thread import BackgroundThread
from streams.training.inputs import Inputs

VALUES = b"/values"
"""How keys of values end; they begin with the model."""

LOOK_S = 0.5
"""How often it is looked whether it is to give way."""

T = TypeVar("T")

log = logging.getLogger("rankstream.trainer")


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

    async def read(self, served: Sequence[Served]) -> LoggedLists:
        """Statistics, and features of all candidates that these versions rank by."""
        wanted = {each.newest.features_hash: each.newest.n_features for each in served}
        check = self._thread.check
        reading = logged_lists(self._settings, self._cluster, wanted, check)
        return await self._beside(reading)

    async def write(
        self, served: Served, lists: LoggedLists, curves: ServedCurves
    ) -> bool:
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
