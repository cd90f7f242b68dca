"""Users, two rankers and a client that draws lists by a logging policy, for tests."""

from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.interleaving.logging_policy_credit import LoggingPolicy
from models.interleaving.method import NO_ONE, Shown
from models.logging_policy.compared_query import ComparedQuery, compared_query
from models.logging_policy.second_moment import second_moment
from rankstream.experiments import Running
from rankstream.logging_lists import LoggingLists
from rankstream.ranker import Ranker
from rankstream.ranking.logging_policy import EXTRAS
from rankstream.wire.topics import CLICKS, QUERIES
from streams.native.placing import placements_of_scores

N_QUERIES, N_ITEMS, LENGTH = 12, 8, 3
THETA = (1.0, 0.5, 0.25)
N_FEATURES = 2
ITEMS = [f"d{item}" for item in range(N_ITEMS)]
STEP_MS = 20
SESSION = 2
"""Lists of one."""

MODEL = f"""
[models.lists]
features = {N_FEATURES + len(EXTRAS)}
versions = "trained"
kind = "neural"
hidden = [8]
normalisation = "none"
[models.lists.training]
loss = "logging-policy"
cutoff = {LENGTH}
examination = {list(THETA)}
epochs = 20
learning_rate = 0.05
least_support = 1.0
most_unsupported = 1.0
after = [600, 1_500]
"""
EXPERIMENT = f"""
[experiments.boost]
method = "logging-policy"
rankers = {{ a = "", b = "" }}
length = {LENGTH}
planned_impressions = 1_000
[experiments.boost.options]
examination = {list(THETA)}
model = "lists"
[experiments.boost.also]
"all:logging-policy" = {{ groups = 0 }}
"""


class Sink(Protocol):
    """Takes events."""

    def send(self, topic: str, value: bytes) -> object:
        """Take one."""


@cache
def lists_of(query: int) -> dict[str, list[str]]:
    """Both rankers' own lists: they agree on what comes first, and on little else."""
    rng = np.random.default_rng((5, query))
    first = rng.permutation(N_ITEMS)
    second = np.concatenate([first[:1], rng.permutation(first[1:])])
    return {"a": [ITEMS[d] for d in first[:5]], "b": [ITEMS[d] for d in second[:5]]}


@cache
def ranked(query: int) -> list[str]:
    """All that either returned, in sorted order."""
    return sorted({item for row in lists_of(query).values() for item in row})


@cache
def likes_of(query: int) -> Floats:
    """P(click | looked at) of `ranked` items: few are clicked much."""
    found = np.random.default_rng((6, query)).beta(0.4, 1.6, len(ranked(query)))
    return np.asarray(found)


@cache
def features_of(query: int) -> Floats:
    """Of `ranked` items: what users like, with noise, and nothing."""
    rng = np.random.default_rng((7, query))
    likes = likes_of(query)
    return np.stack([likes + 0.1 * rng.random(len(likes)), rng.random(len(likes))], 1)


@cache
def query_of(number: int) -> ComparedQuery:
    """The query as its variance depends on it."""
    row_of = {item: row for row, item in enumerate(ranked(number))}
    rankings = np.array([[row_of[x] for x in row] for row in lists_of(number).values()])
    return compared_query(rankings, likes_of(number), np.array(THETA))


class LoggingShop:
    """Shows lists and clicks them, and credits each by itself.

    Parameters
    ----------
    credits : [n_lists]
        What each list says of a less b, by the scores that were drawn by.
    scores
        By query, of the newest policy.
    """

    def __init__(self, running: Running, ranker: Ranker, sink: Sink) -> None:
        self._running, self._ranker, self._sink = running, ranker, sink
        self._lists = LoggingLists(ranker)
        self._method = LoggingPolicy(examination=THETA, length=LENGTH)
        self.credits: list[float] = []
        self.versions: list[int] = []
        self.scores: dict[int, Floats] = {}

    def show(self, n: int, begin_ms: int) -> None:
        """So many lists more, of the queries in turn."""
        self._ranker.refresh()
        for number in range(len(self.credits), len(self.credits) + n):
            self._show(number, begin_ms + STEP_MS * number)

    def _show(self, number: int, at_ms: int) -> None:
        query, rng = number % N_QUERIES, np.random.default_rng((8, number))
        listed = self._lists.draw(
            self._running, lists_of(query), features_of(query), query_id=f"q{query}",
            session=f"s{number // SESSION}", impression_id=f"i{number}",
        )  # fmt: skip
        event = self._lists.query_event(self._running, listed, at_ms=at_ms)
        self._sink.send(QUERIES, event)
        row_of = {item: row for row, item in enumerate(listed.items)}
        rows = np.array([row_of[item] for item in listed.drawn.shown])
        clicks = rng.random(LENGTH) < likes_of(query)[rows] * THETA
        for place in np.flatnonzero(clicks).tolist():
            click = Ranker.click_event(
                f"i{number}", query_id=f"q{query}", at_ms=at_ms + 1, position=place + 1
            )
            self._sink.send(CLICKS, click)
        self._credit(query, listed.drawn.scores or {}, rows, clicks)
        self.versions.append(listed.ranking.version)

    def _credit(
        self, query: int, scores: dict[str, float], rows: Integers, clicks: Flags
    ) -> None:
        by_row = np.array([scores[item] for item in ranked(query)])
        rankings = np.array(
            [[ranked(query).index(x) for x in row] for row in lists_of(query).values()]
        )
        method = self._method.under(by_row, placements_of_scores)
        found = method.infer(Shown(rankings, rows, NO_ONE), clicks)
        self.credits.append(float(found[0, 1]))
        self.scores[query] = by_row

    def mean_square(self) -> float:
        """E[x^2] of a list by the newest scores, exactly, over all queries."""
        each = [second_moment(self.scores[q], query_of(q)) for q in range(N_QUERIES)]
        return float(np.mean([found.value for found in each]))


def uniform_mean_square() -> float:
    """The same of uniformly random lists."""
    queries = [query_of(q) for q in range(N_QUERIES)]
    values = [second_moment(np.zeros(len(q.relevance)), q).value for q in queries]
    return float(np.mean(values))


def split_mean_square() -> float:
    """The same of A/B's lists, half of which are either ranker's, by propensities."""
    total = 0.0
    for number in range(N_QUERIES):
        query, items = query_of(number), ranked(number)
        looked = np.zeros((2, len(items)))
        for row, own in zip(looked, lists_of(number).values(), strict=True):
            row[[items.index(item) for item in own[:LENGTH]]] = THETA
        rho = looked.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(rho > 0.0, query.differences / rho, 0.0)
        for row in looked:
            gains = query.relevance * row * ratios
            single = (query.relevance * row * ratios**2).sum()
            total += 0.5 * (single + gains.sum() ** 2 - (gains**2).sum())
    return total / N_QUERIES


def true_difference() -> float:
    """Clicks per list of a less those of b, exactly."""
    return float(np.mean([query_of(number).difference for number in range(N_QUERIES)]))


class Users(NamedTuple):
    """Users of one query, who look and like the same whatever list they are shown.

    `looks` [n, LENGTH] are uniform, as are `likes` [n, n_items]; `keys` [n, n_items]
    draw their lists, and `sides` [n] the ranker whose list A/B shows.
    """

    looks: Floats
    likes: Floats
    keys: Floats
    sides: Integers

    @classmethod
    def of(cls, number: int, n: int) -> "Users":
        """So many of a query."""
        rng, n_items = np.random.default_rng((9, number)), len(ranked(number))
        return cls(
            rng.random((n, LENGTH)),
            rng.random((n, n_items)),
            rng.gumbel(size=(n, n_items)),
            rng.integers(0, 2, n),
        )

    def says(self, number: int, rows: Integers, rho: Floats) -> Floats:
        """What each list says of a less b; rows [n, LENGTH] were shown, by rho."""
        has_looked = self.looks < np.array(THETA)
        has_liked = self.likes < likes_of(number)
        clicks = has_looked & np.take_along_axis(has_liked, rows, axis=1)
        gains = query_of(number).differences / np.maximum(rho, 1e-300)
        return np.asarray((gains[rows] * clicks).sum(axis=1))


def squared_errors(scores: dict[int, Floats], n: int) -> dict[str, Floats]:
    """(x - difference)^2 of lists of three policies for the same users.

    Parameters
    ----------
    scores
        By query, of the logging policy.
    n
        Users of each query.

    Returns
    -------
    dict
        By policy, [n * N_QUERIES], in the same order.
    """
    found: dict[str, list[Floats]] = {"logging": [], "uniform": [], "ab": []}
    for number in range(N_QUERIES):
        users, items = Users.of(number, n), ranked(number)
        drawn = {"logging": scores[number], "uniform": np.zeros(len(items))}
        for name, by in drawn.items():
            rows = np.argsort(-(by + users.keys), axis=1)[:, :LENGTH]
            rho = placements_of_scores(by[None, :], LENGTH)[0] @ np.array(THETA)
            found[name].append(users.says(number, rows, rho))
        own = np.array(
            [
                [items.index(x) for x in row[:LENGTH]]
                for row in lists_of(number).values()
            ]
        )
        rho = np.zeros(len(items))
        for row in own:
            rho[row] += 0.5 * np.array(THETA)
        found["ab"].append(users.says(number, own[users.sides], rho))
    truth = true_difference()
    return {k: (np.concatenate(each) - truth) ** 2 for k, each in found.items()}


def is_below(errors: Floats, others: Floats) -> bool:
    """By two standard errors of the difference, user by user."""
    gaps = errors - others
    return bool(gaps.mean() + 2.0 * gaps.std(ddof=1) / np.sqrt(len(gaps)) < 0.0)
