"""Snapshots valued by the features that were logged, as the trainer ranks by them."""

from functools import cache

import msgspec
import numpy as np
import pytest

from models.estimators.bias_curve import position_curve
from models.estimators.choice import asked_for
from models.estimators.policy_reward import click_weights_of
from rankstream.ranking.scoring import normalised, scores_of
from rankstream.wire.envelope import SnapshotError
from rankstream.wire.topics import CANDIDATES
from streams.estimation.curve_replicates import CurveReplicates
from streams.estimation.evaluation import evaluated
from streams.estimation.question import Question
from streams.estimation.targets import Candidates, SnapshotTarget
from streams.native.counting import name_of_set
from streams.statistics.reader import Statistics
from streams.training.feature_records import FeatureRecords
from tests.placed_list import placement_probabilities
from tests.streams.training.shop import (
    EXAMINATION,
    N_FEATURES,
    Shop,
    model_of,
    settings_of,
)

GROUPS, CUTOFF = 10, 5


@cache
def shop_of():
    """Lists of a model that knows nothing, and one that was trained from them."""
    models = {
        "search": model_of(examination=EXAMINATION.tolist()),
        "shadow": model_of(
            learns_from=["search"],
            least_support=0.0,
            examination=EXAMINATION.tolist(),
            most_unsupported=1.0,
        ),
    }
    shop = Shop(settings_of(models, groups=GROUPS), shown="search")
    shop.show(2_500, np.random.default_rng(4))
    shop.pipeline.end()
    shop.trainer.train("shadow")
    return shop


@cache
def trained():
    """What was trained."""
    return shop_of().snapshot("shadow")


CURVE = CurveReplicates(position_curve(EXAMINATION), "given")


def features_of(snapshot):
    """Those of its list."""
    records = (
        (output.key, output.value)
        for output in shop_of().outputs
        if output.topic == CANDIDATES and output.key
    )
    return FeatureRecords(records, snapshot.features_hash, N_FEATURES)


def target_of(snapshot, temperature=1.0):
    """Ranked by logged features."""
    return SnapshotTarget(snapshot, features_of(snapshot), temperature)


def asked_of(query):
    """All documents of a query."""
    start, end = shop_of().data.offsets[query : query + 2].tolist()
    items = [f"d{row}" for row in range(end - start)]
    name = name_of_set(msgspec.msgpack.encode(sorted(items)))
    is_growing = False
    return Candidates(shop_of().data.query_ids[query], name, is_growing, items, CUTOFF)


def scored(snapshot, query):
    """As a ranker scores the documents of a query."""
    rows = slice(*shop_of().data.offsets[query : query + 2].tolist())
    features = normalised(shop_of().data.features[rows], snapshot.normalisation)
    return scores_of(features, np.frombuffer(snapshot.weights, "<f4"), [])


@pytest.mark.parametrize("query", [0, 7])
def test_it_places_items_as_it_would_draw_them(query):
    """By exact probabilities of Plackett-Luce, at the temperature that is asked for."""
    for temperature in (1.0, 0.25):
        found = target_of(trained(), temperature).placed(asked_of(query))
        assert found is not None
        scores = scored(trained(), query).astype(float) / temperature
        expected = placement_probabilities(scores, CUTOFF)
        assert found.items == pytest.approx(expected, abs=1e-9)
        assert not found.absent.any()
    best = target_of(trained(), 0.0).placed(asked_of(query))
    assert best is not None
    order = np.argsort(-scored(trained(), query))[:CUTOFF]
    assert best.items[order] == pytest.approx(np.eye(CUTOFF))


def test_it_says_nothing_of_candidates_without_features():
    """Nor of lists without candidates."""
    target, asked = target_of(trained()), asked_of(0)
    assert target.placed(asked._replace(name=b"\0" * 16)) is None
    assert target.placed(asked._replace(query="other")) is None
    assert target.placed(asked._replace(is_growing=True)) is None


def of_groups(groups):
    """Figures of both snapshots, from clicks of some groups."""
    statistics = Statistics(shop_of().trainer.statistics().items())
    chunks = statistics.columns(marks_mixed=True)
    first = shop_of().snapshot("search")
    targets = {"first": target_of(first), "trained": target_of(trained())}
    choice = asked_for("intervention-aware")
    asked = Question(choice, CURVE, click_weights_of, GROUPS, groups)
    found = evaluated(chunks, targets, asked).comparison
    assert found is not None
    return found


def test_its_reward_is_that_of_its_training():
    """From the selection groups, which told the training the same."""
    run = shop_of().trainer.runs[-1]
    free = tuple(x for x in range(GROUPS) if x not in trained().groups)
    selection = tuple(x for x in free if x >= GROUPS - 2)
    found = of_groups(selection)
    assert run.reward == pytest.approx(float(found.rewards.values[2]), rel=1e-7)


def test_its_reward_is_the_true_one():
    """As groups say that it has not seen; the first version is what was logged."""
    free = tuple(x for x in range(GROUPS) if x not in trained().groups)
    assert len(free) >= 3
    found = of_groups(free)
    n_queries = len(shop_of().data.query_ids)
    truth = 0.0
    for query in range(n_queries):
        rows = slice(*shop_of().data.offsets[query : query + 2].tolist())
        scores = scored(trained(), query).astype(float)
        placed = placement_probabilities(scores, CUTOFF)
        liked = 0.05 + 0.2 * shop_of().data.labels[rows]
        truth += float(liked @ placed @ EXAMINATION) / n_queries
    assert found.rewards.low[2] < truth < found.rewards.high[2]
    assert found.rewards.low[2] > 0.5 * truth
    # What was logged is the first snapshot, drawn from.
    assert found.differences.values[1] == pytest.approx(0.0, abs=1e-6)


def test_weights_that_cannot_be_used_are_refused():
    """As rankers refuse them."""
    spoilt = np.full(N_FEATURES, np.nan, "<f4").tobytes()
    with pytest.raises(SnapshotError, match="must be finite"):
        target_of(msgspec.structs.replace(trained(), weights=spoilt))
