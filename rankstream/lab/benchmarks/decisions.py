"""Statistics of many queries read as evidence, and all of them decided.

Queries are those of `statistics`: certain lists, two lists by a coin, and lists drawn
by Plackett-Luce from 20 candidates, a third each, in 20 groups. The general and the
logging policy are drawn.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice

import numpy as np

from models.decisions.over_all_queries import over_all_queries
from models.decisions.tied_orders import expected_weights, tied_orders
from models.estimators.bias_curve import position_curve
from models.estimators.policy_reward import dcg_weights
from models.estimators.splits import split_groups
from models.evaluation.session_rule import Rule, are_better
from rankstream.lab.benchmarks.decided_lists import measure_lists
from rankstream.lab.benchmarks.harness import Figure, alone_figure, timed
from rankstream.lab.benchmarks.statistics import (
    GROUPS,
    Record,
    many,
    mixed_templates,
)
from streams.decisions.decide import Decisions, Judgements, decide
from streams.decisions.declared_policies import DeclaredPolicy, SureRanking
from streams.decisions.evidence import Evidence, evidence_of
from streams.statistics.reader import Statistics

N_QUERIES = 100_000
N_TEMPLATES = 10
N_RANKS = 10
READ_S, DECIDED_S = (60.0, 120.0), (3.0, 10.0)
"""Goal and floor."""


def measure(*, quick: bool = False) -> list[Figure]:
    """Seconds to read and to decide, and what lists cost by that."""
    n_queries = 60 if quick else N_QUERIES
    decided(evidence_from(statistics_of(3, 1)))  # kernels are compiled before
    statistics = statistics_of(n_queries, 1 if quick else N_TEMPLATES)
    read = timed(lambda: evidence_from(statistics))
    made = timed(lambda: decided(read.result))
    told = f"{n_queries:,} queries of 20 items in {GROUPS} groups"
    return [
        alone_figure(f"{told} read as evidence", read.seconds, "s of CPU", READ_S),
        alone_figure(f"{told} decided", made.seconds, "s of CPU", DECIDED_S),
        *measure_lists(quick=quick),
    ]


def statistics_of(n_queries: int, n_templates: int) -> Statistics:
    """Those of so many queries, a third of them of each policy."""
    templates = mixed_templates(n_templates)

    def records() -> Iterator[Record]:
        for scope in islice(many(templates), n_queries):
            yield from scope

    return Statistics(records())


def evidence_from(statistics: Statistics) -> Evidence:
    """All of it, under a plain curve."""
    curve = position_curve(1.0 / np.arange(1.0, N_RANKS + 1.0))
    weights = dcg_weights(N_RANKS).relevant
    return evidence_of(statistics, split_groups(GROUPS), curve, weights)


def decided(evidence: Evidence) -> Decisions:
    """By the bound and the rule for sessions that are the default."""
    rng = np.random.default_rng(0)

    def drawn() -> DeclaredPolicy:
        scores = rng.normal(size=int(evidence.sets.starts[-1]))
        orders = tied_orders(scores, evidence.sets.starts)
        weights = expected_weights(orders, evidence.weights)
        return DeclaredPolicy(weights, ranking=SureRanking(orders, weights))

    of_each = partial(are_better, rule=Rule())
    of_all = partial(over_all_queries, rule=Rule())
    return decide(evidence, drawn(), drawn(), Judgements(of_each, of_all))
