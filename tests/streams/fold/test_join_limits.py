"""Clicks beyond the limits of an impression: dead letters, and the rest exact."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.settings import LimitSettings, TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    Click,
    Element,
    Frontier,
    Impression,
    encode_record,
)
from rankstream.wire.routing import identity
from streams.fold.join import Join
from tests.event_factory import START_MS, as_kept, as_record, click, impression
from tests.streams.fold.plain_join import PlainJoin
from tests.streams.fold.test_join import interactions, outcomes, reached

WINDOW_MS, DISORDER_MS = 1_000, 100
TIME = TimeSettings(click_window_ms=WINDOW_MS, disorder_ms=DISORDER_MS, remember_ms=500)
ONE_CLICK = len(encode_record(click()))
LIMITS = LimitSettings(clicks=3, click_bytes=4 * ONE_CLICK)


def joined(*elements: Element, limits: LimitSettings = LIMITS) -> Join:
    """A join that has taken these elements."""
    join = Join(TIME, limits=limits)
    join.take(as_record(list(elements)))
    return join


def clicks(n: int, **fields: Any) -> list[Click]:
    """So many clicks on one impression, a millisecond apart."""
    return [click(at_ms=START_MS + 1 + i, **fields) for i in range(n)]


@pytest.mark.parametrize("is_first", [True, False])
def test_only_so_many_clicks_are_applied(is_first: bool) -> None:
    """The first to come, whether they came before their impression or after."""
    shown: list[Element] = [impression()]
    elements = [*shown, *clicks(5)] if is_first else [*clicks(5), *shown]
    join = joined(*elements, reached(WINDOW_MS))

    assert outcomes(join) == {
        "applied_impressions": 1,
        "applied_clicks": 3,
        "dead_letter": 2,
    }
    assert join.beyond == clicks(5)[3:]
    assert [mark.at_ms - START_MS for mark in interactions(join)[0].clicks] == [1, 2, 3]


@pytest.mark.parametrize("is_first", [True, False])
def test_only_so_many_bytes_of_clicks_are_applied(is_first: bool) -> None:
    """To the last byte; a smaller one that comes later still has its place."""
    rest = 2 * ONE_CLICK + len(b"{}")
    heavy = [click(raw=b"x" * (2 * ONE_CLICK + n)) for n in (rest, 0)]
    first = click(at_ms=START_MS + 9)
    room = len(encode_record(heavy[1])) + ONE_CLICK
    limits = LimitSettings(clicks=3, click_bytes=room)
    shown: list[Element] = [impression()]
    taken: list[Element] = [first, *heavy]
    elements = [*shown, *taken] if is_first else [*taken, *shown]
    fits = joined(*elements, limits=limits)
    too_small = joined(*elements, limits=LimitSettings(clicks=3, click_bytes=room - 1))

    assert outcomes(fits) == {"dead_letter": 1, "pending": 3}
    assert fits.beyond == heavy[:1]
    assert outcomes(too_small) == {"dead_letter": 2, "pending": 2}


def test_what_was_not_shown_counts_as_well() -> None:
    """It is remembered with its impression, and so takes memory."""
    join = joined(impression(), *clicks(9, position=9), click(at_ms=START_MS + 99))

    assert len(join.not_shown) == 3
    assert len(join.beyond) == 7


def test_beyond_again_is_no_duplicate_and_a_known_one_is() -> None:
    """What is not remembered takes no memory however often it comes."""
    five = clicks(5)
    join = joined(impression(), *five, *five)

    assert outcomes(join) == {"duplicate": 3, "dead_letter": 4, "pending": 4}
    assert join.n_known == 4


def test_late_clicks_are_late_and_orphans_orphans_whatever_the_limits() -> None:
    """They take no room."""
    late = clicks(9)
    full: list[Element] = [impression(), *clicks(3)]
    after = click(at_ms=START_MS + WINDOW_MS + 1)
    join = joined(*full, after, reached(WINDOW_MS), late[8])

    assert outcomes(join) == {
        "applied_impressions": 1,
        "applied_clicks": 3,
        "late": 2,
    }


def test_clicks_that_wait_for_nobody_take_no_more_memory_than_said() -> None:
    """And make room for others when they are orphans."""
    join = joined(*clicks(50), reached(DISORDER_MS + 60), limits=LIMITS)
    join.take(as_record([click(at_ms=START_MS + 500), impression()]))

    assert outcomes(join) == {"orphan": 3, "dead_letter": 47, "pending": 2}
    assert join.n_known == 2


ELEMENTS = st.one_of(
    st.builds(
        lambda n, at: impression(f"i{n}", START_MS + at),
        st.integers(0, 2),
        st.integers(0, 1_500),
    ),
    st.builds(
        lambda n, at, p, size: click(
            f"i{n}", START_MS + at, position=p, raw=b"x" * size
        ),
        st.integers(0, 2),
        st.integers(0, 1_500),
        st.integers(1, 4),
        st.sampled_from((2, 10, 100, 300)),
    ),
    st.builds(lambda at: Frontier(0, 1, START_MS + at, ACTIVE), st.integers(0, 2_500)),
)


@given(st.lists(ELEMENTS, max_size=80), st.lists(st.integers(0, 80), max_size=6))
def test_tables_are_as_full_as_the_plain_rules_say(
    elements: list[Element], cuts: list[int]
) -> None:
    """Wherever records end: the same clicks are beyond, in the same order."""
    plain, join = PlainJoin(TIME, limits=LIMITS), Join(TIME, limits=LIMITS)
    elements = [*elements, reached(20_000)]
    plain.take(elements)
    bounds = [0, *sorted(min(cut, len(elements)) for cut in cuts), len(elements)]
    for start, end in itertools.pairwise(bounds):
        join.take(as_record(elements[start:end]))

        assert sum(join.counts.values()) + join.pending == 2 * join.counts["consumed"]

    assert join.counts == plain.counts
    assert join.n_known == plain.n_known
    assert interactions(join) == plain.closed
    assert join.beyond == plain.beyond
    assert join.not_shown == plain.not_shown


@given(st.lists(ELEMENTS, max_size=80), st.lists(st.integers(0, 80), max_size=3))
def test_a_restored_join_is_as_full_as_before(
    elements: list[Element], cuts: list[int]
) -> None:
    """After several cuts, each kept beside those before it."""
    whole, accepted, known = Join(TIME, limits=LIMITS), [], []
    start = 0
    for cut in sorted(min(cut, len(elements)) for cut in cuts):
        whole.take(as_record(elements[start:cut]))
        start = cut
        accepted.append(whole.new_accepted().raw)
        known.append(whole.new_remembered())
    resumed = Join(TIME, limits=LIMITS)
    resumed.restore(whole.state())
    for times, names in known:
        kept = resumed.is_remembered(times)
        resumed.restore_known(times[kept], names[kept])
    for raw in accepted:
        resumed.restore_elements(as_kept(raw))
    for join in (whole, resumed):
        join.closed.clear()
        join.set_aside.clear()
        join.not_shown.clear()
        join.beyond.clear()
        join.take(as_record([*elements[start:], reached(20_000)]))

    assert resumed.counts == whole.counts
    assert interactions(resumed) == interactions(whole)
    assert resumed.set_aside == whole.set_aside
    assert resumed.beyond == whole.beyond
    assert resumed.not_shown == whole.not_shown


def test_an_interaction_is_smaller_than_its_impression_and_clicks() -> None:
    """Which bounds it: what a click is in an interaction is less than in the log."""
    shown: Impression = impression(items=[f"d{i}" for i in range(1_000)])
    many = [
        click(at_ms=START_MS + n, position=1_000, action="\U0001f600" * 256, raw=b"")
        for n in range(500)
    ]
    n_bytes = sum(len(encode_record(each)) for each in many)
    limits = LimitSettings(clicks=500, click_bytes=n_bytes)
    join = joined(shown, *many, reached(WINDOW_MS), limits=limits)

    assert outcomes(join) == {"applied_impressions": 1, "applied_clicks": 500}
    assert int(join.closed[0].ends[-1]) < len(encode_record(shown)) + n_bytes


def test_orphans_free_the_bytes_that_they_waited_in() -> None:
    """One keeps the place of their impression; three more have room again."""
    big = [click(identity=bytes([n]) * 16, raw=b"x" * 300) for n in range(9)]
    limits = LimitSettings(clicks=9, click_bytes=4 * len(encode_record(big[0])))
    stays = click(at_ms=START_MS + 900, identity=b"s" * 16, raw=b"x" * 300)
    join = joined(stays, *big[:3], reached(DISORDER_MS + 60), limits=limits)
    later = [
        click(at_ms=START_MS + 800 + n, identity=bytes([99 + n]) * 16, raw=b"x" * 300)
        for n in range(3)
    ]
    join.take(as_record([*later]))

    assert outcomes(join) == {"orphan": 3, "pending": 4}


def test_a_click_that_waits_twice_expires_at_its_second_time() -> None:
    """Late at first and forgotten with its impression, then it comes again, later."""
    name = identity("c", "c")
    join = joined(
        click("i", START_MS + 4_000, identity=name), impression("i"), reached(1_000)
    )
    assert outcomes(join)["late"] == 1
    join.take(as_record([reached(1_600)]))
    join.take(as_record([click("i", START_MS + 5_000, identity=name), reached(4_200)]))
    assert outcomes(join) == {"applied_impressions": 1, "late": 1, "pending": 1}
    join.take(as_record([impression("i", START_MS + 4_300), reached(5_400)]))

    assert outcomes(join) == {
        "applied_impressions": 2,
        "applied_clicks": 1,
        "late": 1,
    }
