"""The names of topics, and what they take, for whoever sends or reads.

Which topics there are, and which stage reads and writes them, `streams.topology` says.
"""

from typing import NamedTuple

MIB = 1 << 20

BATCH_BYTES = 512 * 1024
"""A batch is cut before its record grows past this."""

MAX_EVENT_BYTES = 8 * MIB
"""Largest record that ingestion accepts."""

MAX_ELEMENTS = 65_536
"""Longest array that ingestion accepts in a record: each may be a dead letter."""

MAX_RECORD_BYTES = 16 * MIB
"""Largest record of any topic of ours: an input record, its headers, its state."""


LEAST_DAYS = 3
"""That a topic which a stage reads must keep a record."""


class Topic(NamedTuple):
    """A topic as it must exist.

    `is_source` says that a stage reads it: what came while that stage was away must
    still be there. `days` names the setting of `[kafka]` that says how long it keeps a
    record; "" means as long as the cluster does, or as `config` says.
    """

    name: str
    partitions: int
    config: dict[str, str]
    is_source: bool = False
    days: str = ""


COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.1",
    "segment.bytes": str(64 * MIB),
    "segment.ms": "60000",
    "delete.retention.ms": "86400000",
    "max.message.bytes": str(MAX_RECORD_BYTES),
}
EACH_COMMIT = COMPACTED | {
    # So long the broker keeps the marker of each transaction, and a start reads all of
    # them. A start that takes longer may see a key that was removed; no state names it
    # any more.
    "delete.retention.ms": "600000",
}
"""Of state topics that each commit writes to."""

KEPT = {
    "cleanup.policy": "delete",
    "max.message.bytes": str(MAX_RECORD_BYTES),
}
INPUT = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "LogAppendTime",
    "max.message.bytes": str(MAX_EVENT_BYTES),
    # So the broker unpacks what comes, and the limit is one of what was packed.
    "compression.type": "uncompressed",
}
FORTNIGHT = {"retention.ms": str(14 * 86_400_000)}

QUERIES = "queries"
CLICKS = "clicks"
EVENTS = "events"
INTERACTIONS = "interactions"
STATISTICS = "statistics"
PREFERENCES = "preferences"
EVALUATIONS = "evaluations"
SNAPSHOTS = "snapshots"
EXPERIMENTS = "experiments"
LATE = "late"
CANDIDATES = "candidates"
TRAINING = "training"
DECISIONS = "decisions"


def dead_letters(topic: str) -> str:
    """The topic of what could not be taken from `topic`."""
    return f"{topic}.dlq"


def state_topic(stage: str) -> str:
    """The topic of a stage's own state."""
    return f"{stage}-state"


def worker_group(namespace: str, role: str) -> str:
    """The consumer group of the workers of a role with stages."""
    return full_name(namespace, f"rankstream-{role}")


def full_name(namespace: str, name: str) -> str:
    """The name of a topic on the cluster."""
    return f"{namespace}.{name}" if namespace else name
