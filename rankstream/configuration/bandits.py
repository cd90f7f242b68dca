"""Bandits: lists that are chosen by what was clicked on those before."""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

import msgspec

from rankstream.configuration.curves import CurveSettings, TrustCurve
from rankstream.configuration.decisions import DecisionSettings, of_name
from rankstream.configuration.models import ONLINE, ModelSettings
from rankstream.configuration.section import Fault, Positive, PositiveFloat, Section
from rankstream.configuration.training import LOGGING_LOSS

PIE, CASCADE, HOTFIX = POLICIES = ("pie", "cascade", "hotfix")
"""Those of `models.bandits`, which services do without."""

NotLess = Annotated[int, msgspec.Meta(ge=0)]


class BanditSettings(Section, frozen=True):
    """Lists that a bandit chooses, query by query.

    `model` serves what the bandit has no lists of yet; its rankers serve the bandit.
    `policy` is one of `POLICIES`. `length` is that of lists of "pie", whose last rank
    tries what may be better. "hotfix" shuffles the first `top` items of the model, 0
    all. It looks at clicks every `every_s`, keeps at most so many `queries`, and takes
    at most `memory_mb` MiB beside the process.
    """

    model: str
    policy: str = PIE
    length: NotLess = 0
    top: NotLess = 0
    every_s: PositiveFloat = 60.0
    queries: Positive = 100_000
    memory_mb: Annotated[int, msgspec.Meta(ge=64)] = 2_048

    @property
    def models(self) -> tuple[str, ...]:
        """The one whose rankers serve it."""
        return (self.model,)

    @property
    def bandit(self) -> str:
        """Policy and lists, in words."""
        if self.policy == PIE:
            return f"{PIE}, lists of {self.length}"
        if self.policy == HOTFIX:
            return f"{HOTFIX}, the first {self.top}" if self.top else f"{HOTFIX}, all"
        return self.policy


def bandit_faults(
    bandits: Mapping[str, BanditSettings],
    models: Mapping[str, ModelSettings],
    curves: Mapping[str, CurveSettings],
    decisions: Mapping[str, DecisionSettings],
    curve_for: Callable[[ModelSettings], str],
) -> Iterator[Fault]:
    """Each setting of `[bandits.NAME]` that cannot be so.

    `curve_for` names the curve that a model takes, "" for none.
    """
    served = {one.general: ("rule", name) for name, one in decisions.items()}
    for name, one in bandits.items():
        place = f"bandits.{name}"
        yield from of_name(place, name)
        for what, known in (
            ("model", models), ("curve", curves), ("rule of decisions", decisions),
        ):  # fmt: skip
            if name in known:
                yield (
                    place,
                    f"{place} must have a name of its own, as lists are logged under "
                    f"it; there is a {what} {name!r}: rename one of them",
                )
        what, other = served.setdefault(one.model, ("bandit", name))
        if other != name:
            yield (
                f"{place}.model",
                f"{place}.model must be a model of one bandit or rule of decisions, as "
                f"its rankers serve it; {one.model!r} is that of the {what} "
                f"{other!r} too: take one of them out",
            )
        yield from _of_policy(place, one)
        yield from _of_model(f"{place}.model", one, models)
        if one.policy == PIE and one.model in models:
            model = models[one.model]
            yield from _of_ranks(f"{place}.model", one, model, curves, curve_for(model))


def _of_policy(place: str, one: BanditSettings) -> Iterator[Fault]:
    if one.policy not in POLICIES:
        yield (
            f"{place}.policy",
            f"{place}.policy must be one of {[*POLICIES]}; got {one.policy!r}",
        )
    if one.policy == PIE and not one.length:
        yield (
            f"{place}.length",
            f"{place}.length must be set, 1 or more, as the last rank of a list is "
            "what learns; got 0: give the cutoff of the lists",
        )
    for option, policy in (("length", PIE), ("top", HOTFIX)):
        value = getattr(one, option)
        if value and one.policy != policy:
            yield (
                f"{place}.{option}",
                f"{place}.{option} must be set where policy is {policy!r} only; got "
                f"{value} with {one.policy!r}: take it out",
            )


def _of_model(
    setting: str,
    one: BanditSettings,
    models: Mapping[str, ModelSettings],
) -> Iterator[Fault]:
    model = models.get(one.model)
    if model is None:
        yield (
            setting,
            f"{setting} must be a model, of {sorted(models)}; got {one.model!r}",
        )
        return
    if model.versions == ONLINE:
        yield (
            setting,
            f"{setting} must be a model whose versions are deployed one by one, as "
            f"lists of a bandit are not to be learned from as they come; {one.model!r} "
            "learns online: take one that is trained, or promote from it",
        )
    if model.training.loss == LOGGING_LOSS:
        yield (
            setting,
            f"{setting} must be a model that ranks for users; got {one.model!r}, whose "
            "versions draw lists of a comparison: name another",
        )
    if one.policy == HOTFIX and one.top and not model.logs_candidates:
        yield (
            setting,
            f"{setting} must have log_candidates, as its order says which {one.top} "
            f"items are the first; {one.model!r} has not: set it, or top = 0",
        )


def _of_ranks(
    setting: str,
    one: BanditSettings,
    model: ModelSettings,
    curves: Mapping[str, CurveSettings],
    name: str,
) -> Iterator[Fault]:
    """That it is known how often each rank is examined; `name` is of its curve."""
    given = len(model.training.examination)
    if given and given < one.length:
        wrong = f"`training.examination` has {given} ranks for lists of {one.length}"
    elif not given and not name:
        wrong = "it has neither `training.examination` nor a curve"
    elif not given and isinstance(curves.get(name), TrustCurve):
        wrong = f"{name!r} is a curve of trust bias, and PIE knows of none"
    elif not given and name in curves and curves[name].ranks < one.length:
        wrong = f"{name!r} has {curves[name].ranks} ranks for lists of {one.length}"
    else:
        return
    yield (
        setting,
        f"{setting} must tell how often each rank of a list is examined, for 'pie'; "
        f"{wrong}: set `training.examination` of a trained model, or fit a curve",
    )
