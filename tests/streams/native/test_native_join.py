"""The part of the join in C alone: identities, order, memory, what it refuses."""

import ctypes
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.wire.events import Impression, encode_record
from rankstream.wire.routing import identity
from streams.native.core_library import core
from streams.native.joining import ABSENT, AWAITED, KNOWN, NOWHERE, NativeJoin, Sizes
from tests.event_factory import START_MS, as_record, click, impression

WINDOW_MS, DISORDER_MS, REMEMBER_MS = 1_000, 100, 500
NO_LIMITS = (1 << 62, 1 << 62)


def joined(*shown: Impression) -> NativeJoin:
    """A join that has taken impressions."""
    join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)
    record = as_record(list(shown))
    assert join.take(record, 0, NO_LIMITS) == len(shown)
    return join


def closed_names(join: NativeJoin, now_ms: int) -> list[str]:
    """Names of what closes, in its order."""
    closed, *_ = join.close(now_ms)
    return (
        [one.impression.impression_id for one in closed.interactions()]
        if closed
        else []
    )


NAMES = st.builds(
    # Few homes, the first and the last among them, so that searches meet and wrap.
    lambda high, low: struct.pack("<IIQ", low & 1, high, low),
    st.sampled_from((0, 1, 1 << 24, (1 << 32) - 1)),
    st.integers(0, 9),
)
STEPS = st.lists(
    st.tuples(NAMES, st.sampled_from((ABSENT, KNOWN, AWAITED))), max_size=80
)


def waiting(own: bytes, missed: bytes) -> bytes:
    """A click that waits for an impression, both by their identities."""
    return encode_record(click(identity=own, impression=missed))


@given(STEPS, st.integers(0, 3))
def test_identities_are_what_was_last_said_of_them(
    steps: list[tuple[bytes, int]], n_rebuilds: int
) -> None:
    """Whatever was taken out between, and however often the table is built anew."""
    join, said = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS), dict[bytes, int]()
    others = np.random.default_rng(0).integers(1, 1 << 63, (300 * n_rebuilds, 2), "u8")
    for i, (name, what) in enumerate(steps):
        other = identity("of", name.hex())
        if i == len(steps) // 2:
            join.restore_known(np.full(len(others), 9_000), others)
        if what == ABSENT and said.pop(name, ABSENT) != ABSENT:
            # A click that waits by itself, or the one that waits for an impression.
            if join.find(name) == KNOWN:
                join.stop_waiting(other, name)
            else:
                join.stop_waiting(name, other)
        elif what != ABSENT and name not in said:
            pair = (name, other) if what == KNOWN else (other, name)
            assert join.wait(waiting(*pair), NO_LIMITS) == 0
            said[name] = what
        n_others = len(others) if i >= len(steps) // 2 else 0

        assert {name: join.find(name) for name, _ in steps} == {
            name: said.get(name, ABSENT) for name, _ in steps
        }
        assert join.sizes()[2] == len(said) + n_others
        assert join.sizes()[5] == len(said)


def test_an_identity_is_open_known_and_absent_by_time_alone() -> None:
    """The bounds are those of the windows, to the millisecond."""
    shown, mark = impression(), click()
    join = joined(shown)
    assert join.take(as_record([mark]), 0, NO_LIMITS) == 1
    found, counted = [], []
    for now_ms in (WINDOW_MS - 1, WINDOW_MS, WINDOW_MS + REMEMBER_MS - 1, 1_500):
        join.close(START_MS + now_ms)
        found.append([min(join.find(one.identity), 9) for one in (shown, mark)])
        counted.append(join.sizes()[:3])

    assert found == [[9, KNOWN], [KNOWN, KNOWN], [KNOWN, KNOWN], [ABSENT, ABSENT]]
    assert counted == [[1, 1, 2], [0, 0, 2], [0, 0, 2], [0, 0, 0]]


@given(st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=60), st.data())
def test_what_is_due_closes_by_time_then_arrival(
    arrivals: list[tuple[int, bool]], data: st.DataObject
) -> None:
    """In order or late, with notes between, and closed at any times."""
    join, waiting, found, expected = NativeJoin(WINDOW_MS, DISORDER_MS, 0), [], [], []
    now = -1
    for n, (at, is_note) in enumerate(arrivals):
        if is_note:
            join.note(START_MS + WINDOW_MS + at, encode_record(click()))
        elif at > now:
            shown = impression(f"{n}", START_MS + at)
            assert join.take(as_record([shown]), 0, NO_LIMITS) == 1
            waiting.append((at, n))
        if data.draw(st.integers(0, 5)) == 0:
            now = max(now, data.draw(st.integers(0, 30)))
            found += closed_names(join, START_MS + WINDOW_MS + now)
            expected += [f"{n}" for at, n in sorted(waiting) if at <= now]
            waiting = [(at, n) for at, n in waiting if at > now]
    found += closed_names(join, START_MS + WINDOW_MS + 30)

    assert found == expected + [f"{n}" for _, n in sorted(waiting)]


@pytest.mark.parametrize("n_sources", [1, 4, 8, 30])
def test_what_several_sources_bring_by_turns_closes_by_time_then_arrival(
    n_sources: int,
) -> None:
    """Each in its own order, a stretch of one after that of another."""
    join, rng = NativeJoin(WINDOW_MS, DISORDER_MS, 0), np.random.default_rng(n_sources)
    next_ms, arrived = [0] * n_sources, list[tuple[int, int]]()
    closed = list[str]()
    for n in range(1_500):
        source = n // 12 % n_sources
        next_ms[source] += int(rng.integers(0, 4))
        shown = impression(f"{n}", START_MS + next_ms[source])
        assert join.take(as_record([shown]), 0, NO_LIMITS) == 1
        arrived.append((next_ms[source], n))
        if n % 100 == 0:
            closed += closed_names(join, START_MS + WINDOW_MS + min(next_ms) - 1)
    closed += closed_names(join, START_MS + WINDOW_MS + max(next_ms))

    assert closed == [f"{n}" for _, n in sorted(arrived)]


def test_elements_larger_than_a_chunk_are_kept_and_let_go() -> None:
    """Small ones between them; afterwards all but the least memory is given back."""
    sizes = (10, 3 << 20, 700_000, 700_000, 10, 1 << 20)
    shown = [
        impression(f"{n}", START_MS + n % 2, features=bytes([n]) * size)
        for n, size in enumerate(sizes)
    ]
    join = joined(*shown)
    largest = join.sizes()[4]
    closed, *_ = join.close(START_MS + WINDOW_MS + 1)

    assert closed is not None
    assert {
        one.impression.impression_id: one.impression for one in closed.interactions()
    } == {one.impression_id: one for one in shown}
    assert largest > sum(sizes)
    joined_again = join.take(as_record([impression("a", START_MS + 9)]), 0, NO_LIMITS)
    assert joined_again == 1
    assert join.sizes()[4] < 2.1 * (1 << 20)


def test_one_that_stays_long_keeps_its_own_chunk_only() -> None:
    """However much passes; it is whole in the end."""
    stays = impression("stays", START_MS + 1_000_000, features=b"s" * 500)
    join = joined(stays)
    for n in range(300):
        passing = impression(f"{n}", START_MS + n, features=bytes(50_000))
        join.take(as_record([passing]), 0, NO_LIMITS)
        join.close(START_MS + WINDOW_MS + n)
    n_bytes = join.sizes()[4]
    closed, *_ = join.close(START_MS + 2_000_000)

    assert n_bytes < 3.2 * (1 << 20)
    assert closed is not None
    assert closed[0].impression == stays


SECRETS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)


def digest(data: bytes) -> list[int]:
    """Two words that name bytes: sixteen after sixteen are multiplied in."""

    def folded(left: int, right: int) -> int:
        product = left * right
        return product >> 64 ^ product & (1 << 64) - 1 ^ left ^ right

    first, second = folded(1 ^ SECRETS[0], len(data) ^ SECRETS[1]), 2
    for at in range(0, len(data), 16):
        left = int.from_bytes(data[at : at + 8], "little")
        right = int.from_bytes(data[at + 8 : at + 16], "little")
        first = folded(left ^ SECRETS[1], right ^ first)
        second = folded(left ^ second, right ^ SECRETS[2])
    return [first, second ^ first]


def test_digests_of_models_are_as_defined() -> None:
    """At every length around those of words."""
    models = ["m" * n for n in (*range(40), 1_000)]
    join = joined(*(impression(f"{n}", model=m) for n, m in enumerate(models)))
    closed, *_ = join.close(START_MS + WINDOW_MS)

    assert closed is not None
    for model, found in zip(models, closed.models.tolist(), strict=True):
        assert found == digest(model.encode())


@pytest.mark.parametrize("cut", [0, 1, 30, -1])
def test_an_element_that_is_not_whole_is_refused(cut: int) -> None:
    """It is neither opened nor attached."""
    join = joined(impression())
    opened = join.find(impression().identity)
    with pytest.raises(ValueError, match="whole"):
        join.open(encode_record(impression("other"))[:cut])
    with pytest.raises(ValueError, match="whole"):
        join.attach(opened, encode_record(click())[:cut], NO_LIMITS)

    assert join.sizes()[:3] == [1, 0, 1]


@pytest.mark.parametrize("at_ms", [(1 << 61) + 1, (1 << 63) - 1, (1 << 64) - 1])
def test_times_that_no_clock_shows_are_refused(at_ms: int) -> None:
    """Sums of them would wrap, and counts drift until no slot is free."""
    join = joined(impression())
    for element in (impression("far", at_ms), click(at_ms=at_ms)):
        with pytest.raises(ValueError, match="possible time"):
            join.take(as_record([element]), 0, NO_LIMITS)
    with pytest.raises(ValueError, match="possible time"):
        join.open(encode_record(impression("far", at_ms)))
    assert join.sizes()[:3] == [1, 0, 1]


def test_an_impression_is_opened_once_and_a_click_attached_once() -> None:
    """A state that holds them twice is broken."""
    shown = impression()
    join = joined(shown)
    with pytest.raises(ValueError, match="new"):
        join.open(encode_record(shown))
    opened, raw = join.find(shown.identity), encode_record(click())
    assert join.attach(opened, raw, NO_LIMITS) == 1
    with pytest.raises(ValueError, match="new"):
        join.attach(opened, raw, NO_LIMITS)
    join.close(START_MS + WINDOW_MS)
    with pytest.raises(ValueError, match="new"):
        join.open(encode_record(shown))
    assert join.sizes()[2] == 2


def test_identities_that_come_back_twice_are_known_once() -> None:
    """And those that are forgotten not at all; no count sinks below zero."""
    join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)
    names = np.random.default_rng(1).integers(1, 1 << 63, (300, 2), "u8")
    for _ in range(3):
        join.restore_known(np.full(300, 9_000), names)
    assert join.sizes()[2] == 300
    join.close(9_000 + REMEMBER_MS)
    join.restore_known(np.full(300, 9_000), names)
    assert join.sizes()[2] == 0


def test_many_stay_found_while_the_table_grows() -> None:
    """Record after record; a table that counts its slots wrong is searched for ever."""
    join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)
    shown = [impression(f"i{n}", START_MS + n) for n in range(12_000)]
    for first in range(0, 12_000, 100):
        record = as_record(list(shown[first : first + 100]))
        assert join.take(record, 0, NO_LIMITS) == 100
    now_ms = START_MS + 11_900
    join.close(now_ms)
    for one in shown:
        is_open = one.at_ms + WINDOW_MS > now_ms
        is_known = one.at_ms + WINDOW_MS > now_ms - REMEMBER_MS
        found = join.find(one.identity)
        assert found > AWAITED if is_open else found == (KNOWN if is_known else ABSENT)


def test_what_fell_due_is_closed_by_the_next_who_comes() -> None:
    """An error between falling due and closing loses nothing, and spills nothing."""
    join = joined(impression("a"), impression("b", START_MS + 10))
    sizes = Sizes()
    core.join_fall_due(join._join, START_MS + WINDOW_MS, sizes)
    assert closed_names(join, START_MS + WINDOW_MS) == ["a"]
    core.join_fall_due(join._join, START_MS + WINDOW_MS + 10, sizes)
    assert closed_names(join, START_MS + WINDOW_MS + 500) == ["b"]


def test_sizes_that_are_fewer_than_the_core_writes_are_refused() -> None:
    """It would write behind their end, into whatever lies there."""
    join, few = joined(impression()), (ctypes.c_int64 * (len(Sizes()) - 1))()
    for call, arguments in (
        (core.join_fall_due, (START_MS,)),
        (core.join_no_longer_waiting, (impression().identity, None, None)),
        (core.join_accepted, (None,) * 4),
        (core.join_sizes, ()),
    ):
        with pytest.raises(ctypes.ArgumentError):
            call(join._join, *arguments, few)


def test_clicks_at_one_time_and_place_keep_their_order() -> None:
    """That of their arrival, whatever their names."""
    join = joined(impression())
    actions = ["b", "c", "a"]
    marks = [
        msgspec.structs.replace(click(action=action), identity=bytes([9 - n]) * 16)
        for n, action in enumerate(actions)
    ]
    assert join.take(as_record(list(marks)), 0, NO_LIMITS) == 3
    closed, n_clicks, *_ = join.close(START_MS + WINDOW_MS)
    assert closed is not None
    assert n_clicks == 3
    assert [mark.action for mark in closed[0].clicks] == actions


def test_a_queue_that_moves_over_what_left_keeps_all_its_rows() -> None:
    """Each is seen at its place: what is due, what is forgotten, what is new."""
    join, n_open = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS), 25
    for n in range(400):
        shown = impression(f"{n}", START_MS + n)
        assert join.take(as_record([shown]), 0, NO_LIMITS) == 1
        closed = closed_names(join, START_MS + WINDOW_MS + n - n_open)
        assert closed == [f"{n - n_open}"][: n >= n_open]
        assert join.sizes()[0] == min(n + 1, n_open)
        if n % 90 == 89:
            # Those of before were handed out; so the queue begins in its middle.
            times, names = join.remembered()
            assert times.tolist() == sorted(times.tolist())
            assert len({*map(tuple, names.tolist())}) == len(times) > 0
    join.close(START_MS + WINDOW_MS + 400 + REMEMBER_MS)
    assert join.sizes()[:4] == [0, 0, 0, 0]


def test_what_becomes_known_comes_out_in_its_order_while_old_ones_leave() -> None:
    """A checkpoint takes those that are still known, whole, however far it moved."""
    join, known_for = NativeJoin(WINDOW_MS, DISORDER_MS, 40), 40
    shown = [impression(f"{n}", START_MS + n) for n in range(300)]
    for n, one in enumerate(shown):
        join.take(as_record([one]), 0, NO_LIMITS)
        join.close(START_MS + WINDOW_MS + n)
    kept = shown[-known_for:]
    times, names = join.remembered()
    assert times.tolist() == [one.at_ms + WINDOW_MS for one in kept]
    assert names.tobytes() == b"".join(one.identity for one in kept)


@pytest.mark.parametrize("n_before", [1, 12, 30])
@pytest.mark.parametrize("is_gone", [False, True])
def test_a_checkpoint_begins_where_the_last_one_ended(
    n_before: int, is_gone: bool
) -> None:
    """In another chunk too, and where the chunk of the mark has gone since."""
    join = NativeJoin(WINDOW_MS, DISORDER_MS, REMEMBER_MS)

    def take(numbers: range, at_ms: int) -> list[bytes]:
        shown = [
            impression(f"{n}", at_ms + n, features=bytes(30_000 + n)) for n in numbers
        ]
        record = as_record([*shown])
        assert join.take(record, 0, NO_LIMITS) == len(shown)
        return [record.raw(i) for i in range(len(shown))]

    before = take(range(n_before), START_MS)
    assert join.accepted().raw == before
    # About 35 of them fill a chunk.
    passing = take(range(100, 140), START_MS)
    if is_gone:
        join.close(START_MS + WINDOW_MS + 1_000)
        passing = []
    after = take(range(200, 203), START_MS + 5_000)
    due, origins, raw = join.accepted()
    assert raw == [*passing, *after]
    assert (origins == NOWHERE).all()
    assert due[-3:].tolist() == [
        START_MS + 5_000 + n + WINDOW_MS for n in range(200, 203)
    ]
    assert len(join.accepted().due_ms) == 0


@contextmanager
def switching_often() -> Iterator[None]:
    """Threads take turns after each few steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def test_sizes_that_another_thread_asks_for_spoil_no_checkpoint() -> None:
    """As where a page of metrics is read while the fold works."""
    join = joined(*(impression(f"{n}", START_MS + n) for n in range(50)))
    is_over, seen = threading.Event(), set()

    def ask() -> None:
        while not is_over.is_set():
            seen.add(tuple(join.sizes()[:4]))

    others = [threading.Thread(target=ask) for _ in range(3)]
    with switching_often():
        for other in others:
            other.start()
        try:
            for n in range(1_000):
                shown = impression(f"more {n}", START_MS + 50)
                join.take(as_record([shown]), 0, NO_LIMITS)
                due, _, raw = join.accepted()
                assert len(due) == len(raw) == (51 if n == 0 else 1)
        finally:
            is_over.set()
            for other in others:
                other.join()
    assert {sizes[1:] for sizes in seen} == {(0, n[2], 0) for n in seen}
