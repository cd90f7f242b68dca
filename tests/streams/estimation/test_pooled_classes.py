"""Items of one class as one: the same as a log whose items are classes."""

from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Unknown, asked_for
from models.estimators.click_log import ClickLog
from models.estimators.item_classes import class_of
from models.estimators.policy_reward import click_weights_of
from models.estimators.registry import ESTIMATORS
from rankstream.wire.events import PLACKETT_LUCE, UNKNOWN, ClickMark, Interaction
from streams.estimation import pooled_classes
from streams.estimation.curve_replicates import CurveReplicates
from streams.estimation.evaluation import evaluated
from streams.estimation.logged_sets import sets_of
from streams.estimation.pooled_classes import PooledClasses, Worth
from streams.estimation.question import LOGGED, Question
from streams.estimation.targets import QueryRanking, RankingTarget
from streams.statistics.logged_queries import QueryGatherer
from tests.event_factory import impression
from tests.policies_in_memory import Valuation, compare_policies
from tests.streams.estimation.planted_users import statistics_of

GROUPS = 8
RELEVANCE = {"GOOD": 0.7, "FAIR": 0.4, "POOR": 0.1}
TRUST = BiasCurve(np.array([0.6, 0.45, 0.3]), np.array([0.3, 0.15, 0.05]))
CURVE = CurveReplicates(TRUST, "given")


class Graded(NamedTuple):
    """A log, and the items of each query."""

    interactions: list[Interaction]
    items: dict[str, list[str]]

    def chunks(self):
        """Columns of what the fold counts."""
        return chunks_of(self.interactions)

    def best_first(self):
        """Items of each query, the good ones first."""
        order = [*RELEVANCE]
        return {
            query: QueryRanking(
                tuple(sorted(items, key=lambda x: (order.index(class_of(x)), x)))
            )
            for query, items in self.items.items()
        }


def graded_log(n_lists: int, policy: int = UNKNOWN, n_queries: int = 40, mark="#"):
    """Lists of three items of a query each, of two or three classes, and clicks."""
    rng, log, by_query = np.random.default_rng(5), [], {}
    kinds = [*RELEVANCE]
    for number in range(n_lists):
        query = number % n_queries
        own = np.random.default_rng(query).permutation([*kinds, kinds[query % 3]])
        items = sorted(f"{kind}#{i}" for i, kind in enumerate(own, 1))
        relevance = np.array([RELEVANCE[class_of(x)] for x in items])
        scores = (2.0 * relevance).astype("<f4")
        order = np.argsort(-scores - rng.gumbel(size=4))[:3]
        chances = TRUST.alpha * relevance[order] + TRUST.beta
        named = [item.replace("#", mark) for item in items]
        has_scores = policy == PLACKETT_LUCE
        told: dict[str, Any] = {"scores": scores.tobytes()} if has_scores else {}
        one = impression(
            query_id=f"q{query}",
            items=named,
            shown=[named[i] for i in order],
            unit=int(rng.integers(1_000)),
            policy=policy,
            **told,
        )
        clicked = np.flatnonzero(rng.random(3) < chances).tolist()
        marks = [ClickMark(row + 1, 1, "click") for row in clicked]
        log.append(Interaction(one, marks))
        by_query[f"q{query}"] = named
    return Graded(log, by_query)


def chunks_of(log):
    """Columns of what the fold counts."""
    statistics = statistics_of(log, GROUPS)
    return statistics.columns(marks_mixed=True)


def asked(estimator, **how):
    """Clicks per list, of all groups, items by class."""
    groups = tuple(range(GROUPS))
    whole = Question(asked_for(estimator), CURVE, click_weights_of, GROUPS, groups)
    return whole._replace(**{"has_classes": True, **how})


def valued(chunks, targets, question):
    """Figures, and how much of the log they are of."""
    found, coverage, _ = evaluated(chunks, targets, question)
    assert found is not None
    return found, coverage


def by_class(log, estimator, targets):
    """Figures of a log in memory whose items are classes, taken apart here."""
    how = QueryGatherer(range(GROUPS), GROUPS, asked_for(estimator).unknown)
    (queries,) = how.of(log.chunks())
    of_items = [class_of(item) for item in queries.items]
    names = sorted({*of_items})
    numbers = np.searchsorted(names, of_items)
    shape = *queries.impressions.shape[:2], len(names)
    impressions = np.zeros(shape)
    for item, number in enumerate(numbers.tolist()):
        impressions[:, :, number] += queries.impressions[:, :, item]
    own = queries.log
    columns = own.groups, own.policies, numbers[own.items], *own[3:]
    lists = queries.lists_of_queries().sum(axis=0).astype(float)
    # Shares of a class are no probabilities: a list has several of its items.
    scale = 4.0
    placed = {name: np.zeros((len(names), 3)) for name in (LOGGED, *targets)}
    for each in sets_of(queries):
        classes, n = numbers[each.items], each.lists.sum()
        np.add.at(placed[LOGGED], classes, each.placed / lists.sum() / scale)
        for name, rankings in targets.items():
            ranked = rankings[queries.queries[each.query]].items[:3]
            for rank, item in enumerate(ranked):
                number = names.index(class_of(item))
                placed[name][number, rank] += n / lists.sum() / scale
    valuation = Valuation(
        ESTIMATORS[estimator].estimator,
        lambda _: TRUST,
        click_weights_of,
        np.full(len(names), scale),
    )
    return compare_policies(
        ClickLog(*columns), impressions, lists, placed, valuation, base=LOGGED
    )


@pytest.mark.parametrize(
    ("estimator", "policy"),
    [
        ("affine", UNKNOWN),
        ("naive", UNKNOWN),
        *((x, PLACKETT_LUCE) for x in ESTIMATORS),
    ],
)
def test_figures_are_those_of_a_log_of_classes(estimator, policy):
    """Rewards, differences, intervals and what they rest on; however a log is cut."""
    log = graded_log(500, policy)
    rankings = log.best_first()
    targets = {"best": RankingTarget(rankings)}
    reference = by_class(log, estimator, {"best": rankings})
    for cells_at_once in (1, 300, 1 << 18):
        question = asked(estimator, cells_at_once=cells_at_once)
        found, coverage = valued(log.chunks(), targets, question)

        assert coverage.n_classes == len(RELEVANCE)
        for one, other in zip(found.points, reference.points, strict=True):
            assert [*one] == pytest.approx([*other], rel=1e-9, abs=1e-12, nan_ok=True)
        for one, other in zip(found[2:], reference[2:], strict=True):
            assert one.values == pytest.approx(other.values, rel=1e-9, abs=1e-12)
            assert one.errors == pytest.approx(other.errors, rel=1e-6, abs=1e-12)


def test_classes_know_what_single_items_do_not():
    """The truth lies in both intervals; that of classes is much the narrower."""
    log = graded_log(1_200, PLACKETT_LUCE)
    rankings = log.best_first()
    targets = {"best": RankingTarget(rankings)}
    liked = [
        [RELEVANCE[class_of(item)] for item in each.items[:3]]
        for each in rankings.values()
    ]
    truth = float((TRUST.alpha * liked + TRUST.beta).sum(axis=1).mean())
    errors = []
    for has_classes in (True, False):
        question = asked("intervention-aware", has_classes=has_classes)
        found, _ = valued(log.chunks(), targets, question)
        errors.append(found.rewards.errors[1])
        if has_classes:
            assert found.rewards.low[1] < truth < found.rewards.high[1]
    assert errors[0] < 0.9 * errors[1]


def test_ids_without_classes_of_one_query_are_as_they_were():
    """Nothing is put together then."""
    log = graded_log(300, PLACKETT_LUCE, n_queries=1, mark="-")
    values = []
    for has_classes in (True, False):
        question = asked("intervention-aware", has_classes=has_classes)
        found, coverage = valued(log.chunks(), {}, question)
        assert coverage.n_classes == 4 * has_classes
        values.append([*found.rewards.values, *found.rewards.errors])
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_what_policies_show_adds_up_over_queries():
    """By class, and what is none of the items of any query."""
    log = graded_log(40)
    pool, n_parts = PooledClasses(GROUPS, 3), 0
    how = QueryGatherer(range(GROUPS), GROUPS, Unknown.KEPT, cells_at_once=1)
    for queries in how.of(log.chunks()):
        shape = len(queries.items), 3
        pool.take(queries, {"x": Worth(np.ones(shape), np.array([2.0, 1.0, 0.0]))})
        n_parts += 1
    _, impressions, worth = pool.together()

    assert n_parts == 40
    assert worth["x"].absent.tolist() == [80.0, 40.0, 0.0]
    assert worth["x"].expected.sum(axis=0).tolist() == [160.0] * 3
    assert impressions.sum() == 4 * 40


def test_too_many_classes_are_refused(monkeypatch):
    """All are held, so there may not be as many as there are documents."""
    monkeypatch.setattr(pooled_classes, "MOST_CELLS", 2 * GROUPS)
    log = graded_log(40)
    with pytest.raises(ValueError, match="classes of items must be few") as caught:
        evaluated(log.chunks(), {}, asked("affine"))
    assert "got 8 x 1 x 3 and more, such as '" in str(caught.value)


def test_classes_of_items_in_several_lists_count_as_often_as_they_could_be_shown():
    """Two of a class in a list: its value is that of one of them, not of both."""
    rows = [*permutations([f"GOOD#{i}" for i in (1, 2, 3)])]
    log = []
    for number in range(600):
        one = impression(items=sorted(rows[0]), shown=rows[number % 6], unit=number)
        # At each rank .6 R + .3, .45 R + .15 and .3 R + .05 with R = 2 / 3.
        clicked = [number % 10 < 7, number % 20 < 9, number % 4 < 1]
        marks = [ClickMark(i + 1, 1, "click") for i in range(3) if clicked[i]]
        log.append(Interaction(one, marks))
    found, _ = valued(chunks_of(log), {}, asked("affine"))
    assert found.rewards.values[0] == pytest.approx(0.7 + 0.45 + 0.25, rel=1e-9)
