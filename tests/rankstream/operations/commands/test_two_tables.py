"""The example of docs/evaluate.md as two CSV files, lists and clicks, with no policy.

Corrected relevance, an export, the value of a ranking and a trained ranker, each with
the planted order; `test_plain_log.py` has the same of one file, and with policies.
"""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rankstream.operations.cli import main

PAGE = (Path(__file__).parents[4] / "docs" / "evaluate.md").read_text("utf-8")
PROGRAM = re.compile(r"^```python\n(.*?)```", re.MULTILINE | re.DOTALL)

PLANTED = {
    "shoes": {"c": 0.5, "b": 0.3, "d": 0.2, "a": 0.1},
    "tea": {"a": 0.4, "c": 0.3, "b": 0.15, "d": 0.05},
}
"""The best item first."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both tables, features of queries and items, and what a replay counts."""
    path = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        (program,) = PROGRAM.findall(PAGE)
        exec(compile(program, "docs/evaluate.md", "exec"), {})  # noqa: S102  our own
    events = [
        json.loads(line) for line in (path / "log.jsonl").read_text().split("\n")[:-1]
    ]
    write(
        path / "lists.csv",
        ["impression", "query", "at", "user", "items"],
        [
            [
                x["impression_id"],
                x["query_id"],
                x["at_ms"],
                x["user"],
                "|".join(x["shown"]),
            ]
            for x in events
            if "shown" in x
        ],
    )
    write(
        path / "clicks.csv",
        ["impression", "position", "at"],
        [
            [x["impression_id"], x["position"], x["at_ms"]]
            for x in events
            if "position" in x
        ],
    )
    write(
        path / "features.csv",
        ["query", "item", "match", "length"],
        [
            [query, item, round(liked**0.5, 2), len(query)]
            for query, items in PLANTED.items()
            for item, liked in items.items()
        ],
    )
    out = ["--local", "--out", str(path / "run"), "--namespace", "test"]
    assert main(["replay", *log_in(path), *out]) == 0
    return path


def write(path: Path, head: list[str], rows: list[list[Any]]) -> None:
    """A table."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *rows])


def log_in(folder: Path) -> list[str]:
    """The options that name both tables."""
    return [
        *("--queries", str(folder / "lists.csv")),
        *("--clicks", str(folder / "clicks.csv")),
    ]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def test_a_query_is_shown_in_the_planted_order(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its intervals."""
    assert main(["statistics", "show", "shoes", "--local", str(folder / "run")]) == 0
    told = capsys.readouterr().out.split("relevance, corrected for position")[1]
    rows = [line.split() for line in told.splitlines() if line[:1] == "│"]
    assert [row[1] for row in rows] == [*PLANTED["shoes"]]
    assert all("to" in row for row in rows)
    assert "by affine-shown" in told


def test_an_export_has_the_planted_order(folder: Path, tmp_path: Path) -> None:
    """No interval of an item reaches another's."""
    file = str(tmp_path / "out.parquet")
    assert main(["statistics", "export", file, "--local", str(folder / "run")]) == 0
    rows = pq.read_table(tmp_path / "out.relevance.parquet").to_pylist()
    for query, planted in PLANTED.items():
        own = [row for row in rows if row["query"] == query]
        assert [row["item"] for row in own] == [*planted]
        ends = [end for row in own for end in (row["high"], row["low"])]
        assert ends == sorted(ends, reverse=True)


def test_the_best_ranking_is_valued_at_what_it_would_get(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the tables themselves."""
    words = ["evaluate", str(folder / "best.jsonl"), *log_in(folder), "--json"]
    assert main([*words, "--namespace", "test"]) == 0
    found = json.loads(capsys.readouterr().out)
    _, best = found["policies"]
    assert best["low"] < 0.7 < best["high"]
    assert best["verdict"] == "better"
    assert found["estimator"] == "affine-shown"


def test_a_ranker_is_trained_that_has_the_planted_order(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of both queries, though it learns from one; and it is worth what it would get."""
    features = ["--features", str(folder / "features.csv")]
    out = ["--local", "--model", "search", "--out", str(tmp_path / "run")]
    words = ["train", *log_in(folder), *features, *out, "--namespace", "test"]
    assert main(words) == 0
    assert "affine-shown" in capsys.readouterr().out
    ranked = str(tmp_path / "ranked.jsonl")
    assert (
        main(["rank", "--model", str(tmp_path / "run"), *features, "--out", ranked])
        == 0
    )
    lines = [json.loads(each) for each in Path(ranked).read_text().splitlines()]
    assert {x["query_id"]: x["items"] for x in lines} == {
        query: [*planted] for query, planted in PLANTED.items()
    }
    capsys.readouterr()
    assert main(["evaluate", ranked, "--local", str(folder / "run"), "--json"]) == 0
    _, own = json.loads(capsys.readouterr().out)["policies"]
    assert own["low"] < 0.7 < own["high"]


def test_features_are_columns_of_the_lists_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Though the table of clicks has a column of that name too."""
    (tmp_path / "l.csv").write_text(
        "impression,query,item,f_a,f_b\n1,q,x,1,2\n1,q,y,3,4\n"
    )
    (tmp_path / "c.csv").write_text("impression,item,f_a\n1,x,wrong\n")
    log = ["--queries", str(tmp_path / "l.csv"), "--clicks", str(tmp_path / "c.csv")]
    for command in (["replay", "--local", "--namespace", "test"], ["validate"]):
        assert main([*command, *log, "--columns", "features=f_*"]) == 0
        assert "2 features of 2 queries and items beside 1 of 1 list" in (
            capsys.readouterr().err
        )


def test_a_judgement_tells_of_a_table_of_features(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a replay does."""
    words = ["validate", *log_in(folder), "--features", str(folder / "features.csv")]
    assert main(words) == 0
    told = capsys.readouterr().err
    assert "2 features of 8 queries and items beside 6,000 of 6,000 lists" in told
