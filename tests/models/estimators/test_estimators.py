"""Estimators given little, nothing, or what is not known: values, reasons, remarks."""

import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.item_estimates import (
    AS_IRRELEVANT,
    NEVER_SHOWN,
    NO_LISTS,
    NOT_SHOWN,
    OF_REGRESSION,
    UNKNOWN,
)
from models.estimators.registry import (
    CURVE,
    ESTIMATORS,
    PLACEMENTS,
    POLICIES,
    estimator_of,
)
from tests.curve_factory import ratio_curve
from tests.models.estimators.logs import lists_of, log_of

LOOKS = position_curve([1.0, 0.5])
ALL = [*ESTIMATORS]
OF_PLACEMENTS = [name for name in ALL if PLACEMENTS in ESTIMATORS[name].needs]
OF_SHOWN = ["oblivious", "affine"]
BY_POLICY = [name for name in ALL if POLICIES in ESTIMATORS[name].needs]


def found(name, rows, lists, curve=LOOKS, **options):
    """What an estimator of a name says."""
    return ESTIMATORS[name].estimator(log_of(rows), lists, curve, **options)


def test_the_registry_names_what_each_needs():
    """And who is unknown is refused with all names."""
    for entry in ESTIMATORS.values():
        assert entry.needs <= {CURVE, PLACEMENTS, POLICIES}
        assert entry.unbiased_for
    assert estimator_of("naive").needs == frozenset()
    with pytest.raises(ValueError, match=r"one of naive, .*; got 'magic'"):
        estimator_of("magic")


@pytest.mark.parametrize("name", ALL)
def test_a_query_that_was_seen_once_has_a_value(name):
    """One list, a sure look, a click: 1, and all of it that click's."""
    said = found(name, [(0, 0, 0, 1, 1, 1, 1.0)], lists_of([[1]]))
    assert said.values.tolist() == [1.0]
    assert said.reasons == ("",)
    assert said.largest_share.tolist() == [1.0]
    assert said.effective_clicks.tolist() == [1.0]
    assert said.unseen.tolist() == [0.0]


@pytest.mark.parametrize("name", ALL)
def test_an_item_in_no_list_has_no_value(name):
    """A zero denominator is a reason, not a number nor a warning."""
    said = found(name, [(0, 0, 0, 1, 1, 1, 1.0)], lists_of([[1, 0]]))
    assert np.isnan(said.values).tolist() == [False, True]
    assert said.reasons == ("", NO_LISTS)
    assert np.isnan(said.unseen[1])


@pytest.mark.parametrize("name", ALL)
def test_an_empty_log_has_no_values(name):
    """No rows, no lists."""
    said = found(name, [], lists_of([[0, 0]]))
    assert np.isnan(said.values).all()
    assert {*said.reasons} == {NO_LISTS}
    assert said.effective_clicks.tolist() == [0.0, 0.0]
    assert np.isnan(said.largest_share).all()


@pytest.mark.parametrize("name", ALL)
def test_an_item_that_was_never_exposed(name):
    """Each estimator says what its silence means."""
    rows = [(0, 0, 0, 1, 4, 2, 4.0)]
    said = found(name, rows, lists_of([[4, 4]]))
    reason, value = {
        "naive": ("", 0.0),
        "oblivious": (AS_IRRELEVANT, 0.0),
        "affine": (AS_IRRELEVANT, 0.0),
        "rerank": (NOT_SHOWN, np.nan),
        "affine-shown": (NOT_SHOWN, np.nan),
        # One group: no other says anything.
        "doubly-robust": (OF_REGRESSION, 0.0),
    }.get(name, (NEVER_SHOWN, np.nan))
    assert said.reasons == ("", reason)
    np.testing.assert_array_equal(said.values, [0.5, value])
    assert said.unseen.tolist() == [0.0, 1.0]


def test_what_could_be_shown_and_was_not():
    """A ratio has nothing to divide by; others have a 0."""
    rows = [(0, 0, 0, 1, 4, 2, 3.0), (0, 0, 1, 1, 0, 0, 1.0)]
    said = found("self-normalised", rows, lists_of([[4, 4]]))
    assert said.reasons == ("", NOT_SHOWN)
    said = found("intervention-aware", rows, lists_of([[4, 4]]))
    assert said.values[1] == 0.0


def test_the_fallback_of_doubly_robust_is_what_it_was_told():
    """By group where groups were told unlike: as their lists weigh."""
    rows = [(0, 0, 0, 1, 4, 2, 4.0)]
    lists = lists_of([[4, 3]], [[0, 1]])
    told = np.array([[0.5, 0.2], [0.5, 0.6]])
    said = found("doubly-robust", rows, lists, regression=told)
    np.testing.assert_allclose(said.values, [0.5, 0.3], rtol=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_clicks_beyond_the_curve_are_left_out_and_counted(name):
    """But for who asks no curve."""
    rows = [(0, 0, 0, 1, 4, 2, 4.0), (0, 0, 0, 3, 1, 1, 1.0)]
    said = found(name, rows, lists_of([[5]]))
    if CURVE in ESTIMATORS[name].needs:
        assert "2 ranks: 1 clicks further down are left out" in said.remarks[-1]
        assert said.clicks.total[0] == pytest.approx(
            2 / {"oblivious": 5, "affine": 5}.get(name, _divisor(name))
        )
    else:
        assert said.values.tolist() == [0.6]


@pytest.mark.parametrize("name", ALL)
def test_clicks_at_the_last_rank_of_the_curve_are_not_left_out(name):
    """Nothing is said of them."""
    assert found(name, [(0, 0, 0, 2, 4, 2, 4.0)], lists_of([[5]])).remarks == ()


def _divisor(name):
    """Looks of 5 lists of which 4 are at rank 1."""
    return 5 * 0.8 if name in OF_PLACEMENTS else 4


@pytest.mark.parametrize("name", ALL)
def test_lists_whose_exposures_are_unknown(name):
    """Who asks for placements has no value; who looks at what was shown has."""
    rows = [(0, 0, 0, 1, 4, 2, np.nan), (0, 0, 1, 2, 1, 1, 1.0)]
    said = found(name, rows, lists_of([[4, 4]]))
    if name in OF_PLACEMENTS:
        assert said.reasons == (UNKNOWN, UNKNOWN)
        assert np.isnan(said.values).all()
    else:
        assert np.isfinite(said.values).all()
    assert np.isnan(said.unseen).all()


def test_one_policy_only_makes_the_interventions_one():
    """Oblivious to them or aware is the same; without trust so is policy-aware."""
    rows = [(0, 0, 0, 1, 6, 4, 5.5), (0, 0, 0, 2, 3, 1, 3.5)]
    names = "intervention-oblivious", "intervention-aware", "policy-aware"
    values = [found(name, rows, lists_of([[10]])).values[0] for name in names]
    np.testing.assert_allclose(values, 5 / 7.25, rtol=1e-14)


@pytest.mark.parametrize("name", ALL)
def test_several_placements_of_one_policy_are_told(name):
    """Where policies are corrected by themselves: clicks are not known apart."""
    log = log_of([(0, 0, 0, 1, 4, 2, 4.0)], mixed=[0])
    said = ESTIMATORS[name].estimator(log, lists_of([[4]]), LOOKS)
    assert any("several placements" in x for x in said.remarks) == (name in BY_POLICY)


@pytest.mark.parametrize("name", ["oblivious", "rerank", "policy-aware"])
def test_ratios_that_leave_no_examination_are_refused(name):
    """A curve of ratios may say that what is not relevant is clicked less than 0."""
    curve = BiasCurve(np.array([1.0, 0.2]), np.array([0.0, -0.3]), is_ratio_only=True)
    with pytest.raises(ValueError, match=r"got -0.1 at rank 2: take one that corrects"):
        found(name, [(0, 0, 0, 1, 1, 1, 1.0)], lists_of([[1]]), curve)


@pytest.mark.parametrize("name", [name for name in ALL if name != "naive"])
def test_what_a_curve_cannot_tell_is_remarked(name):
    """As the curve says it."""
    curve = ratio_curve(BiasCurve(np.array([0.35, 0.5]), np.array([0.6, 0.2])))
    said = found(name, [(0, 0, 0, 1, 1, 1, 1.0)], lists_of([[1]]), curve)
    assert "up to scale and offset" in said.remarks[0]


@pytest.mark.parametrize(
    ("regression", "rule"),
    [(np.zeros(3), "must be of 1 items"), (np.array([np.nan]), "say a number of each")],
)
def test_a_regression_of_something_else_is_refused(regression, rule):
    """In words."""
    rows = [(0, 0, 0, 1, 1, 1, 1.0)]
    with pytest.raises(ValueError, match=rule):
        found("doubly-robust", rows, lists_of([[1]]), regression=regression)
