"""Which rankers are compared by which lists, and after how many queries."""

import zlib
from dataclasses import asdict, dataclass

TABLE = "logopt"

N_RUNS = 10
"""Of each fold and cell, where nothing else is asked for: pairs of rankers."""

N_QUERIES = 1_000_000
"""Issued in the end, where nothing else is asked for."""

FIRST = 100
"""Queries before policies are optimised for the first time by clicks."""

LENGTH = 10
"""Documents of a list that users look at, at rank k by chance 1 / k."""

LEAST_CHANCE, PER_GRADE, HIGHEST = 0.1, 0.225, 4
"""P(click | looked at) of grade 0, what a grade adds, and the highest one."""

CLOSE = 0.01
"""Clicks per list that two rankers of a close pair are apart at most."""

RIVAL = "counterfactual, A/B lists"
TESTED = "A/B test"
UNIFORM = "counterfactual, uniform"
LOGOPT = "LogOpt"
AWARE = "LogOpt, intervention-aware"
ESTIMATED = "LogOpt, theta estimated"
OPTIMUM = "scores per query"
WITHOUT_RELEVANCE = "scores per query, equal zeta"

UNBIASED = (
    TESTED, RIVAL, UNIFORM, LOGOPT, AWARE, ESTIMATED, OPTIMUM, WITHOUT_RELEVANCE
)  # fmt: skip
"""Estimates of the difference in clicks; by their lists."""

TEAM_DRAFT, PROBABILISTIC, OPTIMIZED = "team-draft", "probabilistic", "optimized"

INTERLEAVED = TEAM_DRAFT, PROBABILISTIC, OPTIMIZED
"""Preferences, which are no differences in clicks."""

METHODS = (*UNBIASED, *INTERLEAVED)


@dataclass(frozen=True)
class Cell:
    """Pairs of rankers.

    Parameters
    ----------
    is_close
        Whether they are at most `CLOSE` apart, and not more.
    n_queries
        Issued, in the end.
    """

    is_close: bool
    n_queries: int

    @property
    def name(self) -> str:
        """What tables call its pairs."""
        return f"at most {CLOSE:g} apart" if self.is_close else f"over {CLOSE:g} apart"

    def key(self) -> str:
        """What tells it from all others."""
        settings = LENGTH, LEAST_CHANCE, PER_GRADE, HIGHEST, CLOSE, METHODS
        digest = f"{zlib.crc32(repr(settings).encode()):08x}"
        return "/".join(map(str, (*asdict(self).values(), digest)))

    def counts(self) -> list[int]:
        """Queries after which errors are measured, and policies optimised again."""
        return counts_to(self.n_queries)


def counts_to(n_queries: int) -> list[int]:
    """100, 1,000 ... and the last one.

    Examples
    --------
    >>> counts_to(5_000)
    [100, 1000, 5000]
    """
    steps = [10**power for power in range(2, 10)]
    return [*(step for step in steps if step < n_queries), n_queries]


def cells_of(n_queries: int) -> list[Cell]:
    """Close pairs, and others: as many of both."""
    return [Cell(is_close, n_queries) for is_close in (True, False)]
