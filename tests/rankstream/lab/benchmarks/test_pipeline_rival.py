"""The rival counts what a recount counts; where it cannot be had, that is told."""

import itertools
import shutil
from pathlib import Path

import pytest

from deploy.broker import Broker
from deploy.process import ServerFailed
from rankstream.lab.benchmarks.pipeline.bed import Bed
from rankstream.lab.benchmarks.pipeline.beside_rival import (
    await_read,
    counted_log,
    send_all,
)
from rankstream.lab.benchmarks.pipeline.input_log import InputRecord
from rankstream.lab.benchmarks.pipeline.input_recount import InputRecount
from rankstream.lab.benchmarks.pipeline.rival.application import (
    rival_tally,
    running_rival,
)
from rankstream.lab.benchmarks.pipeline.rival.build import rival_command
from rankstream.operations.cli import main
from rankstream.wire.events import ClickEvent, QueryEvent, encode_event
from rankstream.wire.topics import CLICKS, QUERIES
from tests.rankstream.lab.benchmarks.shared_bed import needs_the_rival
from tests.services import KafkaService

WINDOW_MS = 300_000
SHOWN_MS = 7 * WINDOW_MS + 299_000
"""A second before a window of the rival's store ends."""


def shown(impression: str, items: list[str], at_ms: int = SHOWN_MS) -> InputRecord:
    """A list of one query."""
    event = QueryEvent(
        impression_id=impression, query_id="Größe", at_ms=at_ms, shown=items
    )
    return InputRecord(at_ms, QUERIES, 1, encode_event(event))


def clicked(impression: str, position: int, after_ms: int) -> InputRecord:
    """A click so long after its list."""
    at_ms = SHOWN_MS + after_ms
    event = ClickEvent(impression_id=impression, at_ms=at_ms, position=position)
    return InputRecord(at_ms, CLICKS, 1, encode_event(event))


EARLY = [clicked("b", 1, 0), clicked("b", 2, 2_000), clicked("b", 2, 1_500)]
"""They are there before their list."""

LATER = [
    shown("a", ["é", "y", "z"]),
    shown("b", ["y", "z"]),
    *(clicked("a", 3, after_ms) for after_ms in (0, 500, WINDOW_MS)),
    # Neither before it was shown, nor after its window; nor without a list.
    *(clicked("a", 1, after_ms) for after_ms in (-1, WINDOW_MS + 1)),
    clicked("nobody's", 1, 5_000),
]
OFTEN = 2**14 + 3
"""So often a count needs three bytes."""


def test_a_click_counts_within_five_minutes_wherever_it_stands() -> None:
    """Both edges are within; what was shown counts at its rank."""
    recount = InputRecount(WINDOW_MS)
    for record in (*EARLY, *LATER):
        recount.take(record.topic, record.value)
    tally = recount.tally()

    assert tally.shown == {
        ("Größe", item, rank): 1
        for item, rank in (("é", 1), ("y", 2), ("z", 3), ("y", 1), ("z", 2))
    }
    assert tally.clicked == {
        ("Größe", "z", 3): 3, ("Größe", "y", 1): 1, ("Größe", "z", 2): 2
    }  # fmt: skip
    assert recount.n_events == 11


def test_a_difference_of_either_side_is_told() -> None:
    """What only one of them has, too."""
    recount = InputRecount(WINDOW_MS)
    recount.take(QUERIES, LATER[0].value)
    sent, other = recount.tally(), recount.tally()
    assert other.differences(sent, "rival") == []
    other.shown["q", "x", 1] += 1
    del other.shown["Größe", "y", 2]
    other.clicked["Größe", "y", 2] += 1

    assert other.differences(sent, "rival") == [
        "rival: shown of 2 places differ", "rival: clicked of 1 places differ"
    ]  # fmt: skip


@pytest.mark.broker
def test_the_rival_counts_what_the_recount_counts(
    kafka: KafkaService, tmp_path: Path
) -> None:
    """On a log of many queries, at edges of its windows, and counts of all sizes."""
    needs_the_rival()
    bed = Bed(tmp_path)
    bed.broker = Broker(tmp_path, int(kafka.bootstrap.rpartition(":")[2]))
    settings = bed.settings(1, 2)
    recount = InputRecount(settings.time.click_window_ms)
    log = list(itertools.islice(counted_log(settings, recount), 1_500))
    often = [shown(f"often {n}", ["x"], SHOWN_MS + n) for n in range(OFTEN)]
    for record in (*EARLY, *LATER, *often):
        recount.take(record.topic, record.value)

    with running_rival(settings, tmp_path) as rival:
        send_all(settings, EARLY)
        await_read(settings, rival, rival.check)
        send_all(settings, [*LATER, *often, *log])
        await_read(settings, rival, rival.check)
    tally = rival_tally(settings)

    assert tally.shown["Größe", "x", 1] == OFTEN
    assert len(tally.shown) > 1_000
    assert tally.differences(recount.tally(), "the rival") == []


def test_without_a_jdk_its_figures_are_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No broker is started for them; the reason says what to install."""
    monkeypatch.setenv("PATH", "")
    assert main(["bench", "pipeline", "--figures", "idle", "--markdown"]) == 1

    printed = capsys.readouterr()
    assert "idle: left out; the rival is compiled by a JDK" in printed.err
    assert "install a JDK of Java 17 or newer" in printed.out
    assert "| void |" in printed.out


def program(folder: Path, name: str, text: str) -> None:
    """A program of the shell."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_without_a_network_the_words_of_maven_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a source that does not compile is told with those of the compiler."""
    monkeypatch.setenv("RANKSTREAM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path, "javac", "echo 'no such class' >&2; exit 1")
    program(tmp_path, "mvn", "echo 'Unknown host'; exit 1")
    with pytest.raises(ServerFailed, match=r"rival/pom\.xml, or name.*: Unknown host"):
        rival_command()

    program(
        tmp_path, "mvn", f"{shutil.which('mkdir', path='/bin')} -p cache/rival-libs"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ServerFailed, match=r"CountClicks\.java must compile.*no such"):
        rival_command()
    assert not list((tmp_path / "cache").glob("rival-classes*"))
