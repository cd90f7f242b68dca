"""`rankstream simulate` beside a worker that trains by itself: lists wait for it."""

import json
from pathlib import Path

import pytest

from rankstream.cli import main
from tests.services import KafkaService, RedisService
from tests.worker_process import configured, running

POINTS = [300, 700]
SETTINGS = f"""
[time]
click_window_ms = 12_000
disorder_ms = 2_000
idle_ms = 3_000
[delivery]
state_s = 1.0
[models.search]
features = 16
learner = "trained"
[models.search.training]
after = {POINTS}
learning_rate = 0.1
batch = 4
least_support = 1.0
temperature = 0.5
"""
BEHIND = 100
"""Lists that may be shown after a point before its version is there."""


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
    assert len(rows) == 3
    for point, row in zip(POINTS, rows[1:], strict=True):
        assert point <= row["counted"] <= row["first"] <= point + BEHIND + 1
        assert row["reason"] == "count"
    assert rows[-1]["ndcg_test"] > rows[0]["ndcg_test"] + 0.1
