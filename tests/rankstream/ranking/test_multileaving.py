"""Lists that compare rankers: both sides draw the same candidates."""

import base64
import json

import numpy as np
import pytest

from models.learners import duel_learner
from models.learners import multileaved_lists as lists
from rankstream.ranker import Ranker
from rankstream.ranking.multileaving import (
    Multileaving,
    compare,
    directions_of,
    multileave,
)
from rankstream.ranking.scoring import scores_of
from tests.snapshot_factory import envelope


@pytest.mark.parametrize("n_candidates", [1, 49])
def test_learners_draw_the_same_candidates(n_candidates: int) -> None:
    """From the same seed, to the last bit."""
    rng = np.random.Generator(np.random.PCG64(12345))
    ours = directions_of(rng, n_candidates, 13, 1.5)

    theirs = duel_learner.directions_of(12345, n_candidates, 13, 1.5)
    assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("comparison", ["probabilistic", "team-draft"])
def test_ranks_are_those_of_the_candidates(comparison: str) -> None:
    """Every ranker's place of every shown document, and the same list for a seed."""
    features = np.random.default_rng(0).random((12, 4)).astype(np.float32)
    weights = np.array([0.5, -1.0, 0.2, 0.0], np.float32)
    settings = Multileaving(n_candidates=3, comparison=comparison)
    made, again = (
        compare(features, weights, [], "linear", settings=settings, cutoff=5, seed=7)
        for _ in range(2)
    )
    directions = duel_learner.directions_of(7, 3, 4, 1.0)
    for r, near in enumerate([weights, *(weights + directions)]):
        scores = scores_of(features, near.astype(np.float32), [], "linear")
        places = np.argsort(np.argsort(-scores)) + 1
        assert made.ranks[:, r].tolist() == places[made.order].tolist()
    assert made.order.tolist() == again.order.tolist()
    assert len({*made.order.tolist()}) == 5
    assert len(made.teams) == (5 if comparison == "team-draft" else 0)


def test_equal_scores_stand_in_any_order_alike_for_all_rankers() -> None:
    """Every document is first as often as any other, also before the lists differ."""
    rng, settings = np.random.default_rng(5), Multileaving(comparison="team-draft")
    made = [
        multileave(np.zeros((4, 2)), settings, cutoff=4, rng=rng) for _ in range(800)
    ]
    firsts = np.bincount([one.order[0] for one in made], minlength=4)

    assert all((one.ranks[:, 0] == one.ranks[:, 1]).all() for one in made)
    assert np.abs(firsts - 200).max() < 4.5 * np.sqrt(150)


@pytest.mark.parametrize("comparison", ["probabilistic", "team-draft"])
def test_lists_are_drawn_as_in_the_kernel(comparison: str) -> None:
    """Frequencies of first documents, places and teams agree with the compiled one."""
    scores = np.random.default_rng(3).normal(size=(5, 3))
    n_draws, rng = 6_000, np.random.default_rng(4)
    ranks = (np.argsort(np.argsort(-scores, axis=0), axis=0) + 1).astype(np.int32)
    counts = np.zeros((2, 3, 5, 4))
    rows, teams, shares = np.empty(3, np.int64), np.full(3, -1), np.empty(5)
    lists.fill_shares(shares, 3.0)
    for _ in range(n_draws):
        settings = Multileaving(n_candidates=2, comparison=comparison)
        made = multileave(scores, settings, cutoff=3, rng=rng)
        own = made.teams if len(made.teams) else np.full(3, -1)
        counts[0, np.arange(3), made.order, own + 1] += 1
        if comparison == "team-draft":
            lists.draft_teams(ranks, rows, teams, rng)
        else:
            lists.draw_probabilistic(ranks, shares, rows, rng)
        counts[1, np.arange(3), rows, teams + 1] += 1
    gaps = np.abs(counts[0] - counts[1])
    deviations = np.sqrt(np.maximum(counts.sum(axis=0), 1.0))

    assert (gaps < 4.8 * deviations).all()


def test_events_say_how_the_list_came_to_be() -> None:
    """Ranks as shown items by rankers, and teams where there are any."""
    ranker = Ranker("m", source=lambda: envelope(5))
    ranker.load()
    features = np.random.default_rng(0).random((6, ranker.snapshot.n_features))
    settings = Multileaving(n_candidates=2, comparison="team-draft")
    ranking = ranker.rank(
        features, cutoff=4, policy="multileave", seed=3, multileaving=settings
    )
    items = [f"d{row}" for row in range(6)]
    event = json.loads(
        ranker.query_event(
            ranking, query_id="q", items=items, at_ms=1, log_candidates=True
        )
    )
    ranks = np.frombuffer(base64.b64decode(event["ranks"]), "<u2").reshape(4, 3)

    assert event["policy"] == "multileave"
    assert ranking.multileaved is not None
    assert (ranks == ranking.multileaved.ranks).all()
    assert event["assignments"] == ranking.multileaved.teams.tolist()
    assert len(base64.b64decode(event["candidate_features"])) == 4 * features.size


def test_wrong_settings_raise() -> None:
    """Names, numbers and candidates that cannot score one of the documents."""
    with pytest.raises(ValueError, match="n_candidates must be at least 1"):
        Multileaving(n_candidates=0)
    with pytest.raises(ValueError, match="comparison must be one of"):
        Multileaving(comparison="oracle")
    weights, settings = np.full(2, 3e38, np.float32), Multileaving()
    features = np.array([[0, 0], [1, 1], [0, 0]], np.float32)
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(ValueError, match="must be finite"),
    ):
        compare(
            features, weights, [], "linear", settings=settings, cutoff=2, seed=1,
        )  # fmt: skip
