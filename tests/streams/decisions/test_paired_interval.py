"""The interval over all queries is that of `evaluate`, on the same lists."""

import numpy as np
import pytest

from models.decisions.click_sums import differences_of
from models.decisions.over_all_queries import paired_difference
from models.decisions.tied_orders import expected_weights, tied_orders
from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import asked_for
from models.estimators.policy_reward import dcg_weights
from models.estimators.splits import Splits
from rankstream.wire.events import DETERMINISTIC
from streams.decisions.evidence import evidence_of
from streams.estimation.curve_replicates import CurveReplicates
from streams.estimation.evaluation import evaluated
from streams.estimation.question import Question
from streams.estimation.targets import QueryRanking, RankingTarget
from tests.streams.decisions.shown_lists import GROUPS, ITEMS, Shown, counted

ALPHA = np.array([0.8, 0.8, 0.7, 0.6, 0.6])
CURVES = {"position": np.zeros(5), "trust": np.array([0.2, 0.1, 0.05, 0.02, 0.01])}
SPLITS = Splits(GROUPS, (0, 1), (), (2, 3, 4, 5, 6, 7), 0.0)
WEIGHTS = dcg_weights(5).relevant
LOGGED, GENERAL = [1, 0, 3, 2, 4], [4, 2, 0, 1, 3]


def lists():
    """Of one query, as it was logged; groups have tastes of their own."""
    rng = np.random.default_rng(2)
    likes = rng.random((GROUPS, 5))
    for _ in range(600):
        group = int(rng.integers(GROUPS))
        clicked = np.flatnonzero(rng.random(5) < ALPHA * likes[group, LOGGED]) + 1
        yield Shown(0, group, LOGGED, frozenset(clicked.tolist()), DETERMINISTIC)


@pytest.mark.parametrize("bias", CURVES)
def test_it_is_that_of_evaluate(bias):
    """Of a query that one policy logged, to the last bits, also under trust bias."""
    statistics, curve = counted(lists()), BiasCurve(ALPHA, CURVES[bias])
    targets = {
        name: RankingTarget({"q0": QueryRanking(tuple(ITEMS[item] for item in order))})
        for name, order in (("shop", LOGGED), ("search", GENERAL))
    }
    question = Question(
        asked_for("intervention-aware"),
        CurveReplicates(curve, "given"),
        lambda known: dcg_weights(known.n_ranks),
        GROUPS,
        SPLITS.selection,
        base="shop",
    )
    comparison = evaluated(statistics.columns(), targets, question).comparison
    assert comparison is not None
    told = comparison.differences.of(slice(comparison.names.index("search"), None))

    evidence = evidence_of(statistics, SPLITS, curve, WEIGHTS)
    starts = evidence.sets.starts
    general, logging = (
        expected_weights(tied_orders(-np.argsort(order).astype(float), starts), WEIGHTS)
        for order in (GENERAL, LOGGED)
    )
    found = paired_difference(
        differences_of(
            evidence.policies, evidence.selection, starts, general, logging
        ).sums
    )
    assert found.degrees == told.degrees == len(SPLITS.selection) - 1
    for name in ("values", "errors", "low", "high"):
        own, other = getattr(found, name)[0], getattr(told, name)[0]
        assert own == pytest.approx(other, rel=1e-6)
    assert found.errors[0] > 0.01
