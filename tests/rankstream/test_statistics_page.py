"""What `docs/statistics.md` shows is what happens; its columns are what is written."""

import json
import math
import re
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from rankstream.operations.answers.exports.exported_columns import (
    CELL_FIELDS,
    COUNTED,
    RELEVANCE,
    SETS,
    schemas,
)
from rankstream.operations.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"

SHOWN = {("a", "b"): (80, {1: 40, 2: 12}), ("b", "a"): (20, {1: 12, 2: 4})}
"""Of each list: how often, and clicks by rank; as the page tells it."""

AT_MS = 1_700_000_000_000


def events() -> Iterator[dict[str, Any]]:
    """The log of the page."""
    number = 0
    for shown, (n_lists, clicks) in SHOWN.items():
        for nth in range(n_lists):
            number += 1
            both = {"impression_id": f"i{number}", "query_id": "shoes"}
            yield both | {
                "at_ms": AT_MS + 1_000 * number,
                "shown": shown,
                "candidates": ["a", "b"],
                "policy": "logged",
                "exposures": [0.8, 0.2, 0.2, 0.8],
                "session": f"s{number}",
            }
            for rank, n_clicks in clicks.items():
                if nth < n_clicks:
                    at_ms = AT_MS + 1_000 * number + rank
                    yield both | {"at_ms": at_ms, "position": rank}


def test_the_example_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the log that it tells of; the numbers follow from its counts by hand."""
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps(event) for event in events()]
    Path("log.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["replay", "log.jsonl", "--local", "--out", "run"]) == 0
    capsys.readouterr()
    draws, program, of_export = programs()
    exec(draws, {})  # noqa: S102  our own lines
    assert Path("curve.svg").stat().st_size
    exec(program, {})  # noqa: S102

    told = re.findall(r"^print.*  # (.*)$", program, re.MULTILINE)
    assert capsys.readouterr().out.splitlines() == told
    (ab, in_ab), (ba, in_ba) = SHOWN.values()
    n = ab + ba
    rates = (in_ab[1] + in_ba[2]) / n, (in_ab[2] + in_ba[1]) / n
    chances = 0.8 * n, 0.2 * n
    values = (in_ab[1] + in_ab[2]) / chances[0], (in_ba[1] + in_ba[2]) / chances[1]
    assert told == [
        f"{rates[0]:.2f} {rates[1]:.2f}",
        f"{values[0]:.2f} {values[1]:.2f}",
    ]

    assert main(["statistics", "export", "counts.parquet", "--local", "run"]) == 0
    capsys.readouterr()
    exec(of_export, {})  # noqa: S102
    assert capsys.readouterr().out.split() == told[1].split()
    assert f"It prints {' and '.join(told[1].split())}" in PAGE.read_text("utf-8")


def programs() -> list[str]:
    """Those of the page, in their order."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def test_an_export_has_the_placements_of_scores_also_of_items_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plackett-Luce by its formula; the order of `material` is in a file."""
    monkeypatch.chdir(tmp_path)
    lists = [
        {"impression_id": f"i{n}", "query_id": "q", "at_ms": AT_MS + n, "shown": ["z"]}
        | {"policy": "plackett-luce", "candidates": ["z", "m", "a"]}
        | {"scores": [2.0, 1.0, 0.0]}
        for n in range(10)
    ]
    Path("log.jsonl").write_text("\n".join(map(json.dumps, lists)), encoding="utf-8")
    assert main(["replay", "log.jsonl", "--local", "--out", "run"]) == 0
    words = ["statistics", "export", "counts.parquet", "--local", "run"]
    assert main([*words, "--examination", "1,0.5,0.33"]) == 0

    expected: Counter[str] = Counter()
    for row in parquet.read_table("counts.parquet").to_pylist():
        assert row["rank"] == 1
        expected[row["item"]] += row["expected"]
    strengths = {
        item: math.exp(score) for item, score in {"z": 2, "m": 1, "a": 0}.items()
    }
    whole = sum(strengths.values())
    assert expected == pytest.approx({i: 10 * s / whole for i, s in strengths.items()})
    (candidates,) = parquet.read_table("counts.sets.parquet").to_pylist()
    assert candidates["items"] == ["a", "m", "z"]
    rows = parquet.read_table("counts.rows.parquet").to_pylist()
    assert {row["material"] for row in rows} == {struct.pack("<3f", 0, 1, 2)}


def test_every_column_that_is_written_is_explained() -> None:
    """In its order, and no other one."""
    told = {}
    for part in PAGE.read_text(encoding="utf-8").split("\n### `counts")[1:]:
        name, _, rest = part.partition("`")
        table = rest.partition("\n## ")[0]
        cells = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
        told[name.removesuffix(".parquet")] = re.findall(r"`(\w+)`", " ".join(cells))
    n_common = len(CELL_FIELDS)
    assert told == {
        suffix: schema.names[0 if suffix in (SETS, RELEVANCE, COUNTED) else n_common :]
        for suffix, schema in schemas().items()
    }
