"""What was copied out of the log, and where a person's events are."""

from dataclasses import dataclass

from rankstream.operations.answers.as_builtins import Answer


@dataclass(frozen=True)
class Dumped(Answer):
    """A file with the committed records of a topic."""

    file: str
    topic: str
    records: int


@dataclass(frozen=True)
class BackedUp(Answer):
    """A folder from which a namespace can be made again.

    Parameters
    ----------
    events
        Records of the log.
    kept
        Records of each topic that does not follow from the log.
    """

    folder: str
    events: int
    kept: dict[str, int]


@dataclass(frozen=True)
class Restored(BackedUp):
    """What was written of a backup."""


@dataclass(frozen=True)
class PersonTraces(Answer):
    """A person's lists and clicks in a topic.

    Parameters
    ----------
    first_ms, last_ms
        When the broker appended the first and the last of them; None without any.
    """

    topic: str
    lists: int
    clicks: int
    first_ms: int | None
    last_ms: int | None


@dataclass(frozen=True)
class Erasure(Answer):
    """Where a person's events are, or the copy of a dump without them.

    Parameters
    ----------
    traces
        By topic; None where a dump was copied.
    file
        The copy; None without one.
    lists, clicks
        That the copy is without.
    """

    traces: list[PersonTraces] | None
    file: str | None
    lists: int
    clicks: int


@dataclass(frozen=True)
class ExportedArrays(Answer):
    """A file of arrays.

    Parameters
    ----------
    rounds
        Rows: shown items.
    items
        Different ones.
    unknown
        Rounds whose propensity nobody knows.
    """

    file: str
    rounds: int
    lists: int
    items: int
    clicks: int
    unknown: int


@dataclass(frozen=True)
class RankedItems(Answer):
    """A query with its items, the best first, and their scores."""

    query: str
    items: list[str]
    scores: list[float]
