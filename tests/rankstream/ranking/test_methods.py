"""What services know of methods and learners is what the models say of them."""

import dataclasses

import numpy as np
import pytest

from models.evaluation.list_counts import BY_RANKER
from models.interleaving.registry import METHODS, method_of
from models.learners.registry import LEARNERS, OPTIONS
from rankstream.configuration import models as configured
from rankstream.ranking import methods
from rankstream.ranking.combining import list_exposures

ITEMS = [f"d{i}" for i in range(6)]


def test_both_catalogues_name_the_same_methods() -> None:
    """A row that is left out on either side is missed."""
    assert sorted(methods.METHODS) == sorted(METHODS)


@pytest.mark.parametrize("name", sorted(METHODS))
def test_what_is_true_of_a_method_is_true_on_both_sides(name: str) -> None:
    """Rankers, closed forms, options of credit, and what is drawn alike."""
    served, method = methods.METHODS[name], method_of(name)
    traits = method.traits
    rankings = np.array([[0, 1, 2], [1, 2, 0], [2, 1, 0]])
    rng = np.random.default_rng(0)

    assert served.is_for_two == traits.is_for_two
    if traits.is_for_two:
        with pytest.raises(ValueError, match="two rankers"):
            method.combine(rankings, 3, rng=rng)
    else:
        assert len(method.combine(rankings, 3, rng=rng).shown) == 3
    for n in (2,) if traits.is_for_two else (2, 3, 4):
        lists = {f"r{i}": ITEMS[i:] + ITEMS[:i] for i in range(n)}
        is_exact = list_exposures(name, lists, ITEMS, 4) is not None
        assert is_exact == (n <= traits.exact_up_to)
    known = {field.name for field in dataclasses.fields(METHODS[name])}  # type: ignore[arg-type]
    assert set(served.options_of_credit) <= known
    for other in served.fair_beside:
        assert methods.METHODS[other].exposures is served.exposures
    assert {count for _, count in traits.even_shares} <= set(BY_RANKER)


def test_both_catalogues_name_the_same_learners_and_options() -> None:
    """Those that settings take are those that are known when a worker starts."""
    assert {name: set(options) for name, options in configured.LEARNERS.items()} == {
        name: {*OPTIONS, *entry.options} for name, entry in LEARNERS.items()
    }


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_options_of_a_learner_are_fields_of_its_configuration(name: str) -> None:
    """Else naming one would stop the worker."""
    entry = LEARNERS[name]
    known = {field.name for field in dataclasses.fields(entry.config)}  # type: ignore[arg-type]

    assert {*OPTIONS, *entry.options, *entry.given} <= known
