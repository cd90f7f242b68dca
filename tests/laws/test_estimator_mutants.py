"""Estimators with one term changed break a law."""

import importlib
import inspect
from types import ModuleType

import numpy as np
import pytest

from models.estimators.registry import ESTIMATORS
from tests.laws.estimator_cases import POSITION, SELECTION, TRUST
from tests.laws.estimator_laws import (
    BIASES,
    BY_HAND,
    FIXED,
    is_biased_as_stated,
    is_exact_where_one_policy_is_blind,
    is_exact_with_other_groups_regression,
    is_unbiased,
    mean_after_clicks,
    raises_small_averages,
    weighs_clicks_as_it_says,
)

ALL = POSITION, SELECTION, TRUST

MUTANTS = (
    ("naive", "rank_corrected", "divided(total, lists)", "divided(total, lists + 1)"),
    ("naive", "rank_corrected", "1.0 / np.where(", "2.0 / np.where("),
    ("oblivious", "rank_corrected", "theta[rows] * lists", "theta[0] * lists"),
    ("oblivious", "rank_corrected", "(theta[rows] * lists[items])", "theta[rows]"),
    (
        "oblivious",
        "rank_corrected",
        "examination(curve), least",
        "examination(curve), 0",
    ),
    ("oblivious", "item_estimates", "curve.alpha + curve.beta", "curve.alpha"),
    ("rerank", "rank_corrected", "theta[rows] * lists", "theta[0] * lists"),
    (
        "rerank",
        "rank_corrected",
        "(theta[rows] * lists[items])",
        "(theta[rows] * sums.impressions.sum(axis=0)[items])",
    ),
    (
        "rerank",
        "rank_corrected",
        "np.where(lists > 0.0, clicks.total, np.nan)",
        "clicks.total",
    ),
    ("rerank", "rank_corrected", "examination(curve), least", "examination(curve), 0"),
    ("affine", "rank_corrected", "clicked - by_trust", "clicked"),
    ("affine", "rank_corrected", "* curve.beta[rows]", "* curve.beta[0]"),
    ("affine", "rank_corrected", "curve.alpha[rows], least", "curve.alpha[0], least"),
    ("affine", "rank_corrected", "curve.alpha[rows], least", "curve.alpha[rows], 0"),
    ("affine", "rank_corrected", "least) * lists[items]", "least)"),
    ("affine-shown", "rank_corrected", "clicked - beta", "clicked"),
    ("affine-shown", "rank_corrected", "sums.shown_alpha, sums", "sums.shown, sums"),
    ("affine-shown", "rank_corrected", "sums.shown_beta)", "sums.beta)"),
    ("affine-shown", "rank_corrected", "least * shown", "0.0 * shown"),
    ("affine-shown", "rank_corrected", "1.0 / by[items]", "2.0 / by[items]"),
    ("policy-aware", "policy_corrected", "sums.alpha + sums.beta", "sums.alpha"),
    ("doubly-robust", "policy_corrected", "lists / n_all", "lists"),
    ("policy-aware", "policy_corrected", "(average, least)", "(average, 0.0)"),
    ("intervention-oblivious", "policy_corrected", "- sums.beta", "+ sums.beta"),
    (
        "intervention-oblivious",
        "policy_corrected",
        "sums.impressions, sums.alpha, least)\n    return",
        "sums.impressions, sums.shown_alpha, least)\n    return",
    ),
    ("intervention-oblivious", "policy_corrected", "0.0) / n_all", "0.0)"),
    (
        "intervention-oblivious",
        "policy_corrected",
        "is_used = has_lists & (raised > 0.0)",
        "is_used = has_lists",
    ),
    (
        "intervention-oblivious",
        "click_log",
        "curve.beta[rows] * expected",
        "curve.beta[rows] * shown",
    ),
    (
        "intervention-aware",
        "intervention_aware",
        "item_sums(log, impressions, curve))",
        "item_sums(log._replace(ranks=log.ranks * 0 + 1), impressions, curve))",
    ),
    ("intervention-aware", "intervention_aware", "(alpha / by)", "alpha"),
    ("intervention-aware", "intervention_aware", "least * found", "0 * found"),
    ("self-normalised", "policy_corrected", "- sums.shown_beta", "- sums.beta"),
    ("self-normalised", "policy_corrected", "(sums.shown_alpha *", "(sums.alpha *"),
    (
        "self-normalised",
        "policy_corrected",
        "looks = (sums.shown_alpha * weights.clicks)",
        "looks = (sums.shown_alpha)",
    ),
    ("doubly-robust", "doubly_robust", "by_group.shown_beta + by", "by"),
    ("doubly-robust", "doubly_robust", "shown_alpha * guess", "shown_alpha * 0"),
    ("doubly-robust", "doubly_robust", "shown_alpha * guess", "alpha * guess"),
    ("doubly-robust", "doubly_robust", "shares.any(axis=0), shares", "True, of_all"),
    ("doubly-robust", "doubly_robust", "values + (against", "values - (against"),
    (
        "doubly-robust",
        "doubly_robust",
        "np.where(is_possible, sums.alpha, sums.impressions)",
        "sums.impressions",
    ),
    (
        "doubly-robust",
        "doubly_robust",
        "(table.sum(axis=0) - table for table in own)",
        "(table.sum(axis=0) + 0 * table for table in own)",
    ),
    ("doubly-robust", "item_estimates", "n_each * heavy**2", "n_each * heavy"),
    ("affine", "item_estimates", "n_each * heavy, n)", "heavy, n)"),
    ("oblivious", "item_estimates", "maximum.at(largest", "add.at(largest"),
    ("rerank", "item_estimates", "self.clicks.total**2", "self.clicks.total"),
)


@pytest.mark.parametrize(("name", "room", "old", "new"), MUTANTS)
def test_a_changed_term_breaks_a_law(name, room, old, new):
    """Some law of the estimator notices."""
    rooms = mutant_rooms(room, old, new)
    with np.errstate(all="ignore"):
        assert any(breaks(law, rooms) for law in laws_of(name)), "no law noticed"


@pytest.mark.parametrize("name", [*ESTIMATORS])
def test_no_law_is_broken_by_what_is_not_changed(name):
    """Else mutants would prove nothing."""
    rooms = mutant_rooms("rank_corrected", "value = clicks / n", "value = clicks / n")
    for law in laws_of(name):
        law(rooms)


def laws_of(name):
    """Checks of one estimator, the quick ones first, given modules by name."""
    entry = ESTIMATORS[name]
    function = getattr(entry.estimator, "__name__", "")
    is_robust = name == "doubly-robust"
    told = {"regression": FIXED} if is_robust else {}
    one = {"regression": np.array([0.3])} if is_robust else {}

    def estimator(rooms):
        return next(vars(x)[function] for x in rooms.values() if function in vars(x))

    yield lambda rooms: raises_small_averages(estimator(rooms), BY_HAND[name], **one)
    yield lambda rooms: weighs_clicks_as_it_says(estimator(rooms), **one)
    for biases in BIASES[::-1]:
        if entry.corrects >= set(biases):
            yield lambda rooms, each=biases: is_unbiased(estimator(rooms), each, **told)
        else:
            yield lambda rooms, each=biases: is_biased_as_stated(
                estimator(rooms), name, each
            )
    if entry.corrects >= set(ALL) and name != "self-normalised":
        yield lambda rooms: is_exact_where_one_policy_is_blind(estimator(rooms), **told)
    if name == "intervention-oblivious":
        yield lambda rooms: _same(mean_after_clicks(estimator(rooms)), 0.5)
    if is_robust:
        yield lambda rooms: is_exact_with_other_groups_regression(
            estimator(rooms), vars(rooms["doubly_robust"])["item_regression"]
        )


def _same(found, expected):
    assert abs(found - expected) < 1e-12


ROOMS = (
    "rank_corrected",
    "policy_corrected",
    "intervention_aware",
    "doubly_robust",
)


def mutant_rooms(room, old, new):
    """All modules of estimators, which see the changed one in place of the real."""
    changed = _module(room, old, new)
    rooms = {}
    for name in ROOMS:
        real = changed if name == room else _module(name)
        for one, value in vars(changed).items():
            if getattr(value, "__module__", "") == "mutant" and one in vars(real):
                setattr(real, one, value)
        rooms[name] = real
    return rooms


def _module(name, old="", new=""):
    source = inspect.getsource(importlib.import_module(f"models.estimators.{name}"))
    if old:
        assert source.count(old) == 1, f"{old!r} must stand once in {name}"
        source = source.replace(old, new)
    module = ModuleType("mutant" if old else name)
    exec(compile(source, f"{name}.py", "exec"), vars(module))  # noqa: S102
    return module


def breaks(law, rooms):
    """Whether a law does not hold."""
    try:
        law(rooms)
    except (AssertionError, ValueError, IndexError, TypeError):
        return True
    return False
