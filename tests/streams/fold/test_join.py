"""The outcome of every event, one rule a test, and their conservation."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.settings import TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    Click,
    Element,
    Frontier,
    Impression,
    Interaction,
)
from streams.fold.join import Join
from tests.event_factory import START_MS, as_kept, as_record, click, impression
from tests.streams.fold.plain_join import PlainJoin

WINDOW_MS, DISORDER_MS, REMEMBER_MS = 1_000, 100, 500
TIME = TimeSettings(
    click_window_ms=WINDOW_MS, disorder_ms=DISORDER_MS, remember_ms=REMEMBER_MS
)


decode_event = msgspec.msgpack.Decoder(Impression | Click).decode


def joined(*elements: Element) -> Join:
    """A join that has taken these elements."""
    join = Join(TIME)
    join.take(as_record(list(elements)))
    return join


def reached(offset_ms: int) -> Frontier:
    """The only source has reached this time after the start."""
    return Frontier(0, 1, START_MS + offset_ms, ACTIVE)


def interactions(join: Join) -> list[Interaction]:
    """What closed, decoded."""
    return [one for closed in join.closed for one in closed.interactions()]


def outcomes(join: Join) -> dict[str, int]:
    """Counts that are not zero, without the total."""
    counted = {name: n for name, n in join.counts.items() if n}
    counted.pop("consumed", None)
    if join.pending:
        counted["pending"] = join.pending
    return counted


def test_an_impression_closes_with_its_clicks_when_the_watermark_passes() -> None:
    """Applied exactly when the watermark reaches the end of the window."""
    join = joined(impression(), click(position=2), reached(WINDOW_MS - 1))
    before = outcomes(join)
    join.take(as_record([reached(WINDOW_MS)]))

    assert before == {"pending": 2}
    assert outcomes(join) == {"applied_impressions": 1, "applied_clicks": 1}
    assert [mark.position for mark in interactions(join)[0].clicks] == [2]


def test_an_impression_without_clicks_is_evidence_too() -> None:
    """One interaction goes out, clicked or not."""
    join = joined(impression(), reached(WINDOW_MS))

    assert len(interactions(join)) == 1
    assert interactions(join)[0].clicks == []


def test_a_click_may_come_before_its_impression() -> None:
    """It waits, and is applied with the impression."""
    join = joined(click(), impression(), reached(WINDOW_MS))

    assert outcomes(join) == {"applied_impressions": 1, "applied_clicks": 1}


def test_a_click_without_impression_becomes_an_orphan() -> None:
    """When the watermark has passed its time plus the disorder."""
    join = joined(click(at_ms=START_MS), reached(DISORDER_MS - 1))
    before = outcomes(join)
    join.take(as_record([reached(DISORDER_MS)]))

    assert before == {"pending": 1}
    assert outcomes(join) == {"orphan": 1}


def test_a_click_long_after_its_time_is_an_orphan_at_once() -> None:
    """It need not wait for what cannot come."""
    join = joined(reached(5_000), click(at_ms=START_MS))

    assert outcomes(join) == {"orphan": 1}


def test_a_click_that_waited_long_enough_when_it_came_is_an_orphan() -> None:
    """From the very time at which one that waits becomes an orphan."""
    join = joined(reached(DISORDER_MS), click(at_ms=START_MS))

    assert outcomes(join) == {"orphan": 1}


def test_the_first_of_two_equal_events_wins() -> None:
    """The same impression or click again is a duplicate, also after the window."""
    join = joined(
        impression(), click(), impression(), click(), reached(WINDOW_MS), impression()
    )

    assert outcomes(join) == {
        "applied_impressions": 1,
        "applied_clicks": 1,
        "duplicate": 3,
    }


def test_identities_are_forgotten_and_then_the_event_is_late() -> None:
    """After the stated time a repeat is late; it is never applied again."""
    join = joined(impression(), reached(WINDOW_MS + REMEMBER_MS), impression())

    assert outcomes(join) == {"applied_impressions": 1, "late": 1}


def test_an_impression_whose_window_has_passed_is_late() -> None:
    """It is not applied."""
    join = joined(reached(WINDOW_MS), impression())

    assert outcomes(join) == {"late": 1}


def test_a_click_after_the_window_is_late_whenever_it_arrives() -> None:
    """The window is one of event time: arrival does not matter."""
    beyond = START_MS + WINDOW_MS + 1
    early = joined(impression(), click(at_ms=beyond))
    waiting = joined(click(at_ms=beyond), impression())
    closed = joined(impression(), reached(WINDOW_MS), click(at_ms=START_MS + 5))

    assert outcomes(early) == {"late": 1, "pending": 1}
    assert outcomes(waiting) == {"late": 1, "pending": 1}
    assert outcomes(closed) == {"late": 1, "applied_impressions": 1}


def test_a_click_at_the_very_end_of_the_window_is_applied_also_if_it_waited() -> None:
    """The window includes its end, and no commit says otherwise."""
    last = click(at_ms=START_MS + WINDOW_MS)
    join = joined(last, impression())
    accepted = [decode_event(raw) for raw in join.new_accepted().raw]
    join.take(as_record([reached(WINDOW_MS)]))

    assert outcomes(join) == {"applied_impressions": 1, "applied_clicks": 1}
    assert [one.position for one in accepted if isinstance(one, Click)] == [1]


def test_a_click_on_what_was_not_shown_is_a_dead_letter() -> None:
    """An unknown item, a place beyond the list, or an item at another place."""
    join = joined(
        impression(shown=["c", "a"]),
        click(item_id="b", position=0),
        click(position=3),
        click(item_id="a", position=1),
        click(item_id="a", position=2),
    )

    assert outcomes(join) == {"dead_letter": 3, "pending": 2}
    assert len(join.not_shown) == 3


def test_the_position_of_a_click_is_that_of_its_item() -> None:
    """Items are found at their place in the displayed order."""
    shown = impression(items=["x", "y", "z"], shown=["z", "x"])

    clicks = [click(item_id=item, position=0) for item in "xyzw"]
    join = joined(shown, *clicks, reached(WINDOW_MS))

    assert sorted(mark.position for mark in interactions(join)[0].clicks) == [1, 2]
    assert [click.item_id for click in join.not_shown] == ["y", "w"]


def test_clicks_of_an_interaction_are_in_the_order_of_their_time() -> None:
    """However they arrived."""
    join = joined(
        impression(),
        click(at_ms=START_MS + 9, position=1),
        click(at_ms=START_MS + 3, position=3),
        reached(WINDOW_MS),
    )

    assert [mark.position for mark in interactions(join)[0].clicks] == [3, 1]


ELEMENTS = st.one_of(
    st.builds(
        lambda n, at: impression(f"i{n}", START_MS + at),
        st.integers(0, 5),
        st.integers(0, 3_000),
    ),
    st.builds(
        lambda n, at, p: click(f"i{n}", START_MS + at, position=p),
        st.integers(0, 5),
        st.integers(0, 3_000),
        st.integers(1, 4),
    ),
    st.builds(
        lambda n, at, item, p: click(
            f"i{n}", START_MS + at, item_id=item, position=p, action="buy" * n
        ),
        st.integers(0, 5),
        st.integers(0, 3_000),
        st.sampled_from(("a", "b", "c", "x")),
        st.integers(0, 3),
    ),
    st.builds(reached, st.integers(0, 6_000)),
)


@given(st.lists(ELEMENTS, max_size=60))
def test_every_event_ends_in_exactly_one_outcome(elements: list[Element]) -> None:
    """At any moment the outcomes and what is pending add up to what was consumed."""
    join = Join(TIME)
    for element in elements:
        join.take(as_record([element]))

        assert sum(join.counts.values()) + join.pending == 2 * join.counts["consumed"]

    join.take(as_record([reached(1_000_000)]))

    assert join.pending == 0
    assert join.n_known == 0
    assert len(interactions(join)) == join.counts["applied_impressions"]


@given(st.lists(ELEMENTS, max_size=60), st.integers(0, 60))
def test_a_restored_join_goes_on_as_if_never_stopped(
    elements: list[Element], cut: int
) -> None:
    """State, then identities, then accepted events: the same outcomes as before."""
    whole = Join(TIME)
    whole.take(as_record(elements[:cut]))
    resumed = Join(TIME)
    resumed.restore(whole.state())
    resumed.restore_known(*whole.new_remembered())
    resumed.restore_elements(as_kept(whole.new_accepted().raw))
    for join in (whole, resumed):
        join.closed.clear()
        join.set_aside.clear()
        join.not_shown.clear()
        join.take(as_record([*elements[cut:], reached(1_000_000)]))

    assert resumed.counts == whole.counts
    assert interactions(resumed) == interactions(whole)
    assert resumed.set_aside == whole.set_aside
    assert resumed.not_shown == whole.not_shown


def test_what_closes_says_whether_an_impression_has_more_than_is_counted() -> None:
    """Each of those that close together says so itself, in the order of arrival."""
    join = joined(
        impression("i1"),
        impression("i2", extra=b"\x80"),
        impression("i3"),
        reached(WINDOW_MS),
    )

    (closed,) = join.closed
    names = [one.impression.impression_id for one in interactions(join)]
    assert names == ["i1", "i2", "i3"]
    assert closed.extras.tolist() == [False, True, False]


@pytest.mark.parametrize("n_bytes", [(2_000, 2), (2, 2_000)])
def test_what_is_closed_leaves_no_memory(n_bytes: tuple[int, int]) -> None:
    """Slots and bytes are used again, however much passes through."""
    join, sizes = Join(TIME), list[int]()
    features, raw = (bytes(n) for n in n_bytes)
    for start in range(0, 40 * WINDOW_MS, WINDOW_MS):
        for n in range(100):
            name, at_ms = f"{start} {n}", START_MS + start
            shown = impression(name, at_ms, features=features)
            join.take(as_record([shown, click(name, at_ms, raw=raw)]))
        join.take(as_record([reached(start + WINDOW_MS)]))
        sizes.append(join._native.sizes()[4])

    assert join.counts["applied_clicks"] == 4_000
    assert max(sizes[5:]) < 1.01 * sizes[5]


def test_what_is_open_keeps_its_bytes_while_others_come_and_go() -> None:
    """Neither list nor click is mixed up when memory is used again."""
    last_ms = START_MS + 19 * WINDOW_MS
    shown = [impression(f"i{n}", last_ms, items=[f"{n}", "b"]) for n in range(3)]
    clicks = [click(f"i{n}", last_ms + 1, action=f"action {n}") for n in range(3)]
    join = Join(TIME)
    for start in range(0, 20 * WINDOW_MS, WINDOW_MS):
        passing = impression(f"{start}", START_MS + start, features=bytes(9_000))
        join.take(as_record([passing, reached(start)]))
        if start < 3 * WINDOW_MS:
            n = start // WINDOW_MS
            join.take(as_record([shown[n], clicks[n]]))
    accepted = join.new_accepted().raw
    join.closed.clear()
    join.take(as_record([reached(20 * WINDOW_MS)]))
    found = interactions(join)

    assert [decode_event(raw) for raw in accepted[:6:2]] == shown
    assert [decode_event(raw) for raw in accepted[1:6:2]] == clicks
    assert [one.impression for one in found[:3]] == shown
    assert [mark.action for one in found for mark in one.clicks] == [
        one.action for one in clicks
    ]


def test_what_is_decided_is_in_no_commit() -> None:
    """From the very time at which it was decided."""
    join = joined(impression(), click(), reached(WINDOW_MS))

    assert len(join.new_accepted().due_ms) == 0


def resumed_from(join: Join, accepted: list[bytes]) -> Join:
    """A join restored from another's state, and what that had accepted."""
    resumed = Join(TIME)
    resumed.restore(join.state())
    resumed.restore_known(*join.new_remembered())
    resumed.restore_elements(as_kept(accepted))
    return resumed


def test_an_orphan_does_not_wait_again_after_a_restore() -> None:
    """Accepted before an older cut, it expired exactly at the time of the newer."""
    join = joined(click(at_ms=START_MS))
    accepted = join.new_accepted().raw
    join.take(as_record([reached(DISORDER_MS)]))
    resumed = resumed_from(join, accepted)
    resumed.take(as_record([reached(WINDOW_MS)]))

    assert outcomes(resumed) == {"orphan": 1}


def test_what_is_forgotten_is_not_known_again_after_a_restore() -> None:
    """Of two that closed at once only the later one is remembered still."""
    both = impression(), impression("i2", START_MS + 1)
    join = joined(*both, reached(WINDOW_MS + 1), reached(WINDOW_MS + REMEMBER_MS))
    resumed = resumed_from(join, [])
    for one in (join, resumed):
        one.take(as_record(list(both)))

        assert outcomes(one) == {"applied_impressions": 2, "late": 1, "duplicate": 1}


def test_a_click_that_proved_late_does_not_wait_again_after_a_restore() -> None:
    """Not even where its impression is closed and forgotten before its own time."""
    forgotten_ms = WINDOW_MS + REMEMBER_MS
    beyond = click(at_ms=START_MS + forgotten_ms)
    join = joined(beyond, impression(), reached(forgotten_ms))
    before = outcomes(join)
    resumed = resumed_from(join, join.new_accepted().raw)
    resumed.take(as_record([reached(2 * forgotten_ms)]))

    assert outcomes(resumed) == before == {"applied_impressions": 1, "late": 1}


def test_clicks_that_wait_are_those_of_the_commit_however_many_came_since() -> None:
    """What is decided leaves the list of what was accepted, and no other's place."""
    decided = [click(f"d{n}", START_MS) for n in range(20)]
    waiting = [click(f"w{n}", START_MS + 2_000) for n in range(20)]
    join = joined(*decided, *waiting, reached(DISORDER_MS))
    join.take(as_record([reached(DISORDER_MS + n) for n in range(200)]))
    join.take(as_record([click("last", START_MS + 2_000)]))
    names = [decode_event(raw).identity for raw in join.new_accepted().raw]

    expected = [*waiting, click("last", START_MS + 2_000)]
    assert names == [one.identity for one in expected]


@given(st.lists(ELEMENTS, max_size=80), st.lists(st.integers(0, 80), max_size=6))
def test_tables_give_what_the_plain_rules_give(
    elements: list[Element], cuts: list[int]
) -> None:
    """Outcomes, interactions, what is set aside: in the same order, however cut."""
    plain, join = PlainJoin(TIME), Join(TIME)
    elements = [*elements, reached(20_000)]
    plain.take(elements)
    bounds = [0, *sorted(min(cut, len(elements)) for cut in cuts), len(elements)]
    for start, end in itertools.pairwise(bounds):
        join.take(as_record(elements[start:end]))

    assert join.counts == plain.counts
    assert join.pending == plain.pending
    assert join.n_known == plain.n_known
    assert interactions(join) == plain.closed
    assert join.set_aside == plain.set_aside
    assert join.not_shown == plain.not_shown
