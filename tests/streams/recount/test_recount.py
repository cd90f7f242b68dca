"""The recount agrees with the folds, and sees what is amiss in the logs."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from producers.formats.canonical_dump import Header, write_dump
from rankstream.operations.cli import main
from rankstream.operations.commands.recount import _tell
from rankstream.wire.events import (
    ACTIVE,
    Element,
    Frontier,
    decode_interaction_record,
    encode_record,
)
from streams.local import write_changes
from streams.recount.differences import Verdict
from streams.stage import Change
from tests.event_factory import START_MS, impression
from tests.session.cases import n_cases
from tests.streams.recount.recounted import (
    ERA_MS,
    Folded,
    random_log,
    settings_of,
    small_log,
)


@pytest.mark.parametrize("keep_ms", [ERA_MS, 100_000])
@pytest.mark.parametrize("seed", range(n_cases(4, 8)))
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
        n_left, oldest, capped, _, without_exposure = folded.counted()[7]
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
        assert counted[7][:2] == [counted[6][0][1], None]
        counts.add(counted[7][0])
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
    assert folded.counted()[7][0] > 100


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


@pytest.fixture
def recount_of(tmp_path: Path) -> Callable[..., int]:
    """The command, on records of a dump that was folded in process."""
    folded = Folded(small_log())
    changes = [Change("statistics", key, value) for key, value in folded.state.items()]
    write_changes(tmp_path / "statistics.bin", changes)
    config, dump = tmp_path / "c.toml", tmp_path / "events.dump"
    log = [value for _, _, value in folded.log]

    def command(partitions: list[int], settings: str = CONFIG) -> int:
        config.write_text(settings)
        pairs = zip(partitions * len(log), log, strict=False)
        write_dump(dump, Header("events", 2), pairs)
        words = ["--events", str(dump), "--local", str(tmp_path)]
        return main(["recount", *words, "--config", str(config)])

    return command


def test_other_settings_are_named_instead_of_differences(
    recount_of: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of them would make every count another."""
    assert recount_of([0]) == 0
    capsys.readouterr()
    for setting, other, told in (
        ("groups = 3", "groups = 4", "statistics.groups must be what the"),
        ("keep_ms = 2_000_000", "keep_ms = 3_000_000", "time.keep_ms must be what the"),
        (
            'actions = {buy = "purchase"',
            'actions = {buy = "kept"',
            "statistics.actions",
        ),
        ("groups = 3", 'groups = 3\nreward = "kept"', "statistics.reward must be what"),
    ):
        assert recount_of([0], CONFIG.replace(setting, other)) == 2
        said = capsys.readouterr()
        assert told in said.err
        assert "name the settings of the replay with --config" in said.err
        assert said.out == ""


def test_a_dump_of_mixed_partitions_is_refused(
    recount_of: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Counted as they stand, most of its records would be lost or double."""
    assert recount_of([0, 1]) == 2
    told = capsys.readouterr().err
    assert "a dump must have one partition after another" in told
    assert "got partition 0 again, behind 1, at record 2 of" in told


def test_names_in_differences_are_no_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Items are named by services, and may clear a terminal."""
    verdict = Verdict(differences=["extra: scope [x\x1b[2J]"], extra=1)
    _tell(verdict)
    told = capsys.readouterr().out
    assert "  extra: scope [x\\x1b[2J]\n" in told
