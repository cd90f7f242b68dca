"""The ranker's side in an environment of its own, beside a stranger's `models`."""

import importlib
import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import rankstream
from tests.services import RedisService
from tests.snapshot_factory import envelope

ALLOWED = ["numpy", "redis", "msgspec"]
if sys.version_info < (3, 11, 3):
    ALLOWED.append("async_timeout")  # redis needs it there

SERVICE = """
import json, sys
import models
import rankstream.wire.envelope, rankstream.wire.events, rankstream.wire.routing
import rankstream.settings, rankstream.wire.topics
from rankstream.ranker import Ranker
from rankstream.snapshots import SnapshotStore

url, namespace, envelope = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
if url:
    store = SnapshotStore(url, namespace=namespace)
    store.publish(envelope)
    ranker = Ranker("m", store=store)
else:
    ranker = Ranker("m", source=lambda: envelope)
ranker.load()
ranking = ranker.rank([[1.0, 2.0, 3.0], [3.0, 2.0, 2.0]], cutoff=2)
event = ranker.query_event(ranking, query_id="q", items=["a", "b"], at_ms=1)
places = {name.partition(".")[0]: getattr(module, "__file__", "") or ""
          for name, module in list(sys.modules.items())}
print(json.dumps({
    "version": ranking.version,
    "scores": ranking.scores.tolist(),
    "shown": json.loads(event)["shown"],
    "models": models.WHOSE,
    "loaded": sorted(n for n, p in places.items() if "site-packages" in p),
    "ours": sorted(n for n in sys.modules if n.startswith("rankstream.")),
}))
"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The command of a service that has three packages and a `models` of its own."""
    folder = tmp_path_factory.mktemp("service")
    venv.create(folder / "venv", symlinks=True, with_pip=False)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    for name in ALLOWED:
        package = Path(str(importlib.import_module(name).__file__)).parent
        (site / name).symlink_to(package)
        libraries = package.with_name(f"{name}.libs")
        if libraries.exists():
            (site / libraries.name).symlink_to(libraries)
    (site / "rankstream").symlink_to(Path(str(rankstream.__file__)).parent)
    app = folder / "app"
    (app / "models").mkdir(parents=True)
    (app / "models" / "__init__.py").write_text("WHOSE = 'theirs'\n")
    (app / "service.py").write_text(SERVICE)
    return [str(folder / "venv" / "bin" / "python"), str(app / "service.py")]


def answer_of(command: list[str], *words: str) -> dict[str, object]:
    """What the service prints."""
    done = subprocess.run(
        [*command, *words], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def test_a_service_with_its_own_models_ranks(service: list[str]) -> None:
    """Three packages are enough, and `models` stays theirs."""
    answer = answer_of(service, "", "", envelope(2).hex())
    assert answer["models"] == "theirs"
    assert answer["version"] == 2
    assert answer["scores"] == [12.0, 14.0]
    assert sorted(answer["shown"]) == ["a", "b"]  # type: ignore[call-overload]
    assert set(answer["loaded"]) <= {*ALLOWED, "rankstream"}  # type: ignore[call-overload]
    imported = {"ranker", "settings", "snapshots", "wire", "ranking"}
    ours = {name.split(".")[1] for name in answer["ours"]}  # type: ignore[attr-defined]
    beside = {"configuration", "tls", "redis_store"}
    beside |= {"followed_snapshots", "followed_decisions"}
    # What a format is called is a rule of the settings.
    beside |= {"adapters"}
    assert ours == imported | beside


@pytest.mark.broker
def test_a_service_with_its_own_models_reads_redis(
    service: list[str], redis_server: RedisService, namespace: str
) -> None:
    """The same with a store: it loads what was published."""
    answer = answer_of(service, redis_server.url, namespace, envelope(4).hex())
    assert (answer["models"], answer["version"]) == ("theirs", 4)
