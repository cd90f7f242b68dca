"""Two rankers of an experiment, side by side: what is known of either being better."""

from dataclasses import dataclass
from typing import NamedTuple

from rankstream.notebook.counted import Counted
from rankstream.notebook.results import Result, remarks_of
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.terminal.words import counted
from rankstream.wire.nearest_name import meant
from rankstream.wire.verdicts import Ends, Verdict
from streams.comparisons.comparison import Comparison
from streams.comparisons.verdicts import verdict_of


class Preference(NamedTuple):
    """How much one ranker is preferred to another, by one way to credit clicks.

    Intervals of sessions to come and of those that came hold at any time, for all pairs
    of the method together. NaN where nothing can be said.
    """

    method: str
    a: str
    b: str
    preference: float
    to_come_low: float
    to_come_high: float
    came_low: float
    came_high: float
    lists: int
    winner: str


@dataclass(frozen=True)
class Compared(Answer):
    """The verdict on the experiment that compares two rankers.

    Parameters
    ----------
    preferences
        Of the two, by method; the one that drew the lists first.
    """

    a: str
    b: str
    verdict: Verdict
    preferences: list[Preference]


def comparison(
    found: Counted, a: str, b: str, method: str | None, experiment: str | None = None
) -> Result[Compared, Preference]:
    """The experiment of both that had a list last, and others that have both.

    Raises
    ------
    ValueError
        Where there is none, or no method of that name.
    """
    chosen, *others = experiments_of(found.comparisons, a, b, experiment)
    verdict = verdict_of(chosen)
    names = sorted(verdict.methods, key=lambda name: (name != verdict.method, name))
    if method is not None and method not in names:
        raise ValueError(
            f"a method must be one of {', '.join(names)}; got {method!r:.60}: "
            f"{meant(method, names)}"
        )
    rows = [
        _preference(verdict, name, a, b) for name in ([method] if method else names)
    ]
    drawn = verdict.methods[rows[0].method]
    title = (
        f"{verdict.experiment}, epoch {verdict.epoch}: {a} against {b}, "
        f"{counted(drawn.impressions, 'list')}, intervals of {1 - verdict.alpha:.0%}"
    )
    winner = f"winner: {drawn.winner}" if drawn.winner else "no winner yet"
    alarms = [
        f"{check.name} is {check.state}: {check.detail}"
        for check in verdict.health
        if check.state != "ok"
    ]
    also = [
        f"also in {each.name}, epoch {each.settings.epoch}: `experiment` chooses"
        for each in others
    ]
    told = remarks_of(
        winner, drawn.sessions.why, verdict.questions["winner"], *alarms, *also
    )
    answer = Compared(a, b, verdict, rows)
    return Result(answer, title, Preference, rows, told, pictured=verdict)


def experiments_of(
    comparisons: tuple[Comparison, ...], a: str, b: str, experiment: str | None = None
) -> list[Comparison]:
    """Those of both rankers, and of this name if one is given; the latest first."""
    both = [
        each
        for each in comparisons
        if {a, b} <= {*each.rankers} and a != b and experiment in (None, each.name)
    ]
    if both:
        key = lambda each: (each.last_ms, each.settings.epoch, each.name)  # noqa: E731
        return sorted(both, key=key, reverse=True)
    there = "; ".join(f"{each.name}: {', '.join(each.rankers)}" for each in comparisons)
    told = f"there is {there}" if there else "the log has none"
    raise ValueError(
        f"two rankers of one experiment must be named; {a!r:.60} and {b!r:.60} are "
        f'not, {told}: read the log with settings="shop.toml" that have '
        "[experiments.NAME], or value rankers with evaluate"
    )


def _preference(verdict: Verdict, method: str, a: str, b: str) -> Preference:
    of_method = verdict.methods[method]
    (pair,) = (each for each in of_method.pairs if {each.a, each.b} == {a, b})
    is_turned = pair.a != a
    mean = 0.0 - pair.mean if is_turned else pair.mean
    to_come, came = (
        _turned(ends) if is_turned else ends for ends in (pair.to_come, pair.came)
    )
    winner = of_method.winner if of_method.winner in (a, b) else None
    return Preference(
        method,
        a,
        b,
        mean,
        _number(to_come[0]),
        _number(to_come[1]),
        _number(came[0]),
        _number(came[1]),
        of_method.impressions,
        winner or "",
    )


def _turned(ends: Ends) -> Ends:
    """The interval of the opposite preference.

    Examples
    --------
    >>> _turned((0.0, 1.0)), _turned((None, 0.5))
    ((-1.0, 0.0), (-0.5, None))
    """
    low, high = ends
    return (None if high is None else 0.0 - high, None if low is None else 0.0 - low)


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
