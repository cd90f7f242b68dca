"""Ingestion many at a time and in C, against one event after the other in Python."""

import hashlib
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.settings import Settings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    encode_event,
)
from rankstream.wire.input_events import refused_header
from rankstream.wire.topics import CLICKS, QUERIES
from streams.ingest.elements import unpacked
from streams.ingest.ingest import END_HEADER, Ingest
from streams.ingest.plain_events import PlainEvents
from streams.native.input_events import PARTITION, Rules, blake2b, gather, write_queries
from streams.stage import SourceRecord
from tests.fuzz.guided import stored_corpus
from tests.hostile import hostile_records, strange_but_good
from tests.session.cases import n_cases
from tests.streams.ingest.drawn_events import NOW_MS, DrawnEvents
from tests.streams.ingest.plain_ingest import PlainIngest

TOPICS = (QUERIES, CLICKS)

SETTINGS = {
    "default": Settings(),
    "one partition": Settings().with_kafka(partitions=1),
}


class Both:
    """Ingestion and the plain one, which are told the same."""

    def __init__(self, topic: str, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self.stage = Ingest(topic, 1, settings)
        self.plain = PlainIngest(topic, 1, settings)

    def fold(self, record: SourceRecord) -> None:
        """Take a record."""
        self.stage.fold(record)
        self.plain.fold(record)

    def tick(self, at_end_ms: int) -> None:
        """Hear of the end."""
        self.stage.tick(at_end_ms=at_end_ms)
        self.plain.tick(at_end_ms=at_end_ms)

    def check(self) -> None:
        """All that may be seen of either is the same."""
        assert self.stage.outputs() == self.plain.outputs()
        assert self.stage.counters() == self.plain.counters()
        assert self.stage.fingerprint() == self.plain.fingerprint()
        assert list(self.stage.changes()) == self.plain.changes()


def drawn_records(
    topic: str, n_events: int, seed: int, rare: float
) -> Iterator[SourceRecord]:
    """Records of one event or several, some with key and headers, in broker's time."""
    events = DrawnEvents(seed, rare)
    draw = events.query if topic == QUERIES else events.click
    appended_ms, n, offset = NOW_MS, 0, 0
    headers = [(), (("trace", b"t"),), (refused_header("no-list: none"),)]
    while n < n_events:
        steps = [0, 1, 40], [6_000, 100_000, -3_000, -50]
        appended_ms += events.pick(*steps)
        packed = [
            events.packed(draw(appended_ms))
            for _ in range(events.pick([1, 1, 1, 3, 30]))
        ]
        value = b"[" + b" , ".join(packed) + b"]" if len(packed) > 1 else packed[0]
        said = headers[events.pick([0], [1, 2])]
        key = events.pick([None, b"k"])
        yield SourceRecord(topic, 1, offset, appended_ms, key, value, said)
        n += len(packed)
        offset += 1


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.parametrize("rare", [0.0, 0.002, 0.02])
def test_it_writes_what_the_rules_write(topic: str, rare: float) -> None:
    """To the bit: records, dead letters, counts, state; wherever commits lie."""
    n_events = n_cases(4_000, 200_000)
    both = Both(topic, SETTINGS["default" if rare else "one partition"])
    rng = np.random.default_rng(3)
    for record in drawn_records(topic, n_events, 1, rare):
        both.fold(record)
        draw = rng.random()
        if draw < 0.01:
            both.tick(int(rng.choice([0, 3_000, 11_000, 400_000])))
        if draw < 0.005:
            both.check()
        if draw > 0.999:
            both.fold(record._replace(value=b"", headers=(END_HEADER,)))
    both.check()


@pytest.mark.parametrize("topic", TOPICS)
def test_most_of_what_is_drawn_is_plain_and_some_is_odd(topic: str) -> None:
    """Else the law above would say little."""
    records = list(drawn_records(topic, 4_000, 2, 0.01))
    plain = PlainEvents(topic, 1, Rules(4, 300_000, 1_000))
    partitions = np.concatenate(
        [plain.write(found).outcomes[:, PARTITION] for found in unpacked(records)]
    )
    assert 0.5 < (partitions >= 0).mean() < 0.95


@pytest.mark.parametrize("topic", TOPICS)
def test_hostile_records_are_taken_as_the_rules_take_them(topic: str) -> None:
    """And what the guided search has found, between good ones and alone."""
    both = Both(topic)
    good = [record.value for record in drawn_records(topic, 400, 5, 0.0)]
    hostile = [*hostile_records().values(), *strange_but_good().values()]
    corpus = stored_corpus()
    values = [*hostile, *corpus[QUERIES], *corpus[CLICKS]]
    for offset, value in enumerate(values):
        at_ms = NOW_MS + offset
        both.fold(SourceRecord(topic, 1, 2 * offset, at_ms, None, value, ()))
        other = good[offset % len(good)]
        both.fold(SourceRecord(topic, 1, 2 * offset + 1, at_ms, None, other, ()))
        if offset % 16 == 0:
            both.check()
    both.check()
