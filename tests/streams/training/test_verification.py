"""A trained snapshot made again from the log, and what cannot be."""

import msgspec
import numpy as np
import pytest

from rankstream.wire.candidates import candidates_key
from rankstream.wire.envelope import decode_snapshot, encode_snapshot
from rankstream.wire.topics import CANDIDATES
from streams.fold.statistics_keys import GROWING_SETS, ScopeName
from streams.fold.statistics_reader import Statistics
from streams.training import verification
from streams.training.feature_records import FeatureRecords
from streams.training.inputs import (
    Inputs,
    feature_records_for,
    features_known,
    list_hash,
    sets_known,
)
from streams.training.trained_snapshot import train_model
from streams.training.used_features import UsedFeatures
from streams.training.verification import VerificationRefused, verify
from tests.streams.training.shop import Shop, model_of, settings_of

POINTS = [400, 800, 1_200]
PLAN = {"after": POINTS, "least_support": 1.0}


def trained_shop(partitions):
    """A site whose model was trained three times, and each version of it."""
    shop = Shop(settings_of({"m": model_of(**PLAN)}, partitions=partitions))
    versions = [shop.pipeline.snapshots[b"m"]]
    rng = np.random.default_rng(1)
    for _ in range(32):
        shop.show(50, rng)
        if shop.pipeline.snapshots[b"m"] != versions[-1]:
            versions.append(shop.pipeline.snapshots[b"m"])
    assert len(shop.trainer.runs) == len(versions) - 1 == len(POINTS)
    return shop, versions


@pytest.fixture(scope="module")
def site():
    """Of two partitions."""
    return trained_shop(2)


def by_partition(log):
    """As a dump has it: one partition after the other."""
    return sorted(log, key=lambda record: record[0])


@pytest.mark.parametrize("partitions", [1, 3])
def test_each_version_is_made_again_from_the_log(partitions):
    """Byte for byte, from its run, its parent and the dump of the whole log."""
    shop, versions = trained_shop(partitions)
    dump = by_partition(shop.log)
    for number, run in enumerate(shop.trainer.runs):
        parent = decode_snapshot(versions[number])
        assert verify(shop.settings, run, parent, lambda: dump) == versions[number + 1]
    assert len({decode_snapshot(each).weights for each in versions}) == len(versions)


def test_the_settings_are_those_of_the_run(site):
    """What the model is set to today changes nothing."""
    shop, versions = site
    model = model_of(after=POINTS, learning_rate=0.5, seed=9, features=99)
    statistics = msgspec.structs.replace(
        shop.settings.statistics, split_shares=[0.2, 0.2, 0.6]
    )
    settings = msgspec.structs.replace(
        shop.settings, models={"m": model}, statistics=statistics
    )
    run, parent = shop.trainer.runs[0], decode_snapshot(versions[0])
    assert verify(settings, run, parent, lambda: shop.log) == versions[1]


def test_weights_that_are_others_are_seen(site):
    """Under the same name, as of a trainer that trained nothing."""
    shop, versions = site
    run = shop.trainer.runs[1]
    parent, published = (decode_snapshot(x) for x in versions[1:3])
    same = msgspec.structs.replace(published, weights=parent.weights)
    again = verify(shop.settings, run, parent, lambda: shop.log)
    assert again == encode_snapshot(published)
    assert again != encode_snapshot(same)


def test_another_parent_is_refused(site):
    """It says which one it was."""
    shop, versions = site
    run = shop.trainer.runs[1]
    with pytest.raises(VerificationRefused, match=r"parent of m@0\.\d+ must be .*; go"):
        verify(shop.settings, run, decode_snapshot(versions[0]), lambda: shop.log)


def test_a_dump_that_ends_early_is_refused(site):
    """It says how far it goes."""
    shop, versions = site
    run, parent = shop.trainer.runs[2], decode_snapshot(versions[2])
    with pytest.raises(VerificationRefused, match=r"must reach .* it ends at"):
        verify(shop.settings, run, parent, lambda: shop.log[: len(shop.log) // 3])


def test_a_count_within_a_record_is_refused(site):
    """No checkpoint lies there: it is another log, or counted under other settings."""
    shop, versions = site
    run, parent = shop.trainer.runs[0], decode_snapshot(versions[0])
    counts = [(partition, n - 1) for partition, n in run.counts]
    other = msgspec.structs.replace(run, counts=counts)
    with pytest.raises(VerificationRefused, match="must lie between records"):
        verify(shop.settings, other, parent, lambda: shop.log)


def test_a_watermark_that_the_log_does_not_pass_is_refused(site):
    """Eras may have left at the one of the run, which others still have."""
    shop, versions = site
    run, parent = shop.trainer.runs[0], decode_snapshot(versions[0])
    for more_ms in (1, -1):
        watermarks = [
            (partition, at_ms + more_ms) for partition, at_ms in run.watermarks
        ]
        other = msgspec.structs.replace(run, watermarks=watermarks)
        said = r"at the watermark|between records"
        with pytest.raises(VerificationRefused, match=said):
            verify(shop.settings, other, parent, lambda: shop.log)


def test_other_features_are_refused(site):
    """The log does not have them."""
    shop, versions = site
    run, parent = shop.trainer.runs[0], decode_snapshot(versions[0])
    features = msgspec.structs.replace(run.features, digest=bytes(16))
    other = msgspec.structs.replace(run, features=features)
    with pytest.raises(VerificationRefused, match="the dump gives none such"):
        verify(shop.settings, other, parent, lambda: shop.log)


LATE = 1_200


def late_shop():
    """Features of all sets come after all counts that anything is trained from.

    Also the state of the statistics before, and records of features in their order.
    """

    def without(event):
        # No features before, and then those of all.
        if int(event["impression_id"][1:]) < LATE:
            event.pop("candidate_features", None)
            event.pop("features_hash", None)

    model = model_of(examination=[1.0, 0.5, 0.3], least_support=1.0)
    shop = Shop(settings_of({"m": model}))
    rng = np.random.default_rng(1)
    shop.show(LATE, rng, change=without)
    shop.pipeline.flush()
    statistics = [*shop.trainer.statistics().items()]
    shop.ranker._logged._at_ms.clear()
    shop.show(600, rng)
    shop.pipeline.end()
    features = [(x.key or b"", x.value) for x in shop.outputs if x.topic == CANDIDATES]
    assert len(features) > 20
    return shop, statistics, features


@pytest.fixture(scope="module")
def late():
    """A run that was trained when half of the features were there, its parent, all."""
    shop, statistics, features = late_shop()
    model = shop.settings.models["m"]
    records = feature_records_for(model, features[: len(features) // 2])
    inputs = Inputs(Statistics(statistics), records)
    found = train_model("m", shop.settings, inputs, shop.snapshot(), reason="asked")
    return shop, found, statistics, features


def test_features_that_came_after_the_counts_are_found(late):
    """As where `candidates` was read a while after `statistics`."""
    shop, found, _, _ = late
    again = verify(shop.settings, found.run, shop.snapshot(), lambda: shop.log)
    assert again == encode_snapshot(found.snapshot)


@pytest.mark.parametrize("more", [-1, 0, 5, 10_000])
def test_late_features_are_digested_once_however_many_there_are(
    late, more, monkeypatch
):
    """Where none have the digest of the run, reading the dump does not get longer."""
    shop, found, _, _ = late
    n_digests, n_taken = 0, 0

    class Counted(UsedFeatures):
        def take(self, key, value):
            nonlocal n_taken
            n_taken += 1
            return super().take(key, value)

        def are(self, wanted):
            nonlocal n_digests
            n_digests += self.n_records == wanted.n_records
            return super().are(wanted)

    monkeypatch.setattr(verification, "UsedFeatures", Counted)
    n_records = found.run.features.n_records + more
    features = msgspec.structs.replace(
        found.run.features, digest=bytes(16), n_records=n_records
    )
    run = msgspec.structs.replace(found.run, features=features)
    with pytest.raises(VerificationRefused, match="the dump gives none such"):
        verify(shop.settings, run, shop.snapshot(), lambda: shop.log)
    assert n_taken > 20
    assert n_digests == (more < 10_000)


def test_used_features_are_those_of_a_training_after_each_record(late):
    """The digest that grows is the one that is made anew, and only these change it."""
    shop, _, statistics, features = late
    model = shop.settings.models["m"]
    inputs = Inputs(Statistics(statistics), feature_records_for(model, ()))
    used = UsedFeatures(
        sets_known("m", model, inputs.statistics), feature_records_for(model, ())
    )
    n_changes = 0
    other = candidates_key("nobody asked", b"s" * 8, list_hash(model))
    for key, value in [*features, *features, (other, features[0][1])]:
        before = features_known("m", model, inputs)
        inputs.features.add(key, value)
        after = features_known("m", model, inputs)
        assert used.take(key, value) is (before != after)
        assert used.are(after)
        assert used.are(before) is (before == after)
        n_changes += before != after
    assert 10 < n_changes <= len(features)


def test_records_of_features_go_to_the_spool_as_they_come(site, monkeypatch):
    """It has a file beyond some megabytes; a list of them would hold all."""
    shop, versions = site
    run, parent = shop.trainer.runs[2], decode_snapshot(versions[2])
    n_added, at_each_event = 0, []
    add = FeatureRecords.add

    def counted(self, key, value):
        nonlocal n_added
        n_added += 1
        add(self, key, value)

    def events():
        for each in shop.log:
            at_each_event.append(n_added)
            yield each

    monkeypatch.setattr(FeatureRecords, "add", counted)
    assert verify(shop.settings, run, parent, events) == versions[3]
    assert len({*at_each_event}) > 5


def test_sets_that_grow_have_no_features_that_are_read():
    """Their name stands for other items at another time."""

    class Scopes:
        def scopes(self):
            for query in "ab":
                for name in (*GROWING_SETS, b"s" * 8):
                    yield ScopeName(query, name, "m", 0)
                yield ScopeName(query, b"t" * 8, "another", 0)

    known = list(sets_known("m", model_of(), Scopes()))  # type: ignore[arg-type]
    assert known == [("a", [b"s" * 8]), ("b", [b"s" * 8])]
