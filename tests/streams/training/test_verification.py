"""A trained snapshot made again from the log, and what cannot be."""

import msgspec
import numpy as np
import pytest

from rankstream.wire.envelope import decode_snapshot, encode_snapshot
from rankstream.wire.topics import CANDIDATES
from streams.fold.statistics_reader import Statistics
from streams.training.inputs import Inputs, feature_records_for
from streams.training.trained_snapshot import train_model
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
    settings = msgspec.structs.replace(shop.settings, models={"m": model})
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
    watermarks = [(partition, at_ms + 1) for partition, at_ms in run.watermarks]
    other = msgspec.structs.replace(run, watermarks=watermarks)
    with pytest.raises(VerificationRefused, match=r"at the watermark|between records"):
        verify(shop.settings, other, parent, lambda: shop.log)


def test_other_features_are_refused(site):
    """The log does not have them."""
    shop, versions = site
    run, parent = shop.trainer.runs[0], decode_snapshot(versions[0])
    features = msgspec.structs.replace(run.features, digest=bytes(16))
    other = msgspec.structs.replace(run, features=features)
    with pytest.raises(VerificationRefused, match="the dump gives none such"):
        verify(shop.settings, other, parent, lambda: shop.log)


def test_features_that_came_after_the_counts_are_found():
    """As where `candidates` was read a while after `statistics`."""
    late = 1_200

    def without(event):
        # No features before, and then those of all.
        if int(event["impression_id"][1:]) < late:
            event.pop("candidate_features", None)
            event.pop("features_hash", None)

    model = model_of(examination=[1.0, 0.5, 0.3], least_support=1.0)
    shop = Shop(settings_of({"m": model}))
    rng = np.random.default_rng(1)
    shop.show(late, rng, change=without)
    shop.pipeline.flush()
    statistics = [*shop.trainer.statistics().items()]
    shop.ranker._logged._at_ms.clear()
    shop.show(600, rng)
    shop.pipeline.end()
    features = [(x.key or b"", x.value) for x in shop.outputs if x.topic == CANDIDATES]
    assert len(features) > 20
    # The topic was read when half of them were there.
    records = feature_records_for(model, features[: len(features) // 2])
    inputs = Inputs(Statistics(statistics), records)
    parent = shop.snapshot()
    found = train_model("m", shop.settings, inputs, parent, reason="asked")
    again = verify(shop.settings, found.run, parent, lambda: shop.log)
    assert again == encode_snapshot(found.snapshot)
