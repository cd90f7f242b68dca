"""Policies, multileaving and candidates that the learner of a model asks lists for."""

import dataclasses

from models.learners.registry import LEARNERS
from rankstream.configuration.models import ONLINE
from rankstream.ranking.multileaving import Multileaving
from rankstream.settings import ModelSettings


def policy_for(model: ModelSettings | None) -> str:
    """The lists that a model's learner can learn from."""
    return "multileave" if _is_duel(model) else "plackett-luce"


def multileaving_of(model: ModelSettings | None) -> Multileaving:
    """How a model's rankers are compared, as its learner has it."""
    if model is None or not _is_duel(model):
        return Multileaving()
    given = {**LEARNERS[model.learner].given, **model.options}
    known = {field.name for field in dataclasses.fields(Multileaving)}
    return Multileaving(**{name: given[name] for name in known & given.keys()})


def needs_candidates(model: ModelSettings | None) -> bool:
    """Whether a model's learner must score what was not shown."""
    if model is None or model.versions != ONLINE:
        return False
    return bool(LEARNERS[model.learner].learner.needs_candidates)


def _is_duel(model: ModelSettings | None) -> bool:
    """Whether its learner compares rankers."""
    if model is None or model.versions != ONLINE:
        return False
    return "multileave" in LEARNERS[model.learner].learner.policies
