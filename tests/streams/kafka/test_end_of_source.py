"""When a source is at its end: only answers of the broker count."""

from streams.event_time import OUTAGE_MS
from streams.kafka.end_of_source import EndOfSource

WALL_MS = 1_700_000_000_000
OUTAGE_S = OUTAGE_MS / 1_000


def heard(
    *answers: tuple[float, int, int], end: EndOfSource | None = None
) -> EndOfSource:
    """Answers, each at so many seconds: position and highwater."""
    end = end or EndOfSource()
    for at_s, position, highwater in answers:
        end.hear(WALL_MS + round(at_s * 1_000), position, highwater, now_s=at_s)
    return end


def test_an_end_lasts_from_the_first_answer_that_says_so_to_the_last() -> None:
    """Not to now: what the broker would say now is not known."""
    end = heard((100.0, 5, 5), (103.0, 5, 5), (107.0, 5, 5))

    assert end.at_end_ms(now_s=107.0) == end.at_end_ms(now_s=110.0) == 7_000


def test_before_any_answer_nothing_is_known() -> None:
    """A position that was sought is no answer."""
    end = EndOfSource()
    end.hear(None, 5, None, now_s=100.0)

    assert (end.at_end_ms(now_s=200.0), end.told_ms) == (0, None)


def test_the_same_answer_heard_again_is_not_another() -> None:
    """However often the consumer looks while the broker is silent."""
    end = heard((100.0, 5, 5), (101.0, 5, 5))
    for now_s in range(102, 300):
        end.hear(WALL_MS + 101_000, 5, 5, now_s=now_s)

    assert end.at_end_ms(now_s=102.0) == 1_000
    assert end.at_end_ms(now_s=300.0) == 0


def test_a_broker_that_was_away_begins_anew() -> None:
    """Its silence counts nothing, nor does what it had said before."""
    back_s = 103.0 + OUTAGE_S + 0.001
    end = heard((100.0, 5, 5), (103.0, 5, 5), (back_s, 5, 5), (back_s + 1, 5, 5))

    assert end.at_end_ms(now_s=back_s + 1) == 1_000


def test_a_short_pause_is_no_outage() -> None:
    """A busy worker may hear answers late."""
    end = heard((100.0, 5, 5), (100.0 + OUTAGE_S, 5, 5))

    assert end.at_end_ms(now_s=100.0 + OUTAGE_S) == OUTAGE_MS


def test_what_comes_begins_the_end_anew() -> None:
    """Whether it was seen on its way or not, and where an answer is taken in parts."""
    seen = heard((100.0, 5, 5), (101.0, 5, 7), (102.0, 7, 7), (103.0, 7, 7))
    unseen = heard((100.0, 5, 5), (102.0, 7, 7), (103.0, 7, 7))
    parts = heard((100.0, 5, 5), (101.0, 6, 7))
    parts.hear(WALL_MS + 101_000, 7, 7, now_s=102.0)
    heard((103.0, 7, 7), end=parts)

    assert seen.at_end_ms(now_s=103.0) == 1_000
    assert unseen.at_end_ms(now_s=103.0) == 1_000
    assert parts.at_end_ms(now_s=103.0) == 1_000


def test_where_there_is_more_there_is_no_end() -> None:
    """Not even an old one."""
    end = heard((100.0, 5, 5), (103.0, 5, 5), (104.0, 5, 6))

    assert (end.at_end_ms(now_s=104.0), end.told_ms) == (0, None)


def test_the_wall_clock_only_tells_answers_apart() -> None:
    """It may jump by hours, back or ahead."""
    end = EndOfSource()
    for number, jump_ms in enumerate((0, 3_600_000, -3_600_000, 0)):
        end.hear(WALL_MS + jump_ms + number, 5, 5, now_s=100.0 + number)

    assert end.at_end_ms(now_s=103.0) == 3_000
