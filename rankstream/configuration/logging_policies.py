"""Logging policies: what an experiment and the model of its policies must agree on.

A list is drawn and credited by the experiment's settings, and its policy trained by
those of a model. So what both need is set once, in the model, and the experiment has it
too: services and the fold read no settings of models.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from rankstream.configuration.curves import CurveSettings, TrustCurve
from rankstream.configuration.experiments import ExperimentSettings
from rankstream.configuration.models import TRAINED, ModelSettings
from rankstream.configuration.section import Fault
from rankstream.configuration.training import LOGGING_LOSS, TrainingSettings
from rankstream.ranking.logging_policy import EXTRAS
from rankstream.ranking.methods import LOGGING_POLICY

Models = Mapping[str, ModelSettings]
Curves = Mapping[str, CurveSettings]


def with_policies(
    experiments: Mapping[str, ExperimentSettings], models: Models
) -> dict[str, ExperimentSettings]:
    """Experiments with what the models of their policies say, where they say nothing.

    So the record of an experiment has the floor and P(looked at | rank) that its
    policies are trained by.
    """
    found = dict(experiments)
    for name, experiment in experiments.items():
        if (model := _policies_of(experiment, models)) is not None:
            options = told_by(model.training) | experiment.options
            found[name] = msgspec.structs.replace(experiment, options=options)
    return found


def told_by(training: TrainingSettings) -> dict[str, Any]:
    """Options of an experiment that a training says."""
    theta = training.examination
    return {"floor": training.floor} | ({"examination": theta} if theta else {})


def logging_faults(
    experiments: Mapping[str, ExperimentSettings], models: Models, curves: Curves
) -> Iterator[Fault]:
    """Each setting of logging policies that cannot be so."""
    for name, model in models.items():
        if _makes_policies(model):
            yield from _of_form(f"models.{name}", model)
            yield from _of_sources(f"models.{name}.learns_from", name, model)
            yield from _of_training(f"models.{name}.training", model.training, curves)
    by_model: dict[str, str] = {}
    for name, experiment in experiments.items():
        if experiment.method != LOGGING_POLICY:
            continue
        place, named = f"experiments.{name}", experiment.options.get("model", "")
        policies = _policies_of(experiment, models)
        if policies is None:
            known = sorted(x for x in models if _makes_policies(models[x]))
            yield (
                f"{place}.options.model",
                f"{place}.options.model must be a model with training.loss = "
                f"{LOGGING_LOSS!r}, of {known}; got {named!r}",
            )
            continue
        other = by_model.setdefault(named, name)
        if other != name:
            yield (
                f"{place}.options.model",
                f"{place}.options.model must be a model of one experiment, as its "
                f"policies tell two rankers apart; {named!r} is that of {other!r} too: "
                "give each a model of its own",
            )
        yield from _of_agreement(place, experiment, f"models.{named}", policies)
        yield from _of_rankers(f"{place}.rankers", experiment, models)
        yield from _of_ranked_features(f"models.{named}", policies, experiment, models)


def _makes_policies(model: ModelSettings) -> bool:
    return model.versions == TRAINED and model.training.loss == LOGGING_LOSS


def _policies_of(
    experiment: ExperimentSettings, models: Models
) -> ModelSettings | None:
    """The model of an experiment's policies; None where there is no such one."""
    named = experiment.options.get("model", "")
    if experiment.method != LOGGING_POLICY or not isinstance(named, str):
        return None
    model = models.get(named)
    return model if model is not None and _makes_policies(model) else None


def _of_form(place: str, model: ModelSettings) -> Iterator[Fault]:
    if model.normalisation != "none" or model.features < len(EXTRAS):
        setting = f"{place}.training.loss"
        yield (
            setting,
            f"{setting} {LOGGING_LOSS!r} needs normalisation = 'none' and the last "
            f"{len(EXTRAS)} features to be those of the comparison; got "
            f"{model.normalisation!r} and {model.features} features: set both, with "
            f"{len(EXTRAS)} features more than you log",
        )
    if model.kind == "linear":
        yield (
            f"{place}.kind",
            f"{place}.kind must be that of a network with training.loss = "
            f"{LOGGING_LOSS!r}, as no weighted sum of features says whom to show; got "
            "'linear': set kind = 'neural' and hidden = [32, 32]",
        )
    last = model.feature_names[-len(EXTRAS) :]
    if last and last != list(EXTRAS):
        yield (
            f"{place}.feature_names",
            f"{place}.feature_names must end with those of the comparison, "
            f"{', '.join(EXTRAS)}; got {last}",
        )


def _of_sources(setting: str, name: str, model: ModelSettings) -> Iterator[Fault]:
    others = [each for each in model.learns_from if each != name]
    if others:
        yield (
            setting,
            f"{setting} must be left out with training.loss = {LOGGING_LOSS!r}: lists "
            f"of other models do not say what two rankers differ in; got {others}",
        )


def _of_training(
    place: str, training: TrainingSettings, curves: Curves
) -> Iterator[Fault]:
    if training.largest_loss is not None:
        yield (
            f"{place}.largest_loss",
            f"{place}.largest_loss must be left out with loss {LOGGING_LOSS!r}: its "
            f"versions are to learn by, not to please; got {training.largest_loss}",
        )
    if not training.has_points:
        yield (
            f"{place}.after",
            f"{place}.after must be set with loss {LOGGING_LOSS!r}, as [10_000, "
            "100_000]: else lists stay those of the first version, which knows "
            "nothing; got []",
        )
    if not training.examination and not curves:
        yield (
            f"{place}.examination",
            f"{place}.examination must be set with loss {LOGGING_LOSS!r}, or name a "
            "curve of position bias in `curve`; got neither",
        )
        return
    named = training.curve or next(iter(curves), "")
    curve = None if training.examination else curves.get(named)
    if isinstance(curve, TrustCurve):
        yield (
            f"{place}.curve",
            f"{place}.curve must be of position bias alone with loss {LOGGING_LOSS!r}, "
            f"as it has to say who looks; got {named!r}, of trust bias",
        )
    n_ranks = len(training.examination) if curve is None else curve.ranks
    if n_ranks < training.cutoff:
        yield (
            f"{place}.cutoff",
            f"{place}.cutoff must be at most {n_ranks}, the ranks of which P(looked "
            f"at) is known; got {training.cutoff}",
        )


def _of_agreement(
    place: str, experiment: ExperimentSettings, source: str, model: ModelSettings
) -> Iterator[Fault]:
    training, options = model.training, experiment.options
    if experiment.length != training.cutoff:
        yield (
            f"{place}.length",
            f"{place}.length must be {source}.training.cutoff, {training.cutoff}, as "
            f"policies are trained for lists that are shown; got {experiment.length}",
        )
    theta = options.get("examination")
    if (
        not training.examination
        and isinstance(theta, list)
        and theta[:1] not in ([], [1])
    ):
        yield (
            f"{place}.options.examination",
            f"{place}.options.examination must begin with 1, as the curve of {source} "
            f"does, so that both have one floor; got {theta}: divide by the first",
        )
    for option, value in told_by(training).items():
        if options.get(option, value) != value:
            yield (
                f"{place}.options.{option}",
                f"{place}.options.{option} must be left out, or be that of "
                f"{source}.training, {value}; got {options[option]}",
            )


def _of_rankers(
    setting: str, experiment: ExperimentSettings, models: Models
) -> Iterator[Fault]:
    sources = [*experiment.rankers.values()]
    if len(sources) > 1 and sources[0] and len(set(sources)) == 1:
        yield (
            setting,
            f"{setting} must be two that differ; got {sources[0]!r} for both: no list "
            "tells a model from itself",
        )
    makers = [
        each for each in sources if each in models and _makes_policies(models[each])
    ]
    if makers:
        yield (
            setting,
            f"{setting} must be models that rank for users; got {makers[0]!r}, whose "
            "versions draw lists of a comparison",
        )


def _of_ranked_features(
    place: str, model: ModelSettings, experiment: ExperimentSettings, models: Models
) -> Iterator[Fault]:
    """A policy sees what the compared models do, in their order, or nothing of it."""
    n_own = model.features - len(EXTRAS)
    for source in experiment.rankers.values():
        ranker = models.get(source.rpartition("@")[0] or source)
        if not n_own or ranker is None:
            continue
        names = model.feature_names[:n_own]
        has_other = names and ranker.feature_names and names != ranker.feature_names
        if ranker.features != n_own or has_other:
            what = "other names" if ranker.features == n_own else f"{n_own} of its own"
            yield (
                f"{place}.features",
                f"{place}.features must be those of {source!r}, which it compares, "
                f"{ranker.features} and {len(EXTRAS)} of the comparison, or the latter "
                f"alone; got {what}",
            )
