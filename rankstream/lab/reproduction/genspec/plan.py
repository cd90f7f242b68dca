"""Which policies are compared, how sure they have to be, and after how many lists."""

import zlib
from dataclasses import asdict, dataclass

from models.decisions.meta_policy import Rule

TABLE = "genspec"

N_RUNS = 5
"""Of each fold, where nothing else is asked for."""

N_LISTS = 10_000
"""Of each training query, where nothing else is asked for."""

SLOPES = (0.2, 0.025)
"""By how much P(click | looked at) grows with a grade: clear clicks, and noisy ones."""

NOISE, HIGHEST = 0.2, 4
"""P(click | looked at) of grade 0, and the highest grade; others lie evenly between."""

SELECTED = 0.3
"""Share of the lists that decide which policy is served; the others train policies."""

CONFIDENCES = (0.01, 0.5, 0.95)
"""How sure a bound is; 0 stands for estimates without bounds."""

LOGGING, GENERAL, SPECIAL = "logging", "generalisation", "specialisation"

ALL_LISTS = "specialisation, of all lists"
"""Trained on the lists that decide, too: nothing is left to decide by."""

PIE, HOTFIX, SHUFFLED = "PIE", "hotfix, learned", "hotfix, shown"
BANDITS = PIE, HOTFIX, SHUFFLED
"""Which choose lists themselves; hotfix shuffles them while it learns."""

UNBOUNDED = "no bounds"

ANY_TIME, ONE_LOOK, PER_ITEM, SEA = "any time", "Maurer-Pontil", "per item", "SEA"

BOUNDS = (ANY_TIME, ONE_LOOK, PER_ITEM, SEA)
"""Lower bounds of differences: at any time, at one look by lists, and by items of lists
as printed; and two bounds of two policies."""

KEPT, CLOSED, PRINTED = RULES = tuple(each.value for each in Rule)
"""What queries get whose own policy is not better for sure than both others: the
general one if that is better over all queries, but the list that was logged where it is
better than the general one on the query; without the latter; and as printed."""


def bounded(bound: str, confidence: float) -> str:
    """What tables call the comparisons of a bound."""
    return f"{bound}, {confidence:g}"


TESTS = (
    UNBOUNDED,
    *(bounded(bound, each) for bound in BOUNDS for each in CONFIDENCES),
)
"""By which policies are compared."""


def ruled(test: str, rule: str) -> str:
    """What tables call a meta-policy; of the first rule it is the name of its test."""
    return test if rule == KEPT else f"{test}, {rule}"


META = tuple(ruled(test, rule) for rule in RULES for test in TESTS)
"""Policies that serve one of three for each query."""

POLICIES = (LOGGING, GENERAL, SPECIAL, ALL_LISTS, *BANDITS, *META)


@dataclass(frozen=True)
class Cell:
    """Runs of one kind of users.

    Parameters
    ----------
    slope
        By how much P(click | looked at) grows with a grade.
    n_lists
        Of each training query, in the end.
    """

    slope: float
    n_lists: int

    def key(self) -> str:
        """What tells it from all others."""
        settings = NOISE, HIGHEST, SELECTED, POLICIES
        digest = f"{zlib.crc32(repr(settings).encode()):08x}"
        return "/".join(map(str, (*asdict(self).values(), digest)))

    def counts(self) -> list[int]:
        """Lists of each query after which policies are trained and chosen."""
        return counts_to(self.n_lists)


def counts_to(n_lists: int) -> list[int]:
    """1, 3, 10, 30 ... and the last one.

    Examples
    --------
    >>> counts_to(50)
    [1, 3, 10, 30, 50]
    """
    steps = [step * 10**power for power in range(9) for step in (1, 3)]
    return [*(step for step in steps if step < n_lists), n_lists]


def cells_of(n_lists: int) -> list[Cell]:
    """One of each kind of users."""
    return [Cell(slope, n_lists) for slope in SLOPES]
