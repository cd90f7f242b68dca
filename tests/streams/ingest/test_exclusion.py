"""Robots are found by how many lists they are shown; people never are."""

import itertools

import numpy as np
import pytest

from rankstream.settings import ExcludeSettings
from rankstream.wire.events import QueryEvent
from streams.ingest.exclusion import MINUTE_MS, MOST_COUNTED, MOST_ROBOTS, Exclusion

NOW_MS = 28_333_334 * MINUTE_MS


def shown_to(
    session: str | None, user: str | None = None, *, at_ms: int = 0
) -> QueryEvent:
    """A list that somebody was shown."""
    return QueryEvent(
        impression_id="i",
        query_id="q",
        at_ms=at_ms,
        shown=["a"],
        session=session,
        user=user,
    )


def test_users_are_excluded_by_their_name() -> None:
    """Not where a session has that name, nor where nobody is named."""
    exclusion = Exclusion(ExcludeSettings(users=["probe", "u2"]))
    assert exclusion.excludes(shown_to("s1", "probe"), NOW_MS)
    assert exclusion.excludes(shown_to(None, "u2"), NOW_MS)
    assert not exclusion.excludes(shown_to("probe", "u1"), NOW_MS)
    assert not exclusion.excludes(shown_to(None), NOW_MS)


def test_a_session_is_a_robot_from_its_first_list_beyond_the_limit() -> None:
    """For so many minutes after its last such list, and then no more."""
    exclusion = Exclusion(ExcludeSettings(lists_per_minute=3, minutes=2))
    robot = shown_to("r")
    found = [exclusion.excludes(robot, NOW_MS + n) for n in range(5)]
    assert found == [False, False, False, True, True]
    assert not exclusion.excludes(shown_to("s"), NOW_MS)
    found = [exclusion.excludes(robot, NOW_MS + n * MINUTE_MS) for n in range(1, 4)]
    assert found == [True, True, False]


def test_a_pace_below_the_limit_is_that_of_people() -> None:
    """Also for hours, and for users without a session."""
    exclusion = Exclusion(ExcludeSettings(lists_per_minute=3))
    for minute, _ in itertools.product(range(200), range(3)):
        at_ms = NOW_MS + minute * MINUTE_MS
        assert not exclusion.excludes(shown_to(None, "u"), at_ms)


def test_nobody_counts_who_cannot_be_told_apart() -> None:
    """A list of neither session nor user is one of many people; so is an empty id."""
    exclusion = Exclusion(ExcludeSettings(lists_per_minute=1))
    for nobody in (shown_to(None), shown_to(""), shown_to(None, ""), shown_to("", "")):
        assert not any(exclusion.excludes(nobody, NOW_MS) for _ in range(9))


def test_users_whose_session_is_empty_are_counted_apart() -> None:
    """By their own name, so that one of them is no reason to leave out another."""
    exclusion = Exclusion(ExcludeSettings(lists_per_minute=3))
    people = [shown_to("", f"u{number}") for number in range(50)]
    assert not any(exclusion.excludes(one, NOW_MS) for one in people)
    found = [exclusion.excludes(people[7], NOW_MS) for _ in range(4)]
    assert found == [False, False, True, True]


def test_what_comes_at_once_was_not_shown_at_once() -> None:
    """Histories that are replayed, and what senders kept while the broker was away."""
    exclusion = Exclusion(ExcludeSettings(lists_per_minute=3))
    for minute, _ in itertools.product(range(200), range(3)):
        kept = shown_to("s", at_ms=NOW_MS - minute * MINUTE_MS)
        assert not exclusion.excludes(kept, NOW_MS)
    assert exclusion.excludes(shown_to("s", at_ms=NOW_MS), NOW_MS)


def test_a_brokers_clock_that_is_put_back_makes_no_robots() -> None:
    """Its minutes are counted from then on, not those of an hour later as one."""
    exclusion = Exclusion(ExcludeSettings(lists_per_minute=3))
    person = shown_to("s")
    assert not exclusion.excludes(person, NOW_MS + 60 * MINUTE_MS)
    for minute, _ in itertools.product(range(20), range(3)):
        assert not exclusion.excludes(person, NOW_MS + minute * MINUTE_MS)


def test_a_limit_that_was_taken_away_leaves_nothing_behind() -> None:
    """Hashes of sessions are kept for as long as they are counted."""
    before = Exclusion(ExcludeSettings(lists_per_minute=1))
    assert [before.excludes(shown_to("s"), NOW_MS) for _ in range(2)] == [False, True]
    after = Exclusion(ExcludeSettings())
    after.restore(before.state())
    assert after.state() == []


@pytest.mark.parametrize("seed", range(3))
def test_among_many_sessions_people_stay_people(seed: int) -> None:
    """More than are counted apart: robots are found later, by n / 1,025 lists."""
    rng = np.random.default_rng(seed)
    most = 10
    exclusion = Exclusion(ExcludeSettings(lists_per_minute=most))
    who = np.concatenate(
        [np.repeat(np.arange(3 * MOST_COUNTED), 5), np.full(200, -1), np.full(most, -2)]
    )
    rng.shuffle(who)
    found = [exclusion.excludes(shown_to(f"s{one}"), NOW_MS) for one in who.tolist()]
    excluded = who[np.array(found)]
    assert set(excluded.tolist()) == {-1}
    n_later = len(who) // (MOST_COUNTED + 1) + 1
    assert 200 - most - n_later <= len(excluded) <= 200 - most


def test_what_is_remembered_is_bounded() -> None:
    """Of too many robots the newest are remembered."""
    exclusion = Exclusion(ExcludeSettings(lists_per_minute=1))
    for number in range(3 * MOST_ROBOTS):
        at_ms = NOW_MS + number // 500 * MINUTE_MS
        exclusion.excludes(shown_to(f"r{number}"), at_ms)
        exclusion.excludes(shown_to(f"r{number}"), at_ms)
    _, lists, robots = exclusion.state()
    assert len(lists) <= MOST_COUNTED
    assert len(robots) == MOST_ROBOTS
    assert exclusion.excludes(shown_to(f"r{3 * MOST_ROBOTS - 1}"), NOW_MS)


def test_a_restored_state_decides_alike() -> None:
    """Wherever it is cut."""
    rng = np.random.default_rng(5)
    settings = ExcludeSettings(lists_per_minute=4, minutes=2)
    events = [
        (shown_to(f"s{rng.geometric(0.1)}"), NOW_MS + n * 700) for n in range(2_000)
    ]
    whole = Exclusion(settings)
    expected = [whole.excludes(event, at_ms) for event, at_ms in events]
    assert 100 < sum(expected) < 1_900
    for cut in (1, 500, 1_234):
        before, after = Exclusion(settings), Exclusion(settings)
        found = [before.excludes(event, at_ms) for event, at_ms in events[:cut]]
        after.restore(before.state())
        found += [after.excludes(event, at_ms) for event, at_ms in events[cut:]]
        assert found == expected
