"""The example of docs/evaluate.md, as most logs are: lists and clicks, no policy.

Corrected relevance, an export and values of rankings, each by the same estimator, said
with its reason; and the log with its policies gives what it gave before.
"""

import csv
import json
import re
from collections import defaultdict
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

WITH_POLICIES = [
    ("shoes", "c", 884.9088167146277, 0.5220876900235353, 0.4786963249762735),
    ("shoes", "b", 1424.7654610912398, 0.2975928400701508, 0.26643589209573465),
    ("shoes", "d", 1686.4341208939409, 0.19745805417141593, 0.1830898006401851),
    ("shoes", "a", 1946.1425192830588, 0.09762902671177148, 0.08379906767854203),
    ("tea", "a", 1014.6996587562043, 0.4060314758605716, 0.36917710932749537),
    ("tea", "c", 1288.614639225924, 0.33213963815986236, 0.30750637816103304),
    ("tea", "b", 1688.2242665574752, 0.1415688689793296, 0.12944729374869085),
    ("tea", "d", 1950.7123534432635, 0.03947275971471903, 0.032731242136376695),
]
"""Exposure, relevance and the lower end, from before there was a choice."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each form of the log, and what a replay of it counts."""
    path = tmp_path_factory.mktemp("plain")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        (program,) = PROGRAM.findall(PAGE)
        exec(compile(program, "docs/evaluate.md", "exec"), {})  # noqa: S102  our own
    lines = (path / "log.jsonl").read_text().splitlines()
    events: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for each in events:
        each.pop("policy", None)
        each.pop("scores", None)
    (path / "candidates.jsonl").write_text(
        "".join(json.dumps(x) + "\n" for x in events)
    )
    write_rows(path / "plain.csv", events)
    for name in ("log.jsonl", "candidates.jsonl", "plain.csv"):
        words = ["--local", "--out", str(path / f"{name}.run"), "--namespace", "test"]
        assert main(["replay", str(path / name), *words]) == 0
    return path


def write_rows(path: Path, events: list[dict[str, Any]]) -> None:
    """A row for each shown item, and nothing on candidates."""
    clicked: dict[str, set[int]] = defaultdict(set)
    for each in events:
        if "position" in each:
            clicked[each["impression_id"]].add(each["position"])
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(
            ["impression", "query", "at", "user", "position", "item", "clicked"]
        )
        for each in events:
            name = each["impression_id"]
            for rank, item in enumerate(each.get("shown", ()), 1):
                place = name, each["query_id"], each["at_ms"], each["user"]
                rows.writerow([*place, rank, item, int(rank in clicked[name])])


def exported(folder: Path, log: str, tmp_path: Path) -> list[dict[str, Any]]:
    """Rows of corrected relevance."""
    file = tmp_path / "out.parquet"
    run = str(folder / f"{log}.run")
    assert main(["statistics", "export", str(file), "--local", run]) == 0
    found: list[dict[str, Any]] = pq.read_table(
        tmp_path / "out.relevance.parquet"
    ).to_pylist()
    return found


PLAIN = ("plain.csv", "candidates.jsonl")


@pytest.mark.parametrize("log", PLAIN)
def test_an_export_has_the_planted_order(
    folder: Path, log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beyond doubt: no interval reaches another; and why it is so made is beside it.

    Where candidates are named, those that a list left out count as nothing known of.
    """
    rows = exported(folder, log, tmp_path)
    for query, planted in PLANTED.items():
        own = [row for row in rows if row["query"] == query]
        assert [row["item"] for row in own] == [*planted]
        ends = [end for row in own for end in (row["high"], row["low"])]
        assert ends == sorted(ends, reverse=True)
        for row in own:
            assert row["relevance"] == pytest.approx(planted[row["item"]], abs=0.035)
            assert row["estimator"] == "affine-shown"
            assert "nobody knows how these lists came about" in row["chosen"]
            assert "better: log with each list how it was drawn" in row["chosen"]
    told = " ".join(capsys.readouterr().out.split())
    assert "relevance of 2 queries by affine-shown: nobody knows" in told


@pytest.mark.parametrize("log", PLAIN)
def test_one_query_is_shown_in_the_planted_order(
    folder: Path,
    log: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With what was taken and why, and the curve with its intervals."""
    monkeypatch.setenv("COLUMNS", "250")
    run = str(folder / f"{log}.run")
    assert main(["statistics", "show", "shoes", "--local", run]) == 0
    _, told = capsys.readouterr().out.split("relevance, corrected for position")
    rows = [line.split() for line in told.splitlines() if line[:1] == "│"]
    assert [row[1] for row in rows] == [*PLANTED["shoes"]]
    assert all("to" in row for row in rows)
    assert "by affine-shown: nobody knows how these lists came about" in told
    curve = re.compile(
        r"examination by rank, .*, with intervals of 95 % each: "
        r"1\.00, 0\.56 \[0\.\d\d to 0\.\d\d\], 0\.42 \[0\.\d\d to 0\.\d\d\]"
    )
    assert curve.search(told)


@pytest.mark.parametrize("log", PLAIN)
def test_rankings_are_valued_at_what_they_would_get(
    folder: Path,
    log: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The truth lies in the interval; both figures of the log are explained."""
    monkeypatch.setenv("COLUMNS", "250")
    words = ["evaluate", str(folder / "best.jsonl")]
    words += ["--local", str(folder / f"{log}.run")]
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    logged, best = found["policies"]
    assert best["low"] < 0.7 < best["high"]
    assert best["verdict"] == "better"
    told = f"best {best['reward']:.4f}, from {best['low']:.4f} to {best['high']:.4f}"
    assert told.replace("0.", ".") in PAGE.replace("\n", " ")
    counted = found["logged_clicks"]
    assert counted["low"] < logged["reward"] < counted["high"]
    assert found["estimator"] == "affine-shown"
    assert found["chosen"].startswith("by affine-shown: nobody knows")
    assert found["coverage"]["n_as_shown"] == 6_000
    curve = found["curve"]
    for low, alpha, high in zip(
        curve["alpha_low"][1:], curve["alpha"][1:], curve["alpha_high"][1:], strict=True
    ):
        assert low < alpha < high
    assert main(words) == 0
    told = capsys.readouterr().out
    assert found["chosen"] in told
    assert "The row 'logged' estimates the same" in told
    assert "with intervals of 95 % each: 1.00, 0.56 [" in told


def test_with_policies_it_is_what_it_was(folder: Path, tmp_path: Path) -> None:
    """To the last bit."""
    rows = exported(folder, "log.jsonl", tmp_path)
    names = "query", "item", "exposure", "relevance", "low"
    assert [tuple(row[name] for name in names) for row in rows] == WITH_POLICIES
    assert {row["estimator"] for row in rows} == {"intervention-aware"}


def test_a_log_half_of_which_names_its_policies_is_answered_by_both_halves(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By each command alike, and none says that nobody knows."""
    monkeypatch.setenv("COLUMNS", "250")
    lines = []
    for n, line in enumerate((folder / "log.jsonl").read_text().splitlines()):
        event = json.loads(line)
        if "shown" in event and n % 2:
            event.pop("policy")
            event.pop("scores")
        lines.append(json.dumps(event))
    (tmp_path / "half.jsonl").write_text("\n".join(lines) + "\n")
    run, log = str(tmp_path / "run"), str(tmp_path / "half.jsonl")
    assert main(["replay", log, "--local", "--out", run, "--namespace", "test"]) == 0
    for words in (
        ["statistics", "show", "shoes"],
        ["statistics", "export", str(tmp_path / "out.parquet")],
        ["evaluate", str(folder / "best.jsonl")],
    ):
        capsys.readouterr()
        assert main([*words, "--local", run]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert "by intervention-aware: policies are known" in told
        beside = re.search(r"([\d,]+) lists beside unknown policies", told)
        assert beside
        n_all = 3_000 if "show" in words else 6_000
        n_beside = int(beside[1].replace(",", ""))
        assert 0.4 * n_all < n_beside < 0.6 * n_all
        assert "nobody knows" not in told
    rows = pq.read_table(tmp_path / "out.relevance.parquet").to_pylist()
    for row in rows:
        planted = PLANTED[row["query"]][row["item"]]
        assert row["relevance"] == pytest.approx(planted, abs=0.05)


def test_what_a_short_curve_or_ranking_leaves_out_is_said(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Clicks below a curve's last rank, and ranks that a policy leaves empty."""
    monkeypatch.setenv("COLUMNS", "250")
    run = str(folder / "plain.csv.run")
    words = ["--local", run, "--examination", "1,0.55"]
    for command in (["show", "tea"], ["export", str(tmp_path / "out.parquet")]):
        capsys.readouterr()
        assert main(["statistics", *command, *words]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert re.search(r"the curve has 2 ranks: [\d,]+ clicks further down", told)
    short = [{"query_id": query, "items": [*PLANTED[query]][:1]} for query in PLANTED]
    (tmp_path / "one.jsonl").write_text("\n".join(map(json.dumps, short)) + "\n")
    capsys.readouterr()
    assert main(["evaluate", str(tmp_path / "one.jsonl"), "--local", run]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "one ranks fewer items than 6,000 lists showed, 100.0%" in told
    assert main(["evaluate", str(folder / "best.jsonl"), "--local", run]) == 0
    assert "ranks fewer items" not in capsys.readouterr().out


def test_an_estimator_that_is_asked_for_is_taken(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even one that has no answer; then it is said what would have."""
    monkeypatch.setenv("COLUMNS", "250")
    run = str(folder / "plain.csv.run")
    words = ["--local", run, "--estimator"]
    assert main(["statistics", "show", "tea", *words, "intervention-aware"]) == 0
    told = capsys.readouterr().out
    assert "as --estimator asks; better: affine-shown" in told
    assert "3,000 lists left out" in told
    best = str(folder / "best.jsonl")
    assert main(["evaluate", best, *words, "policy-aware"]) == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "all 6,000 lists are of unknown ones" in told
    file = str(tmp_path / "out.parquet")
    assert main(["statistics", "export", file, *words, "rerank"]) == 0
    rows = pq.read_table(tmp_path / "out.relevance.parquet").to_pylist()
    assert {row["estimator"] for row in rows} == {"rerank"}
    assert all(row["relevance"] is not None for row in rows)


def test_lists_that_never_differed_have_no_answer_but_one_thing_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said alike, on standard error; a curve that is given is the remedy."""
    monkeypatch.setenv("COLUMNS", "250")
    rows = [
        f"i{n},tea,{1_750_000_000_000 + n},u{n % 50},{rank},{item},{int(n % 3 == 0)}"
        for n in range(300)
        for rank, item in enumerate("ab", 1)
    ]
    head = "impression,query,at,user,position,item,clicked"
    (tmp_path / "log.csv").write_text("\n".join([head, *rows]) + "\n")
    best = {"query_id": "tea", "items": ["b", "a"]}
    (tmp_path / "best.jsonl").write_text(json.dumps(best) + "\n")
    run = str(tmp_path / "run")
    log = str(tmp_path / "log.csv")
    assert main(["replay", log, "--local", "--out", run, "--namespace", "test"]) == 0
    capsys.readouterr()
    show = ["statistics", "show", "tea", "--local", run]
    export = ["statistics", "export", str(tmp_path / "x.parquet"), "--local", run]
    evaluate = ["evaluate", str(tmp_path / "best.jsonl"), "--local", run]
    for words in (show, export, evaluate):
        assert main(words) == 1
        told = " ".join(capsys.readouterr().err.split())
        assert "always stood at the same ranks: give --examination" in told
        assert "a guess such as 1,0.5,0.33,0.25" in told
    assert pq.read_table(tmp_path / "x.relevance.parquet").num_rows == 0
    for words in (show, export, evaluate):
        assert main([*words, "--examination", "1,0.5,0.33,0.25"]) == 0
    assert "by affine-shown" in capsys.readouterr().out
    (a, b) = pq.read_table(tmp_path / "x.relevance.parquet").to_pylist()
    assert (b["item"], a["item"]) == ("a", "b")
    assert (a["relevance"], b["relevance"]) == pytest.approx((2 / 3, 1 / 3))
