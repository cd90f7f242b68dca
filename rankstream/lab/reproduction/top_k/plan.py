"""Which estimators and losses learn from which clicks, and how often."""

import zlib
from dataclasses import asdict, dataclass

TOP_K, LOSSES = "top-k", "losses"


N_RUNS = 10
"""Of each fold, where nothing else is asked for."""

NDCG, ARP = "ndcg", "arp"
"""Metrics of a ranker on test queries, as results name them."""

METRIC_CUTOFF = 5
"""Ranks that DCG and NDCG count."""

N_CLICKS = (10**3, 10**4, 10**5, 10**6, 10**7, 10**8)
"""By which tables go; the last one is that of tables by k."""

CUTOFFS = (1, 2, 3, 5, 7, 10)
"""Documents that are shown, by which tables go; those beyond most lists are left out.
"""

MOST = 0.5
"""More of the lists than this must be longer than k for a claim about k."""

DISPLAYED = 5
"""Documents that are shown where the number of clicks varies."""

WHOLE = 0
"""As a cutoff: lists are shown as they are."""

PRODUCTION, LABELS = "production", "full information"
"""In place of estimators: the ranker that logged, and one trained from labels."""

ESTIMATORS = (
    ("policy-aware", True),
    ("oblivious", False),
    ("oblivious", True),
    ("rerank", False),
    ("rerank", True),
    ("affine", False),
    ("affine", True),
)
"""Estimators, and whether they learn from lists whose last document is random."""

LEAST = {"none": 0.0, "1/50": 0.02, "1/10": 0.1}
"""To which propensities of policy-aware training are raised: held-out clicks choose."""

TRUNCATED, LINEAR_ARP = "truncated-lambda", "arp-linear"
"""What optimises DCG and the average relevant position, in tables of estimators."""

ARP_LOSSES = LINEAR_ARP, "arp-logistic"
"""Losses for the ranks of all that is relevant, not of what is shown first."""

PRODUCTION_LOSS = LINEAR_ARP

CANDIDATES = (
    "truncated-lambda", "lambda-loss", "lambda-loss-at-k", "dcg-at-k-linear",
    "dcg-at-k-logistic",
)  # fmt: skip
"""Losses for DCG of the first ranks, of which one is selected."""

SELECTED = "selected"
"""In place of a loss: all candidates, and the one that held-out clicks choose."""


@dataclass(frozen=True)
class Logging:
    """What was shown, and how often it was clicked.

    Parameters
    ----------
    cutoff
        Documents of a list, `WHOLE` for all.
    is_randomised
        Whether the last document shown is any one of those that are not above it.
    n_clicks
        Expected, of all training queries together.
    """

    cutoff: int
    is_randomised: bool
    n_clicks: int


@dataclass(frozen=True)
class Cell:
    """One entry of a table: what is learned from which clicks by which loss.

    `logging` counts for nothing under `PRODUCTION` and `LABELS`, and is all 0 there.
    """

    estimator: str
    loss: str
    logging: Logging

    def key(self) -> str:
        """What tells it from all others."""
        parts = self.estimator, self.loss, *asdict(self.logging).values()
        return "/".join(map(str, parts))

    @property
    def label(self) -> str:
        """What tables and pictures call the estimator."""
        if self.estimator in (PRODUCTION, LABELS):
            return self.estimator
        if self.logging.cutoff == WHOLE:
            return "no cutoff"
        is_plain = self.estimator == "policy-aware" or not self.logging.is_randomised
        return self.estimator if is_plain else f"{self.estimator}, randomised"


NOTHING = Logging(WHOLE, is_randomised=False, n_clicks=0)


def logging_seed(logging: Logging) -> int:
    """Tells draws of clicks apart; cells of one logging have the same clicks."""
    return zlib.crc32(repr(tuple(asdict(logging).values())).encode())


def over_cutoffs(
    estimators: tuple[tuple[str, bool], ...],
    loss: str,
    cutoffs: tuple[int, ...],
    n_clicks: int,
) -> list[Cell]:
    """Estimators by the number of documents shown, with what they are compared to."""
    cells = [
        Cell(name, loss, Logging(cutoff, is_randomised, n_clicks))
        for name, is_randomised in estimators
        for cutoff in cutoffs
    ]
    return [*cells, *references(loss, n_clicks)]


def over_clicks(
    estimators: tuple[tuple[str, bool], ...],
    loss: str,
    cutoff: int,
    n_clicks: tuple[int, ...],
) -> list[Cell]:
    """Estimators by the number of clicks, with what they are compared to."""
    cells = [
        Cell(name, loss, Logging(cutoff, is_randomised, count))
        for name, is_randomised in estimators
        for count in n_clicks
    ]
    whole = [references(loss, count) for count in n_clicks]
    return list(dict.fromkeys([*cells, *(cell for few in whole for cell in few)]))


def selections(cutoff: int, n_clicks: tuple[int, ...]) -> list[Cell]:
    """Candidates learned from the same clicks, by the number of these."""
    return [Cell("policy-aware", SELECTED, Logging(cutoff, True, n)) for n in n_clicks]


def references(loss: str, n_clicks: int) -> list[Cell]:
    """What logged, what whole lists give, and what labels give."""
    whole = Logging(WHOLE, is_randomised=False, n_clicks=n_clicks)
    return [
        Cell(PRODUCTION, loss, NOTHING),
        Cell("oblivious", loss, whole),
        Cell(LABELS, loss, NOTHING),
    ]
