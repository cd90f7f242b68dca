"""A trained snapshot made again from the log, and what cannot be."""

import msgspec
import numpy as np
import pytest

from rankstream.wire.candidates import candidates_key, decode_candidates_key
from rankstream.wire.envelope import decode_snapshot, encode_snapshot
from rankstream.wire.routing import partition_of_query
from rankstream.wire.topics import CANDIDATES
from streams.statistics.keys import GROWING_SETS, ScopeName
from streams.statistics.reader import Statistics
from streams.training import feature_records, verification
from streams.training.feature_records import (
    FeatureRecords,
    UsedFeatures,
    digest_of,
)
from streams.training.inputs import (
    Inputs,
    feature_records_for,
    list_hash,
    sets_known,
)
from streams.training.trained_snapshot import train_model
from streams.training.verification import VerificationRefused
from tests.streams.training.shop import Shop, model_of, settings_of, verify
from tests.streams.training.test_feature_records import features_used

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
    features = [msgspec.structs.replace(x, digest=bytes(16)) for x in run.features]
    other = msgspec.structs.replace(run, features=features)
    with pytest.raises(VerificationRefused, match="the dump gives none such"):
        verify(shop.settings, other, parent, lambda: shop.log)


LATE, N_PARTITIONS = 1_200, 3


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
    shop = Shop(settings_of({"m": model}, partitions=N_PARTITIONS))
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
    """A run that read partitions of features up to moments of their own; its parent.

    Those of the first partition up to the first record, of the last one up to the end.
    """
    shop, statistics, features = late_shop()
    kept: dict[int, list] = {n: [] for n in range(N_PARTITIONS)}
    for each in features:
        query = decode_candidates_key(each[0]).query
        kept[partition_of_query(query, N_PARTITIONS)].append(each)
    read = [
        each
        for n, found in kept.items()
        for each in found[: 1 + n * len(found) // (N_PARTITIONS - 1)]
    ]
    records = feature_records_for(shop.settings, "m", read)
    inputs = Inputs(Statistics(statistics), records)
    found = train_model("m", shop.settings, inputs, shop.snapshot(), reason="asked")
    assert len({each.n_records for each in found.run.features}) == N_PARTITIONS
    return shop, found, statistics, features


def test_features_that_came_after_the_counts_are_found(late):
    """As where `candidates` was read a while after `statistics`."""
    shop, found, _, _ = late
    for log in (shop.log, by_partition(shop.log)):
        again = verify(shop.settings, found.run, shop.snapshot(), log.copy)
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
            super().take(key, value)

    def digested(digests):
        nonlocal n_digests
        n_digests += 1
        return digest_of(digests)

    monkeypatch.setattr(verification, "UsedFeatures", Counted)
    monkeypatch.setattr(feature_records, "digest_of", digested)
    features = [
        msgspec.structs.replace(x, digest=bytes(16), n_records=x.n_records + more)
        for x in found.run.features
    ]
    run = msgspec.structs.replace(found.run, features=features)
    with pytest.raises(VerificationRefused, match="the dump gives none such"):
        verify(shop.settings, run, shop.snapshot(), lambda: shop.log)
    assert n_taken > 20
    assert n_digests <= N_PARTITIONS
    assert n_digests > 0 or more == 10_000


def test_used_features_end_as_a_training_read_them(late):
    """Whatever was read of each partition, and none is taken behind that."""
    shop, _, statistics, features = late
    known = Statistics(statistics)
    model = shop.settings.models["m"]
    other = candidates_key("nobody asked", b"s" * 8, list_hash(model))
    for n_read in (0, 1, len(features) // 2, len(features)):
        read = feature_records_for(shop.settings, "m", features[:n_read])
        wanted = features_used(read, sets_known("m", model, known))
        records = feature_records_for(shop.settings, "m", ())
        used = UsedFeatures(sets_known("m", model, known), records, wanted)
        assert bool(used.lacking) is (n_read > 0)
        for key, value in [(other, features[0][1]), *features, *features]:
            used.take(key, value)
        assert not used.lacking
        assert features_used(records, sets_known("m", model, known)) == wanted


def test_features_that_were_never_there_together_are_refused(late):
    """Of one partition: what left before others came is not beside them."""
    shop, _, statistics, features = late
    known = Statistics(statistics)
    sets = [*sets_known("m", shop.settings.models["m"], known)]
    of_one = [
        each
        for each in features
        if partition_of_query(decode_candidates_key(each[0]).query, N_PARTITIONS) == 0
    ]
    first, second = of_one[:2]
    gone = (first[0], None)

    def lacking_after(read):
        together = feature_records_for(shop.settings, "m", read)
        wanted = features_used(together, sets)
        used = UsedFeatures(sets, feature_records_for(shop.settings, "m", ()), wanted)
        for key, value in (first, gone, second):
            used.take(key, value)
        return used.lacking

    assert lacking_after([first, second]) == {0}
    assert lacking_after([first]) == lacking_after([second]) == set()
    assert lacking_after([first, gone, second]) == set()


def test_a_run_is_made_again_after_partitions_were_split(site):
    """A dump from before has the partitions of its day."""
    shop, versions = site
    run, parent = shop.trainer.runs[0], decode_snapshot(versions[0])
    kafka = msgspec.structs.replace(shop.settings.kafka, partitions=8)
    later = msgspec.structs.replace(shop.settings, kafka=kafka)
    assert verify(later, run, parent, lambda: shop.log) == versions[1]


def test_compaction_changes_nothing():
    """Sets leave with their era, come again without features, and are compacted."""
    model = model_of(examination=[1.0, 0.5, 0.3], least_support=0.1)
    settings = settings_of({"m": model})
    time = msgspec.structs.replace(settings.time, keep_ms=20_000)
    shop = Shop(msgspec.structs.replace(settings, time=time))
    rng = np.random.default_rng(1)
    ids = list(shop.data.query_ids)

    class OfOne(np.random.Generator):
        """Draws that show the first query only."""

        def integers(self, n, *rest):  # type: ignore[override]
            return 0 if n == len(ids) else rng.integers(n, *rest)

        def random(self, *rest):  # type: ignore[override]
            return rng.random(*rest)

    def half_without(event):
        if ids.index(event["query_id"]) % 2:
            event.pop("candidate_features", None)
            event.pop("features_hash", None)

    shop.show(600, rng)
    shop.show(2_000, OfOne(np.random.PCG64(1)))
    shop.ranker._logged._at_ms.clear()
    shop.show(600, rng, change=half_without)
    shop.pipeline.flush()
    statistics = [*shop.trainer.statistics().items()]
    records = [(x.key or b"", x.value) for x in shop.outputs if x.topic == CANDIDATES]
    assert sum(value is None for _, value in records) > 20
    found = [
        train_model(
            "m",
            shop.settings,
            Inputs(
                Statistics(statistics), feature_records_for(shop.settings, "m", read)
            ),
            shop.snapshot(),
            reason="asked",
        )
        for read in (records, list(dict(records).items()))
    ]
    assert found[0].run.sizes.n_without_features > 0
    assert found[0] == found[1]
    again = verify(shop.settings, found[0].run, shop.snapshot(), lambda: shop.log)
    assert again == encode_snapshot(found[0].snapshot)


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
