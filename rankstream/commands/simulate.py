"""`rankstream simulate`: closed loop of users, a ranker, and the learner behind it.

On Kafka the ranker reads Redis and a running worker learns; `--local` runs the same
folds in this process.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from models.click_models.registry import NAMES, click_model_of
from producers.formats.letor import LetorData
from producers.simulation import Plan, Progress, simulate, step_ms_for
from rankstream.settings import Settings, load_settings, with_namespace
from rankstream.simulation.learner_needs import (
    multileaving_of,
    needs_candidates,
    policy_for,
)
from rankstream.simulation.pipelines import in_process, on_kafka, settled
from rankstream.simulation.queries import n_grades_of, ndcg_of, queries_of
from rankstream.snapshots import Snapshot
from rankstream.terminal.progress_line import ProgressLine

SUMMARY = "closed loop of simulated users, a ranker and its learner"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "Without --local the ranker reads Redis, and events go to Kafka. A worker\n"
        "must run then, with [models.NAME] of as many features as the data.\n\n"
        "examples:\n"
        "  rankstream simulate --local --data MQ2008 --fold 1 --users perfect\n"
        "  rankstream simulate --config shop.toml --model search --data train.txt\n"
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
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    pipeline = (
        in_process(settings, arguments.model, train.features.shape[1])
        if arguments.local
        else on_kafka(settings, arguments.model)
    )
    with pipeline as (sink, ranker):
        plan = _plan(settings, arguments)
        started = time.monotonic()
        with ProgressLine("shown", total=plan.n_impressions) as line:

            def follow(progress: Progress) -> None:
                line.show(progress.shown)

            progress = simulate(
                train, users, ranker, sink, plan,
                rng=np.random.default_rng(arguments.seed), on_progress=follow,
            )  # fmt: skip
        sink.end()
        learned = settled(ranker, plan.n_impressions)
        seconds = time.monotonic() - started
    result = _result(progress, learned, test, arguments, seconds)
    if arguments.json:
        json.dump(result, sys.stdout)
        sys.stdout.write("\n")
    else:
        Console().print(_table(result))
    return 0


def _plan(settings: Settings, arguments: argparse.Namespace) -> Plan:
    step_ms = step_ms_for(
        arguments.max_behind,
        window_ms=settings.time.click_window_ms,
        disorder_ms=settings.time.disorder_ms,
    )
    model = settings.models.get(arguments.model)
    return Plan(
        policy=policy_for(model),
        multileaving=multileaving_of(model),
        log_candidates=needs_candidates(model),
        n_impressions=arguments.impressions,
        start_ms=time.time_ns() // 1_000_000 - arguments.impressions * step_ms,
        step_ms=step_ms,
        cutoff=arguments.cutoff,
        max_behind=arguments.max_behind,
        follow=not arguments.no_follow,
    )


def _result(
    progress: Progress,
    learned: Snapshot,
    test: LetorData,
    arguments: argparse.Namespace,
    seconds: float,
) -> dict[str, Any]:
    behind = progress.behind or [0]
    return {
        "impressions": progress.shown,
        "clicks": progress.clicks,
        "seconds": round(seconds, 2),
        "version": learned.version,
        "versions_served": len(progress.versions),
        "behind_mean": round(float(np.mean(behind)), 1),
        "behind_largest": int(max(behind)),
        "ndcg_learned": round(ndcg_of(learned, test, arguments.cutoff), 4),
        "ndcg_shown_last_1000": round(progress.recent(), 4),
        "ndcg_shown_discounted": round(progress.discounted(), 1),
    }


def _table(result: dict[str, Any]) -> Table:
    table = Table(title="simulated", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    labels = {
        "impressions": "lists shown",
        "clicks": "clicks",
        "seconds": "seconds",
        "version": "version learned",
        "versions_served": "versions served",
        "behind_mean": "lists behind, mean",
        "behind_largest": "lists behind, largest",
        "ndcg_learned": "NDCG of the learned ranker, test split",
        "ndcg_shown_last_1000": "NDCG of the last 1,000 lists shown",
        "ndcg_shown_discounted": "discounted sum of shown NDCG",
    }
    for name, label in labels.items():
        table.add_row(label, f"{result[name]:,}")
    return table
