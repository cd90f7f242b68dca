"""Which estimator a log is answered by, what is said of it, and that parts join."""

import numpy as np
import pytest

from models.estimators.choice import (
    APART,
    LOG_POLICIES,
    Known,
    Unknown,
    asked_for,
    choice_of,
    choice_of_sums,
)
from models.estimators.item_intervals import points_of_items
from models.estimators.registry import ESTIMATORS, PLACEMENTS
from tests.laws.estimator_cases import EXACT, POSITION, SELECTION, TRUST, case_of
from tests.laws.estimator_cases import enumerated as every_log_of


@pytest.mark.parametrize(
    ("known", "name", "better"),
    [
        (Known(9, 0, is_fixed=True), "intervention-aware", ""),
        (Known(9, 0, is_fixed=False), "intervention-oblivious", "choose policies"),
        (Known(0, 9, is_fixed=True), "affine-shown", LOG_POLICIES),
        (Known(0, 9, is_fixed=False), "affine-shown", LOG_POLICIES),
        (Known(5, 4, is_fixed=True), "intervention-aware", LOG_POLICIES),
        (Known(5, 4, is_fixed=False), "intervention-oblivious", "choose policies"),
    ],
)
def test_each_part_has_its_estimator(known, name, better):
    """And what is not known is taken as it was shown, beside what is."""
    found = choice_of(known)
    unknown = Unknown.JOINED if known.n_known else Unknown.AS_SHOWN
    assert (found.estimator, found.unknown) == (name, unknown)
    said = found.said(known.n_unknown)
    assert said.startswith(f"by {name}: ")
    assert said.partition("; better: ")[2].startswith(better)
    assert bool(better) == ("better" in said)
    is_joined = bool(known.n_known and known.n_unknown)
    beside = f"{known.n_unknown} lists beside unknown policies by affine-shown"
    assert (beside in said) == is_joined


def test_lists_that_cannot_be_told_apart_are_counted_in_words():
    """What share of all names its policy; never that nobody knows."""
    found = choice_of(Known(0, 8, is_fixed=True, n_beside=2))
    assert (found.estimator, found.unknown) == ("affine-shown", Unknown.AS_SHOWN)
    said = found.said(8, 2)
    assert "nobody knows" not in said
    assert "; 2 of 8 lists (25.0%) name their policy; better: " in said
    assert said.endswith(f"; better: {APART}")
    said = choice_of(Known(5, 8, is_fixed=True, n_beside=2)).said(8, 2)
    assert "8 lists beside unknown policies by affine-shown" in said
    assert "2 of them name their policy" in said
    assert said.endswith(f"; better: {APART}")
    training = choice_of_sums(has_known=False, has_beside=True)
    assert training == found


@pytest.mark.parametrize("name", ESTIMATORS)
def test_who_asks_gets_what_was_asked_for(name):
    """Lists that it cannot take are left out; what the log would get is named."""
    found = choice_of(Known(5, 4, is_fixed=True), name)
    asks = PLACEMENTS in ESTIMATORS[name].needs
    assert found.estimator == name
    assert found.unknown is (Unknown.LEFT_OUT if asks else Unknown.KEPT)
    assert "--estimator" in found.reason
    is_own = name == "intervention-aware"
    assert ("better: intervention-aware" in found.said()) == (not is_own)


def test_a_name_of_nothing_is_refused():
    """With all names."""
    with pytest.raises(ValueError, match=r"one of naive, .*; got 'magic'"):
        choice_of(Known(1, 0, is_fixed=True), "magic")


def test_trainings_take_sums_of_what_is_known_else_of_what_was_shown():
    """What they took before stays as it was."""
    known, shown = (choice_of_sums(has_known=each) for each in (True, False))
    assert (known.estimator, known.unknown) == (
        "intervention-aware",
        Unknown.LEFT_OUT,
    )
    assert shown == choice_of(Known(0, 1, is_fixed=True))


def as_shown(log, impressions, policy):
    """The same log, as if nobody knew how a policy drew its lists."""
    is_unknown = log.policies == policy
    expected = np.where(is_unknown, log.shown, log.expected)
    lists = impressions.copy()
    lists[:, policy] = 0.0
    place = log.groups[is_unknown], log.policies[is_unknown], log.items[is_unknown]
    np.add.at(lists, place, log.shown[is_unknown])
    return log._replace(expected=expected), lists


@pytest.mark.parametrize("name", ["intervention-aware", "intervention-oblivious"])
@pytest.mark.parametrize("policy", [0, 1])
def test_known_and_unknown_lists_are_unbiased_together(name, policy):
    """By enumeration, under all biases; with `expected` of the other it is not so."""
    case = case_of(POSITION, SELECTION, TRUST)
    every = every_log_of(case)
    estimator = ESTIMATORS[name].estimator
    log, impressions = as_shown(every.log, every.impressions, policy)
    mean = every.mean(estimator(log, impressions, case.curve).values)
    np.testing.assert_allclose(mean, case.users.relevance, rtol=0, atol=EXACT)
    # What is taken as shown must be so with its bias at these ranks.
    wrong = log._replace(expected=np.where(log.shown > 0, 1.0, 0.0) * 0.5)
    mean = every.mean(estimator(wrong, impressions, case.curve).values)
    assert np.abs(mean - case.users.relevance).max() > 0.05


def test_of_nothing_but_unknown_lists_all_three_are_the_same():
    """Of one policy; sure lists are those of a deterministic one."""
    case = case_of(POSITION, SELECTION, TRUST)
    every = every_log_of(case)
    log, impressions = as_shown(every.log, every.impressions, 0)
    log, impressions = as_shown(log, impressions, 1)
    one = log._replace(policies=np.zeros_like(log.policies))
    lists = impressions.sum(axis=1, keepdims=True)
    values = [
        ESTIMATORS[name].estimator(one, lists, case.curve).values
        for name in ("affine-shown", "intervention-aware", "intervention-oblivious")
    ]
    assert np.isfinite(values[0]).any()
    for each in values[1:]:
        np.testing.assert_allclose(each, values[0], rtol=1e-12)


def test_points_without_the_groups_that_are_not_asked_for():
    """As if their lists were not there, and no interval where none may be."""
    case = case_of(POSITION, SELECTION)
    every = every_log_of(case)
    n_groups = 4
    log = every.log._replace(groups=np.arange(len(every.log.groups)) % n_groups)
    impressions = np.zeros((n_groups, *every.impressions.shape[1:]))
    np.add.at(impressions, (log.groups, log.policies, log.items), 1.0)
    estimator = ESTIMATORS["intervention-oblivious"].estimator
    whole, _ = points_of_items(estimator, log, impressions, case.curve, (0, 2))
    kept = np.isin(log.groups, (0, 2))
    columns = [column[kept] for column in log[:7]]
    lists = np.where(np.isin(np.arange(4), (0, 2))[:, None, None], impressions, 0.0)
    found = estimator(log._replace(**dict(zip(log._fields, columns, strict=False))),
                      lists, case.curve)  # fmt: skip
    np.testing.assert_array_equal(whole.values, found.values)
    without, _ = points_of_items(
        estimator, log, impressions, case.curve, (0, 2), has_intervals=False
    )
    assert np.isnan(without.intervals.low).all()
    np.testing.assert_array_equal(without.values, whole.values)


def test_what_was_asked_for_by_name_is_a_choice():
    """Without a log."""
    assert asked_for("affine").said() == "by affine: as --estimator asks"
