"""The Redis of development: its life."""

import subprocess
import sys
from pathlib import Path

import pytest
import redis

from deploy.process import answers
from deploy.redis_server import Redis, main
from tests.services import RedisService


def test_a_killed_redis_starts_again_empty_on_its_port(tmp_path: Path) -> None:
    """Nothing is written to disk; clients find it where it was."""
    server = Redis(tmp_path)
    try:
        server.start()
        with redis.Redis.from_url(server.url) as client:
            client.set("key", "value")
            assert client.config_get("maxmemory-policy") == {
                "maxmemory-policy": "noeviction"
            }
        server.kill()
        assert not answers(server.port)
        server.start()
        with redis.Redis.from_url(server.url) as client:
            assert client.keys() == []
    finally:
        server.stop()
    assert {path.suffix for path in tmp_path.iterdir()} == {".log"}


def test_started_from_a_shell_it_stays_until_it_is_stopped(tmp_path: Path) -> None:
    """start, status, start again, stop, status."""
    port = str(Redis(tmp_path).port)

    def said(verb: str) -> tuple[int, str]:
        words = [verb, "--port", port, "--dir", str(tmp_path)]
        result = subprocess.run(
            [sys.executable, "-m", "deploy.redis_server", *words],
            capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
        )  # fmt: skip
        return result.returncode, result.stdout + result.stderr

    try:
        assert said("start")[0] == 0
        assert said("status") == (0, f"Redis answers at 127.0.0.1:{port}\n")
        status, reason = said("start")
        assert status == 1
        assert f"somebody listens on {port}" in reason
    finally:
        assert said("stop") == (0, "Redis stopped\n")
    assert said("status")[0] == 1


def test_the_fixture_answers(redis_server: RedisService) -> None:
    """A real server, at the address that it says."""
    with redis.Redis(port=redis_server.port) as client:
        assert client.ping() is True


def test_help_says_the_port_and_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a server is that nobody placed."""
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "to listen on (default: 6379)" in said
    assert "its files (default: " in said
