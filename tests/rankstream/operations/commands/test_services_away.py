"""Nobody answers: every command says so in the same words, and waits where it can."""

import subprocess
import sys
from pathlib import Path

import pytest

from rankstream.ranker import NoSnapshot, Ranker
from rankstream.snapshots import SnapshotStore
from tests.worker_process import PATIENCE_S

NOWHERE = "127.0.0.1:1"
AT = {"Kafka": NOWHERE, "Redis": f"redis://{NOWHERE}/0"}
CLICK = '{"impression_id": "i", "query_id": "q", "at_ms": 5, "position": 1}\n'


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Options that lead to a Kafka and a Redis that are not there."""
    (tmp_path / "click.jsonl").write_text(CLICK)
    file = tmp_path / "away.toml"
    file.write_text(
        f'[kafka]\nbootstrap = "{NOWHERE}"\n[redis]\nurl = "{AT["Redis"]}"\n'
        "[models.search]\nfeatures = 16\n"
    )
    return ["--config", str(file)]


@pytest.mark.parametrize(
    ("command", "service"),
    [
        (["topics", "create"], "Kafka"),
        (["topics", "check"], "Kafka"),
        (["feed"], "Kafka"),
        (["replay", "click.jsonl"], "Kafka"),
        (["statistics", "list"], "Kafka"),
        (["dlq", "count"], "Kafka"),
        (["dump", "log.dump"], "Kafka"),
        (["experiments", "show", "boost"], "Kafka"),
        (["worker", "--role", "publish"], "Kafka"),
        (["simulate", "--model", "search"], "Redis"),
        (["snapshots", "list"], "Redis"),
        (["snapshots", "show", "search"], "Redis"),
        (["experiments", "list"], "Redis"),
        (["experiments", "publish"], "Redis"),
    ],
)
def test_a_command_says_what_it_waits_for_and_goes_on(
    command: list[str], service: str, words: list[str], tmp_path: Path
) -> None:
    """One line, and the command is still there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rankstream", *command, *words],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    try:
        said = next(line for line in process.stdout if "waiting" in line)
        assert f"{service} at {AT[service]}" in said
        assert process.poll() is None
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def test_a_ranker_tells_an_absent_redis_from_an_absent_model() -> None:
    """Its operator looks at the right thing."""
    ranker = Ranker("search", store=SnapshotStore(AT["Redis"]))
    assert not ranker.wait(0.0)
    with pytest.raises(NoSnapshot, match=f"Redis at {AT['Redis']} does not answer"):
        ranker.rank([[1.0]])
    assert ranker.awaited == f"Redis at {AT['Redis']}"
