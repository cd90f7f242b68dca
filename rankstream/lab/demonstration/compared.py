"""Lists on which users compare what is learned with the ranker before it."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from producers.formats.letor import LetorData
from producers.simulation import CLICK_MS, Sink, Users
from rankstream.experiments import Running
from rankstream.ranker import Ranker
from rankstream.settings import ExperimentSettings
from rankstream.wire.topics import CLICKS, QUERIES

EXPERIMENT = "learned-or-production"

LEARNED, PRODUCTION = "learned", "production"

COMPARISON = ExperimentSettings(
    rankers={LEARNED: "", PRODUCTION: ""}, method="team-draft"
)

LISTS_OF_A_SESSION = 4

Orders = Mapping[str, Sequence[int]]
"""Rows of a query by ranker, the best one first."""


class ComparedLists:
    """Shows lists of both rankers, interleaved, and sends what users do.

    Parameters
    ----------
    queries
        What is asked.
    rng
        Of queries and clicks; lists are drawn by the experiment.
    """

    def __init__(
        self, queries: LetorData, users: Users, sink: Sink, rng: np.random.Generator
    ) -> None:
        self._queries, self._users, self._sink = queries, users, sink
        self._running = Running(EXPERIMENT, COMPARISON)
        self._rng = rng
        self._n = 0

    def show(self, orders_of: Callable[[int], Orders], at_ms: int) -> None:
        """Show a list for a query, and send it with its clicks.

        Parameters
        ----------
        orders_of
            Gives the rankers' own lists for the number of a query.
        """
        query = int(self._rng.integers(len(self._queries.query_ids)))
        orders = orders_of(query)
        name = self._queries.query_ids[query]
        start, end = self._queries.offsets[query : query + 2].tolist()
        items = [f"{name}/{row}" for row in range(end - start)]
        rows = {item: start + row for row, item in enumerate(items)}
        rankings = {
            ranker: [items[row] for row in order] for ranker, order in orders.items()
        }
        impression_id = Ranker.impression_id(f"compared-{self._n}", name)
        drawn = self._running.combine(
            rankings, query_id=name, impression_id=impression_id
        )
        session = f"session {self._n // LISTS_OF_A_SESSION}"
        event = self._running.query_event(
            drawn, at_ms=at_ms, session=session, candidates=items
        )
        self._sink.send(QUERIES, event)
        labels = self._queries.labels[[rows[item] for item in drawn.shown]]
        clicked = self._users.sample_clicks(labels, rng=self._rng)
        for rank in (np.flatnonzero(clicked) + 1).tolist():
            click = Ranker.click_event(
                impression_id,
                query_id=name,
                position=rank,
                at_ms=at_ms + CLICK_MS * rank,
            )
            self._sink.send(CLICKS, click)
        self._n += 1
