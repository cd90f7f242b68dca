"""Dead letters: how many of which kind, and what sending them again would do."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from producers.dead_letters import DeadLetter, Outlook, counts, outlook
from producers.topic_reader import TopicReader, reached_ms
from rankstream.operations.answers.as_builtins import Answer
from rankstream.settings import Settings


@dataclass(frozen=True)
class LetterCount(Answer):
    """How many dead letters of a topic, a stage and a code there are."""

    topic: str
    stage: str
    code: str
    letters: int


@dataclass(frozen=True)
class Letter(Answer):
    """A dead letter, as a list has it.

    Parameters
    ----------
    place
        TOPIC/PARTITION/OFFSET, as `dlq show` takes it.
    arrived_ms
        When it became one.
    begins
        Its first bytes as text.
    """

    place: str
    arrived_ms: int
    code: str
    reason: str
    begins: str


@dataclass(frozen=True)
class LetterDetails(Answer):
    """All of one.

    Parameters
    ----------
    reasons
        Of its refusal, by name.
    headers
        That it came with: names and bytes, in their order.
    text
        Its bytes as text, U+FFFD for what is none.
    """

    place: str
    arrived_ms: int
    code: str
    reasons: dict[str, str]
    key: bytes | None
    headers: list[tuple[str, bytes]]
    value: bytes
    text: str


@dataclass(frozen=True)
class LettersSent(Answer):
    """Dead letters that were sent again, or would be.

    Parameters
    ----------
    sendable, too_late, too_early, unrecognised
        That can be sent; of these, that will be late, that will be refused again as
        their time has not come, and that are no events.
    acknowledged, refused
        None of both with `--dry-run`.
    """

    letters: int
    sendable: int
    too_late: int
    too_early: int
    unrecognised: int
    acknowledged: int
    refused: int


def letter_of(letter: DeadLetter, n_bytes: int) -> Letter:
    """A letter with so many bytes of it."""
    return Letter(
        letter.place,
        letter.timestamp_ms,
        letter.code,
        letter.reasons.get("exception.message", ""),
        letter.value[:n_bytes].decode(errors="replace"),
    )


def details_of(letter: DeadLetter) -> LetterDetails:
    """All of a letter."""
    return LetterDetails(
        letter.place,
        letter.timestamp_ms,
        letter.code,
        letter.reasons,
        letter.key,
        [*letter.headers],
        letter.value,
        letter.value.decode(errors="replace"),
    )


def letter_counts(letters: Iterable[DeadLetter]) -> list[LetterCount]:
    """Those of letters, the most first."""
    found = counts(letters).items()
    ordered = sorted(found, key=lambda each: (-each[1], each[0]))
    return [LetterCount(*names, number) for names, number in ordered]


def expected_of_replay(
    reader: TopicReader, settings: Settings, letters: Iterable[DeadLetter]
) -> Outlook:
    """What would become of letters that are sent again."""
    limits = settings.time
    return outlook(
        letters,
        reached_ms=reached_ms(reader),
        window_ms=limits.click_window_ms,
        disorder_ms=limits.disorder_ms,
        now_ms=time.time_ns() // 1_000_000,
        ahead_ms=limits.ahead_ms,
    )
