"""Whether what a run leaves to be trained from is enough, whenever it is read."""

import json
import tomllib

import pytest

from models.estimators.splits import split_groups
from rankstream.wire.routing import normalised_query
from rankstream.wire.topics import QUERIES
from tests.fire.events import KEEP_MS, WINDOW_MS, Events
from tests.fire.lists import TRAINED
from tests.fire.training import FIRST, trained_config

N_EVENTS, RATE, START_MS = 3_500, 280.0, 10 * KEEP_MS


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_some_lists_that_live_are_of_queries_held_out(seed: int) -> None:
    """In the shortest run, at each watermark from which on a training may be due."""
    events = Events(seed, START_MS, 2 * START_MS, N_EVENTS, 4, rate=RATE)
    sent = [one.value for one in events if one.topic == QUERIES and one.expect is None]
    lists = [
        (one["at_ms"], normalised_query(one["query_id"]), "candidate_features" in one)
        for one in (json.loads(value) for value in sent if value)
        if one.get("intervention") == TRAINED
    ]
    training = tomllib.loads(trained_config(N_EVENTS))["models"][TRAINED]["training"]
    splits = split_groups(8)._replace(held_out=training["held_out"])
    first_ms, last_ms = lists[FIRST][0] + WINDOW_MS, lists[-1][0]
    n_of_them = []
    for now_ms in range(first_ms, last_ms, 20_000):
        living = [
            (query, has_features)
            for at_ms, query, has_features in lists
            if at_ms + WINDOW_MS <= now_ms and at_ms // KEEP_MS >= now_ms // KEEP_MS - 1
        ]
        known = {query for query, has_features in living if has_features}
        held_out = [q for q, _ in living if q in known and splits.is_held_out(q)]
        n_of_them.append(len(held_out))
    assert len(n_of_them) > 10
    assert min(n_of_them) > 2, n_of_them
