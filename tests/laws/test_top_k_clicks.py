"""Clicks on the first k documents: chances by enumeration, estimates by their means."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from models.estimators.registry import estimator_of
from models.evaluation.relevant_position import average_relevant_position
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.top_k.clicks import (
    ClickSums,
    Shown,
    click_chances,
    clicks_per_list,
    curve_of,
    drawn_clicks,
    estimated_chunk,
    labelled_chunk,
    logged_places,
    ranks_of,
    shown_by,
)
from rankstream.lab.reproduction.top_k.plan import WHOLE, Logging

SIZES = (6, 3, 1, 8)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)])
RANKS = ranks_of(np.random.default_rng(5).random(sum(SIZES)), OFFSETS)
RELEVANT = np.random.default_rng(6).random(sum(SIZES)) < 0.4
POLICIES = [
    Logging(cutoff, is_randomised, 0)
    for cutoff in (WHOLE, 1, 2, 3, 5)
    for is_randomised in (False, True)
    if cutoff or not is_randomised
]


def lists_of(ranking: list[int], logging: Logging) -> list[list[int]]:
    """All lists that a policy may show, each as likely."""
    k = logging.cutoff
    if k == WHOLE or len(ranking) <= k:
        return [ranking]
    if not logging.is_randomised:
        return [ranking[:k]]
    return [[*ranking[: k - 1], last] for last in ranking[k - 1 :]]


def looked_at(logging: Logging) -> list[Fraction]:
    """P(looked at) of each document, over all lists of its query."""
    found = [Fraction(0)] * sum(SIZES)
    for begin, end in itertools.pairwise(OFFSETS.tolist()):
        ranking = sorted(range(begin, end), key=RANKS.tolist().__getitem__)
        lists = lists_of(ranking, logging)
        for shown in lists:
            for rank, row in enumerate(shown, start=1):
                found[row] += Fraction(1, rank * len(lists))
    return found


@pytest.mark.parametrize("logging", POLICIES)
def test_chances_are_those_of_all_lists(logging: Logging) -> None:
    """To look at a document is to have it shown, and to look at its rank."""
    shown = shown_by(RANKS, OFFSETS, logging)
    found = shown.chances / np.maximum(shown.ranks, 1)

    assert found == pytest.approx([float(chance) for chance in looked_at(logging)])
    assert ((shown.ranks > 0) == (shown.chances > 0.0)).all()


def mean_clicks(shown: Shown, n_lists: int) -> ClickSums:
    """What is expected, of so many lists of each query that it is whole numbers."""
    lists = np.repeat(n_lists, sum(SIZES))
    times = lists * shown.chances
    clicked = times * click_chances(RELEVANT) / np.maximum(shown.ranks, 1)
    for numbers in (times, clicked):
        assert np.abs(numbers - numbers.round()).max() < 1e-6
    whole = np.full(len(SIZES), n_lists)
    return ClickSums(whole, times.round().astype(int), clicked.round().astype(int))


@pytest.mark.parametrize("logging", POLICIES)
def test_estimators_are_as_biased_as_is_said(logging: Logging) -> None:
    """Policy-aware not at all; others by how often a document is shown."""
    shown = shown_by(RANKS, OFFSETS, logging)
    # All ranks to 8, chances of one in 2 to 8, and clicks of one in ten.
    clicks = mean_clicks(shown, 840 * 840 * 10)
    log, impressions = logged_places(clicks, shown, OFFSETS)
    wanted, is_shown = click_chances(RELEVANT), shown.ranks > 0

    def values(name: str) -> np.ndarray:
        curve = curve_of(shown, with_noise=name == "affine")
        return estimator_of(name).estimator(log, impressions, curve).values

    assert values("policy-aware")[is_shown] == pytest.approx(wanted[is_shown])
    assert np.isnan(values("policy-aware")[~is_shown]).all()
    assert values("rerank")[is_shown] == pytest.approx(wanted[is_shown])
    assert np.isnan(values("rerank")[~is_shown]).all()
    assert values("oblivious") == pytest.approx(shown.chances * wanted)
    assert values("affine") == pytest.approx(shown.chances * RELEVANT, abs=1e-12)


@pytest.mark.parametrize("logging", POLICIES)
def test_what_is_learned_from_is_what_estimators_say(logging: Logging) -> None:
    """Each with its own model of clicks; queries weigh as often as they were asked."""
    shown = shown_by(RANKS, OFFSETS, logging)
    clicks = mean_clicks(shown, 840 * 840 * 10)
    rows = np.arange(sum(SIZES), dtype=np.float32)[:, None]
    world = World(rows, RELEVANT.astype(np.int64), OFFSETS)
    wanted, is_shown = click_chances(RELEVANT), shown.ranks > 0
    for name, values in (
        ("policy-aware", np.where(is_shown, wanted, 0.0)),
        ("oblivious", shown.chances * wanted),
        ("affine", shown.chances * RELEVANT),
    ):
        found = estimated_chunk(name, world, shown, clicks)
        assert found.values == pytest.approx(values, abs=1e-12)
        assert found.is_kept.tolist() == (
            is_shown.tolist() if name == "policy-aware" else [True] * len(rows)
        )
        assert found.weights.tolist() == [0.25] * 4
    other = clicks._replace(impressions=np.array([1, 2, 3, 4]))
    found = estimated_chunk("oblivious", world, shown, other)
    assert found.weights.tolist() == [0.1, 0.2, 0.3, 0.4]


def test_policy_aware_values_are_over_chances_not_over_what_was_drawn() -> None:
    """However often the document that is drawn happened to be."""
    shown = shown_by(RANKS, OFFSETS, Logging(3, True, 0))
    wanted = click_chances(RELEVANT)
    rng = np.random.default_rng(4)
    clicks = drawn_clicks(shown, wanted, OFFSETS, 500.0, rng=rng)
    lists = np.repeat(clicks.impressions, SIZES)
    rows = np.zeros((sum(SIZES), 1), np.float32)
    world = World(rows, RELEVANT.astype(np.int64), OFFSETS)
    chances = shown.chances / shown.ranks

    assert (clicks.shown != lists * shown.chances).any()
    for least in (0.0, 0.1):
        found = estimated_chunk("policy-aware", world, shown, clicks, least=least)
        raised = np.maximum(chances, least)
        assert found.values == pytest.approx(clicks.clicked / lists / raised)


def test_labels_are_values_of_their_own_or_chances_of_clicks() -> None:
    """Each query weighs the same."""
    rows = np.zeros((sum(SIZES), 1), np.float32)
    world = World(rows, RELEVANT.astype(np.int64), OFFSETS)
    plain, clicked = (labelled_chunk(world, as_clicks=how) for how in (False, True))

    assert plain.values.tolist() == RELEVANT.tolist()
    assert clicked.values.tolist() == [1.0 if each else 0.1 for each in RELEVANT]
    assert plain.weights.tolist() == [0.25] * 4
    assert plain.is_kept.all()


def test_drawn_clicks_have_the_means_and_spreads_of_single_lists() -> None:
    """5,000 logs against the laws of their parts."""
    rng = np.random.default_rng(0)
    shown = shown_by(RANKS, OFFSETS, Logging(3, True, 0))
    wanted = click_chances(RELEVANT)
    n_lists, n_logs = 400, 5_000
    n_clicks = n_lists * clicks_per_list(shown, wanted, OFFSETS)
    logs = [
        drawn_clicks(shown, wanted, OFFSETS, n_clicks, rng=rng) for _ in range(n_logs)
    ]
    clicked = np.array([log.clicked for log in logs])
    times = np.array([log.shown for log in logs])

    chance = shown.chances * wanted / shown.ranks / len(SIZES)
    for counts, rate in ((clicked, chance), (times, shown.chances / len(SIZES))):
        # Of a multinomial law, however it is drawn.
        deviation = np.sqrt(n_lists * rate * (1.0 - rate))
        errors = (counts.mean(axis=0) - n_lists * rate) / deviation * n_logs**0.5
        assert np.abs(errors).max() < 4.5
        assert counts.std(axis=0) == pytest.approx(deviation, rel=0.06)
    assert {log.impressions.sum() for log in logs} == {n_lists}
    at_last = np.array([(shown.ranks[:6] == 3) @ log.shown[:6] for log in logs])
    assert (at_last == [log.impressions[0] for log in logs]).all()
    assert clicked.sum(axis=1).mean() == pytest.approx(n_clicks, rel=0.01)


def test_nobody_clicks_what_is_never_shown() -> None:
    """Beyond the last document shown there is nothing to count."""
    rng = np.random.default_rng(3)
    shown = shown_by(RANKS, OFFSETS, Logging(3, False, 0))
    clicks = drawn_clicks(shown, click_chances(RELEVANT), OFFSETS, 1e4, rng=rng)
    is_hidden = RANKS > 3

    assert is_hidden.any()
    assert not clicks.shown[is_hidden].any()
    assert not clicks.clicked[is_hidden].any()
    assert clicks.shown[~is_hidden].all()


def test_reranking_learns_from_each_list_that_was_shown() -> None:
    """Queries of its chunk are the lists, weighing as often as they were shown."""
    rng = np.random.default_rng(1)
    world = World(
        np.arange(sum(SIZES), dtype=np.float32)[:, None],
        RELEVANT.astype(np.int64),
        OFFSETS,
    )
    logging = Logging(3, True, 0)
    shown = shown_by(RANKS, OFFSETS, logging)
    clicks = drawn_clicks(shown, click_chances(RELEVANT), OFFSETS, 5e4, rng=rng)
    found = estimated_chunk("rerank", world, shown, clicks)

    lists: dict[frozenset[int], float] = {}
    for begin, end in itertools.pairwise(found.offsets.tolist()):
        shown_rows = found.features[begin:end, 0].astype(int).tolist()
        lists[frozenset(shown_rows)] = float(found.weights[len(lists)])
    expected: dict[frozenset[int], float] = {}
    for begin, end in itertools.pairwise(OFFSETS.tolist()):
        ranking = sorted(range(begin, end), key=RANKS.tolist().__getitem__)
        every = lists_of(ranking, logging)
        for each in every:
            expected[frozenset(each)] = 1.0 / len(every) / len(SIZES)
    assert lists.keys() == expected.keys()
    assert sum(lists.values()) == pytest.approx(1.0)
    for rows, weight in lists.items():
        assert weight == pytest.approx(expected[rows], rel=0.1)
    assert found.is_kept.all()


def test_ranks_of_equal_scores_are_those_of_all_their_orders() -> None:
    """The mean over all permutations of ties, by counting."""
    rng = np.random.default_rng(2)
    scores = rng.integers(0, 3, sum(SIZES)).astype(float)
    total = []
    for begin, end in itertools.pairwise(OFFSETS.tolist()):
        rows = range(begin, end)
        for row in rows:
            above = sum(scores[other] > scores[row] for other in rows)
            beside = sum(scores[other] == scores[row] for other in rows)
            if RELEVANT[row]:
                total.append(above + (beside + 1) / 2)
    found = average_relevant_position(RELEVANT, scores, OFFSETS)

    assert found == pytest.approx(np.mean(total))
    assert np.isnan(average_relevant_position(np.zeros(18, bool), scores, OFFSETS))
