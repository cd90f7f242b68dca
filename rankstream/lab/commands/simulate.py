"""`rankstream simulate`: closed loop of users, a ranker, and the learner behind it.

On Kafka the ranker reads Redis and a running worker learns; `--local` runs the same
folds in this process.
"""

import argparse
import dataclasses
import time
from pathlib import Path

import msgspec
import numpy as np

from models.click_models.registry import NAMES, click_model_of
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
from rankstream.lab.simulation.interventions import (
    LEAST_SUPPORT,
    Schedule,
    checked_schedule,
    schedule_over,
)
from rankstream.lab.simulation.pipelines import (
    Joined,
    in_process,
    n_grades_of,
    ndcg_of,
    on_kafka,
    queries_of,
    settled,
)
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
from streams.learning.learner_needs import (
    multileaving_of,
    needs_candidates,
    policy_for,
)

STOPPED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "Without --local the ranker reads Redis, and events go to Kafka. A worker\n"
        "must run then, with [models.NAME] of as many features as the data.\n\n"
        "examples:\n"
        "  rankstream simulate --local --data MQ2008 --fold 1 --users perfect\n"
        "  rankstream simulate --config shop.toml --model search --data train.txt\n"
        "  rankstream simulate --local --data MQ2008 --users navigational "
        "--interventions 3\n"
        "\n"
        "A model that is trained changes at interventions. On Kafka the\n"
        "role `train` makes them by itself, when [models.NAME.training] says. Ctrl-C\n"
        "ends the simulation, and prints what there is.\n"
    )
    parser.add_argument(
        "--data", type=Path, help="LETOR file, or folder of folds (default: generated)"
    )
    parser.add_argument(
        "--fold",
        type=int,
        default=1,
        help="which cross-validation split of a folder, from 1",
    )
    parser.add_argument(
        "--users",
        choices=NAMES,
        default="perfect",
        metavar="NAME",
        help=f"who clicks: {', '.join(NAMES)} (default: perfect)",
    )
    parser.add_argument(
        "--published-stop",
        action="store_true",
        help="users may stop without a click, as in the published code",
    )
    parser.add_argument(
        "--impressions", type=int, default=10_000, help="default: 10,000"
    )
    parser.add_argument("--model", default="simulated", help="name of the model")
    parser.add_argument("--cutoff", type=int, default=10, help="length of the lists")
    parser.add_argument(
        "--max-behind",
        type=int,
        default=200,
        help="wait while the served model is more impressions behind",
    )
    parser.add_argument(
        "--interventions",
        type=int,
        metavar="N",
        help="train the model N times, evenly on a log scale from a tenth of the "
        "lists on; with settings of the model, these say when",
    )
    parser.add_argument(
        "--no-follow", action="store_true", help="serve the first version only"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of all random draws")
    parser.add_argument(
        "--local",
        action="store_true",
        help="all in this process, without Kafka and Redis",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


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
    if asked is not None:
        model = _with_schedule(model, schedule_over(arguments.impressions, asked))
    return msgspec.structs.replace(settings, models={**settings.models, name: model})


def _model(arguments: argparse.Namespace, n_features: int) -> ModelSettings:
    """A model that has no settings."""
    if arguments.interventions is None:
        return ModelSettings(features=n_features)
    # Simulations show each query to few users.
    training = TrainingSettings(cutoff=arguments.cutoff, least_support=LEAST_SUPPORT)
    return ModelSettings(features=n_features, versions=TRAINED, training=training)


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
