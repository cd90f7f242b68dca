"""Which records of `snapshots` nobody can serve, and what their repair does."""

from itertools import count

import pytest

from producers.dead_snapshots import dead_among
from producers.topic_reader import Record
from rankstream.wire.envelope import LARGEST_NUMBER, Pointer
from rankstream.wire.models.deployments import deployment_record
from tests.canary_factory import canary_record
from tests.snapshot_factory import envelope

BEYOND = envelope(LARGEST_NUMBER + 1)
LAST = envelope(1, epoch=LARGEST_NUMBER + 1)


def records(*pairs: tuple[bytes | None, bytes | None]) -> list[Record]:
    """A topic of these keys and values."""
    offsets = count(10)
    return [Record(0, next(offsets), 0, key, value, ()) for key, value in pairs]


def test_what_is_served_and_what_notes_it_is_not_dead() -> None:
    """Of every kind that a release writes, or that has left."""
    noted, packed = deployment_record("m@1.1", 5)
    topic = records(
        (b"m/0.1", envelope(1)),
        (b"m", envelope(1, epoch=1)),
        (b"m/follow", envelope(2, epoch=2)),
        (noted, packed),
        (b"m/canary", canary_record()),
        (b"n/canary", b"garbage"),
        (b"m/0.0", None),
    )
    assert dead_among(topic) == []


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"m/0.1000000000000000", BEYOND, "pointer"),
        (b"m", LAST, "pointer"),
        (b"m", envelope(1, epoch=LARGEST_NUMBER), "pointer"),
        (b"m/follow", LAST, "pointer"),
        (b"m/0.2", envelope(1), "misplaced"),
        (b"m/0.1", b"garbage", "truncated"),
        (b"m/0.1", envelope(1)[:-1], "length"),
    ],
)
def test_what_nobody_serves_is_found_and_removed(
    key: bytes, value: bytes, reason: str
) -> None:
    """With its place, and why."""
    (found,) = dead_among(records((b"m/0.7", envelope(7)), (key, value)))
    assert (found.key, found.offset, found.reason) == (key, 11, reason)
    assert (found.is_ours, found.before, found.remedy) == (True, None, "removed")


def test_what_the_key_had_before_comes_back() -> None:
    """The last good record of it, such as a rollback that was overwritten."""
    rollback = envelope(3, epoch=4)
    (found,) = dead_among(
        records(
            (b"m", envelope(3, epoch=2)), (b"m", rollback), (b"m", BEYOND), (b"m", LAST)
        )
    )
    assert (found.offset, found.before) == (13, rollback)
    assert (found.before_at, found.remedy) == (Pointer(4, 3), "back to 4.3")
    (found,) = dead_among(records((b"m", rollback), (b"m", None), (b"m", LAST)))
    assert found.before is None


def test_what_was_put_right_since_is_not_dead() -> None:
    """The last record of a key counts."""
    for value in (envelope(3, epoch=4), None):
        assert dead_among(records((b"m", LAST), (b"m", value))) == []


def test_what_a_later_release_may_have_written_stays() -> None:
    """It is told of all the same."""
    later = bytearray(envelope(1))
    later[5] = 3
    found = dead_among(
        records((b"m/0.1", bytes(later)), (b"n/0.2", envelope(2, model="n", kind="x")))
    )
    assert [(each.reason, each.is_ours) for each in found] == [
        ("schema", False),
        ("shape", False),
    ]
    assert all(each.remedy.startswith("left") for each in found)


def test_one_model_is_looked_at_where_it_is_named() -> None:
    """By the whole of its name."""
    topic = records((b"m", LAST), (b"mm", LAST), (b"m/0.9", b""), (None, LAST))
    assert [each.key for each in dead_among(topic, "m")] == [b"m", b"m/0.9"]
    assert len(dead_among(topic)) == 3
