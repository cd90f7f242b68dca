"""What an experiment comes to, in a sentence: who leads, and what is still needed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rankstream.operations.answers.as_builtins import Answer
from rankstream.wire.verdicts import MethodVerdict, PairVerdict, Verdict

DIFFERENCE = 0.1
"""The size that an undecided experiment is measured by, unless another is stated."""

MS_A_DAY = 86_400_000.0

State = Literal["decided", "equal", "undecided", "waiting", "refused"]


@dataclass(frozen=True)
class Standing(Answer):
    """Where an experiment stands.

    Parameters
    ----------
    state
        `decided`: there is a winner. `equal`: the stated difference is excluded.
        `undecided`: neither is so. `waiting`: no list is counted. `refused`: its
        records cannot be read.
    words
        All of it in a sentence.
    leader, other
        The pair that decides: of more than two rankers, the closest to the leader.
    mean, low, high
        How far the leader is ahead, and the interval for sessions to come.
    is_safe_to_stop
        Whether more lists would change nothing, and no check of health is an alarm.
    share
        Of the sessions that are needed to tell a difference of `size` from none, or to
        exclude it, in (0, 1); None where it is decided or nothing can be said.
    days
        Until then at the present pace.
    """

    state: State
    words: str
    leader: str = ""
    other: str = ""
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    is_safe_to_stop: bool = False
    share: float | None = None
    size: float | None = None
    days: float | None = None


def standing_of(
    verdict: Verdict, pace: float | None = None, difference: float = DIFFERENCE
) -> Standing:
    """Where an experiment stands by its verdict.

    The width of an interval goes with one over the root of the number of sessions, but
    for a logarithm, so a difference of d is told from none once (width / 2 d)^2 times
    as many have come.

    Parameters
    ----------
    pace
        Lists a day; that of all the time since the first list if not given.
    difference
        What an effect must be worth to be waited for, above 0, in units of the method.
    """
    found = verdict.drawn_by
    if verdict.method == "refused":
        why = next((str(check.detail) for check in verdict.health), "")
        return Standing("refused", f"refused: {why}")
    if not found.impressions:
        return Standing("waiting", "waiting: no list of it is counted yet")
    pair = _closest(verdict.rankers, found)
    if pair is None or pair.low is None or pair.high is None:
        return _unsaid(found, pair)
    if found.winner is not None:
        return _decided(verdict, pair)
    if pair.low <= 0.0 and max(-pair.low, pair.high) < difference:
        return _equal(verdict, pair, difference)
    return _undecided(verdict, pair, pace, difference)


@dataclass(frozen=True)
class _Pair:
    """Two rankers, the one that leads first."""

    leader: str
    other: str
    mean: float
    low: float | None
    high: float | None
    is_beyond_doubt: bool

    @property
    def half(self) -> float:
        """Half of the width."""
        return ((self.high or 0.0) - (self.low or 0.0)) / 2.0

    @property
    def middle(self) -> float:
        """How far the middle is from none."""
        return abs((self.high or 0.0) + (self.low or 0.0)) / 2.0


def _seen_from(pair: PairVerdict, leader: str) -> _Pair:
    low, high = pair.to_come
    came = pair.came
    if pair.a == leader:
        is_came = came[0] is not None and came[0] > 0.0
        return _Pair(pair.a, pair.b, pair.mean, low, high, is_came)
    is_came = came[1] is not None and came[1] < 0.0
    if low is not None and high is not None:
        low, high = -high, -low
    return _Pair(pair.b, pair.a, 0.0 - pair.mean, low, high, is_came)


def _closest(rankers: Sequence[str], found: MethodVerdict) -> _Pair | None:
    """The leader, and of all others the one that it is the least ahead of."""
    order = sorted(
        range(len(rankers)),
        key=lambda i: (found.copeland[i], found.bradley_terry[i]),
        reverse=True,
    )
    leader = found.winner or (rankers[order[0]] if order else "")
    own = [_seen_from(x, leader) for x in found.pairs if leader in (x.a, x.b)]
    if len(own) == 1 and own[0].mean < 0.0 and found.winner is None:
        own = [_seen_from(found.pairs[0], own[0].other)]
    return min(own, key=lambda x: (x.low is not None, x.low or 0.0), default=None)


def _unsaid(found: MethodVerdict, pair: _Pair | None) -> Standing:
    """Of too few sessions, or rankers that were never told apart."""
    sessions = found.sessions
    why = "no list tells its rankers apart yet"
    if sessions.why:
        why = _uncapitalised(sessions.why.partition(": ")[2] or sessions.why)
    words = f"undecided: {why}".rstrip(".")
    if pair is None:
        return Standing("undecided", words)
    return Standing("undecided", words, pair.leader, pair.other, pair.mean)


def _decided(verdict: Verdict, pair: _Pair) -> Standing:
    n_others = len(verdict.rankers) - 1
    beaten = f"beats all {n_others} others" if n_others > 1 else f"beats {pair.other}"
    over = f" over {pair.other}" if n_others > 1 else ""
    alarms = [check.name for check in verdict.health if check.state == "alarm"]
    rest = "safe to stop"
    if alarms:
        rest = f"look at its health before you stop: {', '.join(alarms)}"
    words = f"{pair.leader} {beaten}: {_effect(verdict, pair, over)}; {rest}"
    return _standing("decided", words, pair, is_safe_to_stop=not alarms)


def _equal(verdict: Verdict, pair: _Pair, difference: float) -> Standing:
    alarms = any(check.state == "alarm" for check in verdict.health)
    rest = "look at its health before you stop" if alarms else "safe to stop"
    ends = _ends(pair)
    words = f"no difference of {difference:g} {_unit(verdict)}: {ends}; {rest}"
    if len(verdict.rankers) > 2:
        # All others are further behind the leader, as `_closest` has chosen.
        words = (
            f"no ranker is better than {pair.leader} by {difference:g} "
            f"{_unit(verdict)}; closest is {pair.other}: {ends}; {rest}"
        )
    return _standing("equal", words, pair, is_safe_to_stop=not alarms)


def _undecided(
    verdict: Verdict, pair: _Pair, pace: float | None, difference: float
) -> Standing:
    """How far it is to the nearer end: a winner, or the stated difference excluded."""
    found = verdict.drawn_by
    low, undecided = pair.low or 0.0, "undecided"
    if len(verdict.rankers) > 2 and low <= 0.0:
        undecided = f"undecided between {pair.leader} and {pair.other}"
    size, room = min(difference, pair.middle), difference - pair.middle
    said = f"a difference of {size:.2g}"
    if room > size:
        size, said = difference, f"excluding a difference of {difference:.2g}"
    else:
        room = size
    share = min(0.99, (room / pair.half) ** 2)
    if low > 0.0:
        doubt = "for sessions that came it is not beyond doubt"
        if found.sessions.why:
            doubt = _uncapitalised(found.sessions.why.partition(": ")[2].rstrip("."))
        elif pair.is_beyond_doubt:
            doubt = "too many of its lists were cut short"
        words = (
            f"{undecided}: {pair.leader} leads {pair.other}, {_effect(verdict, pair)}"
        )
        return _standing("undecided", f"{words}; {doubt}", pair)
    if share < 0.01:
        words = f"{undecided}: {_ends(pair)}; no end is in sight"
        return _standing("undecided", words, pair)
    days = _days_left(verdict, share, pace)
    words = f"{undecided}: {100.0 * share:.0f} % of the sessions that {said} needs"
    words += f"; {in_words(days)}" if days is not None else ""
    return _standing("undecided", words, pair, share=share, size=size, days=days)


def _standing(state: State, words: str, pair: _Pair, **more: Any) -> Standing:
    named = pair.leader, pair.other, pair.mean, pair.low, pair.high
    return Standing(state, words, *named, **more)


def _days_left(verdict: Verdict, share: float, pace: float | None) -> float | None:
    n = verdict.drawn_by.impressions
    if pace is None:
        passed_ms = verdict.last_ms - verdict.first_ms
        pace = n * MS_A_DAY / passed_ms if passed_ms > 0 else 0.0
    return n * (1.0 / share - 1.0) / pace if pace > 0.0 else None


def pace_of(points: Sequence[tuple[int, int]]) -> float | None:
    """Lists a day over the last day that was seen; None from one point of time.

    Parameters
    ----------
    points
        Event times in milliseconds, with the lists until then; the oldest first.
    """
    last_ms, last = points[-1]
    first_ms, first = next(x for x in points if last_ms - x[0] <= MS_A_DAY)
    if first_ms >= last_ms:
        return None
    return max(0, last - first) * MS_A_DAY / (last_ms - first_ms)


def in_words(days: float) -> str:
    """How long something takes, as exactly as such an estimate is.

    Examples
    --------
    >>> in_words(0.01), in_words(0.2), in_words(2.6), in_words(100.0), in_words(5e3)
    ('less than an hour', 'about 5 hours', 'about 3 days', 'about 14 weeks', 'years')
    """
    hours = days * 24.0
    if hours < 1.0:
        return "less than an hour"
    for unit, size, most in (("hour", 1.0, 36.0), ("day", 24.0, 1_440.0)):
        if hours < most:
            number = round(hours / size)
            return f"about {number} {unit}{'s' * (number > 1)}"
    return f"about {round(days / 7.0)} weeks" if days < 730.0 else "years"


def _unit(verdict: Verdict) -> str:
    return "clicks a list" if verdict.clicks_per_list else "of preference a list"


def _effect(verdict: Verdict, pair: _Pair, over: str = "") -> str:
    digits = _digits(pair)
    return f"{pair.mean:+.{digits}f} {_unit(verdict)}{over}, {_ends(pair)}"


def _ends(pair: _Pair) -> str:
    digits = _digits(pair)
    return f"{pair.low:.{digits}f} to {pair.high:.{digits}f}"


def _digits(pair: _Pair) -> int:
    """Decimals that half of the interval still moves; two at least, six at most."""
    if pair.half <= 0.0:
        return 2
    return min(6, max(2, -math.floor(math.log10(pair.half))))


def _uncapitalised(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
