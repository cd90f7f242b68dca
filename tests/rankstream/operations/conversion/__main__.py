"""Makes `schema1_statistics.bin`: statistics as the release before scopes wrote them.

    git worktree add OLD bdf8f94
    python -m tests.rankstream.operations.conversion OLD

The code in OLD, the last commit that wrote schema 1, replays random events with every
policy under small limits, so that sets, interventions and exposure rows are beyond
them, and over more days than `keep_ms`, so that items have left. What it then exports
is stored beside the statistics, as `schema1_expected.json.xz`: tables of rows whose
first columns name the cell.
"""

import json
import lzma
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

STATE = Path(__file__).with_name("schema1_statistics.bin")
EXPECTED = Path(__file__).with_name("schema1_expected.json.xz")
TABLES = ("", "cells", "items", "click-pairs", "rows")
SETTINGS = """
[time]
keep_ms = 172_800_000
[limits]
candidate_sets = 2
interventions = 3
exposure_rows = 2
list_masks = 3
"""
START_MS = 1_700_000_000_000
STEP_MS = 900_000
N_IMPRESSIONS = 640
POLICIES = (
    "deterministic",
    "tail-shuffle",
    "logged",
    "plackett-luce",
    "unknown",
    "multileave",
)


def main(old: Path) -> int:
    """Make both files, and say how large they are."""
    with tempfile.TemporaryDirectory(prefix="rankstream-schema1-") as name:
        folder = Path(name)
        (folder / "old.toml").write_text(SETTINGS)
        with (folder / "events.jsonl").open("w") as file:
            for event in events():
                file.write(json.dumps(event) + "\n")
        config = ["--config", "old.toml"]
        _run(old, folder, "replay", *config, "--local", "--out", "run", "events.jsonl")
        _run(
            old, folder, "statistics", *config, "export", "t.parquet", "--local", "run"
        )
        STATE.write_bytes((folder / "run" / "statistics.bin").read_bytes())
        expected = {table or "pairs": _table(folder, table) for table in TABLES}
    EXPECTED.write_bytes(lzma.compress(json.dumps(expected).encode(), preset=9))
    for path in (STATE, EXPECTED):
        print(f"{path}: {path.stat().st_size:,} bytes")  # noqa: T201
    return 0


def events() -> list[dict[str, Any]]:
    """Lists and clicks, in the order of their times."""
    rng = np.random.default_rng(11)
    made: list[dict[str, Any]] = []
    for number in range(N_IMPRESSIONS):
        shown = _shown(rng, number)
        made.append(shown)
        for position in range(1, len(shown["shown"]) + 1):
            if position <= 40 and rng.random() < 0.5 / position**0.5:
                made.append(
                    {
                        "impression_id": shown["impression_id"],
                        "query_id": shown["query_id"],
                        "at_ms": shown["at_ms"] + 1_000 * position,
                        "position": position,
                        "action": "purchase" if rng.random() < 0.3 else "click",
                    }
                )
    return made


def _shown(rng: np.random.Generator, number: int) -> dict[str, Any]:
    query = ("shoes", "hats", "öl", "long", "rare", "new")[min(5, number % 9)]
    if query == "rare" and number > N_IMPRESSIONS // 3:
        query = "shoes"
    # Of one query there are more exposure rows than a cell keeps.
    is_new = query == "new"
    policy = POLICIES[int(rng.integers(1, 4) if is_new else rng.integers(6))]
    which = int(rng.integers(3)) if query == "hats" else 0
    n_items = 45 if query == "long" else 6
    # Later lists show none of the first items: those leave.
    first = 3 if is_new or number > N_IMPRESSIONS // 2 else 0
    candidates = [f"{query}-{which}-{first + item}" for item in range(n_items)]
    length = 40 if query == "long" else int(rng.integers(1, 5))
    event: dict[str, Any] = {
        "impression_id": f"i{number}",
        "query_id": query,
        "at_ms": START_MS + number * STEP_MS,
        "shown": [candidates[item] for item in rng.permutation(n_items)[:length]],
        "policy": policy,
        "model": "m",
        "session": f"s{int(rng.integers(9))}",
        "intervention": f"v{0 if is_new else int(rng.integers(4))}",
    }
    if policy in ("unknown", "deterministic") and rng.random() < 0.4:
        return event
    event["candidates"] = candidates
    if policy == "plackett-luce":
        event["scores"] = rng.integers(0, 3, n_items).astype(float).tolist()
    if policy == "logged":
        share = (1.0 - 0.25 * (number % 3)) / n_items
        event["exposures"] = [share] * (n_items * length)
    return event


def _run(old: Path, folder: Path, *words: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "rankstream", *words],
        check=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(old)},
    )


def _table(folder: Path, table: str) -> list[list[Any]]:
    path = folder / (f"t.{table}.parquet" if table else "t.parquet")
    return [
        [value.hex() if isinstance(value, bytes) else value for value in row.values()]
        for row in pq.read_table(path).to_pylist()
    ]


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
