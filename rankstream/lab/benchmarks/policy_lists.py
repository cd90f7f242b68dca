"""What a list of a logging policy takes a service, beside one of a team draft.

Both rank the same candidates with both compared rankers, as a service does that holds
them, and log the list; in turns, by the least times, as whatever else runs only adds.
"""

from collections.abc import Callable
from functools import partial
from itertools import count

import numpy as np

from rankstream.experiments import Running
from rankstream.lab.benchmarks.harness import (
    NO_BOUNDS,
    Figure,
    alone_figure,
    least_microseconds,
)
from rankstream.logging_lists import LoggingLists
from rankstream.ranker import Ranker
from rankstream.ranking.logging_policy import EXTRAS
from rankstream.settings import ExperimentSettings
from rankstream.snapshots import Snapshot, encode_snapshot, features_hash
from rankstream.wire.envelope import n_weights

N_ITEMS, LENGTH, N_FEATURES = 20, 10, 46
HIDDEN = [32, 32]
RANKERS = {"new": "new", "old": "old"}
MOST_TIMES = (3.0, 3.0)
TIMES = 500

Lists = Callable[[], dict[str, list[str]]]
"""Gives both rankers' own lists."""


def measure_lists(*, quick: bool = False) -> list[Figure]:
    """How many times as long as a plain list, and both in microseconds."""
    rng, numbers = np.random.default_rng(4), count()
    features = rng.random((N_ITEMS, N_FEATURES))
    items = [f"item{row:02}" for row in range(N_ITEMS)]
    rankers = {name: ranker_of(name, [], rng) for name in RANKERS}
    policies = LoggingLists(ranker_of("lists", HIDDEN, rng))
    theta = (1.0 / np.arange(1.0, LENGTH + 1.0)).tolist()
    options = {"examination": theta, "model": "lists"}
    plain = Running("x", ExperimentSettings(rankers=RANKERS, method="team-draft"))
    drawn_by_policy = Running(
        "x",
        ExperimentSettings(rankers=RANKERS, method="logging-policy", options=options),
    )

    def rankings() -> dict[str, list[str]]:
        return {
            name: [
                items[row]
                for row in ranker.rank(
                    features, cutoff=N_ITEMS, policy="deterministic"
                ).order
            ]
            for name, ranker in rankers.items()
        }

    def ours(lists: Lists) -> None:
        listed = policies.draw(
            drawn_by_policy, lists(), features, query_id="q",
            impression_id=f"i{next(numbers)}",
        )  # fmt: skip
        policies.query_event(drawn_by_policy, listed, at_ms=1)

    def team_draft(lists: Lists) -> None:
        drawn = plain.combine(lists(), query_id="q", impression_id=f"i{next(numbers)}")
        plain.query_event(drawn, at_ms=1, candidates=items)

    figures, given = [], rankings()
    for what, lists, bounds in (
        ("both rankers included", rankings, MOST_TIMES),
        ("without the rankers", lambda: given, NO_BOUNDS),
    ):
        mine, theirs = least_microseconds(
            partial(ours, lists), partial(team_draft, lists), 2 if quick else TIMES
        )
        name = f"a list of a logging policy, {N_ITEMS} items, {what}"
        figures += [
            alone_figure(name, mine / theirs, "x a team draft", bounds),
            alone_figure(name, mine, "us"),
            alone_figure("the same of a team draft", theirs, "us"),
        ]
    return figures


def ranker_of(model: str, hidden: list[int], rng: np.random.Generator) -> Ranker:
    """A ranker with weights that were drawn; a network is one of policies."""
    n_features = N_FEATURES + (len(EXTRAS) if hidden else 0)
    weights = rng.normal(size=n_weights(n_features, hidden)) / 10.0
    envelope = encode_snapshot(
        Snapshot(
            model, 0, 1, 0, 1, "neural" if hidden else "linear", hidden, "none",
            n_features, features_hash(n_features), [(0, 1)], 1,
            weights.astype("<f4").tobytes(),
        )
    )  # fmt: skip
    ranker = Ranker(model, source=lambda: envelope)
    ranker.load()
    return ranker
