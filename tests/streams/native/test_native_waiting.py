"""Clicks that wait for their impression, in C alone: order, limits, memory."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.wire.events import Click, encode_record
from rankstream.wire.routing import identity
from streams.native.joining import (
    ABSENT,
    AWAITED,
    BEYOND,
    KNOWN,
    NativeJoin,
)
from tests.event_factory import START_MS, as_record, click, impression

WINDOW_MS, DISORDER_MS, REMEMBER_MS = 1_000, 100, 500
NO_LIMITS = (1 << 62, 1 << 62)

NAMES = ("a", "b", "c")
"""Of impressions that are missed."""


@dataclass(frozen=True)
class Step:
    """What is done next."""

    what: str
    name: str
    number: int


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from(("wait", "wait", "wait", "stop", "let go", "come", "pass")),
        st.sampled_from(NAMES),
        st.integers(0, 12),
    ),
    max_size=60,
)


def early(name: str, number: int) -> Click:
    """A click on a missed impression, at one of few times."""
    at_ms = START_MS + 40 * (number % 5)
    return click(name, at_ms, identity=identity("c", name, f"{number}"))


class Plain:
    """Who waits for whom, in the order of arrival."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, Click]] = []

    def of(self, name: str) -> list[Click]:
        """Who waits for an impression."""
        return [one for other, one in self.waiting if other == name]

    def take_out(self, gone: list[Click]) -> list[bytes]:
        """Let some wait no longer; their bytes."""
        self.waiting = [pair for pair in self.waiting if pair[1] not in gone]
        return [encode_record(one) for one in gone]

    def orphans(self, now_ms: int) -> list[Click]:
        """Who has waited in vain, by time, then arrival."""
        due = [one for _, one in self.waiting if one.at_ms + DISORDER_MS <= now_ms]
        return sorted(due, key=lambda one: one.at_ms)


@given(STEPS)
def test_who_waits_is_who_came_and_did_not_leave(steps: list[Step]) -> None:
    """Whoever leaves a ring, in whatever order, from its start, midst or end."""
    join, plain, now_ms = NativeJoin(WINDOW_MS, DISORDER_MS, 0), Plain(), START_MS
    come = set[str]()
    for what, name, number in ((one.what, one.name, one.number) for one in steps):
        one = early(name, number)
        if what == "wait" and name not in come and one not in plain.of(name):
            if one.at_ms + DISORDER_MS > now_ms:
                assert join.take(as_record([one]), 0, NO_LIMITS) == 1
                plain.waiting.append((name, one))
        elif what == "stop":
            join.stop_waiting(identity("i", name), one.identity)
            plain.take_out([one])
        elif what == "let go":
            gone = join.no_longer_waiting(identity("i", name))
            assert gone == plain.take_out(plain.of(name))
        elif what == "come" and name not in come:
            shown = impression(name, START_MS + 500)
            assert join.take(as_record([shown]), 0, NO_LIMITS) == 1
            come.add(name)
            plain.take_out(plain.of(name))
        elif what == "pass":
            # Whatever has come stays open.
            now_ms = min(now_ms + 10 * number, START_MS + WINDOW_MS)
            expected = plain.take_out(plain.orphans(now_ms))
            assert join.close(now_ms).orphans == expected
        assert join.sizes()[5] == len(plain.waiting)
        for each in NAMES:
            found = join.find(identity("i", each))
            awaits = AWAITED if plain.of(each) else ABSENT
            assert found > AWAITED if each in come else found == awaits
    left = join.close(START_MS + 5_000)

    assert left.orphans == plain.take_out(plain.orphans(START_MS + 5_000))
    assert join.sizes()[:3] == [0, 0, 0]
    assert join.sizes()[5] == 0


def test_an_impression_takes_all_that_waited_with_it() -> None:
    """In the order of arrival, to the end of its window; each is known as long."""
    marks = [early("a", 7), click("a", START_MS + WINDOW_MS), early("a", 4)]
    join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)
    shown = impression("a")
    record = as_record([*marks, shown])
    assert join.take(record, 0, NO_LIMITS) == 4
    accepted = join.accepted().raw
    closed, n_clicks, *_ = join.close(START_MS + WINDOW_MS)

    assert accepted == [record.raw(i) for i in (3, 0, 1, 2)]
    assert closed is not None
    assert n_clicks == 3
    assert [one.at_ms for one in closed[0].clicks] == sorted(one.at_ms for one in marks)
    names = [*(one.identity for one in marks), shown.identity]
    assert [join.find(name) for name in names] == [KNOWN] * 4
    join.close(START_MS + WINDOW_MS + REMEMBER_MS)
    assert [join.find(name) for name in names] == [ABSENT] * 4


def test_who_waited_before_a_checkpoint_is_told_of_twice() -> None:
    """As waiting, until it is an orphan's time, and behind its impression."""
    marks, shown = [early("a", n) for n in range(4)], impression("a")
    join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)
    assert join.take(as_record([*marks[:2]]), 0, NO_LIMITS, 10) == 2
    assert join.accepted().origins.tolist() == [10, 11]
    assert join.take(as_record([*marks[2:], shown]), 0, NO_LIMITS, 20) == 3
    due_ms, origins, raw = join.accepted()
    assert origins.tolist() == [22, 10, 11, 20, 21]
    assert raw == []
    assert due_ms.tolist() == [START_MS + WINDOW_MS] * 5


@pytest.mark.parametrize(
    "odd",
    [
        click("a", position=9),
        click("a", item_id="x", position=0),
        click("a", at_ms=START_MS + WINDOW_MS + 1),
    ],
    ids=["place", "item", "late"],
)
def test_an_impression_that_one_click_is_not_plain_for_is_left_alone(
    odd: Click,
) -> None:
    """Wherever in the ring it is: Python decides, of all of them."""
    good = [early("a", n) for n in (1, 2)]
    for elements in ([odd, *good], [good[0], odd, good[1]], [*good, odd]):
        join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)
        record = as_record([*elements, impression("a")])
        assert join.take(record, 0, NO_LIMITS) == 3
        assert join.sizes()[:2] == [0, 0]
        assert join.sizes()[5] == 3
        with pytest.raises(ValueError, match="new"):
            join.open(record.raw(3))
        assert join.no_longer_waiting(identity("i", "a")) == [
            record.raw(i) for i in range(3)
        ]


def test_a_click_that_was_withdrawn_is_left_to_python() -> None:
    """Whoever restores a state must not let it wait."""
    join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)
    assert join.take(as_record([click("a", position=-1)]), 0, NO_LIMITS) == 0
    assert join.sizes()[5] == 0


def test_only_as_many_wait_as_may_be_attached() -> None:
    """By number and by bytes; who leaves makes room."""
    marks = [early("a", n) for n in range(4)]
    n_bytes = len(encode_record(marks[0]))
    for limits in ((2, 1 << 62), (1 << 62, 3 * n_bytes - 1)):
        join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)
        assert join.take(as_record([*marks]), 0, limits) == 2
        assert join.wait(encode_record(marks[2]), limits) == BEYOND
        join.stop_waiting(identity("i", "a"), marks[0].identity)
        assert join.wait(encode_record(marks[2]), limits) == 0
        assert join.wait(encode_record(marks[3]), limits) == BEYOND
        # More than a smaller limit allows by now: none of them is plain.
        fewer = (1, 1 << 62)
        assert join.take(as_record([impression("a")]), 0, fewer) == 0
        assert join.take(as_record([impression("a")]), 0, limits) == 1
        assert join.sizes()[:2] == [1, 2]


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_a_click_that_is_not_whole_does_not_wait(cut: int) -> None:
    """Nor one that is known, whose impression is, or that waits for itself."""
    join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)
    shown, itself = impression("b"), identity("i", "c")
    assert join.take(as_record([early("a", 1), shown]), 0, NO_LIMITS) == 2
    refused = (
        encode_record(early("a", 2))[:cut],
        encode_record(early("a", 1)),
        encode_record(early("b", 1)),
        encode_record(click("c", identity=itself, impression=itself)),
        encode_record(click("c", at_ms=(1 << 61) + 1)),
    )
    for raw in refused:
        with pytest.raises(ValueError, match="whole"):
            join.wait(raw, NO_LIMITS)
    assert join.sizes()[5] == 1


def test_a_click_waits_until_its_time_and_the_disorder_have_passed() -> None:
    """To the millisecond, when it comes and afterwards."""
    join, mark = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS), click("a")
    last_ms = mark.at_ms + DISORDER_MS
    join.close(last_ms - 1)
    assert join.take(as_record([mark]), 0, NO_LIMITS) == 1
    join.close(last_ms - 1)
    assert join.sizes()[5] == 1
    assert join.close(last_ms).orphans == [encode_record(mark)]
    assert join.take(as_record([mark]), 0, NO_LIMITS) == 0


def test_what_waited_leaves_no_memory() -> None:
    """Found or not, noted or not, however much passes through."""
    join, sizes = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS), list[int]()
    for start in range(0, 40 * WINDOW_MS, WINDOW_MS):
        at_ms = START_MS + start
        for n in range(100):
            name = f"{start} {n}"
            mark = click(name, at_ms, raw=bytes(1_000))
            join.take(as_record([mark]), 0, NO_LIMITS)
            if n % 3 == 0:
                join.take(as_record([impression(name, at_ms)]), 0, NO_LIMITS)
            elif n % 3 == 1:
                join.stop_waiting(mark.impression, mark.identity)
        join.close(at_ms + WINDOW_MS)
        sizes.append(join.sizes()[4])

    assert max(sizes[10:]) < 1.01 * sizes[10]
