"""By what a canary is judged, and what a judgement says; see `canary`."""

import itertools
import math
from dataclasses import dataclass
from enum import StrEnum

from models.evaluation.session_sequence import LEAST_GROUPS

WITHOUT_CLICK = "without click"
"""The guardrail of which more is worse: lists without a click."""


class Verdict(StrEnum):
    """What is to be done."""

    WORSE = "worse"
    """It is worse for sure: withdraw it at once."""

    IMBALANCE = "imbalance"
    """Arms have other shares of the lists than those meant: find out why."""

    RISE = "rise"
    """It is not worse by more than the margin: on to the next share, or to all."""

    UNDECIDED = "undecided"
    """The lists that were planned have come, and it may not rise: it ends."""

    WAIT = "wait"
    """Nothing yet."""


@dataclass(frozen=True)
class Rules:
    """By what a canary is judged, fixed when it begins.

    Attributes
    ----------
    shares
        Of sessions, rising, each in (0, 1): those of the stages.
    planned
        Lists of the canary by which it ends, 1 or more; intervals are narrowest there.
    least
        Lists of the canary in a stage before it rises, 1 or more.
    alpha
        In (0, 1): probability, in the limit of many sessions, that it is ever taken
        for worse where it is not.
    margin
        Clicks per list that it may be worse by and still rise, 0 or more.
    guardrails
        Names of the columns beside clicks, each once: `WITHOUT_CLICK`, of which more
        is worse, and classes of actions, of which less is.

    Raises
    ------
    ValueError
        Where one is out of its range.
    """

    shares: tuple[float, ...]
    planned: int
    least: int
    alpha: float = 0.05
    margin: float = 0.0
    guardrails: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be judged by."""
        ends = (0.0, *self.shares, 1.0)
        rises = all(a < b for a, b in itertools.pairwise(ends))
        if not self.shares or not rises:
            raise ValueError(f"shares must rise within (0, 1); got {self.shares}")
        if self.planned < 1 or self.least < 1:
            raise ValueError(
                "planned and least must be 1 or more lists; got "
                f"{self.planned} and {self.least}"
            )
        if not 0.0 < self.alpha < 1.0:
            raise ValueError(f"alpha must lie in (0, 1); got {self.alpha}")
        if not 0.0 <= self.margin < math.inf:
            raise ValueError(f"margin must be 0 or more; got {self.margin}")
        if len(set(self.guardrails)) < len(self.guardrails):
            raise ValueError(f"guardrails must be named once; got {self.guardrails}")

    @property
    def alpha_each(self) -> float:
        """The share of alpha of clicks, and of each guardrail."""
        return self.alpha / (1 + len(self.guardrails))

    @property
    def planned_information(self) -> float:
        """`planned` in the unit of N, p (1 - p) for each list.

        A list of the canary comes with p (1 - p) / p of it on average; stages count
        alike, as nobody knows beforehand how long each will be.
        """
        return self.planned * (1.0 - sum(self.shares) / len(self.shares))


@dataclass(frozen=True)
class Difference:
    """How far the canary moves a quantity per list, with the interval of it.

    Attributes
    ----------
    name
        `clicks`, or that of the guardrail.
    mean
        Canary minus served, by the weights p (1 - p); NaN before both have lists.
    low, high
        Ends of the interval, infinite where too little came.
    """

    name: str
    mean: float
    low: float
    high: float

    @property
    def is_worse(self) -> bool:
        """Whether all of the interval lies on the wrong side of 0."""
        return self.low > 0.0 if self.name == WITHOUT_CLICK else self.high < 0.0

    @property
    def words(self) -> str:
        """For a person."""
        if math.isnan(self.mean) or not math.isfinite(self.low):
            # While arms are far from their shares the mean says little of clicks.
            return f"nothing can be said of {self.name} yet"
        found = f"{self.name} differ by {self.mean:+.4f} per list"
        return f"{found} ({self.low:+.4f} to {self.high:+.4f})"


@dataclass(frozen=True)
class Judgement:
    """The verdict, and what it follows from.

    Attributes
    ----------
    verdict
        What is to be done.
    clicks
        Per list.
    guardrails
        In the order of the rules.
    canary_lists, served_lists
        Of all stages.
    meant
        Lists that the canary should have by the shares, of both arms' together.
    effective_groups
        Of the arm that has fewer; differences are told above `LEAST_GROUPS`.
    needed
        Lists of the canary that this stage lacks before it may rise.
    of_planned
        Lists of the canary over those planned; from 1 on it ends unless it may rise.
    is_balanced
        Whether the shares of lists may be those meant.
    stage
        The present one, from 1.
    rules
        By which it was judged.
    """

    verdict: Verdict
    clicks: Difference
    guardrails: tuple[Difference, ...]
    canary_lists: int
    served_lists: int
    meant: float
    effective_groups: float
    needed: int
    of_planned: float
    is_balanced: bool
    stage: int
    rules: Rules

    @property
    def words(self) -> str:
        """For a person, one sentence."""
        after = f"after {self.canary_lists:,} lists of the canary"
        if self.verdict is Verdict.WORSE:
            all_of_them = (self.clicks, *self.guardrails)
            worse = "; ".join(one.words for one in all_of_them if one.is_worse)
            return f"worse {after}: {worse}"
        if self.verdict is Verdict.IMBALANCE:
            return (
                f"the canary has {self.canary_lists:,} lists where {self.meant:,.0f} "
                f"were meant, of {self.canary_lists + self.served_lists:,}: sessions "
                "are dealt otherwise, lists are lost, or users ask more or less often "
                "with it"
            )
        if self.verdict is Verdict.RISE:
            is_last = self.stage == len(self.rules.shares)
            onwards = "it may be served to all" if is_last else "its share may rise"
            return f"{onwards} {after}: {self.clicks.words}"
        if self.verdict is Verdict.UNDECIDED:
            planned = f"{self.rules.planned:,} were planned"
            return f"undecided {after}, {planned}: {self.clicks.words}"
        return f"{self._lack}; {after} {self.clicks.words}"

    @property
    def _lack(self) -> str:
        """What it waits for."""
        if self.clicks.low > -self.rules.margin:
            return f"{self.needed:,} more lists are needed in this stage"
        if self.effective_groups <= LEAST_GROUPS:
            return (
                "too few sessions, or a few with most of the lists: they fill "
                f"{self.effective_groups:.1f} of 100 groups evenly, and more than "
                f"{LEAST_GROUPS:.0f} are needed, some 54 sessions"
            )
        if not math.isfinite(self.clicks.low):
            return "clicks lie in too few groups of sessions"
        return f"a loss of more than {self.rules.margin:g} is not excluded"
