"""What `rankstream simulate` does: run the loop, and print what came of it."""

import argparse
import dataclasses
import time

import msgspec
import numpy as np

from models.click_models.registry import click_model_of
from models.kernels.compilation import telling_of_compilation
from producers.formats.letor import LetorData
from producers.simulation import (
    Plan,
    Progress,
    Users,
    simulate,
    start_ms_for,
    step_ms_for,
)
from producers.stop_signal import Stop
from rankstream.configuration.models import TRAINED
from rankstream.configuration.training import SELECTED
from rankstream.lab.commands.simulate import N_INTERVENTIONS
from rankstream.lab.simulation.interventions import (
    LEAST_SUPPORT,
    Schedule,
    checked_schedule,
    schedule_over,
)
from rankstream.lab.simulation.pipelines import (
    Joined,
    in_process,
    on_kafka,
    settled,
)
from rankstream.lab.simulation.queries import n_grades_of, ndcg_of, queries_of
from rankstream.lab.simulation.served_policies import (
    ServedPolicies,
    interventions_of,
    print_result,
    result_of,
    told,
)
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import (
    ModelSettings,
    Settings,
    TrainingSettings,
    load_settings,
    with_namespace,
)
from rankstream.wire.envelope import TREES
from streams.learning.learner_needs import (
    multileaving_of,
    needs_candidates,
    policy_for,
)

STOPPED = 130


def run(arguments: argparse.Namespace) -> int:
    """Simulate, and print what was shown and what was learned."""
    for name in ("impressions", "cutoff", "max_behind"):
        if getattr(arguments, name) < 1:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} must be 1 or more; got {vars(arguments)[name]}")
    train, test = queries_of(arguments.data, fold=arguments.fold, seed=arguments.seed)
    users = click_model_of(
        arguments.users,
        n_grades_of(train, test),
        stop_requires_click=not arguments.published_stop,
    )
    settings = _settings(arguments, train.features.shape[1])
    stop = Stop()
    pipeline = (
        in_process(settings, arguments.model)
        if arguments.local
        else on_kafka(
            settings,
            arguments.model,
            max_behind=arguments.max_behind,
            is_stopped=lambda: stop.asked,
        )
    )
    with pipeline as joined, stop:
        plan = _plan(settings, arguments, joined.after_ms)
        served = ServedPolicies(
            joined.ranker, lambda found: ndcg_of(found, test, arguments.cutoff)
        )
        started = time.monotonic()
        progress = _shown(train, users, joined, plan, served, stop, arguments.seed)
        seconds = time.monotonic() - started
        joined.ranker.refresh()
        served.follow(progress)
        learned = joined.ranker.snapshot
        ndcg = ndcg_of(learned, test, arguments.cutoff)
        result = result_of(progress, learned, ndcg, seconds)
        if not plan.learns_online:
            result |= interventions_of(joined.interventions, served, progress)
    curves = joined.interventions.curves()
    print_result(result, curves, as_json=arguments.json)
    return STOPPED if stop.asked else 0


def _shown(  # noqa: PLR0913  a loop joins so many things
    queries: LetorData,
    users: Users,
    joined: Joined,
    plan: Plan,
    served: ServedPolicies,
    stop: Stop,
    seed: int,
) -> Progress:
    """Show all lists, or those before a stop, with what comes of it as it comes."""
    line = ProgressLine("shown", total=plan.n_impressions, unit="lists")
    compiling = telling_of_compilation(
        lambda n: line.note(f"compiling, once for each release: kernel {n}")
    )
    with line, compiling:
        joined.interventions.show_on(line)

        def follow(progress: Progress) -> None:
            if plan.learns_online:
                line.show(progress.shown)
                return
            joined.interventions.follow(progress.shown)
            joined.ranker.refresh()
            ended = served.follow(progress)
            if ended is not None:
                line.say(told(ended))
            line.show(progress.shown, served.note(progress))

        progress = simulate(
            queries, users, joined.ranker, joined.sink, plan,
            rng=np.random.default_rng(seed), on_progress=follow,
            is_stopped=lambda: stop.asked,
        )  # fmt: skip
        if not stop.asked:
            line.note("waiting until all lists are counted")
            _settle(joined, plan)
        return progress


def _settle(joined: Joined, plan: Plan) -> None:
    """End all sources, and wait for what comes of it."""
    joined.sink.end()
    joined.interventions.end()
    if plan.learns_online:
        settled(joined.ranker, plan.n_impressions)


def _settings(arguments: argparse.Namespace, n_features: int) -> Settings:
    """Those of the file; in this process a model that they do not have gets defaults.

    Raises
    ------
    ValueError
        Where what was asked for does not go with them.
    """
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    name, asked = arguments.model, arguments.interventions
    model = settings.models.get(name)
    _check_model(arguments, settings, n_features)
    if model is None and not arguments.local:
        if asked is not None:
            raise ValueError(
                f"--interventions must go with a model of the settings; {name!r} is "
                f"none of {sorted(settings.models)}: name it with --model"
            )
        return settings
    if model is not None and not (
        arguments.local and model.versions == TRAINED and not model.training.has_points
    ):
        checked_schedule(name, model, asked, arguments.impressions)
        return settings
    model = model or _model(arguments, n_features)
    if _grows_trees(arguments) and asked is None:
        asked = N_INTERVENTIONS
    if asked is not None:
        model = _with_schedule(model, schedule_over(arguments.impressions, asked))
    return msgspec.structs.replace(settings, models={**settings.models, name: model})


def _check_model(
    arguments: argparse.Namespace, settings: Settings, n_features: int
) -> None:
    """Refuse a model that these data and options cannot be of.

    Raises
    ------
    ValueError
    """
    name = arguments.model
    model = settings.models.get(name)
    if arguments.kind and (model is not None or not arguments.local):
        raise ValueError(
            f"--kind must go with --local and a model that no settings have; got "
            f"{arguments.kind!r} for {name!r}: set kind in [models.{name}]"
        )
    if name in settings.curves:
        raise ValueError(
            f"a model must rank to be simulated; {name!r} is a curve of bias: name "
            "another with --model"
        )
    if model is not None and model.features != n_features:
        raise ValueError(
            f"the data must have as many features as models.{name}, {model.features}; "
            f"they have {n_features}: set features = {n_features}, or name another "
            "model with --model"
        )


def _model(arguments: argparse.Namespace, n_features: int) -> ModelSettings:
    """A model that has no settings."""
    if arguments.interventions is None and not _grows_trees(arguments):
        return ModelSettings(features=n_features)
    # Simulations show each query to few users.
    training = TrainingSettings(cutoff=arguments.cutoff, least_support=LEAST_SUPPORT)
    default = ModelSettings()
    return ModelSettings(
        features=n_features,
        kind=arguments.kind or default.kind,
        normalisation="none" if arguments.kind == TREES else default.normalisation,
        versions=TRAINED,
        training=training,
    )


def _grows_trees(arguments: argparse.Namespace) -> bool:
    """Whether it can be of trees, which are trained at interventions."""
    return arguments.kind in (TREES, SELECTED)


def _with_schedule(model: ModelSettings, schedule: Schedule) -> ModelSettings:
    training = msgspec.structs.replace(model.training, **schedule._asdict())
    return msgspec.structs.replace(model, training=training)


def _plan(
    settings: Settings, arguments: argparse.Namespace, after_ms: int | None
) -> Plan:
    """What is shown; event times come after `after_ms`."""
    step_ms = step_ms_for(
        arguments.max_behind,
        window_ms=settings.time.click_window_ms,
        disorder_ms=settings.time.disorder_ms,
    )
    model = settings.models.get(arguments.model)
    now_ms = time.time_ns() // 1_000_000
    plan = Plan(
        policy=policy_for(model),
        multileaving=multileaving_of(model),
        log_candidates=needs_candidates(model),
        n_impressions=arguments.impressions,
        start_ms=now_ms,
        step_ms=step_ms,
        cutoff=arguments.cutoff,
        max_behind=arguments.max_behind,
        follow=not arguments.no_follow,
        learns_online=arguments.model not in settings.trained,
        is_live=not arguments.local,
    )
    start_ms = start_ms_for(
        plan, now_ms=now_ms, after_ms=after_ms,
        ahead_ms=settings.time.ahead_ms, namespace=settings.namespace,
    )  # fmt: skip
    return dataclasses.replace(plan, start_ms=start_ms)
