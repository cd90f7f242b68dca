"""Laws of event time: frontiers of sources, and the watermark of the log."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.wire.events import ACTIVE, ENDED, IDLE, Frontier
from streams.event_time import PlausibleTime, SourceClock, Watermark
from tests.streams.fold.plain_schedule import Schedule

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START_MS = 1_700_000_000_000
NOW_MS = START_MS + 30 * DAY_MS
"""When the broker appended what is of `START_MS`."""


def clock_of_a_source() -> SourceClock:
    """A clock with 30 s of disorder and five minutes until all is closed."""
    return SourceClock(
        disorder_ms=30_000, step_ms=60_000, idle_ms=10_000, closing_ms=330_001
    )


def test_nothing_is_believed_before_enough_events_agree() -> None:
    """The first events of a source set no frontier, the twenty-fourth does."""
    clock = clock_of_a_source()
    for i in range(23):
        clock.see(START_MS + i, NOW_MS)

    before = clock.frontier()
    clock.see(START_MS + 23, NOW_MS)

    assert before == (-1, ACTIVE)
    assert clock.frontier() == (START_MS + 23 - 30_000, ACTIVE)


def test_one_wrong_event_does_not_move_time() -> None:
    """An event two hours ahead, even the very first, leaves the frontier alone."""
    plausible = PlausibleTime(60_000)
    plausible.see(START_MS + 2 * HOUR_MS)
    for i in range(1_000):
        plausible.see(START_MS + i)
        if i == 500:
            plausible.see(START_MS + 2 * HOUR_MS)

    assert plausible.largest_ms == START_MS + 999


@given(st.integers(0, 2**32))
def test_a_client_hours_ahead_does_not_move_time(seed: int) -> None:
    """Five percent of events two hours ahead move nothing, wherever they stand."""
    state = seed
    plausible = PlausibleTime(60_000)
    for i in range(2_000):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        ahead = (state >> 33) % 20 == 0
        plausible.see(START_MS + i * 100 + (2 * HOUR_MS if ahead else 0))

    assert plausible.largest_ms <= START_MS + 2_000 * 100


@given(st.integers(1, 30), st.data())
def test_one_wrong_event_does_not_move_a_young_source(
    n_right: int, data: st.DataObject
) -> None:
    """However few there are besides, wherever it stands, and whenever silence falls."""
    place = data.draw(st.integers(0, n_right))
    times = [START_MS + i for i in range(n_right)]
    times.insert(place, START_MS + 2 * HOUR_MS)
    quiet = data.draw(st.sets(st.integers(0, n_right)))
    clock, now_ms = clock_of_a_source(), NOW_MS
    for i, at_ms in enumerate(times):
        clock.see(at_ms, now_ms)
        if i in quiet:
            clock.tick(0)
            clock.tick(20_000)
            now_ms += 20_000

            assert clock.frontier()[0] <= START_MS + n_right


def test_a_lone_event_is_believed_when_its_window_is_over() -> None:
    """Nothing contradicts it for as long as it would have stayed open anyway."""
    clock = clock_of_a_source()
    clock.see(START_MS, NOW_MS)
    clock.tick(330_000)
    before = clock.frontier()
    clock.tick(330_001)
    then = clock.frontier()
    clock.tick(360_001)

    assert before == (-1, IDLE)
    assert then == (START_MS + 300_001, IDLE)
    assert clock.frontier() == (START_MS + 330_001, IDLE)


def test_a_quiet_hour_counts_across_a_restart() -> None:
    """What comes after it is believed by the source that was restored meanwhile."""
    clock, restored = clock_of_a_source(), clock_of_a_source()
    for _ in range(2):
        clock.see(START_MS, NOW_MS)
    clock.tick(10_000)
    restored.restore(clock.state())
    restored.see(START_MS + HOUR_MS, NOW_MS + HOUR_MS)

    assert restored.frontier() == (START_MS + HOUR_MS - 30_000, ACTIVE)


@pytest.mark.parametrize("n_missing", [1, 2, 3])
def test_a_state_of_an_earlier_layout_is_read(n_missing: int) -> None:
    """It lacks its last fields."""
    clock, restored = clock_of_a_source(), clock_of_a_source()
    for _ in range(30):
        clock.see(START_MS, NOW_MS)
    restored.restore(clock.state()[:-n_missing])

    assert restored.frontier() == clock.frontier()


def test_a_true_gap_of_days_is_followed_soon() -> None:
    """After three silent days time jumps within a hundred events."""
    plausible = PlausibleTime(60_000)
    for i in range(200):
        plausible.see(START_MS + i)
    for i in range(100):
        plausible.see(START_MS + 3 * DAY_MS + i)

    assert plausible.largest_ms == START_MS + 3 * DAY_MS + 99


def test_an_idle_source_passes_on_until_all_is_closed() -> None:
    """Silence moves event time by as much as it lasts, and then it stops."""
    clock = clock_of_a_source()
    for _ in range(30):
        clock.see(START_MS, NOW_MS)
    clock.tick(9_999)
    active = clock.frontier()
    clock.tick(10_000)
    idle = clock.frontier()
    clock.tick(DAY_MS)

    assert active == (START_MS - 30_000, ACTIVE)
    assert idle == (START_MS - 30_000 + 10_000, IDLE)
    assert clock.frontier() == (START_MS + 330_001, IDLE)


def test_a_source_is_idle_only_while_the_broker_says_so() -> None:
    """Without an answer it is active again, though time stays where it was."""
    clock = clock_of_a_source()
    for _ in range(30):
        clock.see(START_MS, NOW_MS)
    clock.tick(60_000)
    idle = clock.frontier()
    clock.tick(0)
    unknown = clock.frontier()
    clock.tick(9_999)
    still = clock.frontier()
    clock.tick(10_000)

    assert idle == (START_MS + 30_000, IDLE)
    assert unknown == still == (START_MS + 30_000, ACTIVE)
    assert clock.frontier() == (START_MS + 40_000, IDLE)


def test_what_was_said_before_a_record_makes_nobody_idle_after_it() -> None:
    """Even if it is heard only then: its silence ended with the record."""
    clock = clock_of_a_source()
    for _ in range(30):
        clock.see(START_MS, NOW_MS)
    clock.tick(9_900)
    clock.see(START_MS + 10_000, NOW_MS + 10_000)
    clock.tick(10_000)

    assert clock.frontier() == (START_MS - 20_000, ACTIVE)


def test_a_source_may_leap_by_the_time_that_passed() -> None:
    """The first event after a quiet hour is believed, a step further is not."""
    clock, other = clock_of_a_source(), clock_of_a_source()
    for one in (clock, other):
        for _ in range(30):
            one.see(START_MS, NOW_MS)
    clock.see(START_MS + 60_000 + HOUR_MS, NOW_MS + HOUR_MS)
    other.see(START_MS + 60_000 + HOUR_MS + 1, NOW_MS + HOUR_MS)

    assert clock.frontier() == (START_MS + HOUR_MS + 30_000, ACTIVE)
    assert other.frontier() == (START_MS - 30_000, ACTIVE)


@pytest.mark.parametrize("at_ms", [START_MS - DAY_MS, START_MS + DAY_MS])
def test_what_does_not_move_time_takes_no_quiet_hour_away(at_ms: int) -> None:
    """An old event, or one that nobody believes, comes at the end of the hour."""
    clock, other = clock_of_a_source(), clock_of_a_source()
    for one in (clock, other):
        for _ in range(30):
            one.see(START_MS, NOW_MS)
        one.see(at_ms, NOW_MS + HOUR_MS)
    clock.see(START_MS + 60_000 + HOUR_MS, NOW_MS + HOUR_MS)
    other.see(START_MS + 60_000 + HOUR_MS + 1, NOW_MS + HOUR_MS)

    assert clock.frontier() == (START_MS + HOUR_MS + 30_000, ACTIVE)
    assert other.frontier() == (START_MS - 30_000, ACTIVE)


def test_the_time_that_passed_is_believed_once() -> None:
    """It counts from the event that moved time, not from those before."""
    clock = clock_of_a_source()
    for _ in range(30):
        clock.see(START_MS, NOW_MS)
    clock.see(START_MS + HOUR_MS, NOW_MS + HOUR_MS)
    clock.see(START_MS + 2 * HOUR_MS, NOW_MS + HOUR_MS)

    assert clock.frontier() == (START_MS + HOUR_MS - 30_000, ACTIVE)


def after_silence(told_ms: int, appended_ms: int) -> SourceClock:
    """A source whose next record, a minute on in event time, was appended then.

    Before it the broker had said for `told_ms` that there was nothing more.
    """
    clock = clock_of_a_source()
    clock.tick(0)
    for _ in range(30):
        clock.see(START_MS, NOW_MS)
    clock.frontier()
    clock.tick(told_ms)
    clock.see(START_MS + 60_000, NOW_MS + appended_ms)
    clock.tick(0)
    return clock


def go_on(clock: SourceClock, first_ms: int, last_ms: int) -> None:
    """Take events that are appended when they happen, at least one each second."""
    for at_ms in [*range(first_ms, last_ms, 1_000), last_ms]:
        clock.see(START_MS + at_ms, NOW_MS + at_ms)


def test_after_an_outage_the_frontier_stands_still_for_its_length_and_more() -> None:
    """Others come back later, with older events: 30 s, and as long and a half."""
    clock = after_silence(1_000, 21_000)
    held = clock.frontier()
    go_on(clock, 21_000, 80_999)
    still = clock.frontier()
    go_on(clock, 81_000, 81_000)

    assert held == still == (START_MS - 30_000, ACTIVE)
    assert clock.frontier() == (START_MS + 51_000, ACTIVE)


def test_silence_that_the_broker_told_of_holds_nothing() -> None:
    """A quiet source goes on with its next event, and so it does after a short gap."""
    quiet, short = after_silence(36_000, 41_000), after_silence(0, 5_000)

    assert quiet.frontier() == short.frontier() == (START_MS + 30_000, ACTIVE)


def test_a_held_source_that_falls_silent_is_held_no_longer() -> None:
    """Nor is it idle before: what the broker says of its end passes the time too."""
    clock = after_silence(1_000, 21_000)
    clock.tick(59_999)
    before = clock.frontier()
    clock.tick(60_000)

    assert before == (START_MS - 30_000, ACTIVE)
    assert clock.frontier() == (START_MS + 90_000, IDLE)


def test_no_outage_holds_for_more_than_a_minute_and_a_half() -> None:
    """No client takes longer to give up a request and to try again."""
    clock = after_silence(0, DAY_MS)
    go_on(clock, DAY_MS, DAY_MS + 90_000)

    assert clock.frontier() == (START_MS + DAY_MS + 60_000, ACTIVE)


def test_a_hold_outlasts_a_restart() -> None:
    """And a restart within an outage is no reason to go on at once."""
    clock, restored, another = (clock_of_a_source() for _ in range(3))
    for _ in range(30):
        clock.see(START_MS, NOW_MS)
    clock.frontier()
    restored.restore(clock.state())
    restored.tick(0)
    restored.see(START_MS + 70_000, NOW_MS + 70_000)
    another.restore(restored.state())
    another.tick(0)
    another.see(START_MS + 71_000, NOW_MS + 71_000)

    assert restored.frontier() == another.frontier() == (START_MS - 30_000, ACTIVE)


def test_a_broker_whose_clock_is_put_back_holds_no_longer() -> None:
    """Not until that clock is where it was."""
    clock = after_silence(0, HOUR_MS)
    go_on(clock, 1_000, 91_000)

    assert clock.frontier() == (START_MS + 61_000, ACTIVE)


def test_without_a_broker_nothing_is_held() -> None:
    """In one process nobody is away, however long it takes to the next record."""
    clock = clock_of_a_source()
    for _ in range(30):
        clock.see(START_MS, NOW_MS)
    clock.see(START_MS + 1_000, NOW_MS + HOUR_MS)

    assert clock.frontier() == (START_MS - 29_000, ACTIVE)


def test_an_end_closes_the_windows_even_of_what_was_out_of_line() -> None:
    """However few events came, and however far apart they were."""
    clock = clock_of_a_source()
    for at in (START_MS, START_MS + DAY_MS):
        clock.see(at, NOW_MS)
    clock.end()

    assert clock.frontier() == (START_MS + DAY_MS + 330_001, ENDED)


def test_an_end_closes_the_window_of_what_the_others_outvote() -> None:
    """One event out of line among many moves no time before the end, but at it."""
    clock = clock_of_a_source()
    clock.see(START_MS + DAY_MS, NOW_MS)
    for _ in range(30):
        clock.see(START_MS, NOW_MS)
    before = clock.frontier()
    clock.end()

    assert before == (START_MS - 30_000, ACTIVE)
    assert clock.frontier() == (START_MS + DAY_MS + 330_001, ENDED)


def test_the_watermark_waits_for_every_source() -> None:
    """There is none before all have spoken; then the least of the active ones."""
    watermark = Watermark()
    first = watermark.take(Frontier(0, 2, 500, ACTIVE))
    second = watermark.take(Frontier(1, 2, 300, ACTIVE))

    assert (first, second, watermark.at_ms) == (False, True, 300)


def test_idle_sources_hold_nothing_back() -> None:
    """An idle source is left out; where all are idle the largest counts."""
    watermark = Watermark()
    watermark.take(Frontier(0, 2, 100, IDLE))
    watermark.take(Frontier(1, 2, 300, ACTIVE))
    with_one = watermark.at_ms
    watermark.take(Frontier(1, 2, 900, ENDED))

    assert (with_one, watermark.at_ms) == (300, 900)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(-1, 1_000), st.integers(0, 2)),
        max_size=50,
    )
)
def test_the_watermark_never_goes_back(
    frontiers: list[tuple[int, int, int]],
) -> None:
    """Whatever the frontiers say, time does not reverse."""
    watermark, reached = Watermark(), -1
    for source, at_ms, state in frontiers:
        watermark.take(Frontier(source, 3, at_ms, state))

        assert watermark.at_ms >= reached
        reached = watermark.at_ms


@given(st.lists(st.integers(0, 20_000)), st.lists(st.integers(0, 20_000), min_size=1))
def test_a_schedule_gives_what_is_due_in_order(
    due: list[int], looks: list[int]
) -> None:
    """Items come at the first look at or after their time, ordered, none twice."""
    schedule: Schedule[tuple[int, int]] = Schedule()
    for number, at in enumerate(due):
        schedule.add((at, (at, number)))
    expected = sorted((at, number) for number, at in enumerate(due))

    for now in sorted(looks):
        came = schedule.due(now)

        assert came == [item for item in expected if item[0] <= now]
        expected = [item for item in expected if item[0] > now]
