"""What became of events that were sent, or folded in this process."""

from collections.abc import Mapping
from dataclasses import dataclass

from rankstream.operations.answers.as_builtins import Answer


@dataclass(frozen=True)
class BecameOf(Answer):
    """What workers made of what was sent, as far as that is known.

    Parameters
    ----------
    dead_letters
        By code.
    set_aside
        Events of all senders that became late or orphans meanwhile, by outcome.
    not_read, not_joined
        Records that ingestion, and records of the log that the fold has not read.
    may_wait
        Whether the last clicks may wait for their lists.
    """

    dead_letters: Mapping[str, int]
    set_aside: Mapping[str, int]
    not_read: int
    not_joined: int
    may_wait: bool


@dataclass(frozen=True)
class Sent(Answer):
    """Events that were sent to Kafka.

    Parameters
    ----------
    acknowledged
        That Kafka has for certain.
    refused
        That were too large.
    unanswered
        That Kafka may have, or not.
    is_complete
        Whether all that there was to send was sent.
    became_of
        None where it could not be told.
    """

    acknowledged: int
    refused: int
    unanswered: int
    is_complete: bool
    became_of: BecameOf | None


@dataclass(frozen=True)
class Folded(Answer):
    """Events that were folded in this process.

    Parameters
    ----------
    outcomes
        Events by outcome; together they are `events`.
    dead_letters
        By topic and code, `TOPIC: CODE`.
    clicked
        Clicks without repeats.
    files
        Numbers of values by file, where results were written.
    """

    events: int
    outcomes: Mapping[str, int]
    dead_letters: Mapping[str, int]
    clicked: int
    files: Mapping[str, int]
