"""Where tests have their services from, and what follows if there are none."""

import subprocess
from pathlib import Path

import pytest

from tests import chromium, nodejs
from tests.services import (
    KafkaService,
    RedisService,
    ServiceMissing,
    kafka_service,
    redis_service,
    without,
)

ROOT = Path(__file__).parents[1]


def test_an_address_in_the_environment_comes_first(tmp_path: Path) -> None:
    """Nothing is started where somebody names a running service."""
    named = {
        "RANKSTREAM_TEST_KAFKA": "elsewhere:1",
        "RANKSTREAM_TEST_REDIS": "redis://elsewhere:2/0",
    }
    with kafka_service(tmp_path, named) as kafka, redis_service(named) as redis:
        assert kafka == KafkaService("elsewhere:1")
        assert redis == RedisService("redis://elsewhere:2/0")
        assert redis.port == 2


def test_a_missing_service_skips_by_hand() -> None:
    """With the reason."""
    with pytest.raises(pytest.skip.Exception, match="no Java"):
        without(ServiceMissing("no Java"), {})


def test_a_missing_service_fails_in_ci() -> None:
    """A green build has seen the real thing."""
    with pytest.raises(pytest.fail.Exception, match="must run in CI; no Java"):
        without(ServiceMissing("no Java"), {"CI": "true"})


def test_a_missing_browser_fails_in_ci(tmp_path: Path) -> None:
    """By hand the page is not drawn."""
    nowhere = {"PATH": str(tmp_path)}
    with pytest.raises(pytest.skip.Exception, match="no browser is on the path"):
        chromium.path(nowhere)
    with pytest.raises(pytest.fail.Exception, match="must run in CI; no browser"):
        chromium.path(nowhere | {"CI": "true"})


def test_missing_node_fails_in_ci(tmp_path: Path) -> None:
    """By hand the client in TypeScript is not tried."""
    nowhere = {"PATH": str(tmp_path)}
    with pytest.raises(pytest.skip.Exception, match="no Node is on the path"):
        nodejs.node(nowhere)
    with pytest.raises(pytest.fail.Exception, match="must run in CI; no Node"):
        nodejs.node(nowhere | {"CI": "true"})


OTHERS = ("javac", "zsh", "fish", "prometheus", "promtool", "redis-server")


@pytest.mark.parametrize(
    ("there", "installed"),
    [
        *(((name, "node", "npm", *OTHERS), "") for name in chromium.NAMES),
        (("chromium", "node", "tsc", *OTHERS), ""),
        (("chromium", "node", *OTHERS), "nodejs node-typescript"),
        (("chromium", *OTHERS), "nodejs node-typescript"),
        (("node", "npm", *OTHERS), "chromium"),
        (("chromium", "node", "npm", *OTHERS[:2], *OTHERS[3:]), "fish"),
        (("chromium", "node", "npm", *OTHERS[:4], OTHERS[5]), "prometheus"),
        (
            (),
            "chromium nodejs node-typescript default-jdk-headless zsh fish prometheus "
            "redis-server",
        ),
    ],
)
def test_ci_installs_what_is_not_there(
    there: tuple[str, ...], installed: str, tmp_path: Path
) -> None:
    """It asks for each that the tests would take, and for Debian's if none is there."""
    (tmp_path / ".ci").mkdir()
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    (tmp_path / ".ci" / "run").write_text(script)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("apt-get", "make", *there):
        program = programs / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path}/called"\n')
        program.chmod(0o755)
    for name in ("bash", "dirname", "nice", "sh"):
        (programs / name).symlink_to(f"/bin/{name}")

    subprocess.run(
        ["/bin/bash", str(tmp_path / ".ci" / "run")],
        env={"PATH": str(programs)}, check=True,
    )  # fmt: skip
    called = (tmp_path / "called").read_text()
    lines = [each for each in called.splitlines() if "apt-get install" in each]
    wanted = f"apt-get install -qq -y --no-install-recommends {installed}"
    assert lines == ([wanted] if installed else [])
    assert "make test" in called
