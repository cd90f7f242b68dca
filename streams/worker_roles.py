"""The roles of a worker: what each of its processes runs.

Nothing heavy is loaded before a role begins.
"""

from asyncio import Event
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rankstream.settings import Settings
from rankstream.wire.topics import (
    CANDIDATES,
    CLICKS,
    DECISIONS,
    EVALUATIONS,
    EXPERIMENTS,
    PREFERENCES,
    QUERIES,
    SNAPSHOTS,
    STATISTICS,
    TRAINING,
)
from streams.topology import STAGES, StageKind, writer_of

if TYPE_CHECKING:
    from streams.kafka.status.status_page import Status

Serve = Callable[[Settings, Event, "Status"], Awaitable[None]]
"""Works until the event is set, and says how it fares."""


@dataclass(frozen=True)
class Role:
    """What one process of a worker does.

    Parameters
    ----------
    metrics_port
        Its page is at `metrics.port` plus this.
    serve
        What it runs, where it has no stages.
    sources, outputs
        What it then reads and writes.
    foreign
        Topics of others that it reads as a member of its group, by full names.
    writers
        Ids of its transactions, without namespace.
    is_needed
        Whether a worker that is told no role starts it.
    loads
        Modules that its processes are forked with (`streams/kafka/processes`). Without
        numba, which would hold up the start of roles that have no need of it.
    """

    name: str
    summary: str
    metrics_port: int
    serve: Serve | None = None
    sources: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    foreign: Callable[[Settings], Iterable[str]] = lambda _: ()
    writers: Callable[[Settings], Iterable[str]] = lambda _: ()
    is_needed: Callable[[Settings], bool] = lambda _: True
    loads: tuple[str, ...] = ("streams.kafka.status.status_page",)


async def _publish(settings: Settings, stop: Event, status: "Status") -> None:
    from streams.roles.publisher import publish_copies  # noqa: PLC0415

    await publish_copies(settings, stop, status)


async def _evaluate(settings: Settings, stop: Event, status: "Status") -> None:
    from streams.roles.evaluator import evaluate  # noqa: PLC0415

    await evaluate(settings, stop, status)


async def _train(settings: Settings, stop: Event, status: "Status") -> None:
    from streams.roles.trainer import train  # noqa: PLC0415

    await train(settings, stop, status)


async def _decide(settings: Settings, stop: Event, status: "Status") -> None:
    from streams.roles.decider import decide  # noqa: PLC0415

    await decide(settings, stop, status)


async def _adapt(settings: Settings, stop: Event, status: "Status") -> None:
    from streams.roles.adapter import adapt  # noqa: PLC0415

    await adapt(settings, stop, status)


_STAGES_LOAD = "streams.kafka.status.status_page", "streams.kafka.app"


def _is_evaluating(settings: Settings) -> bool:
    return bool(settings.experiments or settings.deployed)


def _is_training(settings: Settings) -> bool:
    models = settings.models.values()
    is_valued = settings.train.value_every_s and any(x.logs_candidates for x in models)
    return bool(is_valued or settings.schedules or settings.deployed)


def _trained(settings: Settings) -> Iterable[str]:
    return [writer_of("train", each) for each in (*settings.curves, *settings.deployed)]


def _is_deciding(settings: Settings) -> bool:
    return bool(settings.decided)


def _decided(settings: Settings) -> Iterable[str]:
    return [writer_of("decide", each) for each in settings.decided]


def _sources(settings: Settings) -> Iterable[str]:
    return [each.topic for each in settings.sources.values()]


def _has_sources(settings: Settings) -> bool:
    return bool(settings.sources)


ROLES = {
    role.name: role
    for role in (
        Role(
            "ingest",
            "input topics to canonical log",
            0,
            loads=(*_STAGES_LOAD, "streams.ingest.ingest"),
        ),
        Role(
            "fold",
            "join, statistics and preferences",
            1,
            loads=(*_STAGES_LOAD, "streams.partition_fold"),
        ),
        Role("learn", "models", 2, loads=_STAGES_LOAD),
        Role(
            "publish",
            "snapshots, experiments and decisions to Redis",
            3,
            _publish,
            (SNAPSHOTS, EXPERIMENTS, DECISIONS),
        ),
        Role(
            "evaluate",
            "verdicts on experiments and interventions, where there are any",
            4,
            _evaluate,
            (PREFERENCES,),
            (EVALUATIONS,),
            is_needed=_is_evaluating,
        ),
        Role(
            "train",
            "interventions, curves, canaries and values, where there are any",
            5,
            _train,
            (STATISTICS, CANDIDATES, PREFERENCES, SNAPSHOTS, TRAINING),
            (SNAPSHOTS, TRAINING, EVALUATIONS),
            writers=_trained,
            is_needed=_is_training,
        ),
        Role(
            "adapt",
            "events of other systems' topics, where there are sources",
            6,
            _adapt,
            (QUERIES,),
            (QUERIES, CLICKS),
            foreign=_sources,
            writers=lambda _: [writer_of("adapt")],
            is_needed=_has_sources,
        ),
        Role(
            "decide",
            "what is served for which query, where there are rules or bandits",
            7,
            _decide,
            (STATISTICS, CANDIDATES, SNAPSHOTS, DECISIONS),
            (DECISIONS, SNAPSHOTS),
            writers=_decided,
            is_needed=_is_deciding,
        ),
    )
}
"""What a worker can do, by name, in the order in which it starts them."""


def role_of(name: str) -> Role:
    """The role of a name.

    Raises
    ------
    ValueError
        Where there is none of it.
    """
    role = ROLES.get(name)
    if role is None:
        raise ValueError(f"a role must be one of {', '.join(ROLES)}; got {name!r}")
    return role


def kinds_of(role: str) -> list[StageKind]:
    """The stages of a role; those that only read and write have none.

    Raises
    ------
    ValueError
        Where there is no such role.
    """
    known = role_of(role).name
    return [kind for kind in STAGES if kind.role == known]
