"""What became of records that were sent, as far as the cluster can say by now.

Ingestion says which it refused, by their places. Late events are counted later, when
windows close, and their topic does not say who sent them.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from producers.dead_letters import SOURCES, letter_of
from producers.sent_records import SentRecords
from producers.topic_reader import Record, TopicReader
from rankstream.settings import Settings
from rankstream.wire.topics import LATE, dead_letters, worker_group

LOOK_EVERY_S = 0.5

STANDING_S = 3.0
"""How long ingestion may stand still before it is no longer waited for."""

PATIENCE_S = 5.0
"""How long ingestion is waited for where the answer is only for a person."""

OUTCOME = "outcome"
"""The header of a record of `late`."""


@dataclass
class Fates:
    """What is known.

    Parameters
    ----------
    letters
        Dead letters of the records that were sent, by code.
    set_aside
        Events of anybody that became late or orphans meanwhile, by outcome.
    n_unread
        Records that ingestion has not read, so that nothing is known of them.
    """

    letters: Counter[str] = field(default_factory=Counter)
    set_aside: Counter[str] = field(default_factory=Counter)
    n_unread: int = 0

    @property
    def n_letters(self) -> int:
        """Dead letters altogether."""
        return self.letters.total()

    @property
    def is_clean(self) -> bool:
        """Whether all is known, and nothing was lost."""
        return not (self.n_letters or self.set_aside.total() or self.n_unread)


class FateWatch:
    """Looks at where dead letters end now, and later at which were added.

    Raises
    ------
    TopicUnreadable
        Where a topic cannot be read.
    """

    def __init__(
        self, settings: Settings, *, is_stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self._settings = settings
        self._is_stopped = is_stopped
        self._topics = (*map(dead_letters, SOURCES), LATE)
        with TopicReader(settings, is_stopped=is_stopped) as reader:
            self._starts = {
                topic: {each: end for each, (_, end) in reader.bounds(topic).items()}
                for topic in self._topics
            }

    def fates(self, sent: SentRecords, *, is_thorough: bool) -> Fates:
        """Wait for ingestion as long as it goes on, and count.

        Parameters
        ----------
        is_thorough
            Whether to wait until it has read all; else for a few seconds.
        """
        fates = Fates()
        # A stop ends the wait, not the count: the reader is not told of it.
        with TopicReader(self._settings) as reader:
            unread = self._wait(reader, sent, is_thorough=is_thorough)
            fates.n_unread = unread + sent.n_unplaced
            for source in SOURCES:
                topic = dead_letters(source)
                for record in reader.records(topic, self._starts[topic]):
                    _count(fates.letters, sent, source, record)
            for record in reader.records(LATE, self._starts[LATE]):
                outcome = dict(record.headers).get(OUTCOME, b"late")
                fates.set_aside[outcome.decode("utf-8", "replace")] += 1
        return fates

    def _wait(
        self, reader: TopicReader, sent: SentRecords, *, is_thorough: bool
    ) -> int:
        """Records that are not read when the wait ends."""
        group = worker_group(self._settings.namespace, "ingest")
        ends = sent.ends()
        began_s = moved_s = time.monotonic()
        least = None
        while True:
            read = {
                source: reader.committed(group, source, _partitions(ends, source))
                for source in SOURCES
            }
            unread = sum(
                sent.n_from(source, partition, read[source].get(partition, 0))
                for source, partition in ends
            )
            now_s = time.monotonic()
            if least is None or unread < least:
                least, moved_s = unread, now_s
            is_over = now_s - moved_s >= STANDING_S or (
                not is_thorough and now_s - began_s >= PATIENCE_S
            )
            nobody_reads = not any(read.values())
            if not unread or is_over or nobody_reads or self._is_stopped():
                return unread
            time.sleep(LOOK_EVERY_S)


def _partitions(ends: Iterable[tuple[str, int]], source: str) -> list[int]:
    return [partition for topic, partition in ends if topic == source]


def _count(
    counts: Counter[str], sent: SentRecords, source: str, record: Record
) -> None:
    letter = letter_of(source, record)
    place = [letter.reasons.get(name, "") for name in ("partition", "offset")]
    if all(each.isdecimal() for each in place):
        partition, offset = map(int, place)
        if sent.holds(source, partition, offset):
            counts[letter.code] += 1
