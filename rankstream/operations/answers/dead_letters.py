"""Dead letters: how many of which kind, and what sending them again would do."""

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


def letter_counts(letters: Iterable[DeadLetter]) -> list[LetterCount]:
    """Those of letters, the most first."""
    found = counts(letters).items()
    ordered = sorted(found, key=lambda each: (-each[1], each[0]))
    return [LetterCount(*names, number) for names, number in ordered]


def expected_of_replay(
    reader: TopicReader, settings: Settings, letters: Iterable[DeadLetter]
) -> Outlook:
    """What would become of letters that are sent again."""
    time = settings.time
    return outlook(
        letters,
        reached_ms=reached_ms(reader),
        window_ms=time.click_window_ms,
        disorder_ms=time.disorder_ms,
    )
