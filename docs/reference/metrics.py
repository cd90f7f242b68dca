"""The page of metrics: what each process tells Prometheus.

Stages and roles are made as a worker makes them, and are asked what they count before
anything has happened. Nothing is connected.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiokafka import TopicPartition
from prometheus_client.core import Metric

from docs.reference.markdown import escaped, table
from rankstream.configuration.canary import CanarySettings
from rankstream.configuration.decisions import DecisionSettings
from rankstream.operations.serving.application import parts_of
from rankstream.settings import ModelSettings, Settings, SourceSettings
from rankstream.snapshots import Pointer, store_of
from rankstream.wire.topics import EVENTS
from rankstream.wire.verdicts import PairVerdict
from streams.comparisons.verdicts import refused_verdict
from streams.kafka.clients import Cluster
from streams.kafka.state.resume_position import NOWHERE, ResumePosition
from streams.kafka.status.adapt_status import AdaptStatus
from streams.kafka.status.experiment_series import experiment_series
from streams.kafka.status.metrics import Gauges
from streams.kafka.status.role_status import Lag, RoleStatus
from streams.kafka.status.stage_times import StageTimes
from streams.kafka.status.status_page import Status
from streams.local import local_settings
from streams.redis_copies.model_times import ModelTimes
from streams.roles.decider import Decider
from streams.roles.evaluator import Evaluator
from streams.roles.publisher import Publisher
from streams.roles.trainer import Trainer
from streams.series import LONGEST, MOST, Series
from streams.topology import STAGES, StageKind
from streams.worker_roles import ROLES

INTRODUCTION = f"""# Metrics

What each process tells Prometheus at `/metrics`, made by asking the processes' own
parts. Counters end with `_total`; everything else is a gauge, or a histogram where it
says so. Pages of a worker's roles are at `metrics.port` and above (`docs/topics.md`);
that of `rankstream serve` is on its own port (`docs/http.md`). A page is written as
OpenMetrics 1.0 for who asks for that, as Prometheus does, else in its older text.

All times are in seconds. A name with `_timestamp_seconds` is a time since 1970:
`time() - rankstream_model_created_timestamp_seconds` is an age. Outcomes of events
(applied, duplicate, late, orphan, dead letter, pending) add up to what was consumed.
What to alert on is in `docs/alerts.md`.

Names of models and experiments are labels. What cannot be printed in them is shown as
`?`, and of more than {LONGEST} characters the beginning; a digest of the name follows
then. Of one metric a role shows {MOST} series by such names, those of the experiments
with most lists, and `rankstream_series_left_out` says how many there are beside. Each
process also tells its memory, processor seconds and start (`process_*`).
"""

MODEL = ModelSettings(features=1, versions="trained", canary=CanarySettings())
"""A model of which interventions and canaries are counted."""

ENDS = {"counter": "_total", "info": "_info"}
"""How names of metrics of these types end on the page of a process."""

Made = Publisher | Evaluator | Trainer | Decider

SOURCE = SourceSettings(topic="ubi.events", format="ubi")
"""A source that the role `adapt` reads."""


@dataclass
class OpenPartition:
    """What a worker's page asks of a partition before its first record."""

    kind: StageKind
    restored: Mapping[str, int]
    position: ResumePosition
    counts: Mapping[str, int] = field(default_factory=dict)
    partition: int = 0
    backlog: tuple[()] = ()
    folded: int = 0
    appended_ms: int = 0


def page() -> str:
    """Every process, with what it tells."""
    settings = local_settings(
        Settings(
            sources={"ubi": SOURCE},
            models={"m": MODEL},
            decisions={"rule": DecisionSettings(general="m", logging="m")},
        )
    )
    parts = [INTRODUCTION, "## Every role\n"]
    parts.append(_table(Status("role").registry.collect()))
    for role in ROLES.values():
        parts.append(f"## Role `{role.name}`\n")
        parts.append(f"{escaped(role.summary).capitalize()}.\n")
        parts.append(_table(_metrics_of(role.name, settings)))
    parts.append("## `rankstream serve`\n")
    counts = parts_of(settings).counts
    counts.answers["/v1/rank", 200] += 1  # metrics without a value name no labels
    counts.seconds.labels("/v1/rank").observe(0.0)
    parts.append(_table(counts.registry.collect()))
    return "\n".join(parts)


def _table(metrics: Iterable[Metric]) -> str:
    rows = {}
    for metric in metrics:
        name = metric.name + ENDS.get(metric.type, "")
        labels = sorted({label for each in metric.samples for label in each.labels})
        named = ", ".join(f"`{label}`" for label in labels if label != "le")
        rows[name] = [f"`{name}`", metric.type, named, escaped(metric.documentation)]
    return table(
        ["metric", "is a", "by", "counts"], [rows[name] for name in sorted(rows)]
    )


def _metrics_of(role: str, settings: Settings) -> Iterator[Metric]:
    kinds = [kind for kind in STAGES if kind.role == role]
    if kinds:
        yield from _of_stages(kinds, settings)
    elif role == "adapt":
        yield from _of_adapter(settings)
    else:
        status = RoleStatus(role, [("topic", 0)])
        made = _made(role, settings)
        series = [*made.series(), *_of_names(role)]
        status.count(made.counters(), 0.0, series)
        yield from status.collect()


def _of_stages(kinds: list[StageKind], settings: Settings) -> Iterator[Metric]:
    opened: dict[Any, OpenPartition] = {
        kind.name: OpenPartition(kind, _counters_of(kind, settings), NOWHERE)
        for kind in kinds
    }
    times = {kind.name: StageTimes(has_joins=kind.source == EVENTS) for kind in kinds}
    yield from Gauges(opened, times, lambda _: 0, lambda _: 0.0).collect()


def _counters_of(kind: StageKind, settings: Settings) -> dict[str, int]:
    """Before the first record; times that are not known yet are 0 here."""
    return {k: max(0, n) for k, n in kind.build(settings, 0).counters().items()}


def _of_adapter(settings: Settings) -> Iterator[Metric]:
    status = AdaptStatus("adapt", settings.sources)
    status.wrote({}, {TopicPartition(SOURCE.topic, 0): Lag(0, 0)})
    yield from status.collect()


def _made(role: str, settings: Settings) -> Made:
    cluster = Cluster(settings.namespace, {}, {})
    if role == "train":
        return Trainer(settings, cluster)
    if role == "decide":
        return Decider(settings, cluster)
    return Evaluator(settings) if role == "evaluate" else Publisher(store_of(settings))


def _of_names(role: str) -> Iterator[Series]:
    """What a role tells of a model or an experiment, once there is one."""
    if role == "publish":
        times = ModelTimes()
        times.take(Pointer(0, 1), 1, is_new=False)
        times.wrote(Pointer(0, 1))
        yield from times.series("m")
    elif role == "evaluate":
        pair = PairVerdict(
            a="a", b="b", mean=0.0, to_come=(0, 0), came=(0, 0), fixed=(0, 0),
            sessions=(0, 0), log_e_a=0.0, log_e_b=0.0, preferred_a=0, preferred_b=0,
            possible=0,
        )  # fmt: skip
        verdict = refused_verdict("boost", 1, "")
        method = msgspec.structs.replace(verdict.drawn_by, pairs=[pair])
        yield from experiment_series(
            [
                msgspec.structs.replace(
                    verdict, methods={verdict.method: method}, rankers=["a", "b"]
                )
            ]
        )
