"""The one table of stages, topics and roles: whole, consistent, and as the docs say."""

import ast
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest

import streams
import streams.roles
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.bounds import LARGEST
from rankstream.wire.topics import (
    CLICKS,
    DECISIONS,
    EVALUATIONS,
    EVENTS,
    EXPERIMENTS,
    PREFERENCES,
    QUERIES,
    SNAPSHOTS,
    TRAINING,
    state_topic,
)
from streams import worker_roles
from streams.local import LocalPipeline
from streams.partition_fold import partition_fold
from streams.stage import Change, Output, SourceRecord
from streams.topic_rows import TOPICS
from streams.topology import (
    STAGES,
    StageKind,
    n_partitions_of,
    topics_of,
    written_topics,
)
from streams.worker_roles import ROLES, Role, kinds_of, role_of
from tests.modules import defined_in

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "topics.md"
NAMES = [topic.name for topic in topics_of(KafkaSettings())]
COMMANDS_WRITE = {
    SNAPSHOTS: (
        "rankstream snapshots rollback",
        "rankstream snapshots follow",
        "rankstream snapshots promote",
        "rankstream snapshots canary",
        "rankstream snapshots repair",
    ),
    EXPERIMENTS: ("rankstream experiments publish",),
    TRAINING: ("rankstream intervene",),
    DECISIONS: ("rankstream decisions withdraw",),
}
"""Topics that commands write beside the pipeline."""

COMMANDS_READ = {
    EVALUATIONS: ("rankstream monitor",),
    PREFERENCES: ("rankstream snapshots canary",),
    **COMMANDS_WRITE,
    DECISIONS: (
        "rankstream decisions list",
        "rankstream decisions show",
        *COMMANDS_WRITE[DECISIONS],
    ),
    TRAINING: (*COMMANDS_WRITE[TRAINING], "rankstream monitor"),
    SNAPSHOTS: (
        *COMMANDS_WRITE[SNAPSHOTS],
        "rankstream snapshots history",
        "rankstream statistics",
        "rankstream evaluate",
        "rankstream intervene",
    ),
}
"""Outputs that commands read; those that read states are in the text."""

STAGE_WORDS = {
    "fold", "tick", "settle", "outputs", "changes", "restore", "fingerprint",
    "counters",
}  # fmt: skip
CONSUMER_WORDS = {
    "take", "advance", "settle", "outputs", "changes", "restore", "fingerprint",
    "counters",
}  # fmt: skip


def classes_with(words: set[str]) -> set[type]:
    """All classes of `streams` that have these methods; protocols only say them."""
    return {
        each
        for each in defined_in(streams)
        if isinstance(each, type)
        and words <= set(dir(each))
        and not getattr(each, "_is_protocol", False)
    }


def test_every_stage_has_a_row():
    """A stage without a row would be run by nobody."""
    built = {type(kind.build(Settings(), 0)) for kind in STAGES}
    assert classes_with(STAGE_WORDS) == built


def test_every_stage_is_in_the_contract_of_purity():
    """Else import-linter would let it read a clock."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (pure,) = [
        contract["source_modules"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"].startswith("stages are pure")
    ]
    for kind in STAGES:
        module = type(kind.build(Settings(), 0)).__module__
        assert any(f"{module}.".startswith(f"{each}.") for each in pure), module


def test_every_consumer_of_closed_impressions_is_in_the_folds_list():
    """And its state lies in a topic of the fold's row, in the same order."""
    fold = partition_fold(0, Settings())
    assert classes_with(CONSUMER_WORDS) == {type(each) for each in fold.consumers}
    (kind,) = kinds_of("fold")
    of_consumers = tuple(each.topic for each in fold.consumers)
    assert kind.state_topics == (state_topic("fold"), *of_consumers)


def test_every_role_without_stages_has_a_row():
    """Each module of `streams.roles` is what some role serves."""
    source = Path(worker_roles.__file__).read_text(encoding="utf-8")
    imported = {
        node.module.removeprefix("streams.roles.")
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        and node.module
        and node.module.startswith("streams.roles.")
    }
    assert imported == {m.name for m in pkgutil.iter_modules(streams.roles.__path__)}
    serving = [role for role in ROLES.values() if role.serve is not None]
    assert len(serving) == len(imported)


def test_a_role_has_stages_or_serves():
    """Not both, not neither; and each stage is of a role that there is."""
    for name, role in ROLES.items():
        assert (role.serve is None) == bool(kinds_of(name)), name
        assert (role.serve is None) == (role.sources == ()), name
    assert {kind.role for kind in STAGES} <= set(ROLES)


def test_pages_stay_where_they_were_and_apart():
    """A scraper is told ports once."""
    ports = {name: role.metrics_port for name, role in ROLES.items()}
    known = {"ingest": 0, "fold": 1, "learn": 2, "publish": 3, "evaluate": 4}
    known |= {"train": 5, "adapt": 6}
    assert known.items() <= ports.items()
    assert len(set(ports.values())) == len(ports)


def test_names_of_stages_and_topics_stay():
    """Transactional ids and states are named after them; new stages may come."""
    kept = {kind.name: kind.state_topics for kind in STAGES}
    known = {
        "ingest-queries": ("ingest-queries-state",),
        "ingest-clicks": ("ingest-clicks-state",),
        "fold": ("fold-state", "statistics", "preferences", "candidates-state"),
        "learn": ("learn-state",),
    }
    assert known.items() <= kept.items()


def test_topics_are_what_is_read_and_written():
    """Each once; what nobody here writes alone comes from services and operators."""
    read = {kind.source for kind in STAGES}.union(*(r.sources for r in ROLES.values()))
    roles = [role for role in ROLES.values() if role.name != "adapt"]
    # Where there are sources that role writes what services send elsewhere.
    assert set(ROLES["adapt"].outputs) == {QUERIES, CLICKS}
    written = set(written_topics()).union(*(role.outputs for role in roles))
    states = {name for kind in STAGES for name in kind.state_topics}
    assert len(NAMES) == len(set(NAMES))
    assert {row.name for row in TOPICS} == (read - states) | written
    assert read - states - written == {QUERIES, CLICKS, EXPERIMENTS}
    assert set(LARGEST) == set(NAMES) - {QUERIES, CLICKS}


@pytest.mark.parametrize("ask", [kinds_of, role_of])
def test_an_unknown_role_is_refused_with_those_that_there_are(ask):
    """`promote` gave the learn stage once."""
    with pytest.raises(ValueError, match=f"{', '.join(ROLES)}; got"):
        ask("promote")


def test_the_tables_are_read_without_what_the_stages_need():
    """By `topics`, the monitor and the parent of a worker."""
    heavy = "import sys, streams.topology; print({'numba', 'faust'} & set(sys.modules))"
    command = [sys.executable, "-c", heavy]
    root = Path(streams.__path__[0]).parent
    said = subprocess.run(
        command, check=True, capture_output=True, text=True, cwd=root
    ).stdout
    assert said.strip() == "set()"


def test_the_pipeline_in_process_runs_every_stage():
    """With as many partitions as its source has."""
    kafka = KafkaSettings(input_partitions=2, partitions=3, learner_partitions=1)
    pipeline = LocalPipeline(Settings(kafka=kafka), now=lambda: 0)
    found = [
        (*place, type(stage))
        for place, stages in pipeline._readers.items()
        for stage in stages
    ]
    expected = [
        (kind.source, partition, type(kind.build(Settings(), 0)))
        for kind in STAGES
        for partition in range(n_partitions_of(kind, kafka))
    ]
    assert sorted(found, key=str) == sorted(expected, key=str)


class Counted:
    """A stage that only counts the records of its partition."""

    def __init__(self, partition: int) -> None:
        self.places: list[tuple[int, int]] = []
        self.partition = partition

    def fold(self, record: SourceRecord) -> None:
        """Take a record."""
        self.places.append((record.partition, record.offset))

    def tick(self, *, at_end_ms: int) -> None:
        """Hear nothing."""

    def settle(self) -> None:
        """Nothing is pending."""

    def outputs(self) -> list[Output]:
        """None."""
        return []

    def changes(self) -> list[Change]:
        """None."""
        return []

    def restore(self, items: Iterable[Change]) -> None:
        """Nothing was kept."""

    def fingerprint(self) -> bytes:
        """Of nothing."""
        return b""

    def counters(self) -> dict[str, int]:
        """How many came."""
        return {"seen": len(self.places)}


def test_a_new_stage_is_a_row(monkeypatch):
    """It runs in process, beside whoever reads the same topic; its state is a topic."""
    row = StageKind(
        name="counted",
        role="learn",
        source=EVENTS,
        state_topics=(state_topic("counted"),),
        build=lambda _settings, partition: Counted(partition),
    )
    monkeypatch.setattr("streams.topology.STAGES", (*STAGES, row))
    monkeypatch.setattr("streams.worker_roles.STAGES", (*STAGES, row))
    monkeypatch.setattr("streams.local.STAGES", (*STAGES, row))
    kafka = KafkaSettings(input_partitions=1, partitions=2, learner_partitions=1)
    pipeline = LocalPipeline(Settings(kafka=kafka), now=lambda: 0)
    pipeline.end()
    counted = cast("list[Counted]", pipeline._inner["counted"])
    assert [stage.places[0] for stage in counted] == [(0, 0), (1, 0)]
    assert pipeline.counters()["seen"] == sum(len(each.places) for each in counted) > 2
    wide = {topic.name: topic.partitions for topic in topics_of(kafka)}
    assert wide["counted-state"] == 2
    assert row in kinds_of("learn")


def test_state_topics_are_compacted_and_as_wide_as_the_source():
    """As a partition's state goes with its partition."""
    kafka = KafkaSettings(input_partitions=2, partitions=3, learner_partitions=5)
    topics = {topic.name: topic for topic in topics_of(kafka)}
    for kind in STAGES:
        for name in kind.state_topics:
            assert topics[name].partitions == topics[kind.source].partitions
            assert topics[name].config["cleanup.policy"] == "compact"


def _sources(actor: StageKind | Role) -> tuple[str, ...]:
    return actor.sources if isinstance(actor, Role) else (actor.source,)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _named(
    actors: Sequence[StageKind | Role], nobody: str, commands: Sequence[str] = ()
) -> str:
    names = [f"`{name}`" for name in (*(each.name for each in actors), *commands)]
    is_named = nobody == "services" or not (actors or not nobody)
    return ", ".join([*names, nobody] if is_named else names)


def _topic_row(name: str) -> str:
    """What the page must say of a topic."""
    topic = next(t for t in topics_of(KafkaSettings()) if t.name == name)
    config = topic.config
    state_of = [kind for kind in STAGES if name in kind.state_topics]
    source = state_of[0].source if state_of else name
    width = next(row.width for row in TOPICS if row.name == source)
    actors: list[StageKind | Role] = [*STAGES, *ROLES.values()]
    writers = [each for each in actors if each in state_of or name in each.outputs]
    readers = [each for each in actors if each in state_of or name in _sources(each)]
    days = int(config.get("retention.ms", 0)) // 86_400_000
    kept = "last of each key" if config["cleanup.policy"] == "compact" else "log"
    named = f"`{topic.days}`" if topic.days else f"{days} days" if days else ""
    return _row(
        f"`{name}`",
        f"`{width}`" if width else "1",
        f"{kept}, {named}" if named else kept,
        _named(
            writers,
            "services" if name in (QUERIES, CLICKS) else "",
            COMMANDS_WRITE.get(name, ()),
        ),
        _named(readers, "operators", COMMANDS_READ.get(name, ())),
    )


def _role_row(role: Role) -> str:
    """What the page must say of a role."""
    stages = kinds_of(role.name)
    page = f"`metrics.port` + {role.metrics_port}"
    return _row(f"`{role.name}`", role.summary, _named(stages, "none"), page)


def test_the_page_has_the_tables():
    """`docs/topics.md` says what the code says, row for row."""
    said = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in said if re.match(r"\| `[a-z]", line)]
    expected = [_role_row(role) for role in ROLES.values()]
    expected += [_topic_row(name) for name in NAMES]
    assert rows == expected, "\n" + "\n".join(expected)
