"""Curves of bias: each an estimator with options of its own."""

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, get_args

import msgspec

from rankstream.configuration.models import TRAINED, ModelSettings, each_once
from rankstream.configuration.section import Fault, Section
from rankstream.configuration.training import Schedule, schedule_faults

Resamples = Annotated[int, msgspec.Meta(ge=2, le=10_000)]

OF_SOME: dict[str, Any] = {"anchor": None, "bootstrap": 200, "classes": False}
"""Options that not every estimator has, as records of fits have them of the others."""


class Curve(Section, frozen=True, tag_field="estimator"):
    """What a curve of any estimator has.

    `ranks` are estimated, each with an interval of `confidence`. `seed` is that of the
    bootstrap. `learns_from` names models whose lists it is fitted on, with none all
    lists; `schedule` says when.
    """

    ranks: Annotated[int, msgspec.Meta(ge=2, le=100)] = 10
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.95
    seed: int = 0
    learns_from: list[str] = []
    schedule: Schedule = Schedule()

    @property
    def estimator(self) -> str:
        """Its name in `models.bias.registry`."""
        return str(self.__struct_config__.tag)

    def options(self) -> dict[str, Any]:
        """All there are, as records of fits have them."""
        own = {name: getattr(self, name, value) for name, value in OF_SOME.items()}
        return {
            "estimator": self.estimator,
            "ranks": self.ranks,
            "confidence": self.confidence,
            **own,
            "anchor": own["anchor"] or None,
            "seed": self.seed,
        }


class PooledCurve(Curve, frozen=True):
    """One whose intervals come from information, hence from no queries.

    With `classes` items whose ids are equal before # count as one, over all queries.
    """

    classes: bool = False


class ResampledCurve(Curve, frozen=True):
    """One whose intervals come from `bootstrap` resamples of queries."""

    bootstrap: Resamples = 200


class PositionCurve(PooledCurve, frozen=True, tag="position"):
    """Of position bias."""


class TrustCurve(PooledCurve, frozen=True, tag="trust"):
    """Of position and trust bias.

    `anchor` are alpha and beta of rank 1, where they are known from elsewhere; the
    curve is then absolute.
    """

    anchor: list[float] = []


class AdjacentPairsCurve(ResampledCurve, frozen=True, tag="adjacent-pairs"):
    """Of position bias, harvested from pairs of adjacent ranks."""


class PivotCurve(ResampledCurve, frozen=True, tag="pivot"):
    """Of position bias, harvested from pairs with rank 1."""


class AllPairsCurve(ResampledCurve, frozen=True, tag="all-pairs"):
    """Of position bias, harvested from all pairs of ranks."""


CurveSettings = (
    PositionCurve | TrustCurve | AdjacentPairsCurve | PivotCurve | AllPairsCurve
)

ESTIMATORS: dict[str, type[Curve]] = {
    each.__struct_config__.tag: each for each in get_args(CurveSettings)
}
"""Those of `models.bias.registry`, which services cannot import; a test compares."""


def curve_faults(
    curves: Mapping[str, CurveSettings],
    models: Mapping[str, ModelSettings],
) -> Iterator[Fault]:
    """Each setting of `[curves.NAME]`, or that names a curve, that cannot be so."""
    for name, curve in curves.items():
        place = f"curves.{name}"
        if name in models:
            yield (
                place,
                f"{place} must have a name of its own, as snapshots are by name; there "
                f"is a model {name!r}: rename one of them",
            )
        yield from schedule_faults(f"{place}.schedule", curve.schedule)
        if isinstance(curve, TrustCurve) and curve.anchor:
            yield from _of_anchor(f"{place}.anchor", curve.anchor)
        yield from each_once(f"{place}.learns_from", curve.learns_from)
        yield from _of_sources(f"{place}.learns_from", curve.learns_from, curves)
    for name, model in models.items():
        yield from _of_sources(f"models.{name}.learns_from", model.learns_from, curves)
        if model.versions == TRAINED:
            yield from _of_reader(f"models.{name}.training.curve", model, curves)


def _of_anchor(setting: str, anchor: list[float]) -> Iterator[Fault]:
    if len(anchor) != len(("alpha", "beta")):
        yield (
            setting,
            f"{setting} must be alpha and beta of rank 1, two numbers; got {anchor}",
        )
        return
    alpha, beta = anchor
    if not (alpha > 0.0 <= beta and alpha + beta <= 1.0):
        yield (
            setting,
            f"{setting} must have alpha more than 0, beta at least 0 and a sum of at "
            f"most 1; got {alpha:g} and {beta:g}",
        )


def _of_sources(
    setting: str, sources: list[str], curves: Collection[str]
) -> Iterator[Fault]:
    for source in sorted({*sources}.intersection(curves)):
        yield (
            setting,
            f"{setting} must name models that make lists; got {source!r}, which is "
            "a curve: take it out",
        )


def _of_reader(
    setting: str, model: ModelSettings, curves: Collection[str]
) -> Iterator[Fault]:
    named, known = model.training.curve, sorted(curves)
    if named and model.training.examination:
        yield (
            setting,
            f"{setting} must be left out where examination is given; got {named!r} "
            "beside it: take one of them out",
        )
    elif named and named not in known:
        yield setting, f"{setting} must be a curve, of {known}; got {named!r}"
    elif not named and not model.training.examination and len(known) > 1:
        yield (
            setting,
            f"{setting} must be one of {known}, as there are several curves; got ''",
        )
