"""Models that come into the settings, leave them and come back."""

from collections.abc import Sequence

import msgspec
import pytest

from rankstream.settings import ModelSettings, Settings
from rankstream.wire.events import Interaction
from streams.learning.absent_models import ModelMissed
from streams.learning.learn import Learn
from streams.stage import Change
from tests.streams.learning.test_learn_fold import (
    F,
    fold_of,
    lived,
    record,
    settings_of,
)

M = ModelSettings(features=F)
BOTH = Settings(models={"m": M, "other": M})
WITHOUT = Settings(models={"other": M})
NONE = Settings()


class Partition:
    """A partition of `interactions` whose worker is started with other settings.

    As `streams.kafka.partitions.committer` does it: outputs, fingerprint, state; a
    start compares the fingerprint.
    """

    def __init__(self, settings: Settings) -> None:
        self.n_taken = 0
        self._state: dict[bytes, Change] = {}
        self.stage = fold_of(settings)
        self._commit()

    def take(self, interactions: Sequence[Interaction]) -> None:
        """Fold and commit."""
        self.stage.fold(record([*interactions], self.n_taken + 1))
        self.n_taken += len(interactions)
        self._commit()

    def start(self, settings: Settings) -> Learn:
        """Begin anew from the stored state, which must be whole."""
        self.stage = fold_of(settings)
        self.stage.restore(self._state.values())
        assert self.stage.fingerprint() == self._fingerprint
        self._commit()
        return self.stage

    def _commit(self) -> None:
        self.outputs = self.stage.outputs()
        self._fingerprint = self.stage.fingerprint()
        self._state |= {change.key: change for change in self.stage.changes()}


def log_of(n: int) -> list[Interaction]:
    """Lists of `m`."""
    return lived(settings_of("pdgd"), n)[0]


def test_a_model_that_missed_lists_is_refused_by_name() -> None:
    """With how many and after which version, also after more starts without it."""
    log = log_of(9)
    partition = Partition(BOTH)
    partition.take(log[:4])
    partition.start(WITHOUT)
    partition.take(log[4:7])
    partition.start(NONE)
    partition.take(log[7:])
    told = (
        r"models\.m must have folded .*; 5 came while it was not in the settings, "
        r"after version 4: take it out again, or dump the log and replay it into "
        "another"
    )
    with pytest.raises(ModelMissed, match=told):
        partition.start(BOTH)
    # It is taken out again, and all else goes on.
    assert partition.start(WITHOUT).counters()["interactions_without_model"] == 5


def test_a_model_that_missed_nothing_goes_on() -> None:
    """Lists of others came meanwhile; its next version is the one of the whole log."""
    log = log_of(8)
    names = ["m", "other"]
    others = [
        Interaction(msgspec.structs.replace(one.impression, model="other"), one.clicks)
        for one in log
    ]
    partition, whole = Partition(BOTH), fold_of(BOTH)
    parts = (BOTH, log[:5]), (WITHOUT, others), (BOTH, log[5:])
    for settings, interactions in parts:
        partition.start(settings)
        partition.take(interactions)
    whole.fold(record([*log[:5], *others, *log[5:]], 1))

    for name in names:
        ours, theirs = partition.stage.models[name], whole.models[name]
        assert ours.version == theirs.version == 8
        assert ours.snapshot() == theirs.snapshot()


def test_a_model_that_is_added_begins_with_the_next_list() -> None:
    """A worker with another model goes on from the state that it finds."""
    log = log_of(6)
    partition = Partition(NONE)
    partition.take(log[:2])
    partition.start(WITHOUT)
    stage = partition.start(BOTH)
    assert [output.key for output in partition.outputs] == [b"m/0.0"]
    partition.take(log[2:])
    assert partition.start(BOTH).models["m"].version == 4
    newest = stage.models["m"].snapshot()
    assert (newest.version, newest.sources) == (4, [(0, 6)])
