"""Logs of simulated users: their curve is known, and found again."""

from typing import Any

import numpy as np
import pytest

import rankstream
from producers.formats.letor import generated_queries

N_LISTS = 6_000


def simulated(seed: int = 1, **named: Any) -> rankstream.Log:
    """A small log, without saying how far it is."""
    data = generated_queries(
        n_queries=20, n_documents=8, n_features=4, rng=np.random.default_rng(9)
    )
    options: dict[str, Any] = {"lists": N_LISTS, "cutoff": 5, **named}
    return rankstream.simulate(data, seed=seed, progress=False, **options)


@pytest.fixture(scope="module")
def log() -> rankstream.Log:
    """Of users who look at rank r with probability 1 / r."""
    return simulated()


def test_the_curve_of_the_users_is_found(log: rankstream.Log) -> None:
    """Within its intervals, at all ranks but perhaps one."""
    assert log.outcomes["impressions applied"] == N_LISTS
    inside = [row.alpha_low <= 1.0 / row.rank <= row.alpha_high for row in log.bias()]
    assert len(inside) == 5
    assert sum(inside) >= 4


def test_the_same_seed_gives_the_same_log(log: rankstream.Log) -> None:
    """To the byte; another one another."""
    same, other = simulated(), simulated(seed=2)
    recorded = log.counted.recorded
    assert same.counted.recorded == recorded
    assert other.counted.recorded.statistics != recorded.statistics


def test_a_ranker_may_show_its_lists(log: rankstream.Log) -> None:
    """Under its own name, and users click more on them."""
    ranker = log.train(name="learned")
    shown = simulated(ranker=ranker, policy="deterministic")
    names = {scope.intervention for scope in shown.counted.source.statistics.scopes()}
    assert names == {ranker.snapshot_.intervention}
    assert shown.counted.n_clicks > log.counted.n_clicks


def test_the_queries_of_a_log_can_be_searched_again(log: rankstream.Log) -> None:
    """By users who like what those of the log liked."""
    again = log.simulate("trust_bias", lists=200, cutoff=3, seed=4)
    assert {*again.counted.queries} <= {*log.counted.queries}
    assert again.outcomes["impressions applied"] == 200
    with pytest.raises(ValueError, match="did you mean cutoff"):
        log.simulate(cutof=3)


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"users": "perfekt"}, "did you mean perfect"),
        ({"lists": 0}, "lists and cutoff must be 1 or more"),
        ({"policy": "greedy"}, "policy must be one of"),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    named: dict[str, Any], reason: str
) -> None:
    """Before any list is shown."""
    with pytest.raises(ValueError, match=reason):
        simulated(**named)
