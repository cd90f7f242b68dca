"""Where an experiment stands, in a sentence, against verdicts of simulated users."""

import math

import msgspec
import pytest

from rankstream.operations.answers.comparisons.experiment_standing import (
    Standing,
    in_words,
    standing_of,
)
from rankstream.wire.verdicts import Verdict
from streams.comparisons.preference_fold import PreferencesFold
from streams.comparisons.verdicts import refused_verdict, verdict_of
from tests import monitored
from tests.streams.comparisons.test_verdicts import BAD, GOOD, run_of, settings_of

HALF = 0.05


def judged(
    method: str, second: list[str], n: int, *, seed: int = 0, first: str = "good"
) -> Verdict:
    """A verdict on users who like low numbers."""
    fold = run_of(settings_of(method), {"good": GOOD, "bad": second}, n, seed=seed)
    assert first in fold.comparisons()[0].rankers
    return verdict_of(fold.comparisons()[0])


def crafted(
    mean: float, half: float = HALF, n: int = 1_000, **changes: object
) -> Verdict:
    """Two rankers, with an interval that is chosen; all checks are well."""
    verdict = monitored.verdict_at(n)
    found = verdict.drawn_by
    low, high = mean - half, mean + half
    winner = "new" if low > 0.0 else "old" if high < 0.0 else None
    pair = msgspec.structs.replace(
        found.pairs[0], mean=mean, to_come=(low, high), came=(low, high)
    )
    method = msgspec.structs.replace(
        found, pairs=[pair], winner=winner, copeland=[float(mean > 0), float(mean < 0)],
        bradley_terry=[mean, 0.0],
    )  # fmt: skip
    return msgspec.structs.replace(verdict, methods={"ab": method}, **changes)


@pytest.mark.parametrize("method", ["team-draft", "pairwise-preference", "ab"])
def test_a_winner_comes_first_with_its_effect_and_the_interval(method: str) -> None:
    """Seen from the winner, wherever its name stands in the pair; safe to stop."""
    verdict = judged(method, BAD, 2_000)
    (pair,) = verdict.drawn_by.pairs
    found = standing_of(verdict)
    assert (found.state, found.leader, found.other) == ("decided", "good", "bad")
    assert found.is_safe_to_stop
    assert pair.to_come[1] is not None
    assert (found.mean, found.low) == (-pair.mean, -pair.to_come[1])
    unit = "clicks a list" if method == "ab" else "of preference a list"
    assert found.words.startswith(f"good beats bad: +{-pair.mean:.2f} {unit}, ")
    assert found.words.endswith("; safe to stop")


@pytest.mark.parametrize("mean", [0.4, -0.4])
def test_the_sentence_is_the_same_from_either_side(mean: float) -> None:
    """With as many digits as half of the interval still moves."""
    names = ("new", "old") if mean > 0.0 else ("old", "new")
    assert standing_of(crafted(mean, 0.03)).words == (
        f"{names[0]} beats {names[1]}: +0.40 clicks a list, 0.37 to 0.43; safe to stop"
    )
    assert ", 0.3970 to 0.4030;" in standing_of(crafted(mean, 0.003)).words.replace(
        "0.397 to 0.403", "0.3970 to 0.4030"
    )


def test_an_alarm_is_looked_at_before_a_stop() -> None:
    """Whether a winner was found or a difference excluded."""
    for mean in (0.4, 0.01):
        health = [monitored.check("sample ratio", 9.0, "alarm")]
        sick = msgspec.convert(
            msgspec.to_builtins(crafted(mean)) | {"health": health}, Verdict
        )
        found = standing_of(sick)
        assert not found.is_safe_to_stop
        assert "look at its health before you stop" in found.words


def test_an_excluded_difference_is_as_good_as_a_winner() -> None:
    """Of the stated size, and of no other."""
    verdict = crafted(0.01)
    found = standing_of(verdict)
    assert (found.state, found.is_safe_to_stop) == ("equal", True)
    assert found.words == (
        "no difference of 0.1 clicks a list: -0.04 to 0.06; safe to stop"
    )
    assert standing_of(verdict, difference=0.06).state == "undecided"


@pytest.mark.parametrize("half", [0.0801, 0.0999, 0.11, 0.15, 0.3, 0.7])
@pytest.mark.parametrize("pace", [None, 500.0])
def test_what_is_needed_goes_with_the_square_of_the_width(
    half: float, pace: float | None
) -> None:
    """And days are what is left of it at the pace."""
    verdict = crafted(0.02, half, n=1_440)
    found = standing_of(verdict, pace)
    assert found.state == "undecided"
    # The interval ends at 0.1 once half of it is 0.08.
    assert found.size == 0.1
    assert found.share == pytest.approx(min(0.99, (0.08 / half) ** 2))
    # A list a minute, if nothing else is said.
    left = 1_440 * (1.0 / (found.share or 1.0) - 1.0)
    assert found.days == pytest.approx(left / (pace or 1_440.0))
    assert found.words == (
        f"undecided: {100 * (found.share or 0.0):.0f} % of the sessions that "
        f"excluding a difference of 0.1 needs; {in_words(found.days or 0.0)}"
    )


def test_the_promise_is_kept_by_simulated_users() -> None:
    """Half of the interval is as wide as promised, once so many sessions have come."""
    n = 1_500
    early = judged("pairwise-preference", [*GOOD[:4], *GOOD[:3:-1]], n)
    found = standing_of(early, difference=1e-9)
    assert found.low is not None
    assert found.high is not None
    half = (found.high - found.low) / 2.0
    size = 0.55 * half
    (first,) = (standing_of(early, difference=size),)
    share = first.share or (size / half) ** 2
    later = judged("pairwise-preference", [*GOOD[:4], *GOOD[:3:-1]], round(n / share))
    ends = later.drawn_by.pairs[0].to_come
    assert ends[0] is not None
    assert ends[1] is not None
    assert (ends[1] - ends[0]) / 2.0 == pytest.approx(size, rel=0.12)


def test_where_the_stated_size_is_passed_the_found_one_counts() -> None:
    """A small lead that could be large: what it needs to be told from none."""
    found = standing_of(crafted(0.08, 0.09))
    assert found.state == "undecided"
    assert found.size == pytest.approx(0.08)
    assert found.share == pytest.approx((0.08 / 0.09) ** 2)
    # A lead beyond the stated size is measured by that size while it is not sure.
    large = standing_of(crafted(0.3, 0.5))
    assert large.share == pytest.approx((0.1 / 0.5) ** 2)
    assert "the sessions that a difference of 0.1 needs" in large.words


@pytest.mark.parametrize(("mean", "half"), [(0.01, 0.1001), (0.01, 0.0999)])
def test_near_the_end_the_end_that_comes_is_told(mean: float, half: float) -> None:
    """Half must fall to 0.09, as the interval is about 0.01: of ten days 2.3 more."""
    found = standing_of(crafted(mean, half, n=14_400), pace=1_440.0)
    assert found.days == pytest.approx(10.0 * ((half / 0.09) ** 2 - 1.0))
    assert found.words.endswith("; about 2 days")
    after = standing_of(crafted(mean, 0.0899, n=18_000))
    assert after.state == "equal"
    assert standing_of(crafted(0.005, 0.097, n=14_400), 1_440.0).days == pytest.approx(
        10.0 * ((0.097 / 0.095) ** 2 - 1.0)
    )


def test_no_end_is_in_sight_where_the_interval_is_ten_times_as_wide() -> None:
    """Less than a hundredth of what is needed has come."""
    assert standing_of(crafted(0.0, 1.01)).words.endswith("no end is in sight")
    assert standing_of(crafted(0.0, 0.99)).share == pytest.approx((0.1 / 0.99) ** 2)


def test_a_winner_that_is_withheld_is_not_called_a_tie() -> None:
    """Ahead by less than the stated size: it is not safe to stop."""
    verdict = crafted(0.06, 0.03)
    method = msgspec.structs.replace(verdict.drawn_by, winner=None)
    told = standing_of(msgspec.structs.replace(verdict, methods={"ab": method}))
    assert (told.state, told.is_safe_to_stop) == ("undecided", False)
    assert told.words.endswith("0.03 to 0.09; too many of its lists were cut short")


def test_a_difference_is_excluded_at_both_ends() -> None:
    """The leader of many may be behind; then the lower end passes the size first."""
    verdict = crafted(0.0)
    for ends, state in (((-0.12, 0.05), "undecided"), ((-0.09, 0.05), "equal")):
        pair = msgspec.structs.replace(verdict.drawn_by.pairs[0], to_come=ends)
        method = msgspec.structs.replace(verdict.drawn_by, pairs=[pair])
        told = standing_of(msgspec.structs.replace(verdict, methods={"ab": method}))
        assert told.state == state


def test_a_turned_pair_keeps_the_sign_of_what_came() -> None:
    """What came is below none for the first, so beyond doubt for the second."""
    verdict = crafted(-0.4)
    found = verdict.drawn_by
    for came, end in (((-0.5, -0.3), "cut short"), ((-0.5, 0.3), "not beyond doubt")):
        pair = msgspec.structs.replace(found.pairs[0], came=came)
        method = msgspec.structs.replace(found, pairs=[pair], winner=None)
        told = standing_of(msgspec.structs.replace(verdict, methods={"ab": method}))
        assert told.words.endswith(end)


def test_of_many_rankers_the_closest_pair_is_told() -> None:
    """A winner beats all; the effect is that over the next one."""
    names, worth = ("a", "b", "c", "d"), (0.1, 0.6, 0.3, 0.0)
    found = standing_of(monitored.verdict_at(12_000, "four", names, worth))
    assert (found.state, found.leader, found.other) == ("decided", "b", "c")
    assert found.words.startswith(
        f"b beats all 3 others: +{found.mean:.2f} clicks a list over c, "
    )
    close = monitored.verdict_at(2_000, "four", names, (0.1, 0.32, 0.3, 0.0))
    undecided = standing_of(close)
    assert {undecided.leader, undecided.other} == {"b", "c"}
    assert undecided.state == "undecided"
    assert undecided.words.startswith(
        f"undecided between {undecided.leader} and {undecided.other}: "
    )
    late = monitored.verdict_at(40_000, "four", names, (0.1, 0.31, 0.3, 0.0))
    equal = standing_of(late)
    assert equal.state == "equal"
    assert equal.words.startswith(
        f"no ranker is better than {equal.leader} by 0.1 clicks a list; closest is "
    )
    ends = [x.to_come for x in late.drawn_by.pairs if equal.leader == x.a] + [
        (-(x.to_come[1] or 0.0), -(x.to_come[0] or 0.0))
        for x in late.drawn_by.pairs
        if equal.leader == x.b
    ]
    assert min(low or 0.0 for low, _ in ends) == equal.low


def test_what_is_ahead_without_a_winner_says_why() -> None:
    """Sessions that came are not beyond doubt, or too few were planned for."""
    verdict = crafted(0.4)
    found = verdict.drawn_by
    (pair,) = found.pairs
    doubtful = msgspec.structs.replace(pair, came=(-0.1, 0.9))
    method = msgspec.structs.replace(found, pairs=[doubtful], winner=None)
    told = standing_of(msgspec.structs.replace(verdict, methods={"ab": method}))
    assert told.state == "undecided"
    assert told.words == (
        "undecided: new leads old, +0.40 clicks a list, 0.35 to 0.45; for sessions "
        "that came it is not beyond doubt"
    )
    few = msgspec.structs.replace(
        found.sessions, enough=False,
        why="No winner yet: 80 impressions are too few where 90 are planned.",
    )  # fmt: skip
    method = msgspec.structs.replace(found, winner=None, sessions=few)
    told = standing_of(msgspec.structs.replace(verdict, methods={"ab": method}))
    assert told.words.endswith("; 80 impressions are too few where 90 are planned")


def test_before_anything_can_be_said_it_says_what_is_missing() -> None:
    """No list, too few sessions, equal lists, records that cannot be read."""
    fold = PreferencesFold({"x": settings_of("team-draft")}, 0)
    nothing = standing_of(verdict_of(fold.comparisons()[0]))
    assert nothing == Standing("waiting", "waiting: no list of it is counted yet")
    few = standing_of(judged("team-draft", BAD, 20))
    assert few.state == "undecided"
    assert few.words.startswith("undecided: too few sessions. They fill ")
    same = standing_of(judged("pairwise-preference", GOOD, 300))
    assert same.words == "undecided: no list tells its rankers apart yet"
    refused = standing_of(refused_verdict("x", 1, "counts of another release"))
    assert refused.state == "refused"
    assert refused.words == "refused: counts of another release"


def test_a_pace_of_nothing_promises_nothing() -> None:
    """Neither days nor a division by zero."""
    assert standing_of(crafted(0.02, 0.3), pace=0.0).days is None
    still = crafted(0.02, 0.3, first_ms=5, last_ms=5)
    found = standing_of(still)
    assert found.days is None
    assert found.words.endswith("needs")
    assert all(
        math.isfinite(x)
        for x in (found.mean or 0.0, found.low or 0.0, found.share or 0)
    )
