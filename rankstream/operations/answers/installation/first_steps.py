"""The way from an empty cluster to the first verdict, and how far it was gone."""

from collections.abc import Sequence
from dataclasses import dataclass

from producers.topic_reader import TopicReader
from rankstream.operations.answers.as_builtins import Answer
from rankstream.wire.topics import CLICKS, EVALUATIONS, EVENTS, QUERIES, STATISTICS


@dataclass(frozen=True)
class Step(Answer):
    """One step.

    Parameters
    ----------
    name
        What is there once it is done.
    remedy
        What brings it.
    """

    name: str
    is_done: bool
    remedy: str


STEPS = (
    ("topics are there", "rankstream topics create"),
    (
        "the first query came",
        "send query events: `rankstream serve`, `rankstream feed` or a client",
    ),
    ("the first click came", "send click events beside the lists that were shown"),
    (
        "the first statistics are counted",
        "run `rankstream worker`, and wait until the first click window has closed",
    ),
    (
        "the first verdict is written",
        "add [experiments.NAME] to the settings, start the worker again, run "
        "`rankstream experiments publish`, and let a service combine lists",
    ),
)
"""Each step with what brings it, in their order."""

TOPICS = (QUERIES, CLICKS, EVENTS, STATISTICS, EVALUATIONS)


def steps_of(done: Sequence[bool]) -> list[Step]:
    """All steps, given which of them are done; those that are not said are not."""
    known = (*done, *(False for _ in STEPS))
    return [Step(name, known[i], do) for i, (name, do) in enumerate(STEPS)]


def steps_done(reader: TopicReader) -> list[bool]:
    """Which were done.

    A topic tells by its end that something was written to it once, also where it has
    let go of it since.

    Raises
    ------
    TopicUnreadable
        Where a topic goes while it is looked at.
    """
    if not all(reader.partitions(topic) for topic in TOPICS):
        return []
    written = (
        any(end for _, end in reader.bounds(topic).values())
        for topic in (QUERIES, CLICKS, STATISTICS, EVALUATIONS)
    )
    return [True, *written]
