"""The registry of methods holds every method that there is."""

import models.interleaving
from models.interleaving.counterfactual import Counterfactual
from models.interleaving.method import Method
from models.interleaving.registry import METHODS
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
