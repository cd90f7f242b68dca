"""The history of a model says which kind a training took, and by how much."""

import msgspec
import pytest

from rankstream.operations.answers.models.deployment import RecordedChange
from rankstream.operations.commands.snapshots.change import _reasons
from rankstream.settings import ModelSettings, Settings
from rankstream.wire.models.changes import TRAINED, change_key, decode_change
from rankstream.wire.models.training import LossTried, RunRecord
from rankstream.wire.topics import SNAPSHOTS
from streams.kafka.training.deployed import brought_out
from streams.training.model_records import ModelRecords
from tests.rankstream.training_topic import RUN
from tests.snapshot_factory import snapshot

SETTINGS = Settings(models={"m": ModelSettings(features=3, versions="trained")})


def tried(kind: str, behind: float) -> LossTried:
    """A training of a kind."""
    return LossTried("truncated-lambda", 1, 1.5 - behind, 0.1, behind, 0.01, kind)


def evidence_of(run: RunRecord) -> tuple[dict[str, object], str]:
    """What the history has of it, and what is printed."""
    records = ModelRecords(frozenset({"m"}))
    outputs, _ = brought_out(SETTINGS, records, snapshot(1_200), run, "a trainer")
    (made,) = (
        decode_change(each.value or b"")
        for each in outputs
        if each.topic == SNAPSHOTS and change_key(each.key or b"", each.value)
    )
    assert made.what == TRAINED
    row = RecordedChange(
        1, 0, made.what, made.version, "", made.by, made.why, made.evidence
    )
    return made.evidence, _reasons(row)


def test_a_kind_that_was_chosen_stands_in_the_history() -> None:
    """Of several losses the best of each kind counts."""
    losses = [tried("linear", 0.3), tried("linear", 0.0), tried("trees", 0.25)]
    found, said = evidence_of(msgspec.structs.replace(RUN, losses=losses))

    assert found["kind"] == "linear"
    assert found["behind"] == {"linear": [0.0, 0.01], "trees": [0.25, 0.01]}
    assert said.startswith("count; linear; held-out DCG behind the best: ")
    assert "linear 0.0000" in said
    assert "trees 0.2500" in said


@pytest.mark.parametrize("losses", [[], [tried("", 0.1), tried("", 0.0)]])
def test_a_kind_that_was_set_does_not(losses: list[LossTried]) -> None:
    """Nor do losses that were chosen from: the record of the run has them."""
    assert evidence_of(msgspec.structs.replace(RUN, losses=losses)) == ({}, "count")
