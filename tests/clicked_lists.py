"""Lists by a ranker, and clicks by a planted relevance: what a training finds again."""

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankstream.experiments import Running
from rankstream.ranker import Ranker
from rankstream.wire.topics import CLICKS, QUERIES

N_FEATURES, N_ITEMS, CUTOFF = 3, 6, 5
N_QUERIES = 40
ITEMS = [f"d{item}" for item in range(N_ITEMS)]
EXAMINATION = (1.0, 0.7, 0.5, 0.35, 0.25)
TASTE = np.array([2.5, -1.5, 0.0])
"""How much users like each feature, around its middle."""


class Sink(Protocol):
    """Takes events."""

    def send(self, topic: str, value: bytes) -> object:
        """Take one."""


class Shown(NamedTuple):
    """How many lists were shown so far, and when the last one was."""

    n_lists: int
    at_ms: int


def features_of(query: int) -> NDArray[np.float64]:
    """Features of all items of a query, the same each time."""
    return np.random.default_rng((7, query)).random((N_ITEMS, N_FEATURES))


def relevance_of(query: int) -> NDArray[np.float64]:
    """The probability that a user who looks at an item clicks it."""
    utility: NDArray[np.float64] = (features_of(query) - 0.5) @ TASTE
    return 1.0 / (1.0 + np.exp(-utility))


def show(  # noqa: PLR0913  all that lists follow from
    sink: Sink,
    ranker: Ranker,
    shown: Shown,
    n_lists: int,
    *,
    n_queries: int = N_QUERIES,
    step_ms: int = 20,
    features: Callable[[int], NDArray[np.float64]] = features_of,
) -> Shown:
    """So many lists more, each of the next query, of sessions of three lists."""
    rng = np.random.default_rng((11, shown.n_lists))
    at_ms = shown.at_ms
    for number in range(shown.n_lists, shown.n_lists + n_lists):
        at_ms += step_ms
        query, session = number % n_queries, f"s{number // 3}"
        ranking = ranker.rank(
            features(query),
            cutoff=CUTOFF,
            seed=int(rng.integers(2**63)),
            session=session,
        )
        event = ranker.query_event(
            ranking,
            query_id=f"q{query}",
            items=ITEMS,
            at_ms=at_ms,
            impression_id=f"i{number}",
            session=session,
        )
        sink.send(QUERIES, event)
        likes = relevance_of(query)[ranking.order] * EXAMINATION
        for row in np.flatnonzero(rng.random(CUTOFF) < likes).tolist():
            click = ranker.click_event(
                f"i{number}", query_id=f"q{query}", position=row + 1, at_ms=at_ms + 1
            )
            sink.send(CLICKS, click)
    return Shown(shown.n_lists + n_lists, at_ms)


def show_compared(
    sink: Sink, running: Running, rankers: Mapping[str, Ranker], shown: Shown,
    n_lists: int,
) -> None:  # fmt: skip
    """So many lists of an experiment, each of a session of its own, and their clicks.

    They are numbered, and timed, from behind what was shown so far.
    """
    rng = np.random.default_rng((13, shown.n_lists))
    for number in range(shown.n_lists, shown.n_lists + n_lists):
        at_ms = shown.at_ms + 20 * (number - shown.n_lists + 1)
        query = number % N_QUERIES
        rankings = {}
        for ranker_name, ranker in rankers.items():
            ranking = ranker.rank(features_of(query), policy="deterministic")
            rankings[ranker_name] = [ITEMS[row] for row in ranking.order]
        name = Ranker.impression_id(f"i{number}", f"q{query}")
        drawn = running.combine(rankings, query_id=f"q{query}", impression_id=name)
        event = running.query_event(
            drawn, at_ms=at_ms, session=f"s{number}", candidates=ITEMS
        )
        sink.send(QUERIES, event)
        likes = dict(zip(ITEMS, relevance_of(query), strict=True))
        for place, item in enumerate(drawn.shown, 1):
            if rng.random() < likes[item] * EXAMINATION[place - 1]:
                click = Ranker.click_event(name, at_ms=at_ms + 5, position=place)
                sink.send(CLICKS, click)
