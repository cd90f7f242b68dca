"""Rewrites where the general model is better over all, and worse on one query."""

from functools import cache

import msgspec
import numpy as np
import pytest

from models.decisions import meta_policy
from models.decisions.meta_policy import Rule
from models.decisions.tied_orders import expected_weights, tied_orders
from models.estimators.bias_curve import BiasCurve
from models.estimators.policy_reward import dcg_weights
from models.evaluation.bounds.families import Bound, confidence, intervals
from models.evaluation.bounds.several_queries import (
    lower_bound_over_queries,
    sums_of_classes,
)
from rankstream.configuration.decisions import META_POLICIES, DecisionSettings
from rankstream.settings import ModelSettings, Settings, StatisticsSettings
from rankstream.snapshots import Snapshot, features_hash
from rankstream.wire.candidates import candidates_key, candidates_value
from rankstream.wire.decisions import GENERAL, LOGGING, OWN, Decision, decode_key
from rankstream.wire.events import DETERMINISTIC
from streams.decisions.inputs import DecisionInputs, Made, rewrite_of
from streams.decisions.rewrite import Deployed
from streams.estimation.curve_replicates import CurveReplicates
from streams.native.counting import name_of_set
from streams.training.feature_records import FeatureRecords
from tests.placed_list import placement_probabilities
from tests.snapshot_factory import snapshot
from tests.streams.decisions.shown_lists import GROUPS, ITEMS, Shown, counted

ALPHA = np.array([1.0, 0.8, 0.7, 0.6, 0.6])
WEIGHTS = dcg_weights(5).relevant

LIKES = np.array([[0.05, 0.1, 0.1, 0.1, 0.9], [0.7, 0.5, 0.5, 0.3, 0.2]])
"""Of two queries: what a user who looks at an item clicks."""

SCORES = np.array(
    [[[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], [[1, 2, 3, 4, 5], [3, 2, 2, 1, 0]]], float
)
"""Of items by the general and the logging model. Of the first query that one has the
best item last, of the second the best order, with two items tied."""

RULE = DecisionSettings(general="m", logging="safe", confidence=0.5)
KEPT = 1
"""The query on which the logging model is better."""


@cache
def lists() -> tuple[Shown, ...]:
    """Lists of both queries, each as the logging model ranks it."""
    rng = np.random.default_rng(8)
    found = []
    for number in range(5_000):
        query = number % 2
        order = np.argsort(-SCORES[query, 1], kind="stable")
        clicked = rng.random(5) < ALPHA * LIKES[query, order]
        found.append(
            Shown(
                query,
                int(rng.integers(GROUPS)),
                order.tolist(),
                frozenset((np.flatnonzero(clicked) + 1).tolist()),
                DETERMINISTIC,
            )
        )
    return tuple(found)


def features() -> FeatureRecords:
    """What each model scores by is a feature of its own."""
    items, hashed = msgspec.msgpack.encode([*ITEMS]), features_hash(2)
    pairs = [
        (
            candidates_key(f"q{query}", name_of_set(items), hashed),
            candidates_value(items, SCORES[query].T.astype("<f4").tobytes(), 2),
        )
        for query in range(2)
    ]
    return FeatureRecords(pairs, hashed, 2)


def model(name: str, *weights: float) -> Snapshot:
    """One that was trained on other clicks."""
    own = np.array(weights, "<f4").tobytes()
    return snapshot(model=name, n_features=2, weights=own, updates=0)


def made(rule: DecisionSettings = RULE, shown: tuple[Shown, ...] | None = None) -> Made:
    """The first rewrite of a rule."""
    settings = Settings(
        models={
            "m": ModelSettings(features=2, versions="trained"),
            "safe": ModelSettings(features=2, versions="promoted"),
        },
        statistics=StatisticsSettings(groups=GROUPS, split_shares=[0.25, 0.25, 0.5]),
        decisions={"lists": rule},
    )
    hashed = features_hash(2)
    inputs = DecisionInputs(
        counted(lists() if shown is None else shown),
        {hashed: features()},
        Deployed(model("m", 1.0, 0.0), model("safe", 0.0, 1.0)),
        CurveReplicates(BiasCurve(ALPHA, np.zeros(5)), "given"),
    )
    return rewrite_of("lists", settings, inputs, number=1, at_ms=1_700_000_000_000)


def of_queries(found: Made) -> dict[str, Decision]:
    """Decisions of a rewrite by query."""
    return {
        decode_key(key).query: each for key, each in found.rewrite.decisions.items()
    }


@pytest.mark.parametrize("name", META_POLICIES)
def test_a_query_stays_with_the_logging_model_by_the_rule(name: str) -> None:
    """Its order is a decision of that model, equal scores are tied."""
    found = made(msgspec.structs.replace(RULE, meta_policy=name))
    manifest, decisions = found.rewrite.manifest, of_queries(found)
    assert (manifest.default, manifest.lacking) == ("m@0.1", [])
    is_kept = Rule(name) is not Rule.CLOSED
    assert (manifest.n_decisions, manifest.n_logging) == (is_kept, is_kept)
    assert any(manifest.shards) == is_kept
    kept = decisions[f"q{KEPT}"]
    if is_kept:
        assert (kept.policy, kept.order) == (LOGGING, [0, 1, 2, 3, 4])
        assert kept.blocks == [1, 2, 1, 1]
    else:
        assert kept.order == []
    assert decisions["q0"].order == []
    lower = {(x.policy, x.against): x.lower for x in kept.evidence}
    assert lower[LOGGING, GENERAL] > 0.0
    assert lower[OWN, LOGGING] < 0.0 < lower[OWN, GENERAL]


def test_the_order_that_is_kept_is_compared_as_it_is_served() -> None:
    """Not as lists of the model, which may be drawn by its scores."""
    found = made(msgspec.structs.replace(RULE, temperature=1.0)).decisions
    orders = tied_orders(SCORES[:, 1].ravel(), np.array([0, 5, 10]))
    for one, other in zip(found.orders[meta_policy.LOGGING], orders, strict=True):
        np.testing.assert_array_equal(one, other)
    served = expected_weights(orders, WEIGHTS)[KEPT * 5 :]
    general, drawn = (
        placement_probabilities(scores, 5) @ WEIGHTS for scores in SCORES[KEPT]
    )
    truth = (served - general) @ LIKES[KEPT]
    means = found.logging_over_general.differences.means()
    assert means[KEPT] == pytest.approx(truth, abs=0.03)
    assert truth > (drawn - general) @ LIKES[KEPT] + 0.06


def test_a_confidence_that_nothing_has_leaves_all_to_the_logging_model() -> None:
    """As its lists, and not as decisions of single queries; the interval holds."""
    found = made(msgspec.structs.replace(RULE, confidence=1.0))
    manifest = found.rewrite.manifest
    assert (manifest.default, manifest.lacking) == ("safe@0.1", ["bound"])
    assert manifest.paired[0] > 0.0
    assert (manifest.n_decisions, manifest.n_logging) == (0, 0)


def test_clicks_that_judge_change_who_is_chosen_and_no_policy() -> None:
    """All clicks of selection groups flipped: orders of policies keep their bits."""
    flipped = tuple(
        one._replace(clicked=frozenset(range(1, 6)) - one.clicked)
        if one.group >= GROUPS // 2
        else one
        for one in lists()
    )
    before, after = made().decisions, made(shown=flipped).decisions
    assert before.chosen.tolist() != after.chosen.tolist()
    assert before.orders.keys() == after.orders.keys()
    for policy, orders in before.orders.items():
        for one, other in zip(orders, after.orders[policy], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("bound", ["any-time", "one-look"])
def test_bounds_over_all_queries_are_those_that_judge(bound: str) -> None:
    """Also where what may err is divided among single queries, as they are not."""
    rule = msgspec.structs.replace(RULE, bound=bound)
    shared = msgspec.structs.replace(rule, is_shared=True)
    of_all, of_shared = (made(x).rewrite.manifest.general for x in (rule, shared))
    assert of_all is not None
    assert of_all == of_shared
    sums = made(rule).decisions.general.sums
    judged = (
        lower_bound_over_queries(sums_of_classes(sums), 0.5)
        if bound == "any-time"
        else intervals(
            sums, np.array([0, len(sums.groups)]), confidence(Bound(bound), 0.5)
        )[0, 0]
    )
    assert of_all.lower == pytest.approx(judged, rel=1e-12)
    assert of_all.lower < of_all.estimate < of_all.upper
