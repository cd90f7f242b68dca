"""How many rounds boosting takes, and from where it counts what they gain."""

import numpy as np
import pytest

from models.training.boosting import boosted, drawn_queries
from models.training.boosting_plan import BoostingPlan
from models.training.query_chunk import QueryChunk
from tests.models.training.test_boosting import (
    PLAN,
    SEED,
    bent,
    loss_of,
    nothing,
    scorer_of,
    sides,
    worth,
)

N_TELLING = 3


def telling(n_queries: int = 60) -> QueryChunk:
    """Queries of which a few have values that differ: draws may miss them all."""
    chunk = bent(n_queries, 1)
    is_alike = np.repeat(np.arange(n_queries) >= N_TELLING, np.diff(chunk.offsets))
    return chunk._replace(values=np.where(is_alike, 0.0, chunk.values))


@pytest.mark.parametrize("is_first_missed", [True, False])
def test_a_draw_without_a_split_is_a_round_without_a_gain(
    *, is_first_missed: bool
) -> None:
    """Others come after it, and what is served has those trees alone that count."""
    share, n_rounds, training = 0.2, 30, telling()

    def hits_of(seed: int) -> list[bool]:
        rng = SEED(seed)
        drawn = (drawn_queries(60, share, rng=rng) for _ in range(n_rounds))
        return [bool(each[:N_TELLING].any()) for each in drawn]

    seed = next(
        x for x in range(99) if hits_of(x)[:2] == [not is_first_missed, is_first_missed]
    )
    plan = BoostingPlan(
        rounds=n_rounds, patience=n_rounds, leaves=4, least_items=2, seed=seed,
        share_of_queries=share,
    )  # fmt: skip
    held_out = [telling()]
    found = boosted(nothing, [training], held_out, plan)
    losses = np.array([each.loss for each in found.epochs])
    scores = scorer_of(found).scores(held_out[0].features)

    assert len(found.epochs) == n_rounds + 1
    assert (np.diff(losses) != 0.0).tolist() == hits_of(seed)
    assert found.best_epoch > 0
    assert worth(scores, held_out[0]) == found.epochs[found.best_epoch].held_out_dcg


@pytest.mark.parametrize(("share", "n_epochs"), [(1.0, 1), (0.5, 6)])
def test_it_ends_where_no_draw_could_have_a_split(share: float, n_epochs: int) -> None:
    """At once where all queries are drawn, else when patience is at its end."""
    training, held_out = sides(30)
    plan = BoostingPlan(
        rounds=20, patience=5, least_items=10_000, share_of_queries=share
    )
    found = boosted(nothing, training, held_out, plan)

    assert (len(found.epochs), found.best_epoch) == (n_epochs, 0)


def test_rounds_of_trees_alone_gain_from_where_they_begin() -> None:
    """Not from a start that none of them will reach: patience would end at once."""
    training, held_out = sides()
    plan = BoostingPlan(rounds=12, leaves=8, least_items=5, patience=2)

    def perfect(features):
        x = features.astype(np.float64)
        return np.where(x[:, 0] > 0.5, x[:, 1], 1.0 - x[:, 1])

    found = boosted(perfect, training, held_out, plan, is_anew=True)

    assert len(found.epochs) > plan.patience + 1
    assert found.best_epoch == 0


def test_queries_of_which_nothing_is_known_change_no_tree() -> None:
    """Steps are measured by the items that have curvatures."""
    training, held_out = [bent(60, 1)], [bent(60, 5)]
    unknown = bent(60, 9)
    unknown = unknown._replace(is_kept=np.zeros(len(unknown.values), bool))
    plan = BoostingPlan(rounds=3, leaves=8, least_items=5)
    one = boosted(nothing, training, held_out, plan)
    more = boosted(nothing, [*training, unknown], held_out, plan)

    assert [x.tobytes() for x in one.trees] == [x.tobytes() for x in more.trees]


def test_losses_are_by_ranks_among_items_of_unknown_value_as_they_are_now() -> None:
    """What trees give to those moves the ranks of the others."""
    training, held_out = sides()
    hidden = []
    for number, chunk in enumerate(training):
        known = SEED(number).random(len(chunk.values)) < 0.6
        hidden.append(chunk._replace(is_kept=known))
    found = boosted(nothing, hidden, held_out, PLAN)
    wanted = loss_of(hidden, scorer_of(found).scores)

    assert found.best_epoch > 0
    assert found.epochs[found.best_epoch].loss == pytest.approx(wanted)
