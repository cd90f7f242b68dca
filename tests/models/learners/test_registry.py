"""The registry of learners holds every learner that there is."""

import inspect

import models.learners
from models.learners.parameters import FixedLearner, ParameterLearner
from models.learners.registry import LEARNERS
from tests.modules import defined_in


def test_every_learner_has_a_row() -> None:
    """A learner without a row could be named by no settings."""
    written = {
        each
        for each in defined_in(models.learners)
        if isinstance(each, type)
        and issubclass(each, ParameterLearner)
        and each is not ParameterLearner
        and not inspect.isabstract(each)
    }
    learning = written - {FixedLearner}  # what a trainer trains learns nothing online
    assert learning == {entry.learner for entry in LEARNERS.values()}
