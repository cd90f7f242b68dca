"""`rankstream simulate`: closed loop of users, a ranker, and the learner behind it.

On Kafka the ranker reads Redis and a running worker learns; `--local` runs the same
folds in this process.
"""

import argparse
import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table

from models.click_models.registry import NAMES, click_model_of
from models.evaluation.ndcg import mean_ndcg
from models.learners.registry import LEARNERS
from producers.event_producer import EventProducer
from producers.formats.letor import LetorData, read_fold, read_letor
from producers.formats.synthetic_queries import generated_queries
from producers.readiness import Waiting
from producers.simulation import Plan, Progress, Sink, simulate, step_ms_for
from rankstream.ranker import Ranker
from rankstream.ranking.multileaving import Multileaving
from rankstream.ranking.scoring import normalised, scores_of
from rankstream.settings import ModelSettings, Settings, load_settings, with_namespace
from rankstream.snapshots import Snapshot, store_of
from rankstream.terminal.progress_line import ProgressLine
from streams.local import LocalPipeline, local_settings

SUMMARY = "closed loop: users, a ranker that reads Redis, events to Kafka"

SETTLE_S = 60.0
"""How long to wait, at the end, for the learner to have folded everything."""

MOST_GRADES = 5
START_WAIT_S, TRY_FOR_S = 300.0, 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "On Kafka a worker must run whose settings have [models.NAME] with as many\n"
        "features as the data.\n\n"
        "examples:\n"
        "  rankstream simulate --local --data MQ2008 --fold 1 --users perfect\n"
        "  rankstream simulate --config shop.toml --model search --data train.txt\n"
    )
    parser.add_argument(
        "--data", type=Path, help="LETOR file or folder of folds; else generated"
    )
    parser.add_argument("--fold", type=int, default=1, help="of a folder, from 1")
    parser.add_argument(
        "--users", choices=NAMES, default="perfect", help="default: perfect"
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
        help="wait while the served model lacks more impressions than this",
    )
    parser.add_argument(
        "--no-follow", action="store_true", help="serve the first version for ever"
    )
    parser.add_argument("--seed", type=int, default=1, help="of every random draw")
    parser.add_argument("--local", action="store_true", help="in this process")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Simulate, and print what was shown and what was learned."""
    for name in ("impressions", "cutoff", "max_behind"):
        if getattr(arguments, name) < 1:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} must be 1 or more; got {vars(arguments)[name]}")
    train, test = _data(arguments)
    n_grades = int(max(train.labels.max(), test.labels.max())) + 1
    if n_grades > MOST_GRADES:
        raise ValueError(
            f"labels of {arguments.data} must be below {MOST_GRADES}, as users know no "
            f"other grades; got {n_grades - 1}"
        )
    users = click_model_of(
        arguments.users, n_grades, stop_requires_click=not arguments.published_stop
    )
    settings = with_namespace(load_settings(arguments.config), arguments.namespace)
    loop = _local(settings, arguments, train) if arguments.local else None
    with loop or _on_kafka(settings, arguments) as (sink, ranker):
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
        learned = _settled(ranker, plan.n_impressions)
        seconds = time.monotonic() - started
    result = _result(progress, learned, test, arguments, seconds)
    if arguments.json:
        json.dump(result, sys.stdout)
        sys.stdout.write("\n")
    else:
        Console().print(_table(result))
    return 0


def _data(arguments: argparse.Namespace) -> tuple[LetorData, LetorData]:
    if arguments.data is None:
        rng = np.random.default_rng(arguments.seed)
        # One mixture of features must rule both parts.
        whole = generated_queries(n_queries=250, n_documents=20, n_features=16, rng=rng)
        return _part(whole, 0, 200), _part(whole, 200, 250)
    if arguments.data.is_dir():
        fold = read_fold(arguments.data, arguments.fold)
        return fold.train, fold.test
    data = read_letor(arguments.data)
    n_queries = len(data.query_ids)
    if n_queries < 2:
        raise ValueError(
            f"{arguments.data} must hold at least 2 queries, one of them to measure "
            f"with; got {n_queries}"
        )
    n_test = max(1, n_queries // 5)
    return _part(data, 0, n_queries - n_test), _part(
        data, n_queries - n_test, n_queries
    )


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
    return model is not None and LEARNERS[model.learner].learner.needs_candidates


def _is_duel(model: ModelSettings | None) -> bool:
    """Whether its learner compares rankers."""
    return (
        model is not None and "multileave" in LEARNERS[model.learner].learner.policies
    )


def _part(data: LetorData, first: int, last: int) -> LetorData:
    rows = slice(data.offsets[first], data.offsets[last])
    return LetorData(
        data.query_ids[first:last],
        data.labels[rows],
        data.features[rows],
        data.offsets[first : last + 1] - data.offsets[first],
        data.first_feature,
    )


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


@contextlib.contextmanager
def _local(
    settings: Settings, arguments: argparse.Namespace, train: LetorData
) -> Iterator[tuple[Sink, Ranker]]:
    model = settings.models.get(arguments.model) or ModelSettings(
        features=train.features.shape[1]
    )
    own = msgspec.structs.replace(
        local_settings(settings), models={arguments.model: model}
    )
    pipeline = LocalPipeline(own, now=lambda: time.time_ns() // 1_000_000)
    pipeline.start()
    name = arguments.model.encode()
    ranker = Ranker(arguments.model, source=lambda: pipeline.snapshots.get(name))
    ranker.refresh()
    yield pipeline, ranker


@contextlib.contextmanager
def _on_kafka(
    settings: Settings, arguments: argparse.Namespace
) -> Iterator[tuple[Sink, Ranker]]:
    store = store_of(settings)
    ranker = Ranker(arguments.model, store=store)
    _await_snapshot(ranker)
    try:
        with EventProducer(settings) as sink:
            yield sink, ranker
    finally:
        ranker.close()
        store.close()


def _await_snapshot(ranker: Ranker) -> None:
    waiting, began_s = Waiting(), time.monotonic()
    while not ranker.wait(TRY_FOR_S):
        if ranker.awaited:
            waiting.waits(ranker.awaited)
            began_s = time.monotonic()
            continue
        waited_s = time.monotonic() - began_s
        if waited_s > START_WAIT_S:
            raise RuntimeError(
                f"model {ranker.model!r} must have a snapshot in Redis; after "
                f"{waited_s:.0f} s there is none: does `rankstream worker` run, with "
                f"[models.{ranker.model}] in its settings?"
            )
        waiting.waits(
            f"a snapshot of {ranker.model!r}, which a worker's first start gives "
            "after it has compiled for a minute or two"
        )


def _settled(ranker: Ranker, n_impressions: int) -> Snapshot:
    deadline = time.monotonic() + SETTLE_S
    while ranker.version < n_impressions and time.monotonic() < deadline:
        ranker.refresh()
        time.sleep(0.02)
    return ranker.snapshot


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
        "ndcg_learned": round(_ndcg(learned, test, arguments.cutoff), 4),
        "ndcg_shown_last_1000": round(progress.recent(), 4),
        "ndcg_shown_discounted": round(progress.discounted(), 1),
    }


def _ndcg(learned: Snapshot, test: LetorData, cutoff: int) -> float:
    weights = np.frombuffer(learned.weights, "<f4")
    bounds = test.offsets.tolist()
    scores = [
        scores_of(
            normalised(test.features[start:end], learned.normalisation),
            weights,
            learned.hidden,
            learned.kind,
        )
        for start, end in pairwise(bounds)
    ]
    flat = np.concatenate(scores).astype(np.float64)
    return mean_ndcg(test.labels, flat, test.offsets, cutoff)


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
        "ndcg_learned": "NDCG of the learned ranker, test part",
        "ndcg_shown_last_1000": "NDCG of the last 1,000 lists shown",
        "ndcg_shown_discounted": "discounted sum of shown NDCG",
    }
    for name, label in labels.items():
        table.add_row(label, f"{result[name]:,}")
    return table
