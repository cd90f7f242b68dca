"""Interventions that a simulation waits for: what the role says is said at once."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from producers.topic_reader import Record, TopicReader
from rankstream.lab.simulation import awaited_interventions as module
from rankstream.lab.simulation.awaited_interventions import AwaitedInterventions
from rankstream.ranker import Ranker
from rankstream.settings import ModelSettings, Settings, TrainingSettings
from rankstream.wire.models.training import (
    DONE,
    REFUSED,
    SCHEMA,
    Status,
    encode_record,
    training_key,
)
from rankstream.wire.models.training import TRAINING as UNDER_WAY
from rankstream.wire.topics import STATISTICS, TRAINING

SETTINGS = Settings(
    models={
        "m": ModelSettings(
            features=3, versions="trained", training=TrainingSettings(after=[100])
        )
    }
)


class Topic:
    """Status records that come one after another; each is read once."""

    def __init__(self) -> None:
        self.written: list[Status] = []
        self.n_read = 0

    def say(self, state: str, said: str) -> None:
        """As the role `train` does."""
        self.written.append(Status(SCHEMA, state, said, len(self.written)))

    def records(
        self, topic: str, starts: Mapping[int, int] | None = None
    ) -> Iterator[Record]:
        """Of `TopicReader`."""
        assert topic == TRAINING
        first = (starts or {0: 0})[0]
        for offset, each in enumerate(self.written[first:], first):
            self.n_read += 1
            key = training_key("status", "m")
            yield Record(0, offset, 0, key, encode_record(each), ())

    def last_records(self, topic: str, n_offsets: int) -> list[Record]:
        """Of `TopicReader`: nothing is counted."""
        assert topic == STATISTICS
        del n_offsets
        return []


class Line:
    """What was said, notes too."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.lines: list[str] = []

    def note(self, words: str) -> None:
        """Of `ProgressLine`."""
        self.notes.append(words)

    def say(self, line: str) -> None:
        """Of `ProgressLine`."""
        self.lines.append(line)


class Simulation:
    """Interventions of one, with all that it is told."""

    def __init__(self, topic: Topic) -> None:
        self.line = Line()
        self.ranker = SimpleNamespace(model="m", version=0, refresh=lambda: None)
        self.awaited = AwaitedInterventions(
            SETTINGS,
            cast("Ranker", self.ranker),
            cast("TopicReader", topic),
            50,
            lambda: False,
        )
        self.awaited.show_on(self.line)


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    """That is looked at each time."""
    monkeypatch.setattr(module, "LOOK_S", 0.0)
    return Topic()


def test_a_refusal_is_said_where_it_happens(topic: Topic) -> None:
    """Before any version is waited for; again only where more than numbers differ."""
    topic.say(REFUSED, "of an earlier run")
    found = Simulation(topic)
    found.awaited.follow(1)
    assert found.line.lines == []
    assert found.awaited.refusal() == ""
    topic.say(UNDER_WAY, "reading")
    topic.say(REFUSED, "largest support is 3.5")
    found.awaited.follow(2)
    assert found.line.lines == ["training of m refused: largest support is 3.5"]
    topic.say(REFUSED, "largest support is 4.25")
    found.awaited.follow(3)
    assert len(found.line.lines) == 1
    topic.say(REFUSED, "no features")
    found.awaited.follow(4)
    assert found.line.lines[1:] == ["training of m refused: no features"]
    assert found.awaited.refusal() == "no features"
    topic.say(DONE, "m@0.100 was published")
    topic.say(REFUSED, "no features")
    found.awaited.follow(5)
    assert len(found.line.lines) == 3
    assert topic.n_read == len(topic.written)


def test_it_is_shown_what_the_role_does_while_it_is_waited_for(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal ends the wait at once."""
    found = Simulation(topic)
    steps: Iterator[tuple[str, str]] = iter(
        [(UNDER_WAY, "epoch 3 of at most 50"), (REFUSED, "no features")]
    )
    slept: list[Any] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        topic.say(*next(steps))

    monkeypatch.setattr("time.sleep", sleep)
    found.awaited.follow(150)
    assert found.line.notes == [
        "waiting for a training of m", "training m: epoch 3 of at most 50",
    ]  # fmt: skip
    assert found.line.lines == ["training of m refused: no features"]
    assert len(slept) == 2
