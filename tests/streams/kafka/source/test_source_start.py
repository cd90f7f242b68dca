"""Where reading of sources begins, who reads them, and what forbids to go on."""

import pytest
from aiokafka import TopicPartition
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from rankstream.settings import SourceSettings
from streams.kafka.source.positions import Bounds, is_another, starts_of
from streams.kafka.source.source_log import Position
from streams.kafka.source.source_member import OnlyOne, assignor
from streams.kafka.state.resume_position import StateRefused

GROUP = "shop.rankstream-adapt"
IDS = {"old": "id-1", "new": "id-2"}


def source(start: str = "earliest") -> SourceSettings:
    """Of any topic."""
    return SourceSettings(topic="t", format="ubi", start=start)


def at(topic: str, partition: int = 0) -> TopicPartition:
    """A partition."""
    return TopicPartition(topic, partition)


def test_a_group_that_has_a_position_goes_on_there() -> None:
    """What was never read begins where the settings say."""
    sources = {"old": source("latest"), "new": source("latest"), "all": source()}
    bounds = {
        at("old", 0): Bounds(5, 90), at("old", 1): Bounds(3, 40),
        at("new"): Bounds(2, 8), at("all"): Bounds(1, 9),
    }  # fmt: skip
    committed = {at("old", 0): Position(17, "id-1")}
    assert starts_of(sources, committed, bounds, IDS, GROUP) == {
        at("old", 0): 17,
        at("old", 1): 3,  # added later: all of it is new
        at("new"): 8,
        at("all"): 1,
    }


@pytest.mark.parametrize(
    ("position", "words"),
    [
        (Position(4, "id-1"), "must still hold offset 4; it holds 5 to 89"),
        (Position(91, "id-1"), "must still hold offset 91"),
        (Position(17, "id-0"), "must be the topic that was read before"),
    ],
)
def test_a_source_that_lacks_what_comes_next_is_refused(
    position: Position, words: str
) -> None:
    """With the command of Kafka that goes on without it."""
    committed = {at("old"): position}
    bounds = {at("old"): Bounds(5, 90)}
    with pytest.raises(StateRefused, match=words) as refused:
        starts_of({"old": source()}, committed, bounds, IDS, GROUP)
    assert f"--group {GROUP} --topic old:0 --reset-offsets" in str(refused.value)


@pytest.mark.parametrize("offset", [5, 90])
def test_both_ends_of_a_topic_can_be_gone_on_from(offset: int) -> None:
    """And an id that an operator's command took away is no other."""
    committed = {at("old"): Position(offset, "")}
    bounds = {at("old"): Bounds(5, 90)}
    starts = starts_of({"old": source()}, committed, bounds, IDS, GROUP)
    assert starts == {at("old"): offset}
    assert not is_another("", "id-1")


class Cluster:
    """Tells partitions as aiokafka's does."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Three of a, and b is not there."""
        return {2, 0, 1} if topic == "a" else None


def assigned(
    members: dict[str, type[OnlyOne]],
) -> dict[str, ConsumerProtocolMemberAssignment]:
    """One rebalance: what each member is told, and has heard."""
    said = {name: each.metadata(["a", "b"]) for name, each in members.items()}
    given = OnlyOne.assign(Cluster(), said)
    for name, each in members.items():
        each.on_assignment(given[name])
    return given


def test_one_member_has_all_and_keeps_it() -> None:
    """Whoever joins stands by, whatever its id; another takes over where it leaves."""
    first, second = assignor(), assignor()
    given = assigned({"m": first})
    assert given["m"].assignment == [("a", [0, 1, 2]), ("b", [])]
    for _ in range(2):
        given = assigned({"m": first, "b": second})
        assert given["m"].assignment == [("a", [0, 1, 2]), ("b", [])]
        assert given["b"].assignment == []
    assert assigned({"b": second})["b"].assignment
    # The first one was paused, and does not know that it was left out.
    given = assigned({"m": first, "b": second})
    assert [name for name, each in given.items() if each.assignment] == ["b"]
    assert (first.said, second.said) == (b"", b"1")
