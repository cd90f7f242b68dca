"""`rankstream simulate` beside a worker that trains by itself: lists wait for it."""

import json
import time
from pathlib import Path

import pytest

from producers.topic_reader import TopicReader
from rankstream.operations.cli import main
from rankstream.settings import load_settings
from rankstream.wire.topics import STATISTICS
from streams.statistics import keys
from tests.services import KafkaService, RedisService
from tests.worker_process import PATIENCE_S, configured, running

POINTS = [300, 700]
SETTINGS = f"""
[time]
click_window_ms = 12_000
disorder_ms = 4_000
idle_ms = 10_000
[delivery]
state_s = 1.0
[models.search]
features = 16
versions = "trained"
[models.search.training]
after = {POINTS}
learning_rate = 0.1
batch = 4
least_support = 1.0
temperature = 0.5
"""
BEHIND = 100
"""Lists that may be shown after a point before its version is there."""


def n_counted(config: Path, at_least: int) -> int:
    """Interactions that the statistics have counted, as soon as they are so many."""
    deadline = time.monotonic() + PATIENCE_S
    with TopicReader(load_settings(config)) as reader:
        while True:
            counted = {
                each.partition: keys.decode_counted(each.value)
                for each in reader.records(STATISTICS)
                if each.key == keys.counted_key(each.partition) and each.value
            }
            found = sum(sum(each.sources.values()) for each in counted.values())
            if found >= at_least or time.monotonic() > deadline:
                return found
            time.sleep(0.2)


@pytest.mark.broker
def test_a_refusal_is_said_while_lists_are_shown(
    tmp_path: Path,
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With what to set; the last policy stays."""
    own = SETTINGS.replace("least_support = 1.0", "least_support = 1e6")
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, own)
    words = ["simulate", "--config", str(config), "--model", "search"]
    words += ["--impressions", "500", "--max-behind", str(BEHIND)]
    with running(config, tmp_path / "worker.log") as worker:
        assert main(words) == 0, worker.said()[-3_000:]
    lines = capsys.readouterr().err.splitlines()
    why = "'search' must have items of least_support, 1e+06 expected looks"
    said = [x for x in lines if x.startswith(f"training of search refused: {why}")]
    assert len(said) == 1
    assert lines[-1].startswith(f"the last training was refused: {why}")


@pytest.mark.broker
def test_interventions_come_by_themselves(
    tmp_path: Path,
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each version shows the lists from soon after its point to the next."""
    config = configured(
        tmp_path, kafka.bootstrap, redis_server.url, namespace, SETTINGS
    )
    words = ["simulate", "--config", str(config), "--model", "search", "--json"]
    words += ["--impressions", "1000", "--max-behind", str(BEHIND)]
    with running(config, tmp_path / "worker.log") as worker:
        assert main([*words, "--interventions", "2"]) == 0, worker.said()[-3_000:]
        rows = json.loads(capsys.readouterr().out)["interventions"]
        assert n_counted(config, at_least=1_000) == 1_000
        # Very many would end too far ahead of now; a few lists follow in time.
        assert main([*words, "--impressions", "5000"]) == 2
        said = capsys.readouterr().err
        assert f"{namespace!r} is at" in said
        assert "another --namespace" in said
        assert main([*words, "--impressions", "200"]) == 0, worker.said()[-3_000:]
        assert n_counted(config, at_least=1_200) == 1_200
    assert len(rows) == 3
    for point, row in zip(POINTS, rows[1:], strict=True):
        assert point <= row["counted"] <= row["first"] <= point + BEHIND + 1
        assert row["reason"] == "count"
    assert rows[-1]["ndcg_test"] > rows[0]["ndcg_test"] + 0.1
