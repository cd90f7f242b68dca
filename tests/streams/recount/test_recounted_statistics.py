"""The recount sees what is amiss in stored statistics."""

from typing import Any

import msgspec
import pytest

from tests.streams.recount.recounted import COUNTED, Folded, random_log, small_log


def test_a_scope_of_an_era_that_left_is_extra() -> None:
    """As where its tombstone was not written."""
    folded, before = Folded(random_log(1, 300)), Folded(random_log(1, 300), 60)
    (oldest, *_) = folded.counted()[7][1:]
    left = {
        key: value
        for key, value in before.state.items()
        if value
        and msgspec.msgpack.decode(key)[0] in ("scope", "set", "row")
        and msgspec.msgpack.decode(key)[-1] != b""
        and era_of(key) < oldest
    }
    assert left
    folded.state |= left
    verdict = folded.verdict()
    assert verdict.extra > 0
    assert not verdict.lost + verdict.double + verdict.wrong


def era_of(key: bytes) -> int:
    """The era in a key."""
    kind, _, *rest = msgspec.msgpack.decode(key)
    return int(rest[1] if kind == "set" else rest[2])


@pytest.mark.parametrize("kind", ["set", "row"])
def test_a_record_of_no_scope_is_extra(kind: str) -> None:
    """As where the scope left and what belongs to it stayed."""
    folded = Folded(small_log())
    for key, value in list(folded.state.items()):
        decoded = msgspec.msgpack.decode(key)
        if value and decoded[0] == kind:
            decoded[1] = "another query"
            folded.state[msgspec.msgpack.encode(decoded)] = value
            break
    assert folded.verdict().extra == 1


def test_a_mask_of_other_ranks_is_seen() -> None:
    """Also where every sum stays as it was: two lists exchange what was clicked."""
    folded = Folded(small_log())

    def change(head: Any) -> bool:
        for lists in head[4][2::3]:
            if lists[2]:
                lists[2][0] ^= 3
                return bool(head[1] == 0)
        return False

    folded.change("scope", change)
    assert not folded.verdict().is_clean


@pytest.mark.parametrize(
    ("column", "value"),
    [(1, 4), (2, 1), (3, ["click"]), (4, "dwell"), (5, 7), (6, [[0, 3]])],
)
def test_what_was_counted_is_named_exactly(column: int, value: Any) -> None:
    """Groups, keep, classes, reward, watermark, interactions."""
    folded = Folded(small_log())
    counted = folded.counted()
    counted[column] = value
    folded.state[COUNTED] = msgspec.msgpack.encode(counted)
    assert not folded.verdict().is_clean


@pytest.mark.parametrize("place", range(5))
def test_what_left_and_what_was_capped_is_named_exactly(place: int) -> None:
    """Impressions that left, oldest era, capped, clipped, without exposure."""
    folded = Folded(small_log())
    counted = folded.counted()
    counted[7][place] -= 1
    folded.state[COUNTED] = msgspec.msgpack.encode(counted)
    verdict = folded.verdict()
    assert verdict.lost + verdict.wrong == 1


def test_what_was_counted_must_be_said() -> None:
    """A checkpoint without its record."""
    folded = Folded(small_log())
    del folded.state[COUNTED]
    assert folded.verdict().lost > 0


@pytest.mark.parametrize(("column", "by"), [(1, 1), (2, 1), (7, 1)])
def test_flags_times_and_rewards_of_a_scope_are_compared(column: int, by: int) -> None:
    """Each by itself."""
    folded = Folded(small_log())

    def change(head: Any) -> bool:
        if column == 7:
            head[7][4:5] = [count + by for count in head[7][4:5]]
            return len(head[7]) > 0
        head[column] += by
        return bool(head[1] == by * (column == 1))

    folded.change("scope", change)
    verdict = folded.verdict()
    assert verdict.double + verdict.wrong >= 1
    assert len(verdict.differences) == 1
