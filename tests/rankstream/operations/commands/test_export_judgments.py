"""`rankstream statistics export --to judgments`, of the folder of a replay."""

import json
from pathlib import Path
from typing import Any

import pytest

from rankstream.operations.cli import main

EVENTS: list[dict[str, Any]] = [
    {
        "impression_id": f"i{n}", "query_id": "shoes", "at_ms": 1_700_000_000_000 + n,
        "shown": ["a", "b"] if n % 2 else ["b", "a"], "candidates": ["a", "b"],
        "policy": "plackett-luce", "scores": [0.0, 0.0],
        "user": f"u{n}",
    }
    for n in range(60)
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A replay of lists of two items, the first of which is clicked where it is a."""
    folder = tmp_path_factory.mktemp("judged")
    lines = [json.dumps(each) for each in EVENTS]
    lines += [
        json.dumps(
            {
                "impression_id": each["impression_id"], "query_id": "shoes",
                "position": 1, "at_ms": each["at_ms"] + 1,
            }
        )
        for each in EVENTS
        if each["shown"][0] == "a"
    ]  # fmt: skip
    (folder / "log.jsonl").write_text("\n".join(lines) + "\n")
    out = folder / "run"
    words = ["--local", "--out", str(out), "--namespace", "test"]
    assert main(["replay", str(folder / "log.jsonl"), *words]) == 0
    return str(out)


def test_qrels_are_written_with_what_was_said(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By hand: a was clicked at each of its looks at rank 1, and b at none."""
    file = tmp_path / "qrels.txt"
    words = ["statistics", "export", str(file), "--local", run, "--to", "judgments"]
    words += ["--examination", "1,0.5", "--grades", "0.1,0.5"]
    assert main([*words, "--format", "trec", "--json"]) == 0
    assert file.read_text() == "1 0 a 2\n1 0 b 0\n"
    assert json.loads(capsys.readouterr().out) == {
        "files": {str(file): 2, f"{file}.csv": 2}, "is_corrected": True
    }  # fmt: skip
    assert main([*words, "--format", "opensearch"]) == 0
    assert "2 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--format", "lightgbm", "--grades", "1"], "one of opensearch, elasticsearch"),
        (["--grades", "1"], "one of opensearch, elasticsearch, trec; got None"),
        (["--format", "trec"], "--grades must be cut-offs of relevance"),
    ],
)
def test_what_is_not_enough_is_said(
    run: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    told: str,
) -> None:
    """Before anything is read or written."""
    file = tmp_path / "out"
    own = ["statistics", "export", str(file), "--local", run, "--to", "judgments"]
    assert main([*own, *words]) == 2
    assert told in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize("grades", ["", "a", "0.3,0.1", "0.1,0.1", "nan", "0.1,inf"])
def test_cutoffs_rise(
    run: str, capsys: pytest.CaptureFixture[str], grades: str
) -> None:
    """Else a grade would not say what was reached."""
    words = ["statistics", "export", "out", "--local", run, "--to", "judgments"]
    with pytest.raises(SystemExit):
        main([*words, "--format", "trec", f"--grades={grades}"])
    assert "each above the one before" in capsys.readouterr().err
