"""`rankstream replay --local`: outcomes, dumps, and what is refused."""

from pathlib import Path

import pytest

from producers.formats.canonical_dump import Header, write_dump
from producers.formats.jsonl import read_jsonl
from producers.formats.source_file import FileUnreadable
from rankstream.operations.cli import main
from rankstream.operations.local_replay import LocalReplay
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.events import encode_event
from rankstream.wire.topics import EVENTS
from streams.local import LocalPipeline, local_settings, write_changes
from streams.stage import Output

START_MS = 1_600_000_000_000


def lines_of_log(n_impressions: int) -> list[bytes]:
    """Write impressions a second apart, every second one clicked."""
    lines: list[bytes] = []
    for number in range(n_impressions):
        at_ms = START_MS + 1_000 * number
        event: dict[str, object] = {
            "impression_id": f"i{number}",
            "query_id": f"q{number % 7}",
        }
        shown = event | {"at_ms": at_ms, "shown": ["a", "b", "c"]}
        lines.append(encode_event(shown))
        if number % 2:
            click = event | {"at_ms": at_ms + 500, "position": 1 + number % 3}
            lines.append(encode_event(click))
    return lines


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a file of two thousand impressions, the later half first."""
    lines = lines_of_log(2_000)
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines[1_500:] + lines[:1_500]))
    return path


def test_order_of_the_file_and_memory_change_nothing(log: Path, tmp_path: Path) -> None:
    """The statistics are the same, to the last bit."""
    ordered = tmp_path / "ordered.jsonl"
    ordered.write_bytes(b"\n".join(lines_of_log(2_000)))
    values = []
    for number, path in enumerate((log, ordered)):
        out = tmp_path / f"run{number}"
        words = ["replay", str(path), "--local", "--out", str(out)]
        assert main([*words, "--memory-mb", str(1 + 255 * number)]) == 0
        values.append((out / "statistics.bin").read_bytes())

    assert values[0] == values[1]


@pytest.mark.parametrize("n_partitions", [1, 3])
def test_a_dump_gives_the_same_bits_as_the_run_that_wrote_it(
    tmp_path: Path, n_partitions: int
) -> None:
    """Folded as it is, past ingestion."""
    settings = _settings_of(n_partitions)
    records: list[Output] = []
    pipeline = LocalPipeline(
        settings,
        now=lambda: START_MS * 2,
        on_output=lambda each: records.append(each) if each.topic == EVENTS else None,
    )
    pipeline.start()
    for line in lines_of_log(500):
        pipeline.send("queries" if b"shown" in line else "clicks", line)
    pipeline.end()
    write_changes(tmp_path / "expected", pipeline.statistics())
    dump = tmp_path / "events.dump"
    pairs = [(record.partition, record.value or b"") for record in records]
    write_dump(dump, Header(EVENTS, n_partitions), pairs)

    assert main(["replay", str(dump), "--local", "--out", str(tmp_path)]) == 0
    expected = (tmp_path / "expected").read_bytes()
    assert (tmp_path / "statistics.bin").read_bytes() == expected


def test_what_cannot_be_counted_again_is_told(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where it is written, and where somebody tries."""
    assert main(["replay", str(log), "--local", "--out", str(tmp_path / "run")]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "`rankstream recount` cannot check these" in told

    for words, got in (
        (["--local", str(tmp_path / "run")], "--local"),
        (["--events", "e.dump"], "--events"),
    ):
        assert main(["recount", *words]) == 2
        told = capsys.readouterr().err
        assert f"got {got} only. What is counted again is the canonical log" in told
    nowhere = str(tmp_path / "nowhere")
    for words in (["recount", "--events", "e.dump"], ["statistics", "list"]):
        assert main([*words, "--local", nowhere]) == 2
        assert "--local must be a folder that `rankstream" in capsys.readouterr().err


def _settings_of(n_partitions: int) -> Settings:
    kafka = KafkaSettings(input_partitions=1, partitions=n_partitions)
    return Settings(kafka=kafka)


def test_a_dump_is_folded_alone_and_whole(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside other files, or damaged, it is refused, and nothing is written."""
    dump = tmp_path / "events.dump"
    write_dump(dump, Header(EVENTS, 1), [(0, b"no record")])
    out = tmp_path / "run"
    words = ["--local", "--out", str(out)]
    assert main(["replay", str(dump), str(log), *words]) == 2
    assert "folded alone" in capsys.readouterr().err
    assert main(["replay", str(dump), *words]) == 2
    assert "events[0]@0" in capsys.readouterr().err
    write_dump(dump, Header(EVENTS, 1), [])
    dump.write_bytes(dump.read_bytes()[:-3])
    assert main(["replay", str(dump), *words]) == 2
    assert "cut off" in capsys.readouterr().err
    assert not out.exists()


def test_bad_lines_are_refused_or_passed_on(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused with file and line; passed on, they are dead letters, one each."""
    good = log.read_bytes()
    log.write_bytes(b"{broken\n" + good + b"\nnot json at all")
    out = tmp_path / "run"
    assert main(["replay", str(log), "--local", "--out", str(out)]) == 2
    told = capsys.readouterr().err
    assert f"{log}:1" in told
    assert "; replay --pass-bad-lines sends" in told
    assert not out.exists()

    assert main(["replay", str(log), "--local", "--pass-bad-lines"]) == 0
    captured = capsys.readouterr()
    assert "passed on, though no events: 2 lines" in captured.err
    assert "clicks.dlq: not-json" in captured.out


def test_a_passed_line_has_the_time_of_the_event_before(tmp_path: Path) -> None:
    """The first one has none to take."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'x\n{"at_ms": 7, "shown": []}\ny\n')
    numbers: list[int] = []

    events = list(read_jsonl(path, bad_lines=numbers))

    assert numbers == [1, 3]
    assert [(each.at_ms, each.value) for each in events][::2] == [(0, b"x"), (7, b"y")]
    with pytest.raises(FileUnreadable, match=r"log\.jsonl:1"):
        list(read_jsonl(path))


def test_outcomes_add_up_to_what_came_in() -> None:
    """Also where events are wrong, repeated, late or still open."""
    local = LocalReplay(local_settings(Settings()))
    lines = lines_of_log(2_000)
    for line in [*lines, lines[-1], lines[0], b"[]", b"{", b'{"at_ms": 1}']:
        local.pipeline.send("queries" if b"shown" in line else "clicks", line)
    local.pipeline.flush()
    outcomes = dict(local.outcomes())

    assert sum(outcomes.values()) == local.counters()["consumed"] == len(lines) + 5
    assert outcomes["pending"] > 0
    assert outcomes["dead letter"] == sum(local.letters.values()) == 3


def test_contradictions_are_refused(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each with a sentence, before anything is read."""
    words = ["replay", str(log)]
    for more in (
        ["--out", str(tmp_path / "run")],
        ["--local", "--resume"],
        ["--pass-bad-lines", "--batch", "5"],
    ):
        assert main([*words, *more]) == 2
        assert "must" in capsys.readouterr().err
