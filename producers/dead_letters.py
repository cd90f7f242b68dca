"""Dead letters as read from their topics: bytes that were refused, and why."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from producers.event_sink import EventSink, EventTooLarge
from producers.topic_reader import Record, TopicReader
from rankstream.wire.input_events import Event, recognised
from rankstream.wire.refusal_codes import NO_CODE
from rankstream.wire.topics import CLICKS, QUERIES, dead_letters

HEADER_PREFIX = "__rankstream.errors."
"""Before the name of each header that tells a reason."""

SOURCES = (QUERIES, CLICKS)


class NoSuchLetter(ValueError):
    """There is no dead letter at this place.

    Operator action: take a place from `rankstream dlq list`.
    """


@dataclass(frozen=True)
class DeadLetter:
    """One dead letter.

    Parameters
    ----------
    source
        The topic that it came from, `queries` or `clicks`.
    partition, offset
        Where it stands in that topic's dead-letter topic.
    key, value, headers
        As they came.
    reasons
        Values of the headers that tell why, by name without prefix.
    """

    source: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    reasons: dict[str, str]

    @property
    def place(self) -> str:
        """Its name: source, partition and offset."""
        return f"{self.source}/{self.partition}/{self.offset}"

    @property
    def code(self) -> str:
        """The stable code of the reason."""
        return self.reasons.get("code", NO_CODE)

    @property
    def is_truncated(self) -> bool:
        """Whether its bytes are not all there."""
        return self.reasons.get("truncated") == "true"


@dataclass
class Outlook:
    """What is to be expected of letters that are sent again."""

    letters: int = 0
    too_late: int = 0
    too_early: int = 0
    unrecognised: int = 0
    truncated: int = 0

    @property
    def sendable(self) -> int:
        """How many will be sent."""
        return self.letters - self.truncated


def letter_of(source: str, record: Record) -> DeadLetter:
    """The dead letter in a record of a dead-letter topic."""
    reasons, headers = {}, []
    for name, content in record.headers:
        if name.startswith(HEADER_PREFIX):
            # Where a letter was refused twice, the last reason counts.
            reasons[name.removeprefix(HEADER_PREFIX)] = (content or b"").decode(
                "utf-8", "replace"
            )
        else:
            headers.append((name, content))
    return DeadLetter(
        source,
        record.partition,
        record.offset,
        record.timestamp_ms,
        record.key,
        record.value or b"",
        tuple(headers),
        reasons,
    )


def read_letters(
    reader: TopicReader, *, sources: Sequence[str] = SOURCES, code: str | None = None
) -> Iterator[DeadLetter]:
    """The dead letters of these topics, all or those with a code."""
    for source in sources:
        for record in reader.records(dead_letters(source)):
            letter = letter_of(source, record)
            if code is None or letter.code == code:
                yield letter


def read_letter(reader: TopicReader, place: str) -> DeadLetter:
    """The dead letter at `source/partition/offset`.

    Raises
    ------
    NoSuchLetter
        Where there is none.
    """
    source, _, numbers = place.partition("/")
    partition, _, offset = numbers.partition("/")
    if source not in SOURCES or not (partition.isdigit() and offset.isdigit()):
        raise NoSuchLetter(
            f"a place must be like {CLICKS}/0/17, a source of {SOURCES}; got {place!r}"
        )
    starts = {int(partition): int(offset)}
    for record in reader.records(dead_letters(source), starts):
        if record.offset == int(offset):
            return letter_of(source, record)
        break
    raise NoSuchLetter(
        f"a dead letter must be there; none at {place}: `rankstream dlq list` "
        "has those that are"
    )


def counts(letters: Iterable[DeadLetter]) -> Counter[tuple[str, str, str]]:
    """How many there are by source, stage and code."""
    return Counter(
        (each.source, each.reasons.get("stage", "unknown"), each.code)
        for each in letters
    )


def outlook(
    letters: Iterable[DeadLetter],
    *,
    reached_ms: int | None,
    window_ms: int,
    disorder_ms: int,
    now_ms: int,
    ahead_ms: int,
) -> Outlook:
    """What will become of letters that are sent to a target that reached a time.

    Parameters
    ----------
    now_ms, ahead_ms
        What lies further ahead of now than that is refused again.
    """
    result = Outlook()
    for letter in letters:
        result.letters += 1
        if letter.is_truncated:
            result.truncated += 1
            continue
        try:
            event = recognised(letter.value)
        except ValueError:
            result.unrecognised += 1
            continue
        result.too_early += event.at_ms > now_ms + ahead_ms
        result.too_late += reached_ms is not None and reached_ms >= _until_ms(
            event, letter.source, window_ms, disorder_ms
        )
    return result


def send_again(letters: Iterable[DeadLetter], sink: EventSink) -> tuple[int, int]:
    """Send their own bytes back to the input topic that they came from.

    Returns
    -------
    tuple
        How many were sent, and how many cannot be: cut off, or too large.
    """
    n_sent = n_refused = 0
    for letter in letters:
        if letter.is_truncated:
            n_refused += 1
            continue
        try:
            if letter.key is None and not letter.headers:
                sink.send_raw(letter.source, letter.value)
            else:
                sink.send(letter.source, letter.value, letter.key, letter.headers)
        except EventTooLarge:
            n_refused += 1
        else:
            n_sent += 1
    return n_sent, n_refused


def _until_ms(event: Event, source: str, window_ms: int, disorder_ms: int) -> int:
    return event.at_ms + (window_ms if source == QUERIES else disorder_ms)
