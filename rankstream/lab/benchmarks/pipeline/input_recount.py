"""Counts made from the JSON of a log, and what others made of it."""

from collections import Counter
from typing import NamedTuple, Self

import msgspec

from producers.topic_reader import TopicReader
from rankstream.settings import Settings
from rankstream.wire.events import ClickEvent, QueryEvent
from rankstream.wire.topics import QUERIES, STATISTICS
from streams.statistics.reader import summaries_of

Places = Counter[tuple[str, str, int]]
"""How often, by query, item and rank."""

_decode_query = msgspec.json.Decoder(QueryEvent).decode
_decode_click = msgspec.json.Decoder(ClickEvent).decode


class Tally(NamedTuple):
    """How often each item of a query was shown at a rank, and clicked there."""

    shown: Places
    clicked: Places

    @classmethod
    def empty(cls) -> Self:
        """Nothing yet."""
        return cls(Counter(), Counter())

    def differences(self, sent: "Tally", whose: str) -> list[str]:
        """In what this differs from what was sent, in words; empty if in nothing."""
        found: list[str] = []
        for name, own, wanted in zip(self._fields, self, sent, strict=True):
            n_wrong = sum(own[at] != wanted[at] for at in own.keys() | wanted.keys())
            if n_wrong:
                found.append(f"{whose}: {name} of {n_wrong:,} places differ")
        return found


class InputRecount:
    """What a log of JSON events holds, counted by plain rules in two passes.

    Parameters
    ----------
    window_ms
        A click counts from when its list was shown until so much later, wherever it
        stands in the log.
    """

    def __init__(self, window_ms: int) -> None:
        self.n_events = 0
        self.n_bytes = 0
        self._window_ms = window_ms
        self._shown: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self._lists: dict[str, tuple[tuple[str, tuple[str, ...]], int]] = {}
        # One object for all lists that are the same.
        self._known: dict[tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]]] = {}
        self._clicks: list[tuple[str, int, int]] = []

    def take(self, topic: str, value: bytes) -> None:
        """Count an event."""
        self.n_events += 1
        self.n_bytes += len(value)
        if topic == QUERIES:
            query = _decode_query(value)
            found = query.query_id, tuple(query.shown)
            found = self._known.setdefault(found, found)
            self._shown[found] += 1
            self._lists[query.impression_id] = found, query.at_ms
        else:
            click = _decode_click(value)
            self._clicks.append((click.impression_id, click.at_ms, click.position or 0))

    @property
    def event_bytes(self) -> float:
        """Mean size of an event."""
        return self.n_bytes / max(self.n_events, 1)

    def tally(self) -> Tally:
        """All that was shown, and the clicks on it."""
        tally = Tally.empty()
        for (query, items), times in self._shown.items():
            for rank, item in enumerate(items, 1):
                tally.shown[query, item, rank] += times
        for impression, at_ms, position in self._clicks:
            if impression in self._lists:
                (query, items), shown_ms = self._lists[impression]
                if 0 <= at_ms - shown_ms <= self._window_ms:
                    tally.clicked[query, items[position - 1], position] += 1
        return tally


def statistics_tally(settings: Settings) -> Tally:
    """What the fold has counted, from the topic of its statistics."""
    with TopicReader(settings) as reader:
        # A transaction may be told of as committed before each partition has its end.
        found = reader.records(STATISTICS, ends=reader.written(STATISTICS))
        records = [(each.key or b"", each.value) for each in found]
    tally = Tally.empty()
    for name, cell in summaries_of(records):
        columns = (
            cell.column(each).tolist() for each in ("item", "rank", *tally._fields)
        )
        for item, rank, shown, clicked in zip(*columns, strict=True):
            place = name.query, cell.items[item], rank
            tally.shown[place] += shown
            tally.clicked[place] += clicked
    return tally
