"""Lists of a logging policy where they are served: floor, features, and events."""

import base64
import json

import msgspec
import numpy as np
import pytest

from rankstream.experiments import Running
from rankstream.logging_lists import LoggingLists, PolicyList
from rankstream.ranker import Ranker
from rankstream.ranking.logging_options import LoggingOptions
from rankstream.ranking.logging_policy import (
    EXTRAS,
    differences_of,
    floored,
    policy_features,
)
from rankstream.settings import ExperimentSettings
from rankstream.wire.envelope import (
    Pointer,
    Snapshot,
    encode_snapshot,
    features_hash,
    intervention_of,
)
from tests.placed_list import placement_probabilities

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
    found = policy_features(
        np.arange(4.0)[:, None], LISTS, differences_of(LISTS, [1.0, 0.5], 2)
    )

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


class Source:
    """Gives the envelope that it has: what a store would hold now."""

    def __init__(self) -> None:
        self.envelope: bytes | None = None

    def __call__(self) -> bytes | None:
        """The newest."""
        return self.envelope

    def publish(self, epoch: int, version: int, *, by_difference: float) -> None:
        """A version that scores items by what rankers differ in."""
        weights = np.zeros(1 + len(EXTRAS), "<f4")
        weights[1] = by_difference
        self.envelope = encode_snapshot(
            Snapshot(
                model="lists", epoch=epoch, version=version, parent=0, created_ms=1,
                kind="linear", hidden=[], normalisation="none",
                n_features=len(weights), features_hash=features_hash(len(weights)),
                sources=[], updates=1, weights=weights.tobytes(),
                intervention=intervention_of("lists", Pointer(epoch, version)),
            )
        )  # fmt: skip


class Client:
    """A service that draws lists of two by a policy."""

    def __init__(self) -> None:
        self.source = Source()
        self.source.publish(0, 7, by_difference=1.0)
        self.ranker = Ranker("lists", source=self.source)
        self.ranker.load()
        self._lists = LoggingLists(self.ranker)

    def draw(self, lists: dict[str, list[str]], length: int = 2) -> PolicyList:
        """One list of what both rankers returned."""
        options = {**OPTIONS, "examination": [1.0, 0.5, 0.25]}
        settings = msgspec.structs.replace(BOOST, length=length, options=options)
        n = len({item for row in lists.values() for item in row})
        return self._lists.draw(
            Running("boost", settings), lists, np.zeros((n, 1)), query_id="q",
            impression_id="i",
        )  # fmt: skip

    def event(self, listed: PolicyList) -> dict:
        """What is sent of it."""
        event: dict = json.loads(self._lists.query_event(RUNNING, listed, at_ms=1))
        return event


@pytest.fixture(scope="module")
def client() -> Client:
    """With its first version."""
    return Client()


def shares_of(listed: PolicyList) -> dict[str, float]:
    """P(comes first), by item."""
    scores = listed.drawn.scores
    assert scores is not None
    return dict(zip(scores, np.exp([*scores.values()]).tolist(), strict=True))


def test_equal_rankers_have_any_list(client: Client) -> None:
    """There is no difference to look for; the policy draws as it always does."""
    listed = client.draw({"a": ["x", "y", "z"], "b": ["x", "y", "z"]})

    assert len(listed.drawn.shown) == 2
    assert [*shares_of(listed).values()] == pytest.approx([1 / 3] * 3, abs=1e-6)


def test_rankers_that_share_no_item_have_all_of_them_seen(client: Client) -> None:
    """Four items differ; none comes first less often than the floor says."""
    client.source.publish(0, 8, by_difference=50.0)
    assert client.ranker.refresh()
    listed = client.draw({"a": ["x", "y", "p"], "b": ["z", "w", "q"]})
    shares = shares_of(listed)

    assert len(shares) == 6
    assert min(shares[item] for item in "xyzw") == pytest.approx(0.01, rel=1e-5)
    assert shares["x"] > 0.9
    assert max(shares[item] for item in "pq") < 1e-6


@pytest.mark.parametrize(
    ("lists", "length"),
    [
        ({"a": ["x"], "b": []}, 2),
        ({"a": ["x"], "b": ["x"]}, 1),
        ({"a": ["x", "y"], "b": ["y"]}, 3),
    ],
)
def test_lists_may_be_longer_than_what_there_is(
    client: Client, lists: dict[str, list[str]], length: int
) -> None:
    """One candidate is shown for sure; of few all are."""
    listed = client.draw(lists, length)
    event = client.event(listed)

    assert sorted(listed.drawn.shown) == sorted({*lists["a"], *lists["b"]})
    assert event["candidates"] == listed.items
    assert sum(shares_of(listed).values()) == pytest.approx(1.0, abs=1e-6)


def test_what_a_ranker_repeats_counts_once(client: Client) -> None:
    """In the difference too, as in the list that is drawn."""
    once = client.draw({"a": ["x", "y", "z"], "b": ["z", "y", "x"]}, 3)
    twice = client.draw({"a": ["x", "y", "x", "z"], "b": ["z", "y", "x"]}, 3)

    assert twice.drawn == once.drawn
    assert (twice.ranking.scores == once.ranking.scores).all()


def test_rankers_of_others_are_refused_in_words(client: Client) -> None:
    """Three of them, one alone, and features of another model."""
    for lists in ({"a": ["x"]}, {"a": ["x"], "b": ["y"], "c": ["z"]}):
        with pytest.raises(ValueError, match=r"rankings must be those of \['a', 'b'\]"):
            client.draw(lists)
    with pytest.raises(ValueError, match="features"):
        client._lists.draw(RUNNING, LISTS, np.zeros((4, 3)), query_id="q")


def test_a_policy_that_was_taken_back_or_is_gone_credits_what_it_drew() -> None:
    """A list has its own scores; the next list knows that the version is another."""
    client = Client()
    before = client.draw(LISTS)
    client.source.envelope = None
    client.ranker.refresh()
    trimmed = client.draw(LISTS)
    client.source.publish(1, 0, by_difference=-1.0)
    assert client.ranker.refresh()
    after = client.draw(LISTS)
    events = [client.event(each) for each in (before, trimmed, after)]

    assert trimmed.drawn == before.drawn
    assert [event["version"] for event in events] == [7, 7, 0]
    assert [event["intervention"] for event in events] == [
        "lists@0.7", "lists@0.7", "lists@1.0",
    ]  # fmt: skip
    assert events[0]["scores"] == events[1]["scores"] != events[2]["scores"]
