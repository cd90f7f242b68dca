"""What settings of curves, and of which curve a training takes, may not be."""

from collections.abc import Iterator, Mapping

import msgspec

from rankstream.configuration.curve_options import curve_options
from rankstream.configuration.experiments import ExperimentSettings
from rankstream.configuration.models import ModelSettings
from rankstream.configuration.section import Fault
from rankstream.configuration.training import TrainingSettings
from rankstream.ranking.learner_options import EXAMINATION
from rankstream.wire.envelope import is_pointer

OF_CURVES = ("seed", "learner", "options", "learns_from", "training")
"""Settings of a model that a curve has."""

OF_SCHEDULES = ("after", "first", "last", "interventions", "at")
"""Settings of a training that a curve has."""


def curve_faults(
    models: Mapping[str, ModelSettings], experiments: Mapping[str, ExperimentSettings]
) -> Iterator[Fault]:
    """What is wrong with models that are curves, and with what names one."""
    curves = sorted(name for name, model in models.items() if model.is_curve)
    for name, model in models.items():
        if model.is_curve:
            yield from _of_curve(f"models.{name}", model)
        elif model.is_trained:
            yield from _of_reader(f"models.{name}.training", model, curves)
        for source in sorted({*model.learns_from}.intersection(curves)):
            setting = f"models.{name}.learns_from"
            yield (
                setting,
                f"{setting} must name models that make lists; got {source!r}, which is "
                "a curve: take it out",
            )
    for name, experiment in experiments.items():
        setting = f"experiments.{name}.rankers"
        for ranker, source in experiment.rankers.items():
            above, mark, pointer = source.rpartition("@")
            made_by = above if mark and is_pointer(pointer.encode()) else source
            if made_by in curves:
                yield (
                    setting,
                    f"{setting} must be models that rank; got {source!r} for "
                    f"{ranker!r}, which is a curve: name another",
                )


def _of_curve(place: str, model: ModelSettings) -> Iterator[Fault]:
    for part, above, kept in (
        (model, place, OF_CURVES),
        (model.training, f"{place}.training", OF_SCHEDULES),
    ):
        for name in _set_beside(part, kept):
            setting = f"{above}.{name}"
            yield (
                setting,
                f"{setting} must be left out with learner {EXAMINATION!r}, as a curve "
                f"has none; got {getattr(part, name)!r}: take it out",
            )
    try:
        curve_options(model.options)
    except (ValueError, TypeError) as error:
        yield f"{place}.options", f"{place}.{error}"


def _set_beside(
    part: ModelSettings | TrainingSettings, kept: tuple[str, ...]
) -> Iterator[str]:
    """Names of settings that are not as by default, beside some."""
    for field in msgspec.structs.fields(part):
        default = (
            field.default_factory()
            if field.default_factory is not msgspec.NODEFAULT
            else field.default
        )
        if field.name not in kept and getattr(part, field.name) != default:
            yield field.name


def _of_reader(place: str, model: ModelSettings, known: list[str]) -> Iterator[Fault]:
    setting, named = f"{place}.curve", model.training.curve
    if named and model.training.examination:
        yield (
            setting,
            f"{setting} must be left out where examination is given; got {named!r} "
            "beside it: take one of them out",
        )
    elif named and named not in known:
        yield (
            setting,
            f"{setting} must be a model whose learner is {EXAMINATION!r}, of {known}; "
            f"got {named!r}",
        )
    elif not named and not model.training.examination and len(known) > 1:
        yield (
            setting,
            f"{setting} must be one of {known}, as there are several curves; got ''",
        )
