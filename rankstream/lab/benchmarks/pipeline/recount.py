"""Counts made from the generated log, and whether the pipeline has the same.

A place of a list counts as clicked once, however often it was.
"""

from collections import Counter, defaultdict

import numpy as np

from producers.topic_reader import read_records, read_topic
from rankstream.settings import Settings
from rankstream.wire.events import (
    Click,
    Impression,
    decode_event_record,
    decode_interaction_record,
    decode_items,
)
from rankstream.wire.topics import INTERACTIONS, STATISTICS
from streams.statistics.reader import summaries_of

Shown = Counter[tuple[str, str, int]]
"""How often an item of a query was shown at a rank."""


class Recount:
    """What a log holds, counted by plain rules."""

    def __init__(self) -> None:
        self.n_impressions = 0
        self.n_clicks = 0
        self._n_bytes = 0
        self.impressions: Counter[str] = Counter()
        self.clicks: Counter[str] = Counter()
        self._lists: Counter[tuple[str, bytes, bytes]] = Counter()
        self._clicked: set[tuple[bytes, int]] = set()
        self._query_of: dict[bytes, str] = {}
        self._events: dict[int, list[int]] = defaultdict(list)

    def take(self, partition: int, value: bytes) -> None:
        """Count a record."""
        self._n_bytes += len(value)
        n_events = 0
        for element in decode_event_record(value).elements:
            if isinstance(element, Impression):
                n_events += 1
                self.impressions[element.query_id] += 1
                key = (element.query_id, element.candidates, element.shown)
                self._lists[key] += 1
                self._query_of[element.identity] = element.query_id
                self.n_impressions += 1
            elif isinstance(element, Click):
                n_events += 1
                self.n_clicks += 1
                place = (element.impression, element.position)
                if place not in self._clicked:
                    self._clicked.add(place)
                    self.clicks[self._query_of[element.impression]] += 1
        known = self._events[partition]
        known.append(n_events + (known[-1] if known else 0))

    @property
    def n_events(self) -> int:
        """Impressions and clicks."""
        return self.n_impressions + self.n_clicks

    @property
    def bytes_per_event(self) -> float:
        """Mean size of an event in the log."""
        return self._n_bytes / max(self.n_events, 1)

    def events_up_to(self, partition: int, offset: int) -> int:
        """Events in the records of a partition up to an offset."""
        return self._events[partition][offset]

    def shown(self) -> Shown:
        """Every item at every rank."""
        counts: Shown = Counter()
        for (query, candidates, packed), times in self._lists.items():
            items = decode_items(candidates)
            for rank, row in enumerate(np.frombuffer(packed, "<u2").tolist(), 1):
                counts[query, items[row], rank] += times
        return counts

    def disagreements(self, settings: Settings) -> list[str]:
        """In what the outputs differ from this; empty if in nothing."""
        return self._of_interactions(settings) + self._of_statistics(settings)

    def _of_interactions(self, settings: Settings) -> list[str]:
        found: list[str] = []
        n_impressions, n_clicks = 0, 0
        expected: Counter[tuple[int, int]] = Counter()
        for entry in read_records(settings, INTERACTIONS):
            batch = decode_interaction_record(entry.value or b"")
            place = (batch.source, entry.partition)
            if batch.first_sequence != expected[place] + 1:
                found.append(f"interactions {place} jump to {batch.first_sequence}")
            expected[place] = batch.first_sequence - 1 + len(batch.interactions)
            n_impressions += len(batch.interactions)
            n_clicks += sum(len(each.clicks) for each in batch.interactions)
        wanted = (self.n_impressions, self.n_clicks)
        if (n_impressions, n_clicks) != wanted:
            found.append(f"interactions {n_impressions}, {n_clicks}; sent {wanted}")
        return found

    def _of_statistics(self, settings: Settings) -> list[str]:
        records = (
            (key or b"", value) for _, _, key, value in read_topic(settings, STATISTICS)
        )
        impressions: Counter[str] = Counter()
        clicks: Counter[str] = Counter()
        shown: Shown = Counter()
        for name, cell in summaries_of(records):
            impressions[name.query] += cell.total("impressions")
            clicks[name.query] += cell.total("clicks")
            columns = (cell.column(each).tolist() for each in ("item", "rank", "shown"))
            for item, rank, times in zip(*columns, strict=True):
                if times:
                    shown[name.query, cell.items[item], rank] += times
        pairs = (
            ("impressions", impressions, self.impressions),
            ("clicks", clicks, self.clicks),
            ("shown", shown, self.shown()),
        )
        return [
            f"statistics: {name} of {len(_different(found, sent))} places differ"
            for name, found, sent in pairs
            if _different(found, sent)
        ]


def _different(found: Counter, sent: Counter) -> set:  # type: ignore[type-arg]
    places = found.keys() | sent.keys()
    return {place for place in places if found[place] != sent[place]}
