"""Topics of the pipeline that are no stage's state: how wide, and what they keep."""

from typing import NamedTuple

from rankstream.wire.topics import (
    CANDIDATES,
    CLICKS,
    COMPACTED,
    DECISIONS,
    EVALUATIONS,
    EVENTS,
    EXPERIMENTS,
    FORTNIGHT,
    INPUT,
    INTERACTIONS,
    KEPT,
    LATE,
    QUERIES,
    SNAPSHOTS,
    TRAINING,
    dead_letters,
)


class TopicRow(NamedTuple):
    """A topic that is no stage's state.

    `width` and `days` name the settings of `[kafka]` that say how many partitions it
    has and how long it keeps a record; no `width` means one partition.
    """

    name: str
    width: str
    config: dict[str, str]
    days: str = ""


INPUTS, LOG, LEARNERS = "input_partitions", "partitions", "learner_partitions"

TOPICS = (
    TopicRow(QUERIES, INPUTS, INPUT),
    TopicRow(CLICKS, INPUTS, INPUT),
    TopicRow(dead_letters(QUERIES), INPUTS, KEPT | FORTNIGHT),
    TopicRow(dead_letters(CLICKS), INPUTS, KEPT | FORTNIGHT),
    TopicRow(EVENTS, LOG, KEPT, "events_days"),
    TopicRow(LATE, LOG, KEPT | FORTNIGHT),
    TopicRow(INTERACTIONS, LEARNERS, KEPT, "interactions_days"),
    TopicRow(CANDIDATES, LOG, COMPACTED),
    TopicRow(SNAPSHOTS, "", COMPACTED),
    TopicRow(EVALUATIONS, "", KEPT | FORTNIGHT),
    TopicRow(EXPERIMENTS, "", COMPACTED),
    TopicRow(TRAINING, "", COMPACTED),
    TopicRow(DECISIONS, "", COMPACTED),
)
