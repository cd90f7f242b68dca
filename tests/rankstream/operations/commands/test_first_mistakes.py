"""What one gets wrong in a first hour: answers say what, where and what to do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rankstream.operations.cli import main
from tests.worker_process import PATIENCE_S


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["replay", "nope.jsonl", "--local"],
         "a file must be there: correct the path; at nope.jsonl"),
        (["validate", "folder"], "name others themselves, with their --format; at"),
        (["evaluate", "m", "--log", "nope.jsonl"], "correct the path; at nope.jsonl"),
        (["evaluate", "top=nope.jsonl", "--log", "text"],
         "a file must be there: correct the path; at nope.jsonl"),
        (["evaluate", "top=rankings.csv"],
         "got top=rankings.csv: `rankstream rank --out FILE.jsonl` writes such a file"),
        (["replay", "text", "--local", "--format", "parquet"],
         "correct --format; at text"),
        (["replay", "text", "--local", "--format", "canonical"],
         "`rankstream dump` makes one; correct --format; at text"),
        (["feed", "--follow", "folder"], "--follow must be a file; folder is a folder"),
        (["serve", "--config", "nope.toml"],
         "got nope.toml: No such file or directory: correct --config"),
        (["worker", "--config", "nope.toml"],
         "rankstream worker: a settings file must be readable; got nope.toml"),
        (["worker", "--config", "folder"], "got folder: Is a directory: correct"),
    ],
)  # fmt: skip
def test_the_answer_says_what_and_where_and_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
) -> None:
    """In one line on standard error, and nothing on standard output."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "text").write_text("hello\n")
    monkeypatch.chdir(tmp_path)
    assert main(words) == (os.EX_CONFIG if words[0] == "worker" else 2)
    told = capsys.readouterr()
    assert said in told.err
    assert (told.out, told.err.count("\n")) == ("", 1)


def test_an_empty_file_is_told_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Zeros alone explain nothing."""
    (tmp_path / "empty.jsonl").touch()
    assert main(["replay", str(tmp_path / "empty.jsonl"), "--local"]) == 0
    assert "there is nothing to count: `rankstream validate` says why" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(("place", "lacks"), [(0, "list"), (1, "click")])
def test_a_replay_that_tells_nothing_does_not_pass(
    place: int, lacks: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of places from 0 no list is applied; of other items no click."""
    lists, clicks = tmp_path / "lists.csv", tmp_path / "clicks.csv"
    at_ms = 1_750_000_000_000
    lists.write_text(f"impression,at,query,item,position\nl1,{at_ms},q,a,{place}\n")
    clicks.write_text(f"impression,item,clicked_at\nl1,other,{at_ms + 5}\n")
    files = ["--queries", str(lists), "--clicks", str(clicks), "--format", "csv"]
    assert main(["replay", "--local", *files]) == 1
    assert f"no {lacks} was applied: what was counted tells" in capsys.readouterr().err


def test_ctrl_c_ends_a_wait_for_a_dead_redis() -> None:
    """Which was told of before."""
    told = {"RANKSTREAM_REDIS__URL": '"redis://127.0.0.1:1/0"'}
    # A child of a job in the background would ignore Ctrl-C.
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "from rankstream.operations.cli import main; "
        "raise SystemExit(main(['snapshots', 'list']))"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(
        command, env=os.environ | told, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=PATIENCE_S) == 130
    assert line.startswith("waiting for Redis at redis://127.0.0.1:1/0 (0 s): ")
    assert line.endswith("Connection refused; Ctrl-C ends the wait\n")
