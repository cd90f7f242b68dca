"""Trees follow values by the slopes of a loss, to the best round by held-out DCG."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from models.losses.discounts import discounts
from models.losses.loss_value import NEVER_DRAWN, NO_PARENTS
from models.losses.pair_kernel import room_for
from models.losses.ranking_worth import query_worths
from models.losses.registry import LOSSES, compiled_loss
from models.training.boosting import Boosted, boosted, drawn_queries
from models.training.boosting_kernel import fill_slopes
from models.training.boosting_plan import BoostingPlan
from models.training.grown_trees import NO_TREES
from models.training.query_chunk import QueryChunk
from rankstream.configuration.trees_faults import CONVEX_LOSSES
from rankstream.ranking.tree_scoring import TreeScorer
from streams.training.versions.forest_ranker import forest_of
from tests.models.training.chunks import cut, queries

SEED = np.random.default_rng
PLAN = BoostingPlan(rounds=25, leaves=8, learning_rate=0.2, least_items=5)


def nothing(features):
    """The start of a model without trees."""
    return np.zeros(len(features))


def bent(n_queries: int, seed: int, *, noise: float = 0.05) -> QueryChunk:
    """Values that no weighted sum of features follows."""
    chunk = queries(n_queries, np.ones(5), SEED(seed))
    x = chunk.features.astype(np.float64)
    values = np.where(x[:, 0] > 0.5, x[:, 1], 1.0 - x[:, 1])
    values = values + noise * SEED(seed + 1).standard_normal(len(values))
    return chunk._replace(values=values)


def sides(n_queries: int = 120) -> tuple[list[QueryChunk], list[QueryChunk]]:
    """Queries to learn from, in two chunks, and others."""
    return cut(bent(n_queries, 1), n_queries // 3), [bent(60, 5)]


def scorer_of(found: Boosted) -> TreeScorer:
    """As services score."""
    return TreeScorer(forest_of(found.trees))


def worth(scores, chunk: QueryChunk, cutoff: int = 10) -> float:
    """Mean by weight over queries."""
    kept, by_rank = chunk.is_kept, discounts(cutoff)
    found = query_worths(scores, chunk.values, kept, chunk.offsets, by_rank)
    return float((chunk.weights * found).sum())


@pytest.mark.parametrize("loss", CONVEX_LOSSES)
def test_trees_follow_what_a_sum_of_features_cannot(loss: str) -> None:
    """By each loss; and services score as boosting did, at its best round."""
    training, held_out = sides()
    found = boosted(nothing, training, held_out, PLAN.by(loss))
    perfect, start = (worth(x, held_out[0]) for x in (held_out[0].values, nothing(
        held_out[0].features)))  # fmt: skip
    scores = scorer_of(found).scores(held_out[0].features)
    best = found.epochs[found.best_epoch]

    assert worth(scores, held_out[0]) == best.held_out_dcg
    assert best.held_out_dcg == max(each.held_out_dcg for each in found.epochs)
    assert best.held_out_dcg - start > 0.8 * (perfect - start)
    assert len(found.trees.roots) == found.best_epoch > 0
    assert found.epochs[-1].loss < found.epochs[0].loss


def test_equal_queries_give_equal_trees() -> None:
    """Wherever chunks end; another seed draws other features."""
    training, held_out = sides()
    plan = BoostingPlan(rounds=5, least_items=5, share_of_features=0.6, seed=3)
    one = boosted(nothing, training, held_out, plan)
    whole = boosted(nothing, [bent(120, 1)], held_out, plan)
    other = boosted(
        nothing, training, held_out,
        BoostingPlan(rounds=5, least_items=5, share_of_features=0.6, seed=4),
    )  # fmt: skip

    assert [x.tobytes() for x in one.trees] == [x.tobytes() for x in whole.trees]
    assert one.epochs == whole.epochs
    assert other.epochs != one.epochs


def test_slopes_are_those_of_each_query_by_its_weight() -> None:
    """As the loss gives them query by query."""
    chunk = bent(9, 2)
    known = SEED(1).random(len(chunk.values)) < 0.8
    scores = SEED(2).standard_normal(len(chunk.values))
    slopes, curvatures = np.ones((2, len(scores)))
    longest = int(np.diff(chunk.offsets).max())
    for name in CONVEX_LOSSES:
        loss = compiled_loss(name, 3, longest)
        total = fill_slopes(
            scores, chunk.values, known, chunk.offsets, chunk.weights, loss,
            room_for(longest), NEVER_DRAWN, NO_PARENTS, slopes, curvatures,
        )  # fmt: skip
        wanted = 0.0
        for query, weight in enumerate(chunk.weights):
            span = slice(*chunk.offsets[query : query + 2])
            one = LOSSES[name].loss(scores[span], chunk.values[span], known[span], 3)
            wanted += weight * one.value
            assert slopes[span].tolist() == (weight * one.gradient).tolist()
            assert curvatures[span].tolist() == (weight * one.curvature).tolist()
        assert total == pytest.approx(wanted, rel=1e-12)


def test_items_of_unknown_value_grow_no_tree_and_keep_their_ranks() -> None:
    """What stands for their values is not looked at; that they are there is."""
    training, held_out = sides()
    rng, plan = SEED(4), BoostingPlan(rounds=6, leaves=6, least_items=5, cutoff=2)
    hidden, spoilt, without = [], [], []
    for chunk in training:
        known = rng.random(len(chunk.values)) < 0.7
        hidden.append(chunk._replace(is_kept=known))
        values = np.where(known, chunk.values, 1e6)
        spoilt.append(chunk._replace(is_kept=known, values=values))
        offsets = np.concatenate([[0], np.cumsum(known)])[chunk.offsets]
        without.append(
            QueryChunk(
                offsets,
                chunk.features[known],
                chunk.values[known],
                np.ones(known.sum(), bool),
                chunk.weights,
            )
        )
    found = boosted(nothing, hidden, held_out, plan)

    assert found.epochs == boosted(nothing, spoilt, held_out, plan).epochs
    assert found.epochs != boosted(nothing, without, held_out, plan).epochs


def test_rounds_go_on_from_a_start() -> None:
    """Its order is number 0, and its scores lie where the loss is least."""
    training, held_out = cut(bent(120, 1, noise=0.5), 40), [bent(60, 5)]
    few = BoostingPlan(rounds=4, leaves=8, least_items=5)
    first = boosted(nothing, training, held_out, few)
    before = scorer_of(first)

    def explored(features):
        return 0.1 * before.scores(features)

    found = boosted(explored, training, held_out, few)
    losses = {
        scale: loss_of(training, lambda x, by=scale: by * before.scores(x))
        for scale in 0.1 * found.start_scale * np.array([0.97, 1.0, 1.03])
    }

    best = first.epochs[first.best_epoch]
    assert found.epochs[0].held_out_dcg == best.held_out_dcg
    assert found.epochs[0].loss == pytest.approx([*losses.values()][1])
    assert min(losses.values()) == [*losses.values()][1]
    assert found.epochs[-1].loss < found.epochs[0].loss < best.loss
    scores = found.start_scale * explored(held_out[0].features)
    scores += scorer_of(found).scores(held_out[0].features)
    assert worth(scores, held_out[0]) == pytest.approx(
        found.epochs[found.best_epoch].held_out_dcg
    )


def loss_of(training, start) -> float:
    """At a start, of no round."""
    total = 0.0
    for chunk in training:
        scores, loss = start(chunk.features), LOSSES["truncated-lambda"].loss
        for query, weight in enumerate(chunk.weights):
            span = slice(*chunk.offsets[query : query + 2])
            kept = chunk.is_kept[span]
            total += weight * loss(scores[span], chunk.values[span], kept, 10).value
    return total


def test_trees_that_stand_alone_must_be_better_than_the_start() -> None:
    """Then the start has no part in them; else it stays."""
    training, held_out = sides()
    alone = boosted(nothing, training, held_out, PLAN)

    def poor(features):
        x = features.astype(np.float64)
        return np.where(x[:, 0] > 0.5, x[:, 1], 0.5)

    def perfect(features):
        x = features.astype(np.float64)
        return np.where(x[:, 0] > 0.5, x[:, 1], 1.0 - x[:, 1])

    anew = boosted(poor, training, held_out, PLAN, is_anew=True)
    kept = boosted(perfect, training, held_out, PLAN, is_anew=True)

    assert [x.tobytes() for x in anew.trees] == [x.tobytes() for x in alone.trees]
    assert anew.start_scale == 0.0
    assert anew.epochs[0].held_out_dcg > alone.epochs[0].held_out_dcg
    assert kept.best_epoch == 0
    assert kept.trees is NO_TREES
    # Gains count from where trees begin, not from the start that they are behind.
    assert len(kept.epochs) > PLAN.patience + 1 or len(kept.epochs) == PLAN.rounds + 1


def test_it_stops_where_nothing_is_gained() -> None:
    """After so many rounds, of which the best stays."""
    training, held_out = sides(30)
    plan = BoostingPlan(
        rounds=200, leaves=16, learning_rate=0.5, least_items=2, patience=3
    )
    found = boosted(nothing, training, held_out, plan)

    assert len(found.epochs) < 150
    assert found.best_epoch < len(found.epochs) - 1


def test_values_that_are_all_alike_leave_the_start() -> None:
    """There is nothing to learn, and nothing fails."""
    training, held_out = sides(20)
    alike = [
        chunk._replace(values=np.full(len(chunk.values), 0.3)) for chunk in training
    ]
    found = boosted(nothing, alike, held_out, PLAN)

    assert (found.best_epoch, found.trees) == (0, NO_TREES)
    assert len(found.epochs) == 1


def test_a_feature_that_is_constant_is_in_no_tree() -> None:
    """And takes nothing away from the others."""
    training, held_out = sides()
    for chunk in (*training, *held_out):
        chunk.features[:, 3] = 7.0
    found = boosted(nothing, training, held_out, PLAN)

    assert found.best_epoch > 0
    assert 3 not in found.trees.features


@pytest.mark.parametrize("is_constant", [True, False])
def test_where_no_feature_can_be_split_there_are_no_trees(is_constant: bool) -> None:
    """All are constant, or a leaf must have more items than there are."""
    training, held_out = sides()
    plan = PLAN if is_constant else dataclasses.replace(PLAN, least_items=10_000)
    for chunk in (*training, *held_out):
        if is_constant:
            chunk.features[:] = 7.0
    found = boosted(nothing, training, held_out, plan)

    assert (found.best_epoch, found.trees) == (0, NO_TREES)
    assert len(found.epochs) == 1


@pytest.mark.parametrize("sign", [1, -1])
def test_scores_rise_or_fall_with_a_feature_that_is_monotone(sign: int) -> None:
    """At every value of the others; without it they do not."""
    training, held_out = sides()
    plan = BoostingPlan(
        rounds=15, leaves=16, least_items=5, monotone=(0, sign, 0, 0, 0)
    )
    free = BoostingPlan(rounds=15, leaves=16, least_items=5)
    grid = np.repeat(SEED(1).random((40, 1, 5)), 50, axis=1).astype(np.float32)
    grid[:, :, 1] = np.linspace(0.0, 1.0, 50)
    is_held = []
    for each in (plan, free):
        scores = scorer_of(boosted(nothing, training, held_out, each)).scores(
            grid.reshape(-1, 5)
        )
        rises = sign * np.diff(scores.reshape(40, 50), axis=1)
        is_held.append(bool((rises >= -1e-12).all()))

    assert is_held == [True, False]


def test_a_feature_that_is_missing_in_half_of_the_items_goes_its_own_way() -> None:
    """Where 0 says so: trees tell it from small numbers."""
    training, held_out = sides()
    rng = SEED(7)
    for chunk in (*training, *held_out):
        n = len(chunk.values)
        feature = 2.0 * rng.random(n) - 1.0
        is_missing = rng.random(n) < 0.5
        chunk.features[:, 4] = np.where(is_missing, 0.0, feature)
        chunk.values[:] = np.where(is_missing, 0.9, feature)
    plan = BoostingPlan(rounds=1, leaves=3, least_items=5, is_zero_missing=True)
    found = boosted(nothing, training, held_out, plan)
    scorer = scorer_of(found)
    features = np.zeros((3, 5), np.float32)
    features[:, 4] = -0.02, 0.0, 0.02
    low, missing, high = scorer.scores(features)

    assert found.trees.is_zero_missing.any()
    assert missing > max(low, high)
    assert worth(scorer.scores(held_out[0].features), held_out[0]) == (
        found.epochs[1].held_out_dcg
    )


def test_each_number_of_a_plan_counts() -> None:
    """None is left at what it is by default."""
    training, held_out = sides(60)
    base: dict[str, Any] = {"rounds": 6, "leaves": 8, "least_items": 5}
    plain = boosted(nothing, training, held_out, BoostingPlan(**base)).epochs
    for changed in (
        {"cutoff": 1}, {"rounds": 3}, {"leaves": 3}, {"learning_rate": 0.3},
        {"least_items": 40}, {"share_of_features": 0.4}, {"share_of_queries": 0.5},
        {"regularisation": 30.0}, {"patience": 1, "least_gain": 9.0},
        {"loss": "lambda-rank"},
    ):  # fmt: skip
        plan = BoostingPlan(**base | changed)
        assert boosted(nothing, training, held_out, plan).epochs != plain, changed


def test_queries_are_drawn_whole() -> None:
    """Values of those that are not have no part in a tree; each draws anew."""
    training, held_out = [bent(120, 1)], [bent(60, 5)]
    share = 0.4
    plan = BoostingPlan(
        rounds=1, leaves=4, least_items=5, share_of_queries=share, regularisation=0.0
    )
    is_drawn = drawn_queries(120, share, rng=SEED(plan.seed))
    has_part = np.repeat(is_drawn, np.diff(training[0].offsets))
    spoilt = [training[0]._replace(values=np.where(has_part, training[0].values, 0.0))]
    one, same = (boosted(nothing, x, held_out, plan) for x in (training, spoilt))
    long = BoostingPlan(rounds=12, leaves=4, least_items=5, share_of_queries=share)

    assert is_drawn.sum() == 48
    assert one.trees.thresholds.tolist() == same.trees.thresholds.tolist()
    assert one.trees.leaves == pytest.approx(same.trees.leaves, rel=1e-5)
    assert len(boosted(nothing, training, held_out, long).epochs) == 13


@pytest.mark.parametrize("loss", [name for name in LOSSES if name not in CONVEX_LOSSES])
def test_losses_without_a_curvature_are_refused_by_name(loss: str) -> None:
    """With those that have one."""
    with pytest.raises(
        ValueError, match=rf"got '{loss}': take one of truncated-la.*ar"
    ):
        BoostingPlan(loss=loss)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cutoff", 0), ("rounds", 0), ("patience", 0), ("leaves", 1),
        ("least_items", 0), ("regularisation", -1.0), ("regularisation", np.inf),
        ("learning_rate", 0.0), ("learning_rate", 1.5), ("share_of_features", 0.0),
        ("share_of_queries", 1.1), ("least_gain", np.nan),
    ],
)  # fmt: skip
def test_numbers_outside_their_range_are_refused(field: str, value: float) -> None:
    """With the number."""
    wrong: dict[str, Any] = {field: value}
    with pytest.raises(ValueError, match=field):
        BoostingPlan(**wrong)


def test_queries_of_which_nothing_is_known_are_refused() -> None:
    """On either side."""
    training, held_out = sides(20)
    unknown = [
        chunk._replace(is_kept=np.zeros(len(chunk.values), bool)) for chunk in held_out
    ]
    with pytest.raises(ValueError, match=r"the held-out queries .*; got 0 queries"):
        boosted(nothing, training, [], PLAN)
    for given, split in (
        ((unknown, held_out), "training"),
        ((training, unknown), "held"),
    ):
        with pytest.raises(ValueError, match=rf"the {split}.* of known value"):
            boosted(nothing, *given, PLAN)
