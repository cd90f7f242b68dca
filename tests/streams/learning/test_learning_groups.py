"""What a learner that is kept off groups learns, and what its versions say of it."""

import msgspec
import pytest

from rankstream.settings import ModelSettings, Settings, StatisticsSettings
from rankstream.snapshots import Snapshot, decode_snapshot
from rankstream.wire.events import Interaction
from streams.learning.model_fold import ModelChanged
from tests.streams.learning.test_absent_models import Partition, log_of
from tests.streams.learning.test_learn_fold import F

GROUPS = 4


def settings_of(groups: list[int]) -> Settings:
    """A model that learns from these."""
    model = ModelSettings(features=F, learns_from_groups=groups)
    return Settings(models={"m": model}, statistics=StatisticsSettings(groups=GROUPS))


def learned(settings: Settings, log: list[Interaction]) -> tuple[Snapshot, Partition]:
    """The version after a log."""
    partition = Partition(settings)
    partition.take(log)
    return decode_snapshot(partition.outputs[0].value or b""), partition


def of_users(log: list[Interaction]) -> list[Interaction]:
    """The same lists, each of the next user."""
    return [
        msgspec.structs.replace(
            one, impression=msgspec.structs.replace(one.impression, unit=user)
        )
        for user, one in enumerate(log)
    ]


def test_lists_of_other_groups_teach_nothing_and_are_counted() -> None:
    """Weights are those of a learner that has seen the own groups alone."""
    log = of_users(log_of(40))
    kept = [one for one in log if one.impression.unit % GROUPS in (1, 2)]
    some, partition = learned(settings_of([2, 1]), log)
    alone, _ = learned(settings_of([]), kept)
    everybody, _ = learned(settings_of([]), log)
    assert some.weights == alone.weights != everybody.weights
    assert (some.version, some.groups) == (40, [1, 2])
    assert (everybody.version, everybody.groups) == (40, [])
    assert partition.stage.counters()["learner_skipped"] == 20


def test_groups_are_part_of_what_was_learned() -> None:
    """A version is a function of the log and of them; before any list it has none."""
    log = of_users(log_of(8))
    first = Partition(settings_of([1]))
    assert decode_snapshot(first.outputs[0].value or b"").groups == []
    first.take(log)
    assert first.start(settings_of([1])).models["m"].version == 8
    with pytest.raises(ModelChanged, match="learns_from_groups"):
        first.start(settings_of([1, 3]))
    with pytest.raises(ModelChanged, match=r"learns_from_groups was \[1\], is \[\]"):
        first.start(settings_of([]))
