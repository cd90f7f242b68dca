"""Outcomes of sent records: read, joined, late or dead letters, as far as is known.

Ingestion and the join say which they refused, by their places. Late events are counted
too, and their topic does not say who sent them. A click may wait for its list: only
when its time has passed is it known that nothing became of it.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from producers.dead_letters import SOURCES, letter_of
from producers.event_sink import SentRecords
from producers.patience import left_s
from producers.topic_reader import LogTime, Record, TopicReader
from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS, LATE, dead_letters, worker_group

LOOK_EVERY_S = 0.5
BEGUN_EVERY_S = 0.1

STANDING_S = 20.0
"""How long workers may stand still before they are no longer waited for.

Time that nothing comes in passes only after `time.idle_ms`.
"""

PATIENCE_S = 5.0
"""How long workers are waited for beside a commit, if only a person waits for it."""

OUTCOME = "outcome"
"""The header of a record of `late`."""


@dataclass
class Outcomes:
    """What is known.

    Parameters
    ----------
    letters
        Dead letters of the records that were sent, by code.
    set_aside
        Events of anybody that became late or orphans meanwhile, by outcome.
    n_unread
        Records that ingestion has not read, so that nothing is known of them.
    n_unjoined
        Records of the canonical log that the fold has not read: those that were sent
        may be among them.
    may_wait
        Whether clicks may wait for their lists: which those are, the log does not say.
    """

    letters: Counter[str] = field(default_factory=Counter)
    set_aside: Counter[str] = field(default_factory=Counter)
    n_unread: int = 0
    n_unjoined: int = 0
    may_wait: bool = False

    @property
    def n_letters(self) -> int:
        """Dead letters altogether."""
        return self.letters.total()

    @property
    def is_known(self) -> bool:
        """Whether all is judged."""
        return not (self.n_unread or self.n_unjoined or self.may_wait)

    @property
    def is_clean(self) -> bool:
        """Whether all is known, and nothing was lost."""
        return self.is_known and not (self.n_letters or self.set_aside.total())


class OutcomeWatch:
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
        # Ingestion commits, and then the fold.
        self._patience_s = PATIENCE_S + 2 * settings.between_commits_s
        self._is_stopped = is_stopped
        self._topics = (*map(dead_letters, SOURCES), LATE)
        with TopicReader(settings, is_stopped=is_stopped) as reader:
            self._starts = {
                topic: {each: end for each, (_, end) in reader.bounds(topic).items()}
                for topic in self._topics
            }

    def await_begun(self, sent: SentRecords, *, is_thorough: bool) -> bool:
        """Wait until ingestion has read something of what each partition was sent.

        An end closes the windows of its source. Where all others are idle, or ended
        with a replay before, that is the time of all: what they are yet to bring would
        be late. A source that was read holds time until its own end.

        Returns
        -------
        bool
            False where nobody ever read, or readers stand still, or a stop was asked.
        """
        firsts = sent.starts()
        began_s, before = time.monotonic(), None
        patience_s = STANDING_S if is_thorough else self._patience_s
        with TopicReader(self._settings, is_stopped=self._is_stopped) as reader:
            while True:
                read = {
                    (source, each): offset
                    for source in SOURCES
                    for each, offset in self._read(
                        reader, "ingest", source, _partitions(firsts, source)
                    ).items()
                }
                if all(read.get(place, 0) > first for place, first in firsts.items()):
                    return True
                now_s = time.monotonic()
                if read != before:
                    before, began_s = read, now_s
                is_over = now_s - began_s >= patience_s or not left_s()
                if not read or is_over or self._is_stopped():
                    return False
                time.sleep(BEGUN_EVERY_S)

    def outcomes(
        self,
        sent: SentRecords,
        *,
        is_thorough: bool,
        newest_click_ms: int | None = None,
    ) -> Outcomes:
        """Wait for ingestion and the join as long as they go on, and count.

        Parameters
        ----------
        is_thorough
            Whether to wait until all is judged; else for a few seconds.
        newest_click_ms
            The latest time of a click that was sent; None where there was none.
        """
        due_ms = -1
        if newest_click_ms is not None:
            # After that a click waits for no list any more.
            due_ms = newest_click_ms + self._settings.time.disorder_ms
        # A stop ends the wait, not the count: the reader is not told of it.
        with TopicReader(self._settings) as reader:
            outcomes = self._awaited(reader, sent, due_ms, is_thorough=is_thorough)
            for source in SOURCES:
                for record in self._added(reader, dead_letters(source), is_thorough):
                    _count(outcomes.letters, sent, source, record)
            for record in self._added(reader, LATE, is_thorough):
                outcome = dict(record.headers).get(OUTCOME, b"late")
                outcomes.set_aside[outcome.decode("utf-8", "replace")] += 1
        return outcomes

    def _awaited(
        self, reader: TopicReader, sent: SentRecords, due_ms: int, *, is_thorough: bool
    ) -> Outcomes:
        """What is not known when the wait ends."""
        log_time = LogTime(reader)
        log_ends: dict[int, int] = {}
        began_s = moved_s = time.monotonic()
        outcomes, reached_ms, before = Outcomes(), -1, None
        while True:
            n_unread, nobody_reads = self._unread(reader, sent)
            if not n_unread:
                if not outcomes.n_unjoined:
                    reached_ms = log_time.look()
                    log_ends = reader.written(EVENTS)
                read = self._read(reader, "fold", EVENTS, log_ends)
                n_left = [end - read.get(each, 0) for each, end in log_ends.items()]
                outcomes.n_unjoined = sum(max(0, each) for each in n_left)
            outcomes.n_unread = n_unread + sent.n_unplaced
            outcomes.may_wait = reached_ms < due_ms
            now_s, now = time.monotonic(), (n_unread, outcomes.n_unjoined, reached_ms)
            if now != before:
                before, moved_s = now, now_s
            is_over = now_s - moved_s >= STANDING_S or (
                not is_thorough and now_s - began_s >= self._patience_s
            )
            is_over = is_over or not left_s()
            is_all = not (n_unread or outcomes.n_unjoined or outcomes.may_wait)
            if is_all or is_over or nobody_reads or self._is_stopped():
                return outcomes
            time.sleep(LOOK_EVERY_S)

    def _unread(self, reader: TopicReader, sent: SentRecords) -> tuple[int, bool]:
        """Records that ingestion has not read; whether it never read any."""
        ends = sent.ends()
        read = {
            source: self._read(reader, "ingest", source, _partitions(ends, source))
            for source in SOURCES
        }
        unread = sum(
            sent.n_from(source, partition, read[source].get(partition, 0))
            for source, partition in ends
        )
        return unread, bool(unread) and not any(read.values())

    def _read(
        self, reader: TopicReader, role: str, topic: str, partitions: Iterable[int]
    ) -> dict[int, int]:
        group = worker_group(self._settings.namespace, role)
        return reader.committed(group, topic, partitions)

    def _added(
        self, reader: TopicReader, topic: str, is_thorough: bool
    ) -> Iterator[Record]:
        """What was added to a topic since; all of it is waited for, or not."""
        # A transaction of another worker may hide what stands behind it for a moment.
        ends = reader.written(topic) if is_thorough else None
        return reader.records(topic, self._starts[topic], ends)


def _partitions(places: Iterable[tuple[str, int]], source: str) -> list[int]:
    return [partition for topic, partition in places if topic == source]


def _count(
    counts: Counter[str], sent: SentRecords, source: str, record: Record
) -> None:
    letter = letter_of(source, record)
    place = [letter.reasons.get(name, "") for name in ("partition", "offset")]
    if all(each.isdecimal() for each in place):
        partition, offset = map(int, place)
        if sent.holds(source, partition, offset):
            counts[letter.code] += 1
