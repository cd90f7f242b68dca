"""The client in TypeScript: it compiles, computes the vectors, and compares rankers."""

import json
import os
import time
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from rankstream.experiment_records import RUNNING
from rankstream.settings import ExperimentSettings
from rankstream.wire.event_schemas import event_schemas
from rankstream.wire.topics import CLICKS, QUERIES
from rankstream.wire.verdicts import encode_verdict
from streams.comparisons.verdicts import verdict_of
from streams.local import LocalPipeline, local_settings
from tests import nodejs
from tests.served import served, settings_of
from tests.services import ServiceMissing, without

EXPERIMENT = ExperimentSettings(
    rankers={"old": "", "new": ""},
    method="team-draft",
    length=4,
    planned_impressions=300,
)


class Store:
    """Has the one experiment."""

    def documents(self, kind: str) -> dict[str, bytes]:
        """Those of a kind."""
        return {"boost": msgspec.json.encode(EXPERIMENT)} if kind == RUNNING else {}


@pytest.fixture(scope="module")
def node() -> str:
    """Node, once the client is compiled."""
    found = nodejs.node()
    status, said = nodejs.ran(found, "build.mjs")
    if status and ("npm error" in said or "Node must be" in said):
        without(ServiceMissing(said[-400:]), os.environ)
    assert status == 0, said
    return found


@pytest.mark.parametrize("name", ["vectors", "client"])
def test_tests_of_its_own_pass(name: str, node: str) -> None:
    """Vectors computed once more, and servers that fail."""
    status, said = nodejs.ran(node, "--test", f"test/{name}.test.mjs")
    assert status == 0, said
    assert "# pass 0" not in said


def test_types_that_are_not_those_of_the_schemas_are_refused(
    node: str, tmp_path: Path
) -> None:
    """With the command that writes them."""
    copy = tmp_path / "producers" / "typescript"
    (copy / "src").mkdir(parents=True)
    contract = nodejs.CLIENT.parents[1] / "docs" / "contract"
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "contract").symlink_to(contract)
    types = (nodejs.CLIENT / "src" / "types.ts").read_text()
    (copy / "src" / "types.ts").write_text(types.replace("shown:", "shown?:"))
    (copy / "generate.mjs").write_bytes((nodejs.CLIENT / "generate.mjs").read_bytes())
    status, said = nodejs.ran(node, str(copy / "generate.mjs"), "--check")
    assert status == 1
    assert "run `node producers/typescript/generate.mjs`" in said

    assert nodejs.ran(node, str(copy / "generate.mjs"))[0] == 0
    assert (copy / "src" / "types.ts").read_text() == types


def test_a_service_compares_two_rankers(node: str, tmp_path: Path) -> None:
    """Over HTTP, until a verdict; all counts are those that the service told."""
    file = tmp_path / "told.json"
    with served(settings_of()) as server:
        store: Any = Store()
        server.parts.experiments.store = store
        server.parts.experiments.refresh()
        status, said = nodejs.ran(
            node, "--test", "test/live.test.mjs",
            RANKSTREAM_URL=f"http://127.0.0.1:{server.port}", RANKSTREAM_TOLD=str(file),
        )  # fmt: skip
        assert status == 0, said
        lists, clicks = server.values(QUERIES), server.values(CLICKS)
    assert "# skipped 0" in said
    told = json.loads(file.read_text())
    settings = msgspec.structs.replace(
        local_settings(settings_of()), experiments={"boost": EXPERIMENT}
    )
    pipeline = LocalPipeline(settings, now=lambda: time.time_ns() // 1_000_000)
    for topic, values in ((QUERIES, lists), (CLICKS, clicks)):
        for value in values:
            pipeline.send(topic, value)
    pipeline.end()

    counters = pipeline.counters()
    assert counters["applied_impressions"] == told["lists"]
    assert counters["applied_clicks"] == told["clicks"]
    assert counters["duplicate"] == told["repeats"]
    assert counters["orphan"] == counters["late"] == 0
    (found,) = pipeline.comparisons()
    assert found.totals[0] == len(set(told["impressions"])) == 300
    assert found.refusals == {}
    assert found.n_foreign_seeds == 0
    verdict = verdict_of(found)
    assert verdict.methods["team-draft"].winner == "new"
    schema = event_schemas()["verdict"]
    jsonschema.Draft202012Validator(schema).validate(
        json.loads(encode_verdict(verdict))
    )
    own = [each for each in lists if told["own"].encode() in each]
    assert b'"seed":9223372036854775807' in own[0]


def test_the_page_shows_the_example_that_compiles() -> None:
    """Word for word."""
    example = (nodejs.CLIENT / "examples" / "two-rankers.ts").read_text()
    assert f"```ts\n{example}```\n" in (nodejs.CLIENT / "README.md").read_text()
