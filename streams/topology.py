"""The stages of each role: what is folded from where, and where its state lies."""

from functools import partial

from rankstream.settings import Settings
from rankstream.wire.topics import (
    CLICKS,
    EVENTS,
    INTERACTIONS,
    LATE,
    PREFERENCES,
    QUERIES,
    SNAPSHOTS,
    STATISTICS,
    dead_letters,
)
from streams.fold.canonical import CanonicalFold
from streams.ingest.ingest import Ingest
from streams.kafka.checkpoint import StageKind
from streams.learning.learn import Learn

ROLES = ("ingest", "fold", "learn", "publish", "evaluate")
"""What a worker can do; `publish` brings snapshots to Redis, `evaluate` gives verdicts
on experiments: both fold nothing."""


def kinds_of(role: str, settings: Settings) -> list[StageKind]:
    """The stages of a role."""
    if role == "ingest":
        return [
            StageKind(
                f"ingest-{topic}",
                topic,
                (f"ingest-{topic}-state",),
                partial(_ingest, topic, settings),
                (EVENTS, dead_letters(topic)),
                cut_always=True,
            )
            for topic in (QUERIES, CLICKS)
        ]
    if role == "fold":
        states = ("fold-state", STATISTICS, PREFERENCES)
        outputs = (INTERACTIONS, LATE, dead_letters(QUERIES), dead_letters(CLICKS))
        return [StageKind("fold", EVENTS, states, partial(_fold, settings), outputs)]
    return [
        StageKind(
            "learn",
            INTERACTIONS,
            ("learn-state",),
            partial(_learn, settings),
            (SNAPSHOTS,),
            cut_always=True,
        )
    ]


def _ingest(topic: str, settings: Settings, partition: int) -> Ingest:
    return Ingest(topic, partition, settings)


def _fold(settings: Settings, partition: int) -> CanonicalFold:
    return CanonicalFold(partition, settings)


def _learn(settings: Settings, partition: int) -> Learn:
    return Learn(partition, settings)
