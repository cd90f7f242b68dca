"""Pages of the reference say what the code says, and change with it."""

import re
from collections.abc import Callable

import pytest

from docs.reference import (
    api,
    commands,
    http,
    metrics,
    results,
    schemas,
    settings,
)
from rankstream.operations.cli import COMMANDS
from rankstream.operations.commands.results import result_schemas
from rankstream.operations.serving.application import endpoints_of, parts_of
from rankstream.operations.serving.requests import RankRequest
from rankstream.ranker import Ranker
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.events import QueryEvent
from streams.kafka.status import metrics as told
from streams.kafka.status.meanings import MEANINGS
from streams.kafka.status.metrics import TIMES_MS
from streams.local import LocalPipeline, local_settings
from tests.pages import rows_below

CHANGED = "Says another thing now."


@pytest.mark.parametrize(
    ("page", "documented"),
    [
        (api.page, Ranker),
        (api.page, Ranker.rank),
        (settings.page, KafkaSettings),
        (schemas.page, QueryEvent),
        (http.page, RankRequest),
    ],
)
def test_a_changed_docstring_changes_the_page(
    page: Callable[[], str], documented: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a class, a method, a section, an event and a request."""
    assert CHANGED not in page()
    monkeypatch.setattr(documented, "__doc__", CHANGED)
    assert CHANGED in page()


def test_a_changed_command_changes_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the list of all, and where it is described."""
    monkeypatch.setitem(COMMANDS, "dump", CHANGED)
    assert commands.page().count(CHANGED) == 2


def test_a_changed_name_of_a_metric_changes_the_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What falls as well as rises is a gauge by its name."""
    assert "`rankstream_late_total` | counter" in metrics.page()
    monkeypatch.setattr(told, "GAUGES", (*told.GAUGES, "late"))
    assert "`rankstream_late` | gauge" in metrics.page()


def test_every_command_and_action_has_its_options() -> None:
    """Also those of the lab."""
    page = commands.page()
    for name in COMMANDS:
        assert f"\n## {name}\n" in page
    assert "\n### snapshots rollback\n" in page
    assert "| `--dry-run` | with replay: send nothing |" in page


def test_every_result_has_its_fields() -> None:
    """As the schemas that the command prints; what may be null says so."""
    page = results.page()
    for call in result_schemas():
        assert f"\n## {call}\n" in page
    assert "| `lower` | number or null |" in page
    assert "['" not in page


def test_every_setting_has_what_it_may_be() -> None:
    """Each row of each section got a column, in the place of the head."""
    page = settings.page()
    assert settings.HEAD not in page
    rows = rows_below("| setting | default | may be | is |", page)
    assert len(rows) > 100
    assert [row for row in rows if len(row) < 4 or not row[2]] == []
    (bound,) = [row[2] for row in rows if row[0] == "`input_partitions`"]
    assert bound == "integer, above 0"


def test_every_path_is_there() -> None:
    """That the server answers, but for its script and its own page of counts."""
    paths = {each.path for each in endpoints_of(parts_of(Settings()))}
    named = set(re.findall(r"^## [A-Z]+ (/.*)$", http.page(), re.MULTILINE))
    assert paths - named <= {"/beacon.js", "/metrics", "/openapi.json"}
    assert named <= paths


def test_every_metric_says_what_it_counts() -> None:
    """In words, and there are none for counts that nobody tells."""
    rows = rows_below("| metric | is a | by | counts |", metrics.page())
    every = {row[0].strip("`") for row in rows}
    names = {name.removeprefix("rankstream_") for name in every}
    bare = {name.removesuffix("_total") for name in names}
    assert MEANINGS.keys() <= bare
    assert not [row for row in rows if row[3] == row[0].strip("`").replace("_", " ")]
    own = {name for name in bare if name.startswith("serve_")}
    of_system = {name for name in bare if name.startswith("process_")}
    assert bare - own - of_system - MEANINGS.keys() == {"build_info"}


def test_every_count_of_the_pipeline_is_a_metric() -> None:
    """As the in-process runtime counts them."""
    pipeline = LocalPipeline(local_settings(Settings()), now=lambda: 0)
    page = metrics.page()
    for name in pipeline.counters():
        plain = name.removeprefix("ingestion_")
        assert f"`rankstream_{TIMES_MS.get(plain, plain)}" in page
