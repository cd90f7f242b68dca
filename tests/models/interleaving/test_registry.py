"""The registry of methods holds every method that there is."""

import math

import pytest

import models.interleaving
from models.interleaving.counterfactual import Counterfactual
from models.interleaving.method import Method
from models.interleaving.registry import METHODS, method_of
from tests.modules import defined_in

MEMBERS = {name for name in dir(Method) if not name.startswith("_")}


def test_every_method_has_a_row() -> None:
    """A method without a row could be named by no experiment.

    `counterfactual` goes before a name.
    """
    written = {
        each
        for each in defined_in(models.interleaving)
        if isinstance(each, type) and each is not Method and set(dir(each)) >= MEMBERS
    }
    assert len(MEMBERS) > 5
    assert written - {Counterfactual} == set(METHODS.values())


@pytest.mark.parametrize(
    ("method", "option", "value"),
    [
        ("probabilistic", "tau", "3"),
        ("probabilistic", "tau", True),
        ("probabilistic", "tau", math.inf),
        ("ab", "most_clicks", 1.5),
        ("ab", "most_clicks", True),
    ],
)
def test_an_option_of_another_kind_is_refused(
    method: str, option: str, value: object
) -> None:
    """By its name; whole numbers will do for any."""
    with pytest.raises(ValueError, match=f"{option} must be "):
        method_of(method, {option: value})
    method_of(method, {option: 1})
