"""State of the fold that refers to the log holds no list, and gives all back."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rankstream.settings import LimitSettings, Settings, TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    Element,
    Frontier,
    Interaction,
    encode_record,
)
from rankstream.wire.topics import LEAST_DAYS
from streams.fold.canonical_fold import LogBroken
from streams.fold.join import Join
from streams.fold.segments import (
    FARTHEST_OFFSET,
    LOGGED,
    OPEN,
    RECORDS_AT_ONCE,
    REFERENCES_AT_ONCE,
    Segments,
    array_head,
    first_referred,
    origin_at,
    segment_key,
)
from streams.native.elements import Elements
from streams.native.joining import NOWHERE
from streams.partition_fold import partition_fold
from streams.stage import Change, SourceRecord, referred
from tests.event_factory import START_MS, click, impression

WINDOW_MS, DISORDER_MS, REMEMBER_MS = 1_000, 100, 500
TIME = TimeSettings(
    click_window_ms=WINDOW_MS, disorder_ms=DISORDER_MS, remember_ms=REMEMBER_MS
)
LIMITS = LimitSettings(clicks=2, click_bytes=10_000)
DAY_MS = 86_400_000

TIMES = st.integers(0, 3_000)
ELEMENTS = st.one_of(
    st.builds(
        lambda n, at: impression(f"i{n}", START_MS + at), st.integers(0, 6), TIMES
    ),
    st.builds(
        lambda n, at, p: click(f"i{n}", START_MS + at, position=p),
        st.integers(0, 6),
        TIMES,
        st.integers(1, 4),
    ),
    st.builds(lambda at: Frontier(0, 1, START_MS + at, ACTIVE), TIMES),
)


def reached(offset_ms: int) -> Frontier:
    """The only source has reached this time after the start."""
    return Frontier(0, 1, START_MS + offset_ms, ACTIVE)


class Stopped:
    """A join that is taken back from its state now and then.

    Parameters
    ----------
    refers
        Whether its state refers to the log.

    Attributes
    ----------
    told
        What came of all that it took, in order.
    closed
        By the last record.
    join
        As it is now.
    """

    def __init__(self, *, refers: bool) -> None:
        self.refers = refers
        self.log: dict[int, bytes] = {}
        self.values: dict[bytes, bytes] = {}
        self.told: list[object] = []
        self.closed: list[Interaction] = []
        self.join = Join(TIME, limits=LIMITS)
        self._segments = Segments(self.join)

    def take(self, elements: list[Element]) -> None:
        """Take a record."""
        offset = len(self.log)
        value = encode_record([1, 0, offset + 1, elements])
        self.log[offset] = value
        origin = origin_at(offset) if self.refers else NOWHERE
        join = self.join
        join.take(Elements(value), origin)
        self.closed = [one for piece in join.closed for one in piece.interactions()]
        self.told += [self.closed, *join.set_aside, *join.not_shown, *join.beyond]
        for each in (join.closed, join.set_aside, join.not_shown, join.beyond):
            each.clear()

    def restart(self) -> None:
        """Write the state, and go on from it."""
        for _, key, value in self._segments.changes():
            if value is None:
                del self.values[key]
            else:
                self.values[key] = value
        before, living = self.join, self._segments.living
        self.join = Join(TIME, limits=LIMITS)
        self.join.restore(before.state())
        segments = Segments(self.join)
        segments.living = living
        segments.next_number = self._segments.next_number
        segments.restore(self.values, self.log)
        self._segments = segments
        self.told.append([before.pending, before.n_open, before.n_known])
        assert self.told[-1] == [
            self.join.pending, self.join.n_open, self.join.n_known
        ]  # fmt: skip


def run(
    records: Iterable[list[Element]], restarts: set[int], *, refers_from: int
) -> Stopped:
    """A join over records, stopped behind some, that refers to those from one on."""
    stopped = Stopped(refers=False)
    for number, record in enumerate(records):
        stopped.refers = number >= refers_from
        stopped.take(record)
        if number in restarts:
            stopped.restart()
    stopped.take([reached(10_000)])
    return stopped


@given(
    st.lists(st.lists(ELEMENTS, max_size=8), max_size=12),
    st.sets(st.integers(0, 11)),
)
# What is forgotten comes again, later by its own time: the log has it twice.
@example(
    [
        [impression("i", START_MS), reached(1_400)],
        [impression("i", START_MS + 900), reached(1_600)],
    ],
    {0, 1},
)
# A click beyond its limits, one that waits and proves late, and one not shown.
@example(
    [
        [click("i", START_MS + 1_500), click("i", START_MS + 1)],
        [impression("i"), click("i", position=9)],
        [click("i", START_MS + n, position=1) for n in range(2, 6)],
    ],
    {0, 1, 2},
)
def test_what_is_referred_to_is_taken_back_like_what_was_kept(
    records: list[list[Element]], restarts: set[int]
) -> None:
    """Wherever it is stopped: the same outcomes, in the same order."""
    logged, upgraded, kept = (
        run(records, restarts, refers_from=first) for first in (0, 2, 99)
    )
    assert logged.told == kept.told
    # As a state of before holds bytes, beside what has come since.
    assert upgraded.told == kept.told


def folded_state(n_features: int, time: TimeSettings = TIME) -> dict[bytes, bytes]:
    """The fold's own state of some open lists, clicked; features differ only."""
    fold = partition_fold(0, Settings(time=time))
    state: dict[bytes, bytes] = {}
    for number in range(1, 6):
        names = [f"{number}-{n}" for n in range(20)]
        elements: list[Element] = [
            impression(name, features=bytes(12 * n_features), n_features=n_features)
            for name in names
        ]
        elements += [click(name) for name in names[::3]]
        value = encode_record([1, 0, number, elements])
        fold.fold(SourceRecord("events", 0, number, 0, None, value, ()))
        state |= {
            key: value
            for topic, key, value in fold.changes()
            if topic == "fold-state" and value is not None
        }
    return state


def test_a_list_costs_the_state_alike_whatever_it_holds() -> None:
    """A reference of eight bytes, and no byte of its features."""
    few, many = folded_state(1), folded_state(500)
    assert few == many
    n_events = 5 * (20 + 7)
    blocks = [value for key, value in few.items() if key != b"state"]
    assert sum(map(len, blocks)) == 8 * n_events


def test_what_the_log_may_not_hold_long_enough_is_kept() -> None:
    """Where a window is longer than a part of what `events` keeps at least."""
    longest = LEAST_DAYS * DAY_MS // 3 - DISORDER_MS
    for window_ms, refers in ((longest, True), (longest + 1, False)):
        time = msgspec.structs.replace(TIME, click_window_ms=window_ms)
        state = folded_state(500, time)
        assert (sum(map(len, state.values())) < 10_000) == refers
        first = first_referred({("fold-state", key): state[key] for key in state})
        assert (first == 1) if refers else (first is None)


def test_a_state_needs_less_of_the_log_as_windows_close() -> None:
    """From the first record of which something is open."""
    stopped = Stopped(refers=True)
    found = []
    for number in range(5):
        at_ms = START_MS + number * WINDOW_MS
        stopped.take([impression(f"{number}", at_ms), reached(number * WINDOW_MS)])
        stopped.restart()
        segments = stopped._segments.living
        found.append(min(each.first_offset for each in segments if each.kind == LOGGED))
    assert found == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("is_cut", [False, True], ids=["gone", "another"])
def test_a_log_that_lacks_what_is_referred_to_is_refused(is_cut: bool) -> None:
    """By the offset; or by the element, where the record is another."""
    fold = partition_fold(0, Settings(time=TIME))
    value = encode_record([1, 0, 1, [impression("a"), impression("b")]])
    fold.fold(SourceRecord("events", 0, 7, 0, None, value, ()))
    state = list(fold.changes())
    other = encode_record([1, 0, 1, [impression("a")]])
    log = [referred("events", 7, other)] if is_cut else []
    told = "elements must be below 1; got 1" if is_cut else "offset 7 of events is not"
    with pytest.raises(LogBroken, match=told):
        partition_fold(0, Settings(time=TIME)).restore([*state, *log])
    partition_fold(0, Settings(time=TIME)).restore(
        [*state, referred("events", 7, value)]
    )


def test_a_segment_that_lacks_what_stands_nowhere_else_is_refused() -> None:
    """As of clicks that proved late, in whose place the state has another segment's."""
    fold = partition_fold(0, Settings(time=TIME))
    late = [click("a", START_MS + WINDOW_MS + n, position=n) for n in (1, 2)]
    elements: list[Element] = [*late, impression("a"), impression("c")]
    value = encode_record([1, 0, 1, elements])
    fold.fold(SourceRecord("events", 0, 1, 0, None, value, ()))
    state = {change.key: change for change in fold.changes()}
    log = referred("events", 1, value)
    partition_fold(0, Settings(time=TIME)).restore([*state.values(), log])

    key = segment_key(OPEN, 0, 0)
    one = array_head(1) + encode_record(late[0])
    state[key] = state[key]._replace(value=one)
    with pytest.raises(LogBroken, match="must hold 2 elements more; got 1"):
        partition_fold(0, Settings(time=TIME)).restore([*state.values(), log])


def test_references_that_fill_several_values_come_back_in_order() -> None:
    """With what stands nowhere in the log between them, and what waited."""
    fold = partition_fold(0, Settings(time=TIME))
    n_lists = REFERENCES_AT_ONCE + 3
    lists: list[Element] = [impression(f"{n}", items=["a"]) for n in range(n_lists)]
    waiting = [click("0"), click("1", START_MS + WINDOW_MS + 1), click("2")]
    value = encode_record([1, 0, 1, [*waiting, *lists]])
    fold.fold(SourceRecord("events", 0, 1, 0, None, value, ()))
    state: list[Change] = list(fold.changes())
    again = partition_fold(0, Settings(time=TIME))
    again.restore([*state, referred("events", 1, value)])
    assert again.counters() == fold.counters()
    for one in (fold, again):
        one.join.take(Elements(encode_record([1, 0, 2, [reached(2_000)]])))
    assert again.fingerprint() == fold.fingerprint()
    assert again.counters()["applied_impressions"] == n_lists
    assert again.counters()["applied_clicks"] == 2


def test_a_click_that_waited_costs_the_state_what_any_other_does() -> None:
    """Eight bytes, whether it comes before its list or behind it."""
    names = [f"{n}" for n in range(40)]
    lists: list[Element] = [impression(name) for name in names]
    clicks: list[Element] = [click(name, raw=bytes(99)) for name in names]
    for elements in ([*lists, *clicks], [*clicks, *lists]):
        stopped = Stopped(refers=True)
        stopped.take(elements)
        stopped.restart()
        assert sum(map(len, stopped.values.values())) == 8 * len(elements)
        stopped.take([reached(WINDOW_MS)])
        assert stopped.join.counts["applied_clicks"] == 40


def test_a_list_is_read_back_with_clicks_of_many_records() -> None:
    """More of them than are kept at once, by turns, from the last to the first."""
    n_records = 3 * RECORDS_AT_ONCE
    stopped = Stopped(refers=True)
    names = [f"{n}" for n in range(n_records)]
    for name in names:
        stopped.take([click(name), click("all", START_MS + int(name), position=2)])
    lists = [impression(name) for name in (*reversed(names), "all")]
    stopped.take([*lists])
    stopped.restart()
    stopped.take([reached(WINDOW_MS)])
    by_name = {one.impression.impression_id: one.clicks for one in stopped.closed}
    assert {name: len(by_name[name]) for name in names} == dict.fromkeys(names, 1)
    assert [one.at_ms - START_MS for one in by_name["all"]] == [0, 1]


def test_an_offset_that_no_origin_names_is_not_referred_to() -> None:
    """Offsets that differ have origins that differ, and all else is kept as bytes."""
    far = FARTHEST_OFFSET - 1
    assert origin_at(far) - origin_at(far - 1) == 1 << 24
    assert origin_at(far) + (1 << 24) - 1 < 1 << 63
    assert origin_at(FARTHEST_OFFSET) == origin_at(-1) == NOWHERE
