"""Lists of a logging policy where they are served: floor, features, and events."""

import base64
import json

import numpy as np
import pytest

from models.plackett_luce.placement import placement_probabilities
from rankstream.experiments import Running
from rankstream.logging_lists import LoggingLists
from rankstream.ranker import Ranker
from rankstream.ranking.logging_policy import (
    EXTRAS,
    LoggingOptions,
    differences_of,
    floored,
    policy_features,
)
from rankstream.settings import ExperimentSettings

OPTIONS = {"examination": [1.0, 0.5], "model": "lists"}
LISTS = {"a": ["x", "y", "z"], "b": ["z", "x", "w"]}
BOOST = ExperimentSettings(
    rankers={"a": "", "b": ""}, method="logging-policy", length=2, options=OPTIONS
)
RUNNING = Running("boost", BOOST)


def test_differences_are_of_what_is_looked_at() -> None:
    """Of w, x, y, z: nobody looks at w, which stands below the list."""
    found = differences_of(LISTS, [1.0, 0.5], 2)

    assert found.tolist() == [0.0, 0.5, 0.5, -1.0]


def test_a_policy_sees_features_then_differences_and_ranks() -> None:
    """What a ranker did not return stands below all that it did."""
    found = policy_features(np.arange(4.0)[:, None], LISTS, [1.0, 0.5], 2)

    assert found.shape == (4, 1 + len(EXTRAS))
    assert found[3].tolist() == [3.0, -1.0, 1.0, 1.0, 0.0, 0.0, np.float32(2 / 3), 0.0]
    assert found[0, 4:].tolist() == [1.0, 0.0, 1.0, np.float32(2 / 3)]


@pytest.mark.parametrize("spread", [0.1, 3.0, 300.0])
def test_what_rankers_differ_in_comes_first_often_enough(spread: float) -> None:
    """Exactly at the floor where it is raised; the others keep their ratios."""
    rng = np.random.default_rng(int(spread))
    for _ in range(50):
        n = int(rng.integers(1, 12))
        differences = rng.choice([0.0, 0.5, -0.5], n)
        scores = spread * rng.normal(size=n)
        least = float(rng.uniform(0.0, 1.0)) / n
        found = floored(scores, differences, least)
        first = placement_probabilities(found.astype(np.float64), 1)[:, 0]
        kept = np.flatnonzero((first > least * 1.001) & (first > 1e-6))

        assert (first[differences != 0.0] >= least * (1.0 - 1e-5)).all()
        if len(kept) > 1:
            moved = found[kept] - scores[kept]
            assert np.ptp(moved) < 1e-4 * max(spread, 1.0)


def test_enough_is_left_as_it_is() -> None:
    """But for a constant, which changes no list."""
    scores = np.array([0.3, 0.0, -0.2])
    found = floored(scores, np.ones(3), 0.01)

    assert np.ptp(found - scores) < 1e-6


def test_the_event_says_what_was_drawn_by() -> None:
    """To the last bit, in the order of candidates; so it can be drawn again."""
    scores = {"w": 0.1, "x": 0.2, "y": -3.0, "z": 1.0}
    drawn = RUNNING.combine(LISTS, query_id="q", impression_id="i", scores=scores)
    again = RUNNING.combine(LISTS, query_id="q", impression_id="i", scores=scores)
    event = json.loads(
        RUNNING.query_event(drawn, at_ms=1, candidates=["z", "y", "x", "w"])
    )
    logged = np.frombuffer(base64.b64decode(event["scores"]), "<f4")

    assert drawn == again
    assert event["policy"] == "plackett-luce"
    assert logged.tolist() == [np.float32(scores[item]) for item in "zyxw"]
    assert [drawn.scores[item] for item in "zyxw"] == logged.tolist()  # type: ignore[index]
    assert sorted(RUNNING.page(drawn, 2)) == sorted(set(scores) - set(drawn.shown))


def test_what_does_not_fit_is_refused() -> None:
    """Scores of others, or none where they are; candidates that cannot be drawn."""
    with pytest.raises(ValueError, match="scores must be finite, one of each"):
        RUNNING.combine(LISTS, query_id="q", scores={"x": 1.0})
    with pytest.raises(ValueError, match="scores must be finite, one of each"):
        RUNNING.combine(LISTS, query_id="q", scores=dict.fromkeys("wxyz", np.inf))
    drawn = RUNNING.combine(LISTS, query_id="q")
    with pytest.raises(ValueError, match="candidates must be the ranked items"):
        RUNNING.query_event(drawn, at_ms=1, candidates=[*"wxyz", "other"])
    other = Running("x", ExperimentSettings(rankers={"a": "", "b": ""}))
    with pytest.raises(ValueError, match="scores must be left out"):
        other.combine(LISTS, query_id="q", scores=dict.fromkeys("wxyz", 0.0))
    lists = LoggingLists(Ranker("another", source=lambda: None))
    with pytest.raises(ValueError, match="ranker must be of 'lists'"):
        lists.draw(RUNNING, LISTS, np.zeros((4, 0)), query_id="q")
    lists = LoggingLists(Ranker("lists", source=lambda: None))
    with pytest.raises(ValueError, match="features must have a row"):
        lists.draw(RUNNING, LISTS, np.zeros((3, 0)), query_id="q")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "examination"),
        ({"examination": []}, "examination must be numbers above 0"),
        ({"examination": [1.0]}, "a number for each rank of lists of 2; got 1"),
        ({**OPTIONS, "floor": 0.3}, "at most 0.25, which some policy meets"),
        ({**OPTIONS, "floor": 0.0}, "floor must be above 0"),
        ({**OPTIONS, "other": 1}, "other"),
        ({**OPTIONS, "groups": 4}, "groups must be 0, or more than"),
    ],
)
def test_useless_options_are_refused(options: dict, said: str) -> None:
    """By name, with what may be."""
    with pytest.raises(ValueError, match=said):
        LoggingOptions.of(
            ExperimentSettings(
                rankers={}, method="logging-policy", length=2, options=options
            )
        )
