"""Models that learn from the lists of others: an online one in another's shadow."""

import msgspec
import pytest

from rankstream.settings import KafkaSettings, ModelSettings, Settings
from rankstream.snapshots import decode_snapshot
from rankstream.wire.events import Interaction
from rankstream.wire.routing import partition_of_model
from streams.learning.absent_models import ModelMissed
from streams.learning.learn import Learn
from streams.learning.model_fold import ModelChanged
from tests.streams.learning.test_absent_models import M, Partition, log_of
from tests.streams.learning.test_learn_fold import F, record

SHADOW = ModelSettings(features=F, learning_rate=0.5, learns_from=["m"])
TWO = Settings(models={"m": M, "shadow": SHADOW}, kafka=KafkaSettings())
ONE_PARTITION = KafkaSettings(learner_partitions=1)


def shown_by(name: str, log: list[Interaction]) -> list[Interaction]:
    """The same lists, as of another model."""
    return [
        Interaction(msgspec.structs.replace(one.impression, model=name), one.clicks)
        for one in log
    ]


def test_a_shadow_learns_what_it_would_learn_as_the_owner_of_the_lists() -> None:
    """By the scores that they logged, whatever it would have shown itself."""
    log = log_of(20)
    partition = Partition(TWO)
    partition.take(log)
    alone = Partition(
        Settings(models={"m": msgspec.structs.replace(M, learning_rate=0.5)})
    )
    alone.take(log)
    shadow, owner = partition.stage.models["shadow"], alone.stage.models["m"]
    assert shadow.version == owner.version == 20
    assert shadow.snapshot().weights == owner.snapshot().weights
    assert shadow.snapshot().weights != partition.stage.models["m"].snapshot().weights
    assert shadow.learner.updates > 0
    (version,) = [x for x in partition.outputs if (x.key or b"").startswith(b"shadow")]
    assert decode_snapshot(version.value or b"").model == "shadow"
    assert partition.stage.counters()["interactions_without_model"] == 0


def test_its_own_lists_are_not_learned_from_unless_it_names_itself() -> None:
    """And with several sources all are folded in the order of the log."""
    log = log_of(6)
    mixed = [
        one
        for pair in zip(log, shown_by("shadow", log), strict=True)
        for one in pair
    ]  # fmt: skip
    only = Partition(TWO)
    only.take(mixed)
    assert only.stage.models["shadow"].version == 6
    assert only.stage.counters()["interactions_without_model"] == 6
    both = ModelSettings(features=F, learning_rate=0.5, learns_from=["shadow", "m"])
    settings = Settings(models={"m": M, "shadow": both}, kafka=ONE_PARTITION)
    stage = Learn(0, settings)
    stage.fold(record(mixed, 1))
    own = msgspec.structs.replace(M, learning_rate=0.5)
    whole = Learn(0, Settings(models={"m": own}, kafka=ONE_PARTITION))
    whole.fold(record(shown_by("m", mixed), 1))
    assert stage.models["shadow"].version == 12
    assert (
        stage.models["shadow"].snapshot().weights
        == whole.models["m"].snapshot().weights
    )


def test_it_lies_in_the_partition_of_its_sources() -> None:
    """Of all partitions in that one alone."""
    at = [p for p in range(4) if "shadow" in Learn(p, TWO).models]
    assert at == [partition_of_model("m", 4)]
    trained = ModelSettings(features=F, versions="trained", learns_from=["m"])
    settings = Settings(models={"t": trained})
    at = [p for p in range(4) if "t" in Learn(p, settings).models]
    assert at == [partition_of_model("t", 4)]


def test_what_it_missed_while_it_was_out_is_of_its_sources() -> None:
    """Though each of these lists was learned from by its own model."""
    log = log_of(9)
    partition = Partition(TWO)
    partition.take(log[:4])
    partition.start(Settings(models={"m": M}))
    partition.take(shown_by("shadow", log[:2]))
    assert partition.start(TWO).models["shadow"].version == 4
    partition.start(Settings(models={"m": M}))
    partition.take(log[4:])
    with pytest.raises(ModelMissed, match=r"models\.shadow .*; 5 came while"):
        partition.start(TWO)


def test_other_sources_are_other_settings() -> None:
    """Also where its lists would come to another partition, and to begin anew."""
    log = log_of(3)
    partition = Partition(TWO)
    partition.take(log)
    for sources in ([], ["m", "shadow"]):
        changed = msgspec.structs.replace(SHADOW, learns_from=sources)
        settings = Settings(models={"m": M, "shadow": changed})
        with pytest.raises(ModelChanged, match=r"models\.shadow"):
            partition.start(settings)


def test_a_form_of_an_earlier_release_goes_on() -> None:
    """It knew neither setting."""
    partition = Partition(Settings(models={"m": M}))
    form = partition.stage.models["m"].state()[5]
    assert not {"learns_from", "training"} & form.keys()
