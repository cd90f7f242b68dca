"""Trees from files, without Kafka: chosen, made again, and from counted sums."""

import re
from pathlib import Path

import lightgbm
import msgspec
import pytest

from producers.formats.registry import read_events
from rankstream.operations.answers.folders import TRAINING_FILE
from rankstream.operations.answers.models.training_folder import read_training
from rankstream.operations.cli import main
from rankstream.wire.models.training import encode_record, training_key
from rankstream.wire.topics import TRAINING
from streams.local import write_changes
from streams.stage import Change
from tests.rankstream.operations.commands.test_train import (
    snapshot_of,
    table,
    trained,
    verified,
)

__all__ = ["table"]


def test_commands_of_the_page_train_from_what_was_counted(
    table: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same trees as from the log, which is JSON lines, an event each."""
    folder = table / "page"
    folder.mkdir()
    events = [event.value for event in read_events([table / "clicks.csv"])]
    (folder / "clicks.jsonl").write_bytes(b"\n".join(events) + b"\n")
    (folder / "products.csv").write_bytes((table / "items.csv").read_bytes())
    monkeypatch.chdir(folder)
    page = Path(__file__).parents[4] / "docs" / "trees.md"
    text = page.read_text(encoding="utf-8").replace("\\\n", " ").replace("\n", "\0")
    (counting,) = re.findall(r"`rankstream (replay [^`]*)`", text)
    export, train = (
        found
        for (found,) in (
            re.findall(rf"    rankstream ({words} [^\0]*)", text)
            for words in ("statistics export", "train --statistics")
        )
    )
    for command in (counting, export, train):
        assert main(command.replace("\0", " ").split()) == 0
    assert "counts.bin: " in capsys.readouterr().out
    words = ["--features", "products.csv", "--model", "search", "--kind", "trees"]
    assert main(["train", "--log", "clicks.jsonl", *words, "--out", "whole"]) == 0
    of_sums, of_log = (snapshot_of(folder / name)[1] for name in ("run", "whole"))
    assert of_sums.weights == of_log.weights
    assert verified(folder / "run") == 0


def test_what_cannot_be_trained_from_is_refused(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A table of other items, none, no such file, and a log beside it."""
    log, items = str(table / "clicks.csv"), ["--features", str(table / "items.csv")]
    counts, other = str(table / "counted"), table / "other.csv"
    assert main(["replay", log, *items, "--local", "--out", counts]) == 0
    sums = f"{counts}/statistics.bin"
    other.write_text("item,rating\nnobody,1\n")
    capsys.readouterr()
    for words, said in (
        (["--statistics", sums, "--features", str(other)], "of whole sets of can"),
        (["--statistics", sums], "--statistics must be given with --features"),
        (["--statistics", "no.bin", *items], "no.bin is not there"),
        (["--statistics", sums, *items, "--log", log], "a log beside it"),
    ):
        own = ["--model", "search", "--out", str(table / "never")]
        assert main(["train", *words, *own]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


def test_verification_names_another_release_of_lightgbm(
    table: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With equal bytes, and with others, which it may have made."""
    words = ["--features", str(table / "items.csv"), "--model", "search"]
    own = [*words, "--kind", "selected"]
    assert trained(table / "clicks.csv", table, *own, out="grown") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "no settings of 'search': linear or trees of 3 features, batch 4," in said
    kept = read_training(table / "grown")
    assert kept.run.lightgbm == lightgbm.__version__
    assert [each.kind for each in kept.run.losses] == ["linear", "trees"]
    assert verified(table / "grown") == 0
    assert "LightGBM" not in capsys.readouterr().out
    key = training_key("run", kept.run.intervention)
    told = f"trees were grown by LightGBM 3.0.0, and are by {lightgbm.__version__} here"
    for best, status in ((kept.run.best_epoch, 0), (1_000, 1)):
        run = msgspec.structs.replace(kept.run, lightgbm="3.0.0", best_epoch=best)
        records = [Change(TRAINING, key, encode_record(run))]
        write_changes(table / "grown" / TRAINING_FILE, records)
        assert verified(table / "grown") == status
        assert told in capsys.readouterr().out
