"""Features of candidates, from events to records that a reader finds them in."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.settings import LimitSettings, Settings, TimeSettings
from rankstream.wire.candidates import (
    decode_candidates,
    decode_candidates_key,
)
from rankstream.wire.events import (
    SCHEMA,
    Frontier,
    Impression,
    Interaction,
    decode_event_record,
    encode_record,
)
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import CANDIDATES
from streams.fold.candidates_fold import LISTS, CandidatesFold
from streams.fold.canonical_fold import CanonicalFold
from streams.ingest.validation import EventValidator
from streams.local import local_settings
from streams.native.closed_impressions import closed_of
from streams.native.counting import name_of_set
from streams.partition_fold import partition_fold
from streams.stage import Change, Output, SourceRecord, referred

KEEP_MS = 100_000
START_MS = 17 * KEEP_MS
WINDOW_MS = 10
SETTINGS = local_settings(
    Settings(
        time=TimeSettings(
            keep_ms=KEEP_MS, click_window_ms=WINDOW_MS, disorder_ms=1, remember_ms=5
        ),
        limits=LimitSettings(candidate_sets=2),
    )
)
HASH = "00112233445566ff"


class Log:
    """Impressions and times, as records of the canonical log."""

    def __init__(self) -> None:
        self.records: list[SourceRecord] = []
        self._validator = EventValidator(max_documents=100, ahead_ms=0)

    def show(self, query: str, items: str, at_ms: int, **fields: Any) -> None:
        """A list of candidates with one letter each, in the order of the service."""
        event = {
            "impression_id": f"i{len(self.records)}",
            "query_id": query,
            "at_ms": at_ms,
            "policy": "deterministic",
            "shown": [items[0]],
            "candidates": list(items),
            **fields,
        }
        self._write(self._validator.query(json.dumps(event).encode(), at_ms).event)

    def log(
        self, query: str, items: str, at_ms: int, number: float, name: str = HASH
    ) -> None:
        """The same with features: of each item its letter's code, and a number."""
        rows = [[ord(item), number] for item in items]
        self.show(query, items, at_ms, candidate_features=rows, features_hash=name)

    def pass_time(self, at_ms: int) -> None:
        """Everything before is over."""
        self._write(Frontier(0, 1, at_ms, 0))

    def _write(self, element: Any) -> None:
        sequence = len(self.records) + 1
        value = encode_record([SCHEMA, 0, sequence, [element]])
        self.records.append(SourceRecord("events", 0, sequence, 0, None, value, ()))


def features_in(outputs: list[Output]) -> dict[bytes, bytes]:
    """The last value of each key that stands in the topic."""
    last = {o.key: o.value for o in outputs if o.topic == CANDIDATES}
    return {key or b"": value for key, value in last.items() if value is not None}


def folded(log: Log) -> tuple[CanonicalFold, list[Output]]:
    """A fold that took all of it, and what it wrote."""
    fold = partition_fold(0, SETTINGS)
    for record in log.records:
        fold.fold(record)
    return fold, fold.outputs()


def told(values: dict[bytes, bytes]) -> dict[tuple[str, str, str], list[list[float]]]:
    """Query, items and hash of each record, with its rows."""
    found = {}
    for key, value in values.items():
        query, name, list_hash = decode_candidates_key(key)
        got = decode_candidates(value)
        assert name == name_of_set(msgspec.msgpack.encode(got.items))
        rows = np.frombuffer(got.features, "<f4").reshape(-1, got.n_features).tolist()
        found[query, "".join(got.items), list_hash.hex()] = rows
    return found


def counts_of(fold: CanonicalFold) -> dict[str, int]:
    """What became of features."""
    return {
        name.removeprefix("candidates_"): count
        for name, count in fold.counters().items()
        if name.startswith("candidates_")
    }


def test_features_belong_to_the_query_and_its_items() -> None:
    """Two queries with the same items have records of their own; rows are sorted."""
    log = Log()
    log.log("hat", "ba", START_MS, 1.5)
    log.log("coat", "ab", START_MS, 2.5)
    log.log("coat", "abc", START_MS, 3.5)
    log.pass_time(START_MS + 1_000)
    fold, outputs = folded(log)
    assert told(features_in(outputs)) == {
        ("hat", "ab", HASH): [[97.0, 1.5], [98.0, 1.5]],
        ("coat", "ab", HASH): [[97.0, 2.5], [98.0, 2.5]],
        ("coat", "abc", HASH): [[97.0, 3.5], [98.0, 3.5], [99.0, 3.5]],
    }
    assert counts_of(fold) == {
        "written": 3, "repeated": 0, "different": 0, "beyond": 0, "unreadable": 0,
    }  # fmt: skip


def test_the_first_features_stand_and_differences_are_counted() -> None:
    """In whatever order the service has its candidates; another list is another key."""
    log = Log()
    log.log("hat", "ab", START_MS, 1.0)
    log.log("hat", "ba", START_MS + 1, 1.0)
    log.log("hat", "ab", START_MS + 2, 2.0)
    log.log("hat", "ab", START_MS + 3, 3.0, "ff" * 8)
    log.pass_time(START_MS + 1_000)
    fold, outputs = folded(log)
    found = told(features_in(outputs))
    assert {key[2]: rows[0][1] for key, rows in found.items()} == {
        HASH: 1.0, "ff" * 8: 3.0,
    }  # fmt: skip
    counts = counts_of(fold)
    assert (counts["written"], counts["repeated"], counts["different"]) == (2, 1, 1)


def test_what_statistics_do_not_keep_apart_has_no_features() -> None:
    """Neither a set beyond the limit of its query, nor ever more lists of features."""
    log = Log()
    for items in ("ab", "bc", "cd", "de"):
        log.log("hat", items, START_MS, 1.0)
    for number in range(LISTS + 3):
        log.log("coat", "ab", START_MS, 1.0, f"{number:016x}")
    log.pass_time(START_MS + 1_000)
    fold, outputs = folded(log)
    assert len(features_in(outputs)) == 2 + LISTS
    assert counts_of(fold)["beyond"] == 2 + 3


def era_after(n_eras: int) -> int:
    """A time so many eras later."""
    return START_MS + n_eras * KEEP_MS


def living(*, is_shown_again: bool) -> Log:
    """Features of an era, and a list of the next one that brings none, or none."""
    log = Log()
    log.log("hat", "ab", START_MS, 1.0)
    log.log("hat", "ab", START_MS, 1.0, "ff" * 8)
    log.log("coat", "ab", START_MS, 2.0)
    log.pass_time(era_after(1) - 1)
    if is_shown_again:
        log.show("hat", "ab", era_after(1), intervention="another")
    log.pass_time(era_after(2) - 1)
    return log


@pytest.mark.parametrize("is_shown_again", [False, True])
def test_features_leave_with_the_last_era_that_has_a_scope_of_them(
    is_shown_again: bool,
) -> None:
    """Of any intervention, with features or without."""
    log = living(is_shown_again=is_shown_again)
    assert len(features_in(folded(log)[1])) == 3
    log.pass_time(era_after(2))
    left = told(features_in(folded(log)[1]))
    assert {key[0] for key in left} == ({"hat"} if is_shown_again else set())
    log.pass_time(era_after(3))
    fold, outputs = folded(log)
    assert features_in(outputs) == {}
    tombstones = [o for o in outputs if o.topic == CANDIDATES and o.value is None]
    assert len(tombstones) == 3
    assert fold.counters()["known_candidate_sets"] == 0


def stopped_everywhere(log: Log) -> Iterator[tuple[CanonicalFold, list[Output]]]:
    """The same log by a fold that was replaced by another after each record."""
    for place in range(len(log.records)):
        fold, outputs = partition_fold(0, SETTINGS), []
        state: dict[tuple[str, bytes], bytes | None] = {}
        folded: list[Change] = []
        for number, record in enumerate(log.records):
            fold.fold(record)
            folded.append(referred("events", record.offset, record.value or b""))
            outputs += fold.outputs()
            if number % 3 == 0 or number == place:
                state |= {(c.topic, c.key): c.value for c in fold.changes()}
            if number == place:
                before = fold.fingerprint()
                fold = partition_fold(0, SETTINGS)
                kept = [Change(*key, value) for key, value in state.items()]
                fold.restore([*kept, *folded])
                assert fold.fingerprint() == before
        yield fold, outputs


def test_a_fold_that_goes_on_from_its_state_writes_the_same() -> None:
    """Wherever it was stopped: repeats stay repeats, and what leaves leaves once."""
    log = living(is_shown_again=True)
    log.log("hat", "ab", era_after(2) - 1, 9.0)
    log.pass_time(era_after(2) + 50)
    log.log("coat", "ab", era_after(2) + 60, 5.0)
    log.pass_time(era_after(4))
    whole, expected = folded(log)
    expected = [each for each in expected if each.topic == CANDIDATES]
    assert counts_of(whole)["different"] == 1
    for fold, outputs in stopped_everywhere(log):
        assert [each for each in outputs if each.topic == CANDIDATES] == expected
        assert fold.fingerprint() == whole.fingerprint()


def test_a_log_without_features_has_the_fingerprint_that_it_always_had() -> None:
    """So a state of a release before is gone on from; nothing is written for it."""
    log = Log()
    log.show("hat", "ab", START_MS)
    log.pass_time(START_MS + 1_000)
    fold, _ = folded(log)
    assert "candidates-state" not in {change.topic for change in fold.changes()}
    fingerprint = fold.fingerprint()
    fold.consumers = fold.consumers[:2]
    assert fold.fingerprint() == fingerprint


@pytest.mark.parametrize(
    "extra",
    [
        {"features_hash": HASH},
        {"features_hash": HASH, "candidate_features": "AAAA"},
        {"features_hash": HASH, "candidate_features": "?"},
        {"features_hash": HASH, "candidate_features": ""},
        {"features_hash": "no", "candidate_features": "AACAPwAAAEA="},
        {"features_hash": 5, "candidate_features": "AACAPwAAAEA="},
        ["features_hash"],
        {"features_hash": HASH, "candidate_features": 5},
    ],
)
def test_what_ingestion_would_not_write_is_counted_and_passed_over(extra: Any) -> None:
    """The log may be another's; a fold never raises for what an event holds."""
    log = Log()
    log.log("hat", "ab", START_MS, 1.0)
    (good,) = decode_event_record(log.records[0].value or b"").elements
    assert isinstance(good, Impression)
    packed = msgspec.msgpack.encode(extra)
    damaged = msgspec.structs.replace(good, extra=packed)
    candidates = CandidatesFold(0, KEEP_MS, lambda *_: True)
    candidates.take(closed_of([Interaction(one, []) for one in (damaged, good)]))
    assert candidates.counters()["candidates_unreadable"] == 1
    assert len(candidates.outputs()) == 1


def test_a_state_of_another_release_is_refused() -> None:
    """By its number, before anything else is read."""
    with pytest.raises(SchemaRefused, match="what is known of candidates"):
        CandidatesFold(0, KEEP_MS, lambda *_: True).restore(
            [Change("candidates-state", b"counts", b"\x93\x02\xc0\x90")]
        )
