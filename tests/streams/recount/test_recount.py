"""The recount agrees with the folds, and sees what is amiss."""

import functools
from collections.abc import Callable, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from models.plackett_luce.placement import placement_batch
from producers.formats.canonical_dump import Header, write_dump
from rankstream.cli import main
from rankstream.recount.stored_statistics import stored
from rankstream.sections import StatisticsSettings
from rankstream.settings import LimitSettings, Settings, TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    DETERMINISTIC,
    ENDED,
    LOGGED,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
    Element,
    EventRecord,
    Frontier,
    decode_interaction_record,
    encode_record,
)
from rankstream.wire.exposures import pack_exposures
from streams.local import write_changes
from streams.partition_fold import partition_fold
from streams.recount.differences import Verdict
from streams.recount.placement import placements
from streams.recount.recount import Found, recount
from streams.recount.rules import rules_of
from streams.stage import Change, SourceRecord
from tests.event_factory import START_MS, click, impression

ITEMS = ("a", "b", "c", "d", "e")
LONG = tuple(f"x{number:02}" for number in range(40))
ACTIONS = {"buy": "purchase", "pay": "purchase", "linger": "dwell", "save": "kept"}
LIMITS = LimitSettings(
    candidate_sets=4, interventions=4, exposure_rows=2, lists=3, clicks=3
)
ERA_MS = 2_000_000


def settings_of(keep_ms: int = ERA_MS, reward: str = "click") -> Settings:
    """With eras so short that several begin and leave."""
    time = TimeSettings(
        disorder_ms=60_000,
        click_window_ms=300_000,
        remember_ms=600_000,
        keep_ms=keep_ms,
    )
    kept = StatisticsSettings(groups=3, reward=reward, actions=ACTIONS)
    return Settings(time=time, limits=LIMITS, statistics=kept)


SETTINGS = settings_of()
COUNTED = msgspec.msgpack.encode(["counted"])


def some_impression(rng: np.random.Generator, number: int, at_ms: int) -> Any:
    """An impression of a few queries, sets, interventions, policies and rows."""
    n_items = int(rng.integers(3, 6))
    items = sorted(rng.choice(ITEMS, n_items, replace=False).tolist())
    if rng.random() < 0.5:
        items = list(ITEMS)
    n_shown = int(rng.integers(1, 4))
    if rng.random() < 0.05:
        items, n_shown = list(LONG), int(rng.integers(31, 35))
    n_items = len(items)
    shown = rng.choice(items, n_shown, replace=False).tolist()
    if rng.random() < 0.5:
        shown = items[:n_shown]
    policy = int(rng.integers(0, 6))
    fields: dict[str, Any] = {"policy": policy}
    if policy == PLACKETT_LUCE:
        scores = np.arange(n_items) * float(rng.integers(0, 8))
        fields["scores"] = scores.astype("<f4").tobytes()
    if policy == LOGGED:
        exposures = np.full((n_items, n_shown), 1.0 / n_items, np.float32)
        if rng.random() < 0.5:
            exposures[1:] = 0.0
        fields["exposures"] = pack_exposures(exposures)
    if policy in (UNKNOWN, DETERMINISTIC, TAIL_SHUFFLE) and rng.random() < 0.5:
        fields["is_open_set"], items = True, sorted(shown)
    return impression(
        f"i{number}",
        at_ms,
        items=items,
        shown=shown,
        query_id=f"q{rng.integers(3)}",
        model=f"m{rng.integers(3)}",
        intervention=f"v{rng.integers(6)}",
        unit=int(rng.integers(7)) << int(rng.integers(50)),
        **fields,
    )


def random_log(seed: int, n_events: int = 400) -> list[list[Element]]:
    """Records of a log that goes over eras, out of order, with repeats and strays."""
    rng = np.random.default_rng(seed)
    log: list[list[Element]] = []
    known: list[Any] = []
    for number in range(n_events):
        now_ms = START_MS + number * int(rng.integers(15_000, 20_000)) * (
            1 if seed % 2 else 6
        )
        at_ms = now_ms + int(rng.integers(-90_000, 1))
        record: list[Element] = [some_impression(rng, number, at_ms)]
        known = [*known[-20:], record[0]]
        for _ in range(int(rng.integers(4))):
            owner = known[int(rng.integers(len(known)))]
            when_ms = owner.at_ms + int(rng.integers(0, 400_000))
            what: dict[str, Any] = {"position": int(rng.integers(0, 5))}
            if not what["position"] or rng.random() < 0.3:
                what["item_id"] = str(rng.choice(ITEMS))
            what["action"] = str(rng.choice(["click", "other", *ACTIONS]))
            name = owner.impression_id if rng.random() < 0.9 else f"i{number + 1}"
            record.append(click(name, when_ms, **what))
        if rng.random() < 0.2:
            record.append(known[int(rng.integers(len(known)))])
        order = rng.permutation(len(record))
        record = [record[place] for place in order]
        source = int(rng.integers(2))
        record.append(Frontier(source, 2, at_ms - 60_000, ACTIVE))
        log.append(record)
    end_ms = max(each.at_ms for record in log for each in record) + 500_000
    return [*log, [Frontier(0, 2, end_ms, ENDED)], [Frontier(1, 2, end_ms, ENDED)]]


class Folded:
    """A log, and what the real fold makes of it up to a checkpoint."""

    def __init__(
        self,
        log: Sequence[list[Element]],
        checkpoint: int | None = None,
        settings: Settings = SETTINGS,
    ) -> None:
        self.settings = settings
        self.checkpoint = len(log) if checkpoint is None else checkpoint
        self.log: list[tuple[int, int, bytes]] = []
        fold = partition_fold(0, settings)
        self.state: dict[bytes, bytes] = {}
        self.outcomes: dict[str, int] = {}
        interactions = []
        for offset, elements in enumerate(log):
            value = encode_record(EventRecord(1, 0, offset + 1, elements))
            self.log.append((0, offset, value))
            fold.fold(SourceRecord("events", 0, offset, 0, None, value, ()))
            interactions += fold.outputs()
            if offset == self.checkpoint - 1:
                for change in fold.changes():
                    if change.topic == "statistics":
                        self.state[change.key] = change.value or b""
                self.outcomes = fold.counters()
        self.interactions = [
            (output.partition, output.value)
            for output in interactions
            if output.topic == "interactions" and output.value
        ]

    def counted(self) -> Any:
        """What the record of what was counted says."""
        return msgspec.msgpack.decode(self.state[COUNTED])

    def change(self, kind: str, change: Callable[[Any], bool]) -> None:
        """Change the first value of a kind that lets itself be changed."""
        for key, value in sorted(self.state.items()):
            decoded = msgspec.msgpack.decode(value) if value else None
            if value and msgspec.msgpack.decode(key)[0] == kind and change(decoded):
                self.state[key] = msgspec.msgpack.encode(decoded)
                return
        raise AssertionError(f"no {kind} could be changed")

    def verdict(self) -> Verdict:
        """What the recount says."""
        values = [(key, value) for key, value in self.state.items() if value]
        found = {0: Found(self.checkpoint - 1, len(self.log) - 1, self.outcomes)}
        return recount(
            self.log, found, stored(values), self.interactions, rules_of(self.settings)
        )


@functools.cache
def small_log() -> list[list[Element]]:
    """One that the tests of what is amiss share."""
    return random_log(1, 150)


@pytest.mark.parametrize("keep_ms", [ERA_MS, 100_000])
@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_the_folds_at_any_checkpoint(seed: int, keep_ms: int) -> None:
    """Every part, with limits that overflow, and eras that leave.

    Those of 100 seconds have left before the last of their impressions closes.
    """
    reward = ["click", "purchase", "dwell"][seed % 3]
    log = random_log(seed)
    checkpoint = [None, 399, 200, 17][seed % 4]
    folded = Folded(log, checkpoint, settings_of(keep_ms, reward))
    verdict = folded.verdict()
    assert verdict.is_clean, verdict.differences
    assert verdict.n_events > 700
    outcomes = folded.outcomes
    assert outcomes["consumed"] > 20
    if checkpoint is None:
        assert min(outcomes[n] for n in ("duplicate", "late", "dead_letter")) > 0
        *_, (n_left, oldest, capped, _, without_exposure) = folded.counted()
        assert n_left > 100
        assert without_exposure > 50
        if keep_ms == ERA_MS:
            assert capped > 0
            assert oldest is not None


def test_what_closes_after_its_era_left_leaves_at_once() -> None:
    """A window of three eras; the watermark goes on within one, step by step."""
    log: list[list[Element]] = []
    for number in range(40):
        at_ms = START_MS + number * 9_000
        now_ms = at_ms + 290_000
        log.append([impression(f"i{number}", at_ms), Frontier(0, 1, now_ms, ACTIVE)])
    counts = set()
    for checkpoint in range(20, 40):
        folded = Folded(log, checkpoint, settings_of(100_000))
        verdict = folded.verdict()
        assert verdict.is_clean, verdict.differences
        counted = folded.counted()
        assert counted[-1][:2] == [counted[6][0][1], None]
        counts.add(counted[-1][0])
    assert len(counts) > 10


def test_the_logs_of_the_tests_have_all_that_may_come() -> None:
    """Rows, lists and sets beyond limits, long lists, every class, several eras."""
    folded = Folded(random_log(1, 450))
    heads = [
        msgspec.msgpack.decode(value)
        for key, value in folded.state.items()
        if value and msgspec.msgpack.decode(key)[0] == "scope"
    ]
    flags = [head[1] for head in heads]
    assert all(any(each & flag for each in flags) for flag in (1, 2, 4))
    assert 0 in flags
    assert any(head[3] for head in heads)
    assert {number for head in heads for number in head[7][1::5]} == {1, 2, 3}
    assert folded.counted()[-1][0] > 100


def test_an_interaction_that_is_missing_is_lost() -> None:
    """The end of the interactions log."""
    folded = Folded(small_log())
    del folded.interactions[-1]
    assert folded.verdict().lost > 0


def test_an_interaction_that_is_written_again_is_double() -> None:
    """As after a commit whose resume position was not heeded."""
    folded = Folded(small_log())
    folded.interactions.append(folded.interactions[0])
    assert folded.verdict().double > 0


def test_an_interaction_with_another_click_is_wrong() -> None:
    """Every byte of an interaction counts."""
    folded = Folded(small_log())
    target, value = folded.interactions[0]
    record = decode_interaction_record(value)
    first = record.interactions[0]
    changed = msgspec.structs.replace(first, clicks=[])
    if not first.clicks:
        other = msgspec.structs.replace(first.impression, at_ms=1)
        changed = msgspec.structs.replace(first, impression=other)
    record.interactions[0] = changed
    folded.interactions[0] = (target, encode_record(record))
    assert folded.verdict().wrong == 1


def test_statistics_of_an_older_checkpoint_are_lost_events() -> None:
    """Outcomes and cells that say too little."""
    folded, older = Folded(small_log()), Folded(small_log(), 30)
    folded.state, folded.outcomes = older.state, older.outcomes
    assert folded.verdict().lost > 0


def test_statistics_beyond_the_log_are_double_or_extra() -> None:
    """A log that was cut off after it was counted."""
    folded = Folded(small_log())
    folded.log = folded.log[:30]
    verdict = folded.verdict()
    assert verdict.double > 0
    assert verdict.extra > 0


def test_a_record_of_the_log_that_is_written_again_is_double() -> None:
    """Sequence numbers of a source follow each other."""
    folded = Folded(small_log())
    folded.log.insert(5, folded.log[4])
    assert folded.verdict().double > 0


def test_a_scope_of_an_era_that_left_is_extra() -> None:
    """As where its tombstone was not written."""
    folded, before = Folded(random_log(1, 300)), Folded(random_log(1, 300), 60)
    (oldest, *_) = folded.counted()[-1][1:]
    left = {
        key: value
        for key, value in before.state.items()
        if value
        and msgspec.msgpack.decode(key)[0] in ("scope", "set", "row")
        and msgspec.msgpack.decode(key)[-1] != b""
        and era_of(key) < oldest
    }
    assert left
    folded.state |= left
    verdict = folded.verdict()
    assert verdict.extra > 0
    assert not verdict.lost + verdict.double + verdict.wrong


def era_of(key: bytes) -> int:
    """The era in a key."""
    kind, _, *rest = msgspec.msgpack.decode(key)
    return int(rest[1] if kind == "set" else rest[2])


@pytest.mark.parametrize("kind", ["set", "row"])
def test_a_record_of_no_scope_is_extra(kind: str) -> None:
    """As where the scope left and what belongs to it stayed."""
    folded = Folded(small_log())
    for key, value in list(folded.state.items()):
        decoded = msgspec.msgpack.decode(key)
        if value and decoded[0] == kind:
            decoded[1] = "another query"
            folded.state[msgspec.msgpack.encode(decoded)] = value
            break
    assert folded.verdict().extra == 1


def test_a_mask_of_other_ranks_is_seen() -> None:
    """Also where every sum stays as it was: two lists exchange what was clicked."""
    folded = Folded(small_log())

    def change(head: Any) -> bool:
        for lists in head[4][2::3]:
            if lists[2]:
                lists[2][0] ^= 3
                return head[1] == 0
        return False

    folded.change("scope", change)
    assert not folded.verdict().is_clean


@pytest.mark.parametrize(
    ("column", "value"),
    [(1, 4), (2, 1), (3, ["click"]), (4, "dwell"), (5, 7), (6, [[0, 3]])],
)
def test_what_was_counted_is_named_exactly(column: int, value: Any) -> None:
    """Groups, keep, classes, reward, watermark, interactions."""
    folded = Folded(small_log())
    counted = folded.counted()
    counted[column] = value
    folded.state[COUNTED] = msgspec.msgpack.encode(counted)
    assert not folded.verdict().is_clean


@pytest.mark.parametrize("place", range(5))
def test_what_left_and_what_was_capped_is_named_exactly(place: int) -> None:
    """Impressions that left, oldest era, capped, clipped, without exposure."""
    folded = Folded(small_log())
    counted = folded.counted()
    counted[-1][place] += 1
    folded.state[COUNTED] = msgspec.msgpack.encode(counted)
    verdict = folded.verdict()
    assert verdict.double + verdict.wrong == 1


def test_what_was_counted_must_be_said() -> None:
    """A checkpoint without its record."""
    folded = Folded(small_log())
    del folded.state[COUNTED]
    assert folded.verdict().lost > 0


@pytest.mark.parametrize(("column", "by"), [(1, 1), (2, 1), (7, 1)])
def test_flags_times_and_rewards_of_a_scope_are_compared(column: int, by: int) -> None:
    """Each by itself."""
    folded = Folded(small_log())

    def change(head: Any) -> bool:
        if column == 7:
            head[7][4:5] = [count + by for count in head[7][4:5]]
            return len(head[7]) > 0
        head[column] += by
        return head[1] == by * (column == 1)

    folded.change("scope", change)
    verdict = folded.verdict()
    assert verdict.double + verdict.wrong >= 1
    assert len(verdict.differences) == 1


CONFIG = """
[time]
disorder_ms = 60_000
click_window_ms = 300_000
remember_ms = 600_000
keep_ms = 2_000_000

[limits]
candidate_sets = 4
interventions = 4
exposure_rows = 2
lists = 3
clicks = 3

[statistics]
groups = 3
actions = {buy = "purchase", pay = "purchase", linger = "dwell", save = "kept"}
"""


@pytest.mark.parametrize(("n_missing", "status"), [(0, 0), (1, 1)])
def test_a_dump_is_compared_with_what_was_counted_in_process(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    n_missing: int,
    status: int,
) -> None:
    """The command, without Kafka; its exit status says whether all is well."""
    folded = Folded(small_log())
    config, dump = tmp_path / "c.toml", tmp_path / "events.dump"
    config.write_text(CONFIG)
    records = [(partition, value) for partition, _, value in folded.log]
    write_dump(dump, Header("events", 1), records)
    scopes = [
        k
        for k, v in folded.state.items()
        if msgspec.msgpack.decode(k)[0] == "scope" and v
    ]
    changes = [
        Change("statistics", key, value)
        for key, value in folded.state.items()
        if key not in scopes[:n_missing]
    ]
    write_changes(tmp_path / "statistics.bin", changes)
    options = ["--events", str(dump), "--local", str(tmp_path), "--config", str(config)]
    assert main(["recount", *options]) == status
    assert "events counted again: lost" in capsys.readouterr().out


@pytest.mark.parametrize("spread", [0.0, 1.0, 5.0, 30.0])
def test_placements_equal_enumeration(spread: float) -> None:
    """All lists of four of five items."""
    scores = (spread * np.array([0.1, 1.0, -0.4, 0.3, 0.9])).astype("<f4")
    weights = np.exp(scores.astype(np.float64))
    expected = np.zeros((5, 4))
    for ranking in permutations(range(5), 4):
        left, probability = weights.copy(), 1.0
        for item in ranking:
            probability *= left[item] / left.sum()
            left[item] = 0.0
        expected[ranking, np.arange(4)] += probability
    assert np.allclose(placements(scores.tobytes(), 4), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("spread", [1.0, 60.0])
def test_placements_equal_those_of_the_fold(spread: float) -> None:
    """Forty items, ten ranks."""
    scores = np.random.default_rng(1).normal(0, spread, 40).astype("<f4")
    ours = placements(scores.tobytes(), 10)
    theirs = placement_batch(scores.astype(np.float64)[None], 10)[0]
    assert np.allclose(ours, theirs, rtol=0, atol=1e-9)
