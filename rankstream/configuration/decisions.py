"""What is served for which query: policies, and the evidence that they are held to."""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec

from rankstream.configuration.curves import CurveSettings
from rankstream.configuration.models import ONLINE, ModelSettings
from rankstream.configuration.section import (
    Fault,
    NotNegative,
    Positive,
    PositiveFloat,
    Section,
)
from rankstream.configuration.training import LOGGING_LOSS

BOUNDS = ("any-time", "one-look", "doubling-looks", "per-item", "per-click")
"""Those of `models.evaluation.bounds.families`, which services do without."""

META_POLICIES = ("kept", "closed", "printed")
"""Rules of `models.decisions.meta_policy`, which services do without."""

LONGEST_NAME = 200
"""Characters: an intervention has a number behind it."""

Confidence = Annotated[float, msgspec.Meta(ge=0, le=1)]


class DecisionSettings(Section, frozen=True):
    """What is served for which query, of a general, a tabular and a logging policy.

    `general` names the model that ranks all queries, `logging` the one that is safe:
    each is served where evidence allows no other. `meta_policy`, one of
    `META_POLICIES`, says what becomes of a query whose own order is not sure to be
    better than both. `bound` is one of `BOUNDS`, which holds with `confidence`, of each
    comparison, or of all where `is_shared` divides what may err by the number of sets.
    "any-time" bounds are narrowest at `planned`, a sum of squares. With `is_by_session`
    a difference must stand without each group of sessions, and for sessions to come, of
    which the rule is narrowest at `planned_lists`. `temperature` is that of lists of
    both models, 0 where the best goes first. Decisions are made every `every_s`, for at
    most so many `queries`, within `memory_mb` MiB beside the process.
    """

    general: str
    logging: str
    meta_policy: str = "kept"
    bound: str = "any-time"
    confidence: Confidence = 0.95
    is_shared: bool = False
    planned: PositiveFloat = 48.0
    planned_lists: PositiveFloat = 1_000.0
    is_by_session: bool = True
    temperature: NotNegative = 0.0
    every_s: PositiveFloat = 86_400.0
    queries: Positive = 100_000
    memory_mb: Annotated[int, msgspec.Meta(ge=64)] = 2_048

    @property
    def models(self) -> tuple[str, ...]:
        """Those that it compares; rankers of the first one serve it."""
        return self.general, self.logging

    @property
    def bandit(self) -> str:
        """Empty, as it is none."""
        return ""


def decision_faults(
    decisions: Mapping[str, DecisionSettings],
    models: Mapping[str, ModelSettings],
    curves: Mapping[str, CurveSettings],
) -> Iterator[Fault]:
    """Each setting of `[decisions.NAME]` that cannot be so."""
    for name, one in decisions.items():
        place = f"decisions.{name}"
        yield from of_name(place, name)
        if name in models or name in curves:
            what = "model" if name in models else "curve"
            yield (
                place,
                f"{place} must have a name of its own, as lists are logged under it; "
                f"there is a {what} {name!r}: rename one of them",
            )
        for option, known in (("meta_policy", META_POLICIES), ("bound", BOUNDS)):
            setting, value = f"{place}.{option}", getattr(one, option)
            if value not in known:
                yield setting, f"{setting} must be one of {[*known]}; got {value!r}"
        yield from _of_policies(place, one, models)
    by_model: dict[str, str] = {}
    for name, one in decisions.items():
        other = by_model.setdefault(one.general, name)
        if other != name:
            setting = f"decisions.{name}.general"
            yield (
                setting,
                f"{setting} must be a model of one rule, as its rankers serve it; "
                f"{one.general!r} is that of {other!r} too: take one of them out",
            )


def of_name(place: str, name: str) -> Iterator[Fault]:
    """That lists can be logged under a name, as NAME@NUMBER.LISTS."""
    if not 0 < len(name) <= LONGEST_NAME or set(name) & {*"@/"}:
        yield (
            place,
            f"{place} must have a name of 1 to {LONGEST_NAME} characters without @ or "
            f"/, as lists are logged under it; got {name!r:.60}: rename it",
        )


def _of_policies(
    place: str, one: DecisionSettings, models: Mapping[str, ModelSettings]
) -> Iterator[Fault]:
    for option in ("general", "logging"):
        setting, value = f"{place}.{option}", getattr(one, option)
        if value not in models:
            yield (
                setting,
                f"{setting} must be a model, of {sorted(models)}; got {value!r}",
            )
        elif models[value].versions == ONLINE:
            yield (
                setting,
                f"{setting} must be a model whose versions are deployed one by one, as "
                f"what each list changes cannot be held to evidence; {value!r} learns "
                "online: take one that is trained, or promote from it",
            )
        elif models[value].training.loss == LOGGING_LOSS:
            yield (
                setting,
                f"{setting} must be a model that ranks for users; got {value!r}, whose "
                "versions draw lists of a comparison: name another",
            )
    if {one.general, one.logging} <= models.keys():
        yield from _of_features(place, models[one.general], models[one.logging])
    if one.general == one.logging:
        yield (
            f"{place}.logging",
            f"{place}.logging must be another model than general; got {one.logging!r} "
            "for both",
        )


def _of_features(
    place: str, general: ModelSettings, logging: ModelSettings
) -> Iterator[Fault]:
    """That one ranker cannot serve both."""
    both = [(x.features, x.feature_names) for x in (general, logging)]
    if both[0] != both[1]:
        yield (
            f"{place}.logging",
            f"{place}.logging must be a model of the features of general, as one "
            f"ranker serves both; got {logging.features} features for "
            f"{general.features}, or other names: give both the same",
        )
