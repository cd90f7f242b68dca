"""Ingestion many at a time and in C, against one event after the other in Python."""

import base64
import hashlib
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.settings import (
    ExcludeSettings,
    IngestionSettings,
    LimitSettings,
    Settings,
)
from rankstream.wire.bounds import LAST_MS, MAX_CLICK_BYTES
from rankstream.wire.events import encode_event
from rankstream.wire.input_events import refused_header
from rankstream.wire.topics import CLICKS, EVENTS, MAX_EVENT_BYTES, QUERIES
from rankstream.wire.units_of_time import LEAST_MS, LEAST_SECONDS, LEAST_US
from streams.event_time import SourceClock
from streams.ingest.elements import unpacked
from streams.ingest.ingest import END_HEADER, Ingest
from streams.ingest.plain_events import PlainEvents
from streams.native.input_events import PARTITION, Rules, blake2b, gather, write_queries
from streams.source_records import SourceRecords
from streams.stage import Output, SourceRecord
from tests.fuzz.guided import stored_corpus
from tests.hostile import hostile_records, strange_but_good
from tests.session.cases import n_cases
from tests.streams.ingest.drawn_events import NOW_MS, DrawnEvents
from tests.streams.ingest.plain_ingest import PlainIngest

TOPICS = (QUERIES, CLICKS)

SETTINGS = {
    0.0: Settings().with_kafka(partitions=1),
    0.002: Settings(limits=LimitSettings(documents=19)),
    0.01: Settings(ingestion=IngestionSettings(segment="country")),
    0.02: Settings(),
    0.005: Settings(exclude=ExcludeSettings(users=["u1"])),
}
"""By how rare it is that something breaks a rule."""


class Both:
    """Ingestion and the plain one, which are told the same.

    A second one is given most records many at a time, some alone between them.
    """

    def __init__(self, topic: str, settings: Settings | None = None) -> None:
        settings = settings or Settings()
        self.stage = Ingest(topic, 1, settings)
        self.together = Ingest(topic, 1, settings)
        self.plain = PlainIngest(topic, 1, settings)
        self._held: list[SourceRecord] = []

    def fold(self, record: SourceRecord) -> None:
        """Take a record."""
        self.stage.fold(record)
        self.plain.fold(record)
        self._held.append(record)
        if len(self._held) == 700:
            self._hand_over()

    def tick(self, at_end_ms: int) -> None:
        """Hear of the end."""
        self._hand_over()
        self.together.tick(at_end_ms=at_end_ms)
        self.stage.tick(at_end_ms=at_end_ms)
        self.plain.tick(at_end_ms=at_end_ms)

    def check(self) -> list[Output]:
        """All that may be seen of each is the same; what they wrote."""
        self._hand_over()
        expected = self.plain.outputs()
        for stage in (self.stage, self.together):
            assert stage.outputs() == expected
            assert stage.counters() == self.plain.counters()
            assert stage.fingerprint() == self.plain.fingerprint()
            assert list(stage.changes()) == self.plain.changes()
        return expected

    def _hand_over(self) -> None:
        held, self._held = self._held, []
        for first in range(0, len(held), 101):
            some = held[first : first + 101]
            self.together.fold_together(SourceRecords.of(some[:100]))
            for record in some[100:]:
                self.together.fold(record)


def drawn_records(
    topic: str, n_events: int, seed: int, rare: float, country: float = 0.06
) -> Iterator[SourceRecord]:
    """Records of one event or several, some with key and headers, in broker's time."""
    events = DrawnEvents(seed, rare, country)
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
@pytest.mark.parametrize("rare", SETTINGS)
def test_it_writes_what_the_rules_write(topic: str, rare: float) -> None:
    """To the bit: records, dead letters, counts, state; wherever commits lie."""
    n_events = n_cases(3_000, 120_000)
    both = Both(topic, SETTINGS[rare])
    rng = np.random.default_rng(3)
    country = 0.9 if SETTINGS[rare].ingestion.segment else 0.06
    for record in drawn_records(topic, n_events, 1, rare, country):
        both.fold(record)
        draw = rng.random()
        if draw < 0.01:
            both.tick(int(rng.choice([0, 3_000, 11_000, 400_000])))
        if draw < 0.003:
            both.check()
        if draw > 0.999:
            both.fold(record._replace(value=b"", headers=(END_HEADER,)))
    both.check()


@pytest.mark.parametrize("topic", TOPICS)
def test_commits_of_many_records_are_cut_alike(topic: str) -> None:
    """One after the other, with what waited for them; some events fill a record."""
    both = Both(topic, Settings().with_kafka(partitions=2))
    large = DrawnEvents(7, rare=0.0)
    for record in drawn_records(topic, 6_000, 6, 0.001):
        if topic == QUERIES and record.offset % 90 == 0:
            shown = [f"{'x' * 200}{number}" for number in range(900)]
            event = large.query(record.timestamp_ms) | {"shown": shown}
            for name in ("candidates", "scores", "exposures", "features", "policy"):
                event.pop(name, None)
            value = b"[" + b",".join([encode_event(event)] * 9) + b"]"
            both.fold(record._replace(value=value))
        else:
            both.fold(record)
    partitions = [each.partition for each in both.check() if each.topic == EVENTS]
    assert min(partitions.count(0), partitions.count(1)) > 1


@pytest.mark.parametrize(("n_beyond", "n_letters"), [(0, 0), (1, 1)])
def test_the_largest_event_is_the_same(n_beyond: int, n_letters: int) -> None:
    """One more feature is too much; its estimate of bytes decides, not its bytes."""
    both = Both(QUERIES)
    event = {"impression_id": "i", "query_id": "q", "at_ms": NOW_MS, "shown": ["a"]}
    others = 256 + 4 * len("iq") + len(b"\x91\xa1a") + 2
    n = (MAX_EVENT_BYTES - others) // 4 + n_beyond
    features = base64.b64encode(np.ones(n, "<f4").tobytes()).decode()
    for offset in range(12):
        large = event | {"features": features} if offset == 5 else event
        value = encode_event(large)
        both.fold(SourceRecord(QUERIES, 1, offset, NOW_MS, None, value, ()))
    both.check()
    assert both.stage.counters()["dead_letter"] == n_letters


@pytest.mark.parametrize(("n_beyond", "n_letters"), [(0, 0), (1, 1)])
def test_the_largest_click_is_the_same(n_beyond: int, n_letters: int) -> None:
    """Blanks count, as it is kept as it came."""
    both = Both(CLICKS)
    value = b'{"impression_id":"i","query_id":"q","position":1,"at_ms":%d}' % NOW_MS
    large = value[:1] + b" " * (MAX_CLICK_BYTES - len(value) + n_beyond) + value[1:]
    for offset in range(12):
        own = large if offset == 5 else value
        both.fold(SourceRecord(CLICKS, 1, offset, NOW_MS, None, own, ()))
    both.check()
    assert both.stage.counters()["dead_letter"] == n_letters


EDGES = [0, 1, LEAST_SECONDS, LEAST_MS, LEAST_US, LAST_MS, 2**62]
"""Times at which a rule begins or ends."""


@pytest.mark.parametrize("topic", TOPICS)
def test_times_are_judged_alike_whenever_a_record_was_appended(topic: str) -> None:
    """Also of brokers whose clock is decades wrong."""
    both = Both(topic)
    draw = DrawnEvents(8, rare=0.0)
    event = draw.query(NOW_MS) if topic == QUERIES else draw.click(NOW_MS)
    times = [edge + off for edge in EDGES for off in (-300_001, -300_000, -1, 0, 1)]
    for offset, appended_ms in enumerate([-(2**62), -1, *times]):
        several = [event | {"at_ms": at_ms} for at_ms in [NOW_MS, *times]]
        value = b"[" + b",".join(map(encode_event, several)) + b"]"
        both.fold(SourceRecord(topic, 1, offset, appended_ms, None, value, ()))
    both.check()
    counts = both.stage.counters()
    assert counts["passed"] > len(times)
    assert counts["dead_letter"] > len(times)


@pytest.mark.parametrize("topic", TOPICS)
def test_most_of_what_is_drawn_is_plain_and_some_is_odd(topic: str) -> None:
    """Else the law above would say little."""
    records = SourceRecords.of(list(drawn_records(topic, 4_000, 2, 0.01)))
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


@given(st.binary(max_size=400), st.integers(1, 64))
def test_digests_are_those_of_hashlib(content: bytes, n_digest: int) -> None:
    """Of all lengths around a block and around none."""
    expected = hashlib.blake2b(content, digest_size=n_digest).digest()
    assert blake2b(content, n_digest) == expected


def test_a_digest_of_no_length_is_refused() -> None:
    """And of one that there is not."""
    for n_digest in (0, 65):
        with pytest.raises(ValueError, match="must be whole"):
            blake2b(b"x", n_digest)


RULES = Rules(4, 300_000, 1_000)


@pytest.mark.parametrize(
    "bridge",
    [b"", b"\x91", b"\x91\xc0\xc0", b"\x92\xc0\xc0", b"\x91\x81\xa1x\x01", b"\x91\x81"],
)
def test_what_is_not_whole_is_refused(bridge: bytes) -> None:
    """Nothing, too little, too much, more than is said, and a field of no event."""
    with pytest.raises(ValueError, match="must be whole"):
        write_queries(bridge, np.zeros(1, np.int64), RULES)


@pytest.mark.parametrize("bounds", [[-1, 2], [2, 1], [0, 4]])
def test_pieces_lie_in_what_they_are_of(bounds: list[int]) -> None:
    """Else memory of others would be written to the log."""
    data = np.arange(3, dtype=np.uint8)
    pieces = np.array([[1, 3], [0, 1]], np.int64)
    assert gather(data, pieces).tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="must be whole"):
        gather(data, np.array([[0, 3], bounds], np.int64))


steps = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 1_000, 5_000, 5_001, 200_000, -10]),
        st.sampled_from([-40_000, 0, 5, 150_000, 150_001, 10**7]),
        st.booleans(),
    ),
    max_size=60,
)


@given(steps, steps, st.booleans(), st.integers(0, 20_000))
def test_a_clock_that_sees_many_is_one_that_saw_each(
    before: list[tuple[int, int, bool]],
    together: list[tuple[int, int, bool]],
    is_on_a_broker: bool,
    at_end_ms: int,
) -> None:
    """Wherever time jumps, and whoever is refused in between."""
    clocks = [
        SourceClock(disorder_ms=30, step_ms=150_000, idle_ms=10_000, closing_ms=400)
        for _ in range(2)
    ]
    appended_ms, taken = NOW_MS, []
    for step_ms, ahead_ms, is_accepted in [*before, *together]:
        appended_ms += step_ms
        taken.append((appended_ms + ahead_ms, appended_ms, is_accepted))
    parts = taken[: len(before)], taken[len(before) :]
    for part in parts:
        for at_ms, appended, is_accepted in part:
            if is_accepted:
                clocks[0].see(at_ms, appended)
            else:
                clocks[0].hear(appended)
        table = np.array(part, np.int64).reshape(-1, 3)
        clocks[1].see_together(
            table[:, 0], table[:, 1], is_accepted=table[:, 2].astype(np.bool_)
        )
        for clock in clocks:
            if is_on_a_broker:
                clock.tick(at_end_ms)
        assert clocks[0].state() == clocks[1].state()
        assert clocks[0].frontier() == clocks[1].frontier()
        assert clocks[0].is_held == clocks[1].is_held
