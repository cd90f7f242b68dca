"""What statistics add up to, held to raw impressions."""

import numpy as np
import pytest

from models.counts.definition import ClosedImpression
from models.counts.placements import (
    DETERMINISTIC,
    LOGGED,
    MULTILEAVE,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
)
from models.counts.scope_record import CONVERTED
from models.decisions.click_sums import differences_of
from rankstream.wire.exposures import pack_exposures
from streams.decisions.evidence import evidence_of
from streams.decisions.refused import Refused
from streams.native.placing import placements_of_scores
from streams.statistics.keys import OPEN_SET, Row, ScopeName
from streams.statistics.reader import Statistics
from tests.models.counts.scope_values import ScopeValue
from tests.streams.decisions.raw_sums import CURVE, SHORT, SPLITS, TRUST, Sums, raw_sums
from tests.streams.statistics.statistics_records import counted_record, scope_records

ITEMS = ("d", "b", "e", "a", "c")
BY_ID = np.argsort(ITEMS)
N = len(ITEMS)
WEIGHTS = np.array([1.0, 0.6, 0.5, 0.4, 0.3])
NAME = ScopeName("q", b"s" * 16, "m", 7)


def scores_row(seed):
    """A row of scores, and its placement."""
    scores = np.random.default_rng(seed).normal(size=N).astype("<f4")
    placed = placements_of_scores(scores[None, :].astype(np.float64), 3)[0]
    return Row(PLACKETT_LUCE, 3, scores.tobytes(), b""), placed


def logged_row(seed):
    """A row of logged exposures, and its placement."""
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(N)[:3] for _ in range(4)]
    placed = np.zeros((N, 3))
    for order in orders:
        placed[order, np.arange(3)] += 0.25
    packed = pack_exposures(placed.astype(np.float32))
    return Row(LOGGED, 3, packed, b""), placed


ROWS = {
    bytes((policy, number)) * 8: row_of(number)
    for policy, row_of in ((PLACKETT_LUCE, scores_row), (LOGGED, logged_row))
    for number in range(2)
}


def shown_of(rng, placed):
    """A list that a placement may show: ranks drawn one after another."""
    shown: list[int] = []
    for rank in range(placed.shape[1]):
        chances = placed[:, rank].copy()
        chances[shown] = 0.0
        if chances.sum() <= 0.0:
            break
        shown.append(int(rng.choice(N, p=chances / chances.sum())))
    return shown


def impressions_of(rng, policy, n, row=b"", order=None):
    """Lists of one policy, clicked at random, also beyond the curve's ranks."""
    order = rng.permutation(N) if order is None else order
    found = []
    for _ in range(n):
        placement = None
        shown = order.tolist()
        if row:
            placement = ROWS[row][1]
            shown = shown_of(rng, placement)
        elif policy == TAIL_SHUFFLE:
            last = rng.permutation(order[2:])[0]
            shown = [*order[:2].tolist(), int(last)]
        rate = rng.choice((0.1, 0.5, 0.9))
        ranks = np.flatnonzero(rng.random(len(shown)) < rate) + 1
        clicks = {0: ranks.tolist() * 2, 1: [1]}
        group = int(rng.integers(4))
        found.append(ClosedImpression(group, shown, clicks, policy, row, placement))
    return found


def statistics_of(impressions, name=NAME, **limits):
    """The store that a fold would leave."""
    value = ScopeValue(ITEMS, **limits).take(impressions)
    rows = {row: ROWS[row][0] for row in value.rows}
    return Statistics(scope_records(name, value, rows))


def found_sums(evidence, difference, second=None):
    """Rows by group and propensities."""
    first = np.asarray(difference)[BY_ID]
    other = np.zeros(N) if second is None else second
    found = differences_of(
        evidence.policies, evidence.selection, evidence.sets.starts, first, other
    )
    kept = iter(zip(*found.sums, strict=True))
    is_told = first != 0.0
    rows = {}
    for policy, group in zip(
        evidence.selection.policies, evidence.selection.groups, strict=True
    ):
        start, end = evidence.policies.starts[policy : policy + 2]
        rho = evidence.policies.propensities[start:end]
        if (is_told & (rho <= 0.0)).any():
            continue
        numbers = next(kept)
        assert numbers[0] == group
        key = int(group), tuple(np.round(rho[np.argsort(BY_ID)], 9).tolist())
        rows[key] = Sums(*numbers[1:])
    assert next(kept, None) is None
    return rows, int(found.unsupported.sum())


def assert_exact(impressions, curve, rng, **limits):
    """Reader and definition agree, whatever two policies are compared."""
    evidence = evidence_of(statistics_of(impressions, **limits), SPLITS, curve, WEIGHTS)
    selection = [one for one in impressions if one.group in SPLITS.selection]
    n_found = 0
    for is_shown in (True, False):
        weights = rng.normal(size=(N,))
        if is_shown:
            shown = {item for one in selection for item in one.shown[:2]}
            weights[[item for item in range(N) if item not in shown]] = 0.0
        expected, unsupported = raw_sums(selection, N, curve, weights.tolist())
        found, refused = found_sums(evidence, weights)
        assert refused == unsupported
        assert found.keys() == expected.keys()
        for key, sums in found.items():
            assert sums == pytest.approx(expected[key], rel=1e-9, abs=1e-9)
        n_found += len(found)
    assert not evidence.refused
    assert n_found


@pytest.mark.parametrize("curve", [CURVE, TRUST], ids=["position", "trust"])
@pytest.mark.parametrize("seed", range(4))
def test_lists_of_several_policies_in_one_scope_are_exact(seed, curve):
    """Lists, shuffled tails and logged exposures lie apart, each with its own rho."""
    rng = np.random.default_rng(seed)
    impressions = [
        *impressions_of(rng, DETERMINISTIC, 30),
        *impressions_of(rng, DETERMINISTIC, 30),
        *impressions_of(rng, TAIL_SHUFFLE, 40),
        *(one for row in [*ROWS][2:] for one in impressions_of(rng, LOGGED, 30, row)),
    ]
    assert_exact(impressions, curve, rng)


@pytest.mark.parametrize("curve", [CURVE, TRUST], ids=["position", "trust"])
@pytest.mark.parametrize("most_lists", [0, 2])
@pytest.mark.parametrize("policy", [DETERMINISTIC, TAIL_SHUFFLE, LOGGED, PLACKETT_LUCE])
def test_one_policy_counted_by_item_and_rank_is_exact(policy, most_lists, curve):
    """Pairs of clicks give X^2; some lists may be counted one by one besides."""
    rng = np.random.default_rng(policy)
    row = next((row for row in ROWS if row[0] == policy), b"")
    impressions = impressions_of(rng, policy, 60, row)
    assert_exact(impressions, curve, rng, most_lists=most_lists)


@pytest.mark.parametrize("most_lists", [0, 64])
@pytest.mark.parametrize("policy", [TAIL_SHUFFLE, LOGGED, PLACKETT_LUCE])
def test_clicks_at_ranks_beyond_the_curve_are_left_out(policy, most_lists):
    """With what they were exposed to there; the items may stand higher too."""
    rng = np.random.default_rng(policy)
    row = next((row for row in ROWS if row[0] == policy), b"")
    impressions = impressions_of(rng, policy, 60, row)
    assert_exact(impressions, SHORT, rng, most_lists=most_lists)


@pytest.mark.parametrize("policy", [DETERMINISTIC, PLACKETT_LUCE])
def test_pieces_that_lie_apart_are_read_too(policy):
    """Cells of some groups, and lists; in whatever order they come."""
    rng = np.random.default_rng(policy)
    row = next((row for row in ROWS if row[0] == policy), b"")
    impressions = impressions_of(rng, policy, 60, row)
    for most_lists in (0, 1):
        own = {"most_lists": most_lists, "piece_lists": 1}
        assert_exact(impressions, TRUST, rng, pieces=(0, 2), **own)
        assert_exact(impressions, TRUST, rng, pieces=(3,), **own)


def test_lists_that_differ_in_no_propensity_are_one_policy():
    """A tail that was shuffled has one rho, whichever item came last."""
    rng = np.random.default_rng(3)
    impressions = impressions_of(rng, TAIL_SHUFFLE, 60, order=np.arange(N))
    evidence = evidence_of(statistics_of(impressions), SPLITS, CURVE, WEIGHTS)
    assert len(evidence.policies.sets) == 1
    expected = np.array([0.9, 0.5, 0.1, 0.1, 0.1])
    np.testing.assert_allclose(evidence.policies.propensities, expected[BY_ID])
    worths = np.array([1.0, 0.6, *[0.5 / 3] * 3])
    np.testing.assert_allclose(evidence.policies.worths, worths[BY_ID])


def test_eras_and_interventions_add_up_by_policy():
    """The same list has the same rho, whenever and under whatever name."""
    rng = np.random.default_rng(4)
    order = np.arange(N)
    parts = [impressions_of(rng, DETERMINISTIC, 20, order=order) for _ in range(3)]
    names = [NAME, NAME._replace(era=8), NAME._replace(intervention="n")]
    records = [
        record
        for name, part in zip(names, parts, strict=True)
        for record in scope_records(name, ScopeValue(ITEMS).take(part))
    ]
    evidence = evidence_of(Statistics(records), SPLITS, CURVE, WEIGHTS)
    together = [one for part in parts for one in part]
    whole = evidence_of(statistics_of(together), SPLITS, CURVE, WEIGHTS)
    for own, other in zip(
        (*evidence.policies, *evidence.training, *evidence.selection),
        (*whole.policies, *whole.training, *whole.selection),
        strict=True,
    ):
        np.testing.assert_array_equal(own, other)


def refusals(impressions, name=NAME, **limits):
    """What is left out, and how many lists are not."""
    evidence = evidence_of(
        statistics_of(impressions, name, **limits), SPLITS, CURVE, WEIGHTS
    )
    sums = (evidence.training, evidence.selection)
    return evidence.refused, sum(int(side.interactions.sum()) for side in sums)


def both_scores(rng):
    """Lists of two policies that a scope does not keep apart."""
    return [
        one
        for row in [*ROWS][:2]
        for one in impressions_of(rng, PLACKETT_LUCE, 30, row)
    ]


def test_what_no_sound_judgement_can_be_made_of_is_left_out_and_counted():
    """Each kind by its own reason; none of it is in any sum."""
    rng = np.random.default_rng(5)
    sure = impressions_of(rng, DETERMINISTIC, 40)
    assert refusals(sure) == ({}, 40)
    assert refusals(both_scores(rng)) == ({Refused.MIXED: 60}, 0)
    two = [*sure, *impressions_of(rng, DETERMINISTIC, 40)]
    assert refusals(two, most_lists=0) == ({Refused.MIXED: 80}, 0)
    # Rows that a scope had no room for are only added up to others.
    assert refusals(both_scores(rng), exposure_rows=1) == ({Refused.MIXED: 60}, 0)
    shared = [
        ClosedImpression(group, [0, 1, 2, last], {0: [4]})
        for group in range(4)
        for last in (3, 4)
    ]
    assert refusals(shared, most_lists=0) == ({Refused.MIXED: 8}, 0)
    assert refusals(shared) == ({}, 8)
    beyond = impressions_of(rng, LOGGED, 40, [*ROWS][2])
    assert refusals(beyond, exposure_rows=0) == ({Refused.MIXED: 40}, 0)
    for policy in (UNKNOWN, MULTILEAVE):
        unknown = impressions_of(rng, policy, 40)
        assert refusals([*sure, *unknown]) == ({Refused.UNKNOWN: 40}, 40)
        assert refusals(unknown, most_lists=0) == ({Refused.UNKNOWN: 40}, 0)
        mixed = {Refused.MIXED: 80}
        assert refusals([*sure, *unknown], most_lists=0) == (mixed, 0)
    assert refusals(sure, is_capped=True) == ({Refused.CAPPED: 40}, 0)
    assert refusals(sure, flags=CONVERTED) == ({Refused.CONVERTED: 40}, 0)
    growing = NAME._replace(candidate_set=OPEN_SET)
    assert refusals(sure, growing, is_growing=True) == ({Refused.GROWING: 40}, 0)


def test_lists_beside_what_a_scope_mixed_are_left_out_too():
    """Which lists a scope had no room for may depend on their clicks."""
    rng = np.random.default_rng(6)
    many = [one for _ in range(3) for one in impressions_of(rng, DETERMINISTIC, 20)]
    refused, n_kept = refusals(many, most_lists=1)
    assert (refused, n_kept) == ({Refused.MIXED: 60}, 0)


def test_what_one_side_mixed_leaves_the_other_as_it_is():
    """Clicks of selection decide nothing about training, and the other way round."""
    rng = np.random.default_rng(7)
    own = impressions_of(rng, DETERMINISTIC, 40)
    training = [one._replace(group=one.group % 2) for one in own]
    selection = [one._replace(group=2 + one.group % 2) for one in both_scores(rng)]
    alone, beside = (
        evidence_of(statistics_of(lists, most_lists=0), SPLITS, CURVE, WEIGHTS)
        for lists in (training, [*training, *selection])
    )
    assert beside.refused == {Refused.MIXED: 60}
    for one, other in zip(alone.training, beside.training, strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(beside.training.clicks)


def test_groups_must_be_those_that_were_counted():
    """Else the two sides would share sessions."""
    statistics = Statistics([counted_record()])
    with pytest.raises(ValueError, match="groups must be split as they were counted"):
        evidence_of(statistics, SPLITS, CURVE, WEIGHTS)
