"""Which stage reads and writes which topic; roles are in `streams.worker_roles`.

The worker, both runtimes, `topics`, the monitor and a test of `docs/topics.md` read it.
A new stage is a file and a row of `STAGES`. Nothing heavy is loaded before a stage is
built.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec

from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.schemas import CONVERT_STATISTICS
from rankstream.wire.topics import (
    CANDIDATES,
    CLICKS,
    COMPACTED,
    EACH_COMMIT,
    EVENTS,
    INTERACTIONS,
    LATE,
    PREFERENCES,
    QUERIES,
    SNAPSHOTS,
    STATISTICS,
    Topic,
    dead_letters,
    state_topic,
    worker_group,
)
from streams.stage import Stage
from streams.topic_rows import TOPICS

State = Mapping[tuple[str, bytes], bytes]
"""By topic and key."""


@dataclass(frozen=True)
class StageKind:
    """A stage of the pipeline, before it has a partition.

    Parameters
    ----------
    state_topics
        Where its state lies, compacted, as many partitions as its source; the first
        holds the resume position.
    outputs
        All other topics that it writes to.
    role
        Whose process runs it.
    state_always
        Write the state at every commit: for small states.
    version
        Of the fold and its state; a state of a later version is refused.
    since
        The least version whose states it goes on from as they are.
    conversion
        What an operator does with a state of the version before that.
    warm_up
        Compiles what the stage calls, before it is given a partition.
    pinned
        Settings that the fold depends on and that nothing else holds to what they
        were. They are recorded with the resume position, and a change is refused.
    refers_from
        The first offset of the source that a state, by topic and key, refers to; None
        where it refers to nothing. It is restored with all from there to its end.
    """

    name: str
    source: str
    state_topics: tuple[str, ...]
    build: Callable[[Settings, int], Stage]
    outputs: tuple[str, ...] = ()
    role: str = ""
    state_always: bool = False
    version: int = 1
    since: int = 1
    conversion: str = ""
    warm_up: Callable[[Settings], None] | None = None
    pinned: tuple[str, ...] = ()
    refers_from: Callable[[State], int | None] = lambda _: None


INGEST_PINNED = (
    "time.disorder_ms",
    "time.click_window_ms",
    "kafka.input_partitions",
    "kafka.partitions",
)
"""What it accepts, and when it calls a source idle, may change: the log has it."""

FOLD_PINNED = (
    "time.disorder_ms",
    "time.click_window_ms",
    "time.remember_ms",
    "time.keep_ms",
    "limits.clicks",
    "limits.click_bytes",
    "limits.candidate_sets",
    "limits.interventions",
    "limits.exposure_rows",
    "limits.lists",
    "statistics.groups",
    "statistics.reward",
    "statistics.actions",
    "kafka.learner_partitions",
)

# Modules are loaded where a stage is built or a role begins: the parent of a worker,
# `topics` and the monitor read the tables without numba and Faust.


def _ingest_queries(settings: Settings, partition: int) -> Stage:
    from streams.ingest.ingest import Ingest  # noqa: PLC0415

    return Ingest(QUERIES, partition, settings)


def _ingest_clicks(settings: Settings, partition: int) -> Stage:
    from streams.ingest.ingest import Ingest  # noqa: PLC0415

    return Ingest(CLICKS, partition, settings)


def _fold(settings: Settings, partition: int) -> Stage:
    from streams.partition_fold import partition_fold  # noqa: PLC0415

    return partition_fold(partition, settings)


def _fold_refers_from(state: State) -> int | None:
    from streams.fold.segments import first_referred  # noqa: PLC0415

    return first_referred(state)


def _learn(settings: Settings, partition: int) -> Stage:
    from streams.learning.learn import Learn  # noqa: PLC0415

    return Learn(partition, settings)


def _warm_up_comparisons(settings: Settings) -> None:
    # Without an experiment no kernel is needed, nor numba.
    if settings.experiments:
        from streams.comparisons.warm_up import warm_up  # noqa: PLC0415

        warm_up(settings)


def _warm_up_learners(settings: Settings) -> None:
    from streams.learning.warm_up import warm_up  # noqa: PLC0415

    warm_up(settings)


STAGES = (
    StageKind(
        name="ingest-queries",
        role="ingest",
        source=QUERIES,
        state_topics=(state_topic("ingest-queries"),),
        build=_ingest_queries,
        outputs=(EVENTS, dead_letters(QUERIES)),
        version=3,
        since=1,
        state_always=True,
        pinned=INGEST_PINNED,
    ),
    StageKind(
        name="ingest-clicks",
        role="ingest",
        source=CLICKS,
        state_topics=(state_topic("ingest-clicks"),),
        build=_ingest_clicks,
        outputs=(EVENTS, dead_letters(CLICKS)),
        version=3,
        since=1,
        state_always=True,
        pinned=INGEST_PINNED,
    ),
    StageKind(
        name="fold",
        role="fold",
        source=EVENTS,
        state_topics=(
            state_topic("fold"),
            STATISTICS,
            PREFERENCES,
            state_topic("candidates"),
        ),
        build=_fold,
        outputs=(
            INTERACTIONS,
            LATE,
            CANDIDATES,
            dead_letters(QUERIES),
            dead_letters(CLICKS),
        ),
        version=6,
        since=2,
        conversion=CONVERT_STATISTICS,
        warm_up=_warm_up_comparisons,
        pinned=FOLD_PINNED,
        refers_from=_fold_refers_from,
    ),
    StageKind(
        name="learn",
        role="learn",
        source=INTERACTIONS,
        state_topics=(state_topic("learn"),),
        build=_learn,
        outputs=(SNAPSHOTS,),
        version=2,
        state_always=True,
        warm_up=_warm_up_learners,
    ),
)
"""In the order in which an event passes them."""


def group_of(namespace: str, role: str) -> str:
    """The consumer group of a role with stages."""
    return worker_group(namespace, role)


def writer_of(*owner: str) -> str:
    """The id of the transactions of a stage or of what a role writes, by its names.

    Without namespace. It is a promise, as formats are: an older worker's transactions
    are ended by it.
    """
    return "-".join(("rankstream", *owner))


RESTORE_WRITER = writer_of("restore")
"""The id of the transactions in which a backup is written back."""


def written_topics() -> frozenset[str]:
    """Topics that stages write for others; all other sources come from outside."""
    return frozenset(name for kind in STAGES for name in kind.outputs)


def topics_of(kafka: KafkaSettings) -> list[Topic]:
    """Every topic as it must exist, names without namespace: states come last."""
    sources = {kind.source for kind in STAGES}
    topics = [
        Topic(
            row.name,
            getattr(kafka, row.width) if row.width else 1,
            row.config,
            is_source=row.name in sources,
            days=row.days,
        )
        for row in TOPICS
    ]
    partitions = {topic.name: topic.partitions for topic in topics}
    return topics + [
        # The first one has the resume position.
        Topic(name, partitions[kind.source], COMPACTED if nth else EACH_COMMIT)
        for kind in STAGES
        for nth, name in enumerate(kind.state_topics)
    ]


def pinned_settings(kind: StageKind, settings: Settings) -> dict[str, Any]:
    """Names and values of the settings that a stage's state is bound to."""
    return {
        name: msgspec.to_builtins(attrgetter(name)(settings)) for name in kind.pinned
    }


def n_partitions_of(kind: StageKind, kafka: KafkaSettings) -> int:
    """Partitions of a stage's source, which are those of its state."""
    by_name = {topic.name: topic.partitions for topic in topics_of(kafka)}
    return by_name[kind.source]
