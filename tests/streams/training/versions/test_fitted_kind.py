"""A model of the kind "selected": few clicks make it linear, many make it of trees."""

import sys
from typing import Any

import msgspec
import numpy as np
import pytest

from producers.formats.letor import LetorData
from rankstream.configuration.former import model_of_record, recorded_model
from rankstream.configuration.training import SELECTED
from rankstream.configuration.trees import TreesSettings
from rankstream.operations.terminal.words import loss_line
from rankstream.wire.envelope import Snapshot, decode_snapshot, encode_snapshot
from rankstream.wire.models.forests import NO_TREES, unpack_forest
from rankstream.wire.models.training import decode_record, encode_record
from streams.training.inputs import TrainingRefused
from streams.training.progress import TrainingProgress
from streams.training.trained_snapshot import Outcome
from streams.training.versions.either_ranker import EitherRanker
from streams.training.versions.forest_ranker import ForestRanker
from tests.forest_factory import drawn_forest
from tests.streams.training.shop import (
    EXAMINATION,
    N_FEATURES,
    Shop,
    model_of,
    settings_of,
    verify,
)
from tests.streams.training.test_bounded_versions import loss_of
from tests.streams.training.test_trained_snapshot import inputs_of, trained

FEW, MANY = 500, 4_000
TREES = TreesSettings(rounds=60, leaves=8, least_items=8, learning_rate=0.1)
STUNTED: dict[str, Any] = {"trees": TreesSettings(rounds=1, least_items=100_000)}
"""No tree has a split, so that weights are better."""

PLAN: dict[str, Any] = {
    "kind": SELECTED,
    "examination": EXAMINATION.tolist(),
    "least_support": 1.0,
    "most_unsupported": 1.0,
    "batch": 4,
    "learning_rate": 0.1,
    "trees": TREES,
}


def bent_queries(seed: int) -> LetorData:
    """Items are liked by a sum of features, and for one that is near its middle."""
    n_queries, n_documents, rng = 120, 8, np.random.default_rng(seed)
    features = rng.random((n_queries * n_documents, N_FEATURES)).astype(np.float32)
    straight = features @ np.array([1.0, 1.0, -1.0, 1.0, -1.0, 0.0]) - 0.5
    bend = np.where(np.abs(features[:, 5] - 0.5) < 0.25, 1.0, -1.0)
    return LetorData(
        query_ids=[f"q{number}" for number in range(n_queries)],
        labels=np.floor(np.clip(1.5 + 2.3 * straight + bend, 0, 3)).astype(np.int64),
        features=features,
        offsets=np.arange(0, len(features) + 1, n_documents),
    )


def shop_of(n_lists: int, seed: int = 1, **fields: Any) -> Shop:
    """A site whose lists were shown by version 0, unless it is trained meanwhile."""
    settings = settings_of({"m": model_of(**PLAN | fields)})
    shop = Shop(settings, data=bent_queries(seed + 50))
    shop.show(n_lists, np.random.default_rng(seed))
    shop.pipeline.end()
    return shop


@pytest.fixture(scope="module")
def site() -> Shop:
    """One for all who change nothing but how it is trained."""
    return shop_of(MANY)


def by(shop: Shop, parent: Snapshot | None = None, **fields: Any) -> Outcome:
    """A training of what the site has, by other settings of the model."""
    model = model_of(**PLAN | fields)
    settings = msgspec.structs.replace(shop.settings, models={"m": model})
    found: Outcome = trained(
        shop, settings=settings, inputs=inputs_of(shop, model=model), parent=parent
    )
    return found


def test_clicks_decide_by_how_many_they_are() -> None:
    """In most of five draws few make it linear, and many make it of trees in all."""
    kinds = {
        n: [by(shop_of(n, seed)).snapshot.kind for seed in range(1, 6)]
        for n in (FEW, MANY)
    }

    assert kinds[FEW].count("linear") >= 3
    assert kinds[MANY] == ["trees"] * 5


def test_the_version_is_that_of_its_kind_alone(site: Shop) -> None:
    """To the byte; the run has both, and says how far the other one is behind."""
    start = site.snapshot()
    assert (start.kind, start.normalisation) == ("linear", "min-max")
    for fields, own, form in (
        (STUNTED, "linear", {"trees": TreesSettings()}),
        ({}, "trees", {"normalisation": "none", "epochs": 50,
                          "batch": 16, "learning_rate": 0.01}),
    ):  # fmt: skip
        snapshot, run = by(site, **fields)
        blank = shop_of(50, **{"kind": own} | form).snapshot()
        alone = by(site, blank, **fields | {"kind": own} | form)

        assert snapshot.kind == own
        assert snapshot.normalisation == alone.snapshot.normalisation
        assert snapshot.weights == alone.snapshot.weights
        assert run.epochs == alone.run.epochs
        assert (run.largest_loss, run.reward) == (
            alone.run.largest_loss, alone.run.reward,
        )  # fmt: skip
        assert [each.kind for each in run.losses] == ["linear", "trees"]
        (best,) = (each for each in run.losses if each.kind == own)
        assert max(each.dcg for each in run.losses) == best.dcg
        assert loss_line(run).startswith(f"{own} by truncated-lambda, the best of 2 by")
        assert decode_record("run", encode_record(run)) == run
        assert decode_snapshot(encode_snapshot(snapshot)) == snapshot


def test_losses_are_chosen_with_kinds(site: Shop) -> None:
    """Each by each, and the record of the settings is read back."""
    some = ["truncated-lambda", "lambda-rank"]
    _, run = by(site, loss="selected", losses=some)

    tried = [(each.kind, each.loss) for each in run.losses]
    assert tried == [(kind, loss) for kind in ("linear", "trees") for loss in some]
    assert min(run.losses, key=lambda each: each.behind).loss == run.loss
    model = site.settings.models["m"]
    assert model_of_record(recorded_model(model)) == model


def test_a_parent_of_the_other_kind_is_left_behind(site: Shop) -> None:
    """Its kind goes on from it, the other begins anew: the fall is from what it is."""
    linear, forest = by(site, **STUNTED), by(site)
    after = by(site, linear.snapshot)
    assert after.snapshot.kind == "trees"
    assert after.snapshot.weights == forest.snapshot.weights
    assert (after.snapshot.parent, after.snapshot.epoch) == (MANY, 1)
    assert after.run.largest_loss == pytest.approx(
        loss_of(site, linear.snapshot, after.snapshot), rel=1e-4
    )

    on = by(site, forest.snapshot, **STUNTED)
    # What begins anew begins as it does from version 0.
    (anew, first) = (run.losses[0] for run in (on.run, linear.run))
    assert (anew.kind, anew.dcg) == (first.kind, first.dcg) == ("linear", first.dcg)
    kept = unpack_forest(on.snapshot.weights)
    assert on.snapshot.kind == "trees"
    assert (
        kept.features.tolist()
        == unpack_forest(forest.snapshot.weights).features.tolist()
    )


def test_an_either_ranker_is_of_the_side_that_is_not_0() -> None:
    """And between two there is a way where both are of one."""
    forest = ForestRanker(NO_TREES, drawn_forest(1, n_trees=1, n_leaves=3))
    either = EitherRanker(2, forest)
    none, weights, leaves = np.zeros((3, 5))
    weights[0], leaves[4] = 1.0, 1.0
    assert either.side(leaves)[0] is forest
    assert either.side(leaves)[1].tolist() == [0, 0, 1]
    for linear in (none, weights):
        ranker, own = either.side(linear)
        assert ranker is not forest
        assert own.tolist() == linear[:2].tolist()
    for first, second, is_way in (
        (weights, -weights, True), (none, weights, True), (leaves, -leaves, True),
        (leaves, none, True), (weights, leaves, False), (leaves, -weights, False),
    ):  # fmt: skip
        assert either.has_way(first, second) is is_way


def test_nothing_lies_between_two_kinds(site: Shop) -> None:
    """Where another kind could lose too much its parent is served again."""
    parent = by(site, **STUNTED).snapshot
    free = by(site, parent)
    held = by(site, parent, largest_loss=1e-3)
    on = by(site, parent, **STUNTED, largest_loss=1e-3)

    assert (free.snapshot.kind, free.run.step) == ("trees", 1.0)
    assert (held.snapshot.kind, held.run.step) == ("linear", 0.0)
    assert held.snapshot.weights == parent.weights
    assert on.snapshot.kind == "linear"


def test_a_scale_stays_with_weights(site: Shop) -> None:
    """Trees that follow take features as they were logged."""
    scale = np.full(N_FEATURES, 2.0, "<f4").tobytes()
    parent = msgspec.structs.replace(by(site, **STUNTED).snapshot, scale=scale)
    forest = by(site, parent).snapshot

    assert by(site, parent, **STUNTED).snapshot.scale == scale
    assert (forest.kind, forest.scale) == ("trees", b"")
    assert forest.weights == by(site).snapshot.weights


def test_each_version_of_a_schedule_is_made_again_from_the_log() -> None:
    """Whatever its kind is, and that of its parent, byte for byte."""
    shop = Shop(
        settings_of({"m": model_of(**PLAN, after=[FEW, 2_000])}), data=bent_queries(54)
    )
    versions = [shop.pipeline.snapshots[b"m"]]
    rng = np.random.default_rng(4)
    for _ in range(44):
        shop.show(50, rng)
        if shop.pipeline.snapshots[b"m"] != versions[-1]:
            versions.append(shop.pipeline.snapshots[b"m"])
    kinds = [decode_snapshot(each).kind for each in versions]

    assert kinds == ["linear", "linear", "trees"]
    for number, run in enumerate(shop.trainer.runs):
        parent = decode_snapshot(versions[number])
        made = verify(shop.settings, run, parent, lambda: shop.log)
        assert made == versions[number + 1]


def test_both_trainings_are_told(site: Shop) -> None:
    """Epochs first, and then rounds."""
    told: list[TrainingProgress] = []
    trained(site, on_progress=told.append)
    stages = list(dict.fromkeys(each.stage for each in told))

    assert stages == ["reading", "epoch", "round", "bounding", "judging"]


def test_trees_need_lightgbm_here_too(
    site: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not left out in silence, as what is served would depend on the machine."""
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(TrainingRefused, match=r"pip install 'rankstream\[trees\]'"):
        trained(site)


def test_a_parent_of_a_third_kind_is_refused(site: Shop) -> None:
    """With the forms that it may have."""
    network = shop_of(50, kind="neural", hidden=[3], trees=TreesSettings()).snapshot()
    with pytest.raises(TrainingRefused, match=r"linear, min-max or .* trees, none; it"):
        trained(site, parent=network)
