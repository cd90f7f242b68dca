"""Models that nothing learns online: the fold gives them a start and leaves them."""

import msgspec
import numpy as np
import pytest

from rankstream.operations.answers.models.deployment import (
    RollbackRefused,
    follow_again,
)
from rankstream.settings import ModelSettings, Settings
from rankstream.snapshots import SnapshotStore, decode_snapshot
from rankstream.wire.events import Interaction
from streams.kafka.deployment.operator_change import Wanted
from streams.learning.learn import Learn
from streams.learning.model_fold import ModelChanged
from streams.stage import Output
from tests.streams.learning.test_absent_models import BOTH, M, Partition, log_of
from tests.streams.learning.test_learn_fold import F

OTHER = ModelSettings(features=F, kind="neural", hidden=[3], seed=5, versions="trained")
TRAINED = Settings(models={"m": M, "other": OTHER})


def also_of_other(log: list[Interaction]) -> list[Interaction]:
    """Each list, and after it the same as a list of `other`."""
    return [
        Interaction(msgspec.structs.replace(one.impression, model=name), one.clicks)
        for one in log
        for name in ("m", "other")
    ]


def snapshots_of(stage_outputs: list[Output]) -> dict[bytes | None, bytes]:
    """Values by key."""
    return {each.key: each.value or b"" for each in stage_outputs}


def test_the_fold_publishes_a_start_and_nothing_more() -> None:
    """Whatever comes; the other model learns as if it were alone."""
    partition = Partition(TRAINED)
    first = snapshots_of(partition.outputs)
    start = decode_snapshot(first[b"other/0.0"])
    assert (start.version, start.updates, start.intervention) == (0, 0, "")
    assert (np.frombuffer(start.weights, "<f4") != 0.0).any()
    partition.take(also_of_other(log_of(6)))
    assert snapshots_of(partition.outputs).keys() == {b"m/0.6"}
    alone = Partition(BOTH)
    alone.take(also_of_other(log_of(6)))
    assert (
        snapshots_of(partition.outputs)[b"m/0.6"]
        == (snapshots_of(alone.outputs)[b"m/0.6"])
    )
    again = partition.start(TRAINED)
    assert partition.outputs == []
    assert again.counters()["learned"] == 6
    assert again.counters()["interactions_without_model"] == 6


def test_lists_of_trained_models_alone_are_counted_without_being_decoded() -> None:
    """As where no model learns."""
    only = Settings(models={"m": OTHER})
    partition = Partition(only)
    partition.take(log_of(5))
    assert partition.outputs == []
    assert partition.stage.counters()["interactions_without_model"] == 5
    assert partition.stage._decode.__name__ == "decode_unclaimed"


def test_a_trained_model_misses_nothing_while_it_is_out() -> None:
    """No version of it is the number of its lists; but it stays what it is."""
    partition = Partition(TRAINED)
    log = also_of_other(log_of(4))
    partition.take(log[:4])
    partition.start(Settings(models={"m": M}))
    partition.take(log[4:])
    assert partition.start(TRAINED).models["other"].version == 0
    with pytest.raises(ModelChanged, match="learner was 'trained', is 'pdgd'"):
        Partition(TRAINED).start(BOTH)


@pytest.mark.parametrize(("versions", "is_on"), [("trained", True), ("online", False)])
def test_training_has_features_of_candidates_logged(
    versions: str, *, is_on: bool
) -> None:
    """Without the setting, from the first snapshot on."""
    model = ModelSettings(features=F, versions=versions)
    stage = Learn(0, Settings(models={"m": model}))
    for each in stage.outputs() or Learn(1, Settings(models={"m": model})).outputs():
        assert decode_snapshot(each.value or b"").log_candidates == is_on


def test_nobody_follows_what_is_not_learned_online() -> None:
    """The newest that was learned is the start."""
    nowhere = SnapshotStore("redis://127.0.0.1:1/0")
    with pytest.raises(RollbackRefused, match=r"learn online .* 'other' does not"):
        follow_again(TRAINED, nowhere, Wanted("other", None, "ann"))
