"""Pages of a real worker: roles become ready, and says when Redis goes away."""

import http.client
import json
import time
from pathlib import Path

from deploy.process import free_port
from deploy.redis_server import Redis
from streams.worker_roles import ROLES
from tests.services import KafkaService
from tests.worker_process import PATIENCE_S, WorkerProcess, configured

MORE = """
[metrics]
port = {port}
"""


def ready(port: int) -> tuple[int, list[str]]:
    """Status and reasons of `/readyz`; 0 where nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())["reasons"]
    except OSError:
        return 0, []
    finally:
        connection.close()


def await_ready(port: int, code: int, log: Path) -> list[str]:
    """Wait for an answer with this status; its reasons."""
    deadline = time.monotonic() + PATIENCE_S
    while (found := ready(port))[0] != code:
        assert time.monotonic() < deadline, (found, log.read_text())
        time.sleep(0.2)
    return found[1]


def test_roles_become_ready(
    kafka: KafkaService, namespace: str, tmp_path: Path
) -> None:
    """The publisher is not while Redis is away, and no role ends because of it."""
    (tmp_path / "redis").mkdir()
    redis = Redis(tmp_path / "redis")
    redis.start()
    port, log = free_port(len(ROLES)), tmp_path / "log"
    more = MORE.format(port=port)
    config = configured(tmp_path, kafka.bootstrap, redis.url, namespace, more)
    worker = WorkerProcess(config, log)
    try:
        for role in ("ingest", "fold", "publish"):
            await_ready(port + ROLES[role].metrics_port, 200, log)
        redis.kill()
        of_publisher = port + ROLES["publish"].metrics_port
        assert any(
            reason.startswith(f"Redis at {redis.url}")
            for reason in await_ready(of_publisher, 503, log)
        )
        redis.start()
        await_ready(of_publisher, 200, log)
        assert worker.stop()[0] == 0
        assert "event=child-ended" not in worker.said()
        assert "event=worker-ended" not in worker.said()
    finally:
        if worker.process.poll() is None:
            worker.stop()
        worker.close()
        redis.kill()
