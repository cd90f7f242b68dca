"""Records of the topic `training`, for commands that read it."""

from typing import Self

import msgspec

from producers.topic_reader import Record
from rankstream.wire.models.snapshot_names import Parent
from rankstream.wire.models.training import (
    SCHEMA,
    CurveUsed,
    FeaturesUsed,
    Position,
    Refusal,
    Request,
    RunRecord,
    Sizes,
    Status,
    encode_record,
    training_key,
)
from rankstream.wire.topics import TRAINING

RUN = RunRecord(
    schema=SCHEMA, model="m", intervention="m@0.1200", epoch=0, version=1_200,
    created_ms=1_750_000_000_000, reason="count", counts=[(0, 700), (1, 500)],
    watermarks=[(0, 1_750_000_000_000), (1, None)],
    features=[FeaturesUsed(0, 40, b"\x01\x02")], settings={"features": 3},
    split_shares=[0.65, 0.15, 0.2], seed=0, parent=Parent(0, 0, b"\x03"),
    curve=CurveUsed([1.0], [0.0], False, "given", [], b"\x04"), groups=[0, 1],
    sizes=Sizes(30, 10, 200, 7, 0.01, 2, 0, 90), epochs=[(0, 0.9, 1.2), (1, 0.8, 1.3)],
    best_epoch=1, scale=0.5, temperature=2.0, least_exposure=0.125, reward=None,
    reward_reason="the selection groups have no lists", sha256=b"\x05",
)  # fmt: skip


class Topic:
    """Records of `training`, more at each look; of no other topic.

    Parameters
    ----------
    at_ms
        When the broker took them.
    """

    def __init__(self, *looks: list[tuple[bytes, bytes]], at_ms: int = 0) -> None:
        self._looks = list(looks)
        self._at_ms = at_ms

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def last_records(self, topic: str, n_offsets: int) -> list[Record]:
        """Of `TopicReader`: nothing is counted."""
        del topic, n_offsets
        return []

    def records(self, topic: str) -> list[Record]:
        """Of `TopicReader`."""
        assert topic == TRAINING
        look = self._looks.pop(0) if self._looks[1:] else self._looks[0]
        return [
            Record(0, place, self._at_ms, key, value, ())
            for place, (key, value) in enumerate(look)
        ]


class Looks:
    """A stop that is asked for after so many looks."""

    def __init__(self, most: int) -> None:
        self._most = most

    @property
    def asked(self) -> bool:
        """Whether it was."""
        return self._most <= 0

    def wait(self, _: float) -> None:
        """No time."""
        self._most -= 1


def request(name: str, at_ms: int = 5) -> tuple[bytes, bytes]:
    """Of the model `m`."""
    return training_key("request", "m"), encode_record(Request(SCHEMA, name, at_ms))


def status(state: str, asked: str) -> tuple[bytes, bytes]:
    """Of the model `m`."""
    record = Status(SCHEMA, state, state, 0, asked)
    return training_key("status", "m"), encode_record(record)


def trained_for(asked: str, name: str = "m@0.1200") -> tuple[bytes, bytes]:
    """A run that answers a request."""
    record = msgspec.structs.replace(RUN, intervention=name, request=asked)
    return training_key("run", name), encode_record(record)


def refused_for(asked: str, why: str = "too few") -> tuple[bytes, bytes]:
    """The last refusal."""
    record = Refusal(SCHEMA, why, 1_750_000_000_000, "asked", asked, "m@0.1200")
    return training_key("refusal", "m"), encode_record(record)


def position(asked: str) -> tuple[bytes, bytes]:
    """After the last intervention."""
    record = Position(SCHEMA, 1, [(0, 1_200)], 0, "m@0.1200", asked)
    return training_key("position", "m"), encode_record(record)
