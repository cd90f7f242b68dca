"""Whose clicks are for what: every figure of a training, added up list by list."""

from collections import defaultdict
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from models.estimators.intervention_aware import CLIP
from models.estimators.splits import Shares, split_groups
from models.plackett_luce.placement import placement_batch
from rankstream.ranking.scoring import normalised
from rankstream.settings import LimitSettings, StatisticsSettings, TimeSettings
from rankstream.wire.candidates import candidates_key, candidates_value
from rankstream.wire.envelope import Snapshot, features_hash
from rankstream.wire.events import PLACKETT_LUCE, UNKNOWN, ClickMark, Interaction
from rankstream.wire.models.training import ASKED
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.native.counting import name_of_set
from streams.statistics.keys import counted_key, decode_counted, encode_counted
from streams.statistics.reader import Statistics
from streams.training.inputs import Inputs, feature_records_for
from streams.training.trained_snapshot import train_model
from tests.event_factory import impression
from tests.streams.training.shop import (
    EXAMINATION,
    N_FEATURES,
    model_of,
    settings_of,
)

GROUPS, N_QUERIES, N_SHOWN, N_LISTS = 10, 24, 3, 1_200
PLAN: dict[str, Any] = {
    "examination": EXAMINATION[:N_SHOWN].tolist(),
    "cutoff": N_SHOWN,
    "least_support": 3.0,
    "most_unsupported": 1.0,
    "epochs": 3,
    "held_out": 0.4,
    "learning_rate": 0.1,
}
SPLITS = split_groups(GROUPS, Shares(held_out=PLAN["held_out"]))
TRAINED_ON, SELECTED_ON = SPLITS.training, SPLITS.selection


class List(NamedTuple):
    """One that was shown."""

    name: str
    query: str
    items: list[str]
    scores: Any
    order: list[int]
    clicked: list[int]
    group: int
    is_open: bool = False
    policy: int = PLACKETT_LUCE


def items_of(query):
    """Four to seven items of a query."""
    return [f"d{row}" for row in range(4 + int(query[1:]) % 4)]


def features_of(query):
    """Of its items, [n_items, n_features]."""
    rng = np.random.default_rng(int(query[1:]))
    return rng.random((len(items_of(query)), N_FEATURES)).astype(np.float32)


def shown(n, seed, groups=range(GROUPS)):
    """Lists of policies that are another one each time, and clicks on them."""
    rng = np.random.default_rng(seed)
    for number in range(n):
        query = f"q{rng.integers(N_QUERIES):02}"
        items = items_of(query)
        # Some items are hardly ever shown: they have little support.
        scores = rng.normal(size=len(items)) - 3.0 * (np.arange(len(items)) == 1)
        scores = scores.astype(np.float32)
        order = np.argsort(-scores - rng.gumbel(size=len(items)))[:N_SHOWN].tolist()
        liked = features_of(query)[order, 0] * EXAMINATION[:N_SHOWN]
        clicked = np.flatnonzero(rng.random(N_SHOWN) < liked).tolist()
        group = int(rng.choice(list(groups)))
        yield List(f"{seed} {number}", query, items, scores, order, clicked, group)


def records_of(log):
    """What the fold writes of them, some with clicks."""
    interactions = []
    for number, one in enumerate(log):
        of_list = impression(
            name=one.name,
            items=one.items,
            shown=[one.items[row] for row in one.order],
            query_id=one.query,
            unit=one.group,
            policy=one.policy,
            scores=one.scores.astype("<f4").tobytes(),
            is_open_set=one.is_open,
        )
        marks = [ClickMark(row + 1, number, "click") for row in one.clicked]
        interactions.append(Interaction(of_list, marks))
    kept = StatisticsSettings(groups=GROUPS)
    fold = StatisticsFold(LimitSettings(), kept, TimeSettings().keep_ms, 0)
    fold.take(closed_of(interactions))
    return [(key, value) for _, key, value in fold.changes({})]


def trained(log, *, parent=None, records=None, **plan):
    """A training of these lists, and of the features of all queries."""
    model = model_of(**PLAN | plan)
    settings = settings_of({"m": model}, groups=GROUPS)
    known = features_hash(N_FEATURES)
    features = []
    for number in range(N_QUERIES):
        query = f"q{number:02}"
        packed = msgspec.msgpack.encode(items_of(query))
        value = candidates_value(packed, features_of(query).tobytes(), N_FEATURES)
        features.append((candidates_key(query, name_of_set(packed), known), value))
    inputs = Inputs(
        Statistics(records or records_of(log)),
        feature_records_for(settings, "m", features),
    )
    return train_model("m", settings, inputs, parent or parent_of(), reason=ASKED)


def parent_of(**fields):
    """A ranker without merit."""
    model = model_of()
    own = Snapshot(
        "m", 0, 0, 0, 0, model.kind, [], model.normalisation, N_FEATURES,
        features_hash(N_FEATURES), [], 0, bytes(4 * N_FEATURES),
    )  # fmt: skip
    return msgspec.structs.replace(own, **fields)


class Sums(NamedTuple):
    """Of each item of a query: lists, looks, clicks."""

    n: float
    alpha: Any
    clicked: Any


def by_hand(log, groups):
    """Sums of each query over lists of some groups."""
    lists = defaultdict(list)
    for one in log:
        if one.group in groups:
            lists[one.query].append(one)
    sums = {}
    for query, of_query in sorted(lists.items()):
        scores = np.array([one.scores for one in of_query], np.float64)
        alpha = placement_batch(scores, N_SHOWN).sum(axis=0) @ EXAMINATION[:N_SHOWN]
        clicked = np.zeros(len(alpha))
        for one in of_query:
            clicked[[one.order[rank] for rank in one.clicked]] += 1
        sums[query] = Sums(len(of_query), alpha, clicked)
    return sums


def rewarded(log, groups, weights, least=PLAN["least_support"]):
    """Clicks per list that a policy would get, from lists of some groups."""
    gained = total = 0.0
    for query, (n, alpha, clicked) in by_hand(log, groups).items():
        scores = normalised(features_of(query), "min-max").astype(float) @ weights
        seen = placement_batch(scores[None], N_SHOWN)[0] @ EXAMINATION[:N_SHOWN]
        kept = alpha >= least
        gained += n * float((seen * clicked / alpha)[kept].sum())
        total += n
    return gained / total


def weights_of(found):
    """As they are served."""
    return np.frombuffer(found.snapshot.weights, "<f4").astype(float)


LOG = list(shown(N_LISTS, 1))
OTHERS = [x for x in range(GROUPS) if x not in TRAINED_ON]


@pytest.fixture(scope="module")
def found():
    """A training of them all."""
    return trained(LOG)


def test_other_groups_than_those_of_training_move_no_weight(found):
    """However often they click, and on what: but what is expected changes."""
    own = [one for one in LOG if one.group in TRAINED_ON]
    others = [one._replace(clicked=[2]) for one in shown(1_000, 9, OTHERS)]
    moved = trained(own + others)
    # How many lists a scope has decides how finely it counts.
    assert weights_of(moved) == pytest.approx(weights_of(found), rel=1e-5)
    assert np.array(moved.run.epochs) == pytest.approx(np.array(found.run.epochs))
    assert moved.run.sizes == found.run.sizes
    assert abs(moved.run.reward - found.run.reward) > 0.05
    assert found.run.best_epoch > 0
    assert (weights_of(found) != 0.0).any()
    clicks = [one._replace(clicked=[2]) for one in own]
    other = weights_of(trained(clicks))
    assert other != pytest.approx(weights_of(found), rel=1e-2)


def test_the_reward_is_of_the_selection_groups_and_the_trained_policy(found):
    """Added up by hand, of queries on both sides."""
    reward = rewarded(LOG, SELECTED_ON, weights_of(found))
    assert found.run.reward == pytest.approx(reward, rel=1e-6)
    for other in (
        rewarded(LOG, TRAINED_ON, weights_of(found)),
        rewarded(LOG, SELECTED_ON, 0.0 * weights_of(found)),
        rewarded(LOG, SELECTED_ON, weights_of(found), least=0.0),
    ):
        assert reward != pytest.approx(other, rel=1e-3)


def test_groups_that_a_parent_saw_do_not_judge(found):
    """What is left of the selection groups does; where none is, nobody."""
    first, *rest = SELECTED_ON
    assert rest
    heir = trained(LOG, parent=parent_of(version=1, groups=[first]))
    assert heir.snapshot.weights == found.snapshot.weights
    reward = rewarded(LOG, rest, weights_of(heir))
    assert heir.run.reward == pytest.approx(reward, rel=1e-6)
    assert heir.run.reward != pytest.approx(found.run.reward, rel=1e-3)
    nobody = trained(LOG, parent=parent_of(version=1, groups=list(SELECTED_ON)))
    assert nobody.run.reward is None
    assert "seen clicks of all groups" in nobody.run.reward_reason


def test_the_start_is_judged_by_held_out_queries_of_training_groups(found):
    """DCG by values that are clipped by the lists of these groups alone.

    Of equal scores, so that items share all discounts.
    """
    sums = by_hand(LOG, TRAINED_ON)
    n_lists = sum(n for n, _, _ in sums.values())
    least = CLIP / np.sqrt(n_lists)
    dcg = total = 0.0
    n_raised = n_below = 0
    for query, (n, alpha, clicked) in sums.items():
        if SPLITS.is_held_out(query):
            kept = alpha >= PLAN["least_support"]
            values = (clicked / n) / np.maximum(alpha / n, least)
            shared = (1.0 / np.log2(np.arange(2.0, N_SHOWN + 2.0))).sum() / len(alpha)
            dcg += n * shared * float(values[kept].sum())
            total += n
            n_raised += int((alpha / n < least)[kept].sum())
            n_below += int((~kept & (clicked > 0)).sum())
    assert n_raised > 0
    assert n_below > 0
    assert found.run.epochs[0][2] == pytest.approx(dcg / total, rel=1e-6)


@pytest.mark.parametrize("cutoff", [1, 2, 3])
def test_exposure_is_that_of_queries_to_learn_from(cutoff):
    """Within the ranks that are shown, by the weights that are served."""
    made = trained(LOG, cutoff=cutoff)
    least = total = 0.0
    for query, (n, _, _) in by_hand(LOG, TRAINED_ON).items():
        if not SPLITS.is_held_out(query):
            features = normalised(features_of(query), "min-max").astype(float)
            scores = features @ weights_of(made)
            placed = placement_batch(scores[None], cutoff)[0]
            least += n * placed.sum(axis=1).min()
            total += n
    assert made.run.least_exposure == pytest.approx(least / total, rel=1e-5)


def test_what_is_left_out_is_counted(found):
    """Clicks on items of too little support; lists beside those of no known policy."""
    below = clicks = 0.0
    n_below = 0
    for _, alpha, clicked in by_hand(LOG, TRAINED_ON).values():
        is_below = alpha < PLAN["least_support"]
        n_below += int(is_below.sum())
        below += clicked[is_below].sum()
        clicks += clicked.sum()
    sizes = found.run.sizes
    assert (sizes.n_below, sizes.n_clicks) == (n_below, clicks)
    assert sizes.share_below == pytest.approx(below / clicks, rel=1e-12)
    assert 0.0 < sizes.share_below < 0.5
    assert sizes.n_left_out == 0
    unknown = tuple(
        LOG[x]._replace(name=f"unknown {x}", policy=UNKNOWN) for x in (7, 40)
    )
    places = {(one.query, one.group) for one in unknown}
    assert len(places) == 2
    left = [one for one in LOG if (one.query, one.group) not in places]
    run = trained([*LOG, *unknown]).run
    assert run.sizes.n_left_out == len(LOG) - len(left) + 2
    plain = trained(left).run
    assert np.array(run.epochs) == pytest.approx(np.array(plain.epochs))
    assert run.reward == pytest.approx(plain.reward)


def test_items_beyond_the_set_with_features_take_no_place():
    """Open lists show others, too: what these are called changes nothing."""
    by_name = {}
    for letter in "az":
        others, more = [f"{letter}0", f"{letter}1"], []
        for one in shown(300, 5):
            known = dict(zip(one.items, one.scores.tolist(), strict=True))
            items = sorted([*one.items, *others])
            scores = np.array([known.get(x, 0.5) for x in items], np.float32)
            shown_items = [others[0], *(one.items[row] for row in one.order[1:])]
            order = [items.index(x) for x in shown_items]
            fields = {"items": items, "scores": scores, "order": order}
            more.append(one._replace(**fields, is_open=True))
        by_name[letter] = trained([*LOG, *more])
    first, last = by_name.values()
    assert first.snapshot.weights == last.snapshot.weights
    assert first.run.epochs == last.run.epochs
    assert first.run.sizes == last.run.sizes
    assert first.run.epochs != trained(LOG).run.epochs


def test_a_version_of_as_many_lists_or_more_takes_the_next_epoch():
    """After that of its parent, whichever this is."""
    for epoch, version, expected in (
        (3, N_LISTS, 4), (0, N_LISTS + 1, 1), (2, N_LISTS - 1, 2), (0, N_LISTS, 1),
    ):  # fmt: skip
        parent = parent_of(epoch=epoch, version=version, groups=[0], updates=7)
        made = trained(LOG, parent=parent, epochs=1).snapshot
        assert (made.epoch, made.version) == (expected, N_LISTS)
        assert made.updates == 8
        assert made.intervention == f"m@{expected}.{N_LISTS}"


def test_a_snapshot_is_as_old_as_its_least_watermark():
    """Of the partitions that have one."""
    records = [x for x in records_of(LOG) if x[0] != counted_key(0)]
    (head,) = [value for key, value in records_of(LOG) if key == counted_key(0)]
    counted = decode_counted(head)
    for partition, watermark_ms in ((0, 5_000), (1, None), (2, 3_000), (3, 4_000)):
        one = counted._replace(watermark_ms=watermark_ms, sources={partition: 1})
        records.append((counted_key(partition), encode_counted(one)))
    made = trained(LOG, records=records)
    assert made.snapshot.created_ms == made.run.created_ms == 3_000


def test_a_curve_that_is_given_is_another_than_the_same_estimated():
    """One tells relations alone; what the run records is told apart."""
    clicks = list(shown(3_000, 2))
    estimated = trained(clicks, examination=[]).run.curve
    given = trained(clicks, examination=estimated.alpha).run.curve
    assert estimated.alpha == given.alpha
    assert estimated.beta == given.beta
    assert (estimated.is_ratio_only, given.is_ratio_only) == (True, False)
    assert estimated.version != given.version
