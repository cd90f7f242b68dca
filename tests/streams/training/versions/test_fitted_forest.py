"""Trees from clicks to lists that users see: trained, bounded, and made again."""

import itertools
import sys
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.configuration.former import model_of_record, recorded_model
from rankstream.configuration.trees import TreesSettings
from rankstream.ranking.checked_weights import checked_weights
from rankstream.wire.envelope import Snapshot, decode_snapshot, encode_snapshot
from rankstream.wire.models.forests import pack_forest, unpack_forest
from rankstream.wire.models.training import decode_record, encode_record
from streams.training.inputs import TrainingRefused
from streams.training.progress import TrainingProgress
from streams.training.trained_snapshot import Outcome
from streams.training.verification import made_of
from tests.streams.training.shop import EXAMINATION, Shop, model_of, settings_of, verify
from tests.streams.training.test_bounded_versions import loss_of
from tests.streams.training.test_trained_snapshot import (
    inputs_of,
    trained,
    with_training,
)

N_LISTS = 600
SMALL: dict[str, Any] = {
    "rounds": 20,
    "leaves": 6,
    "least_items": 8,
    "learning_rate": 0.3,
}
PLAN: dict[str, Any] = {
    "kind": "trees",
    "normalisation": "none",
    "examination": EXAMINATION.tolist(),
    "least_support": 1.0,
    "most_unsupported": 1.0,
    "temperature": 0.5,
}


def shop_of(n_lists: int = N_LISTS, **fields: Any) -> Shop:
    """A site whose lists were shown by version 0, unless it is trained meanwhile."""
    plan = PLAN | {"trees": TreesSettings(**SMALL)} | fields
    shop = Shop(settings_of({"m": model_of(**plan)}))
    shop.show(n_lists, np.random.default_rng(1))
    shop.pipeline.end()
    return shop


@pytest.fixture(scope="module")
def site() -> Shop:
    """One for all who change nothing but how it is trained."""
    return shop_of()


def by(shop: Shop, parent: Snapshot | None = None, **fields: Any) -> Outcome:
    """A training of what the site has, under other settings, of trees or of all."""
    names = fields.keys() & {*TreesSettings.__struct_fields__}
    own = {name: fields.pop(name) for name in sorted(names)}
    trees = TreesSettings(**SMALL | own)
    settings = with_training(shop.settings, trees=trees, **fields)
    found: Outcome = trained(shop, settings=settings, parent=parent)
    return found


def n_trees(snapshot: Snapshot) -> int:
    """How many it has."""
    return len(unpack_forest(snapshot.weights).roots)


def spread(shop: Shop, snapshot: Snapshot) -> float:
    """Mean standard deviation of scores, over all queries."""
    offsets, scorer = shop.data.offsets, checked_weights(snapshot, None)
    spans = itertools.pairwise(offsets.tolist())
    scores = [scorer.scores(shop.data.features[b:e], snapshot).std() for b, e in spans]
    return float(np.mean(scores))


def test_trees_are_trained_and_served(site: Shop) -> None:
    """They rank better, explore as they say, and the run says how they came about."""
    start = site.snapshot()
    snapshot, run = found = trained(site)

    assert (start.kind, n_trees(start)) == ("trees", 0)
    assert (snapshot.kind, n_trees(snapshot)) == ("trees", run.best_epoch)
    assert run.best_epoch > 0
    assert site.ndcg(snapshot) > site.ndcg(start) + 0.1
    assert spread(site, snapshot) == pytest.approx(1.0 / run.temperature, rel=0.2)
    assert run.reward is not None
    assert run.settings["training"]["trees"]["leaves"] == SMALL["leaves"]
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
    assert decode_record("run", encode_record(run)) == run
    assert trained(site) == found


def test_a_run_is_made_again_from_its_record(site: Shop) -> None:
    """With the settings that it says, whatever they are now."""
    found = by(site, monotone={"f2": "rising"}, share_of_queries=0.7, seed=5)
    again = made_of(
        site.settings, found.run, site.snapshot(), lambda _: inputs_of(site)
    )

    assert again == found
    model = site.settings.models["m"]
    assert model_of_record(recorded_model(model)) == model
    linear = msgspec.structs.replace(model, kind="linear", training=model.training)
    assert "trees" not in recorded_model(linear)["training"]


def test_versions_follow_one_another_and_are_made_again_from_the_log() -> None:
    """By a schedule: each adds trees to those before, byte for byte."""
    shop = Shop(settings_of({"m": model_of(
        **PLAN, after=[300, 600], trees=TreesSettings(**SMALL)
    )}))  # fmt: skip
    versions = [shop.pipeline.snapshots[b"m"]]
    rng = np.random.default_rng(1)
    for _ in range(16):
        shop.show(50, rng)
        if shop.pipeline.snapshots[b"m"] != versions[-1]:
            versions.append(shop.pipeline.snapshots[b"m"])
    first, second = shop.trainer.runs
    forests = [unpack_forest(decode_snapshot(each).weights) for each in versions]

    assert len(versions) == 3
    assert len(forests[2].roots) == len(forests[1].roots) + second.best_epoch
    n = len(forests[1].thresholds)
    assert forests[2].thresholds[:n].tolist() == forests[1].thresholds.tolist()
    for number, run in enumerate((first, second)):
        parent = decode_snapshot(versions[number])
        assert (
            verify(shop.settings, run, parent, lambda: shop.log)
            == (versions[number + 1])
        )


def test_too_many_rounds_are_grown_anew(site: Shop) -> None:
    """They stand alone then, and stay what they were where nothing is better."""
    parent = by(site).snapshot
    anew = by(site, parent, rounds_at_most=n_trees(parent) + SMALL["rounds"] - 1)
    on = by(site, parent, rounds_at_most=n_trees(parent) + SMALL["rounds"])

    assert n_trees(on.snapshot) == n_trees(parent) + on.run.best_epoch
    kept = anew.run.best_epoch or n_trees(parent)
    assert n_trees(anew.snapshot) == kept
    assert anew.run.epochs[0] == on.run.epochs[0]
    assert anew.run.epochs[1] != on.run.epochs[1]


def test_the_order_of_the_parent_stays_where_nothing_is_better(site: Shop) -> None:
    """Its leaves alone change, all by one factor."""
    parent = by(site).snapshot
    found = by(site, parent, rounds=1, learning_rate=1e-9, patience=1)
    before, after = (unpack_forest(each.weights) for each in (parent, found.snapshot))
    n = len(before.leaves)
    factors = after.leaves[:n][before.leaves != 0] / before.leaves[before.leaves != 0]

    assert factors == pytest.approx(factors[0], rel=1e-5)


def test_a_selected_loss_is_told_with_all_others(site: Shop) -> None:
    """Its snapshot is that of the same loss alone, to the byte."""
    some = ["lambda-rank", "truncated-lambda", "arp-logistic"]
    snapshot, run = by(site, loss="selected", losses=some)
    alone = by(site, loss=run.loss)

    assert snapshot.weights == alone.snapshot.weights
    assert (run.epochs, run.best_epoch) == (alone.run.epochs, alone.run.best_epoch)
    assert [each.loss for each in run.losses] == some
    assert max(each.dcg for each in run.losses) == next(
        each.dcg for each in run.losses if each.loss == run.loss
    )


def test_a_bound_holds_on_the_bytes_that_are_served(site: Shop) -> None:
    """Between the parent and what training gave, whose trees are then both there."""
    parent, plain = site.snapshot(), by(site)
    assert plain.run.largest_loss == pytest.approx(
        loss_of(site, parent, plain.snapshot), rel=1e-4
    )
    assert plain.run.largest_loss is not None
    bound = plain.run.largest_loss / 3.0
    snapshot, run = by(site, largest_loss=bound)

    assert 0.0 < run.step < 1.0
    assert loss_of(site, parent, snapshot) <= bound * (1.0 + 1e-4)
    leaves, whole = (
        unpack_forest(x.weights).leaves for x in (snapshot, plain.snapshot)
    )
    assert leaves == pytest.approx(run.step * whole, rel=1e-6)
    anew = by(site, snapshot, rounds_at_most=SMALL["rounds"], largest_loss=bound / 9.0)
    assert n_trees(anew.snapshot) == n_trees(snapshot) + anew.run.best_epoch
    assert 0.0 < anew.run.step < 1.0


def test_each_number_of_the_settings_counts(site: Shop) -> None:
    """None is left at what it is by default."""
    plain = by(site).run.epochs
    for name, value in (
        ("rounds", 3), ("leaves", 3), ("learning_rate", 0.1), ("least_items", 40),
        ("share_of_features", 0.4), ("share_of_queries", 0.5),
        ("regularisation", 30.0), ("monotone", {"f1": "falling"}),
        ("missing", "zero"), ("cutoff", 1), ("loss", "lambda-loss"),
    ):  # fmt: skip
        if name == "missing":
            zeros = shop_with_zeros()
            assert by(zeros, missing=value).run.epochs != by(zeros).run.epochs
        else:
            changed: dict[str, Any] = {name: value}
            assert by(site, **changed).run.epochs != plain, name


def shop_with_zeros() -> Shop:
    """Half of one feature is missing, and logged as 0."""
    shop = Shop(settings_of({"m": model_of(**PLAN, trees=TreesSettings(**SMALL))}))
    rng = np.random.default_rng(9)
    features = shop.data.features
    features[:, 0] -= 0.5
    features[rng.random(len(features)) < 0.5, 0] = 0.0
    shop.show(400, np.random.default_rng(1))
    shop.pipeline.end()
    return shop


def test_progress_is_told_by_round(site: Shop) -> None:
    """In words."""
    told: list[TrainingProgress] = []
    found = trained(site, on_progress=told.append)
    rounds = [each for each in told if each.stage == "round"]

    assert [each.number for each in rounds] == [x[0] for x in found.run.epochs]
    assert rounds[2].told().startswith("round 2 of at most 20, loss ")


def test_lists_without_a_click_leave_the_order_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All values are alike: no tree is grown, and the version says so."""
    # Users who never look.
    monkeypatch.setattr("tests.streams.training.shop.EXAMINATION", np.zeros(5))
    snapshot, run = trained(shop_of(200))

    assert (run.best_epoch, n_trees(snapshot)) == (0, 0)
    assert len(run.epochs) == 1


def test_a_parent_of_another_kind_is_refused(site: Shop) -> None:
    """With both forms."""
    linear = shop_of(60, kind="linear", normalisation="none", trees=TreesSettings())
    with pytest.raises(
        TrainingRefused, match=r"must be .* trees, none; it is of .* li"
    ):
        trained(site, parent=linear.snapshot())


def test_a_version_beyond_its_bound_is_refused(site: Shop) -> None:
    """Before it is published, with how many trees there could be."""
    whole = by(site)
    n_bytes = len(whole.snapshot.weights)
    model = site.settings.models["m"]

    def bounded(most: int) -> Outcome:
        own = msgspec.structs.replace(model, snapshot_bytes=most)
        settings = msgspec.structs.replace(site.settings, models={"m": own})
        found: Outcome = trained(site, settings=settings)
        return found

    assert bounded(n_bytes).snapshot.weights == whole.snapshot.weights
    with pytest.raises(TrainingRefused, match=r"take at most .*_bytes, .*rounds_at_mo"):
        bounded(n_bytes - 1)
    n_trees = len(unpack_forest(whole.snapshot.weights).roots)
    assert n_trees > 2
    with pytest.raises(TrainingRefused, match=rf"trees to {n_trees // 2}$"):
        bounded(n_bytes // 2 + 1)


def test_a_training_without_lightgbm_says_what_to_install(
    site: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is read; what is served is ranked with all the same."""
    snapshot = by(site).snapshot
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    told: list[TrainingProgress] = []
    with pytest.raises(TrainingRefused, match=r"pip install 'rankstream\[trees\]'"):
        trained(site, on_progress=told.append)

    assert not told
    assert site.ndcg(snapshot) > site.ndcg(site.snapshot())


def test_the_bytes_of_trees_are_those_of_their_arrays(site: Shop) -> None:
    """Nothing but the arrays is in a snapshot."""
    packed = by(site).snapshot.weights
    assert pack_forest(unpack_forest(packed)) == packed
