"""The recount agrees with the folds, and sees what is amiss."""

import functools
from collections.abc import Sequence
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
from rankstream.settings import LimitSettings, Settings, TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    ENDED,
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

DAY_MS = 86_400_000
ITEMS = ("a", "b", "c", "d", "e")
LIMITS = LimitSettings(
    candidate_sets=2, interventions=2, exposure_rows=2, list_masks=3, clicks=2
)
SETTINGS = Settings(
    time=TimeSettings(
        disorder_ms=60_000,
        click_window_ms=300_000,
        remember_ms=600_000,
        keep_ms=DAY_MS,
    ),
    limits=LIMITS,
)


def some_impression(rng: np.random.Generator, number: int, at_ms: int) -> Any:
    """An impression of a few queries, sets, interventions, policies and rows."""
    n_items = int(rng.integers(3, 6))
    items = sorted(rng.choice(ITEMS, n_items, replace=False).tolist())
    n_shown = int(rng.integers(1, 4))
    shown = rng.choice(items, n_shown, replace=False).tolist()
    policy = int(rng.integers(0, 6))
    fields: dict[str, Any] = {"policy": policy}
    if policy == 1:
        scores = np.arange(n_items) * float(rng.integers(0, 8))
        fields["scores"] = scores.astype("<f4").tobytes()
    if policy == 4:
        exposures = np.full((n_items, n_shown), 1.0 / n_items, np.float32)
        if rng.random() < 0.5:
            exposures[1:] = 0.0
        fields["exposures"] = pack_exposures(exposures)
    if policy in (0, 2) and rng.random() < 0.5:
        fields["is_open_set"], items = True, sorted(shown)
    return impression(
        f"i{number}",
        at_ms,
        items=items,
        shown=shown,
        query_id=f"q{rng.integers(3)}",
        model=f"m{rng.integers(3)}",
        intervention=f"v{rng.integers(3)}",
        unit=int(rng.integers(2)),
        **fields,
    )


def random_log(seed: int, n_events: int = 400) -> list[list[Element]]:
    """Records of a log that goes over days, out of order, with repeats and strays."""
    rng = np.random.default_rng(seed)
    log: list[list[Element]] = []
    known: list[Any] = []
    for number in range(n_events):
        now_ms = START_MS + number * int(rng.integers(15_000, 20_000)) * (
            1 if seed % 2 else 60
        )
        at_ms = now_ms + int(rng.integers(-90_000, 1))
        record: list[Element] = [some_impression(rng, number, at_ms)]
        known = [*known[-20:], record[0]]
        for _ in range(int(rng.integers(3))):
            owner = known[int(rng.integers(len(known)))]
            when_ms = owner.at_ms + int(rng.integers(0, 400_000))
            what: dict[str, Any] = {"position": int(rng.integers(0, 5))}
            if not what["position"] or rng.random() < 0.3:
                what["item_id"] = str(rng.choice(ITEMS))
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
        self, log: Sequence[list[Element]], checkpoint: int | None = None
    ) -> None:
        self.checkpoint = len(log) if checkpoint is None else checkpoint
        self.log: list[tuple[int, int, bytes]] = []
        fold = partition_fold(0, SETTINGS)
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

    def verdict(self) -> Verdict:
        """What the recount says."""
        values = [(key, value) for key, value in self.state.items() if value]
        found = {0: Found(self.checkpoint - 1, len(self.log) - 1, self.outcomes)}
        return recount(
            self.log, found, stored(values), self.interactions, rules_of(SETTINGS)
        )


@functools.cache
def small_log() -> list[list[Element]]:
    """One that the tests of what is amiss share."""
    return random_log(0, 60)


@pytest.mark.parametrize("seed", range(8))
def test_it_agrees_with_the_folds_at_any_checkpoint(seed: int) -> None:
    """Every part, with limits that overflow and days in which items leave."""
    log = random_log(seed)
    checkpoint = [None, 399, 200, 17][seed % 4]
    folded = Folded(log, checkpoint)
    verdict = folded.verdict()
    assert verdict.is_clean, verdict.differences
    assert verdict.n_events > 700
    outcomes = folded.outcomes
    assert outcomes["consumed"] > 20
    if checkpoint is None:
        assert min(outcomes[n] for n in ("duplicate", "late", "dead_letter")) > 0
        assert outcomes["statistics_capped"] > 0
        assert outcomes["statistics_expired"] > 0


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


CONFIG = """
[time]
disorder_ms = 60_000
click_window_ms = 300_000
remember_ms = 600_000
keep_ms = 86_400_000

[limits]
candidate_sets = 2
interventions = 2
exposure_rows = 2
list_masks = 3
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
    cells = [key for key, value in folded.state.items() if b"cell" in key and value]
    changes = [
        Change("statistics", key, value)
        for key, value in folded.state.items()
        if key not in cells[:n_missing]
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
