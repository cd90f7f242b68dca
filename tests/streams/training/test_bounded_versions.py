"""How far a version can fall: computed, recorded, bounded, and made again."""

import msgspec
import numpy as np
import pytest

from models.plackett_luce.placement import placement_batch
from models.training.bounded_step import between
from models.training.largest_loss import fall_of
from rankstream.configuration.former import model_of_record, recorded_model
from rankstream.operations.answers.models.verification import differences_of_runs
from rankstream.ranking.checked_weights import checked_weights
from rankstream.ranking.scoring import normalised
from rankstream.wire.envelope import Snapshot, encode_snapshot
from rankstream.wire.models.snapshot_names import sha256_of
from rankstream.wire.models.training import RunRecord, decode_record, encode_record
from streams.statistics.columns import IMPRESSIONS
from streams.training.inputs import TrainingRefused
from streams.training.trained_snapshot import Outcome
from streams.training.verification import made_of
from tests.streams.training.shop import EXAMINATION, Shop, model_of, settings_of
from tests.streams.training.test_trained_snapshot import (
    inputs_of,
    trained,
    with_training,
)

PLAN = {
    "examination": EXAMINATION.tolist(),
    "least_support": 1.0,
    "most_unsupported": 1.0,
    "temperature": 0.5,
    "batch": 4,
    "epochs": 4,
}
LAYERS = {"linear": [], "neural": [5, 3]}
N_SINCE = 7
"""Fields of a run that the release before did not have."""


def shop_of(kind: str) -> Shop:
    """A site that showed lists of version 0 only."""
    shop = Shop(settings_of({"m": model_of(**PLAN, kind=kind, hidden=LAYERS[kind])}))
    shop.show(500, np.random.default_rng(1))
    shop.pipeline.end()
    return shop


@pytest.fixture(scope="module")
def shops() -> dict[str, Shop]:
    """One of each kind, which nobody changes."""
    return {kind: shop_of(kind) for kind in LAYERS}


def by(shop: Shop, **fields: object) -> Outcome:
    """A training of what the site has, under other settings."""
    found: Outcome = trained(shop, settings=with_training(shop.settings, **fields))
    return found


def loss_of(shop: Shop, parent: Snapshot, new: Snapshot) -> float:
    """By what services score with the bytes of both, weighed as in the reward."""
    counts = lists_of_selection(shop)
    lost = 0.0
    for query, n in counts.items():
        number = shop.data.query_ids.index(query)
        rows = slice(shop.data.offsets[number], shop.data.offsets[number + 1])
        before, after = (
            placement_batch(
                checked_weights(x, None)
                .scores(normalised(shop.data.features[rows], x.normalisation), x)
                .astype(float)[None],
                5,
            )[0]
            @ EXAMINATION
            for x in (parent, new)
        )
        lost += n * fall_of(before, after).largest_loss
    return lost / sum(counts.values())


def lists_of_selection(shop: Shop) -> dict[str, int]:
    """Lists of each query that the groups 8 and 9 were shown."""
    found: dict[str, int] = {}
    for chunk in inputs_of(shop).statistics.columns():
        for cell in chunk.cells:
            if cell[1] in (8, 9):
                query = chunk.names[cell[0]].query
                found[query] = found.get(query, 0) + int(cell[IMPRESSIONS])
    return found


@pytest.mark.parametrize("kind", LAYERS)
def test_each_training_says_how_far_its_version_can_fall(
    shops: dict[str, Shop], kind: str
) -> None:
    """As services score with its bytes; nothing holds it back."""
    shop = shops[kind]
    snapshot, run = by(shop)
    assert run.largest_loss == pytest.approx(
        loss_of(shop, shop.snapshot(), snapshot), rel=1e-4
    )
    assert run.largest_loss is not None
    assert run.largest_loss > 0.1
    assert run.least_ratio is not None
    assert 0.0 < run.least_ratio < 1.0
    assert run.step == 1.0


@pytest.mark.parametrize("kind", LAYERS)
def test_a_bound_holds_on_the_bytes_that_are_served(
    shops: dict[str, Shop], kind: str
) -> None:
    """Between the parent and what training gave; the rest of the run says as before."""
    shop = shops[kind]
    plain, parent = by(shop), shop.snapshot()
    assert plain.run.largest_loss is not None
    bound = plain.run.largest_loss / 3.0
    snapshot, run = by(shop, largest_loss=bound)
    weights = [
        np.frombuffer(x.weights, "<f4").astype(float)
        for x in (parent, plain.snapshot, snapshot)
    ]

    assert run.largest_loss is not None
    assert 0.9 * bound < run.largest_loss <= bound
    assert loss_of(shop, parent, snapshot) == pytest.approx(run.largest_loss, rel=1e-4)
    assert 0.0 < run.step < 1.0
    assert (weights[2] == between(weights[0], weights[1], run.step)).all()
    assert run.epochs == plain.run.epochs
    assert (run.scale, run.temperature) == (plain.run.scale, plain.run.temperature)
    assert run.least_exposure > plain.run.least_exposure
    assert run.reward != plain.run.reward
    assert run.settings["training"]["largest_loss"] == bound
    assert run.sha256 == sha256_of(encode_snapshot(snapshot))
    assert decode_record("run", encode_record(run)) == run
    again = made_of(shop.settings, run, parent, lambda _: inputs_of(shop))
    assert again == (snapshot, run)


@pytest.mark.parametrize("kind", LAYERS)
def test_a_bound_that_held_changes_no_byte(shops: dict[str, Shop], kind: str) -> None:
    """Nor the record, but for the setting."""
    shop = shops[kind]
    plain = by(shop)
    assert plain.run.largest_loss is not None
    found = by(shop, largest_loss=plain.run.largest_loss)
    assert encode_snapshot(found.snapshot) == encode_snapshot(plain.snapshot)
    assert msgspec.structs.replace(found.run, settings=plain.run.settings) == plain.run


def test_the_bound_is_of_one_step_and_counts_from_the_parent(
    shops: dict[str, Shop],
) -> None:
    """A second training may go as far again."""
    shop = shops["linear"]
    settings = with_training(shop.settings, largest_loss=0.05)
    first = trained(shop, settings=settings)
    second = trained(shop, settings=settings, parent=first.snapshot)
    for parent, found in (
        (shop.snapshot(), first),
        (first.snapshot, second),
    ):
        assert loss_of(shop, parent, found.snapshot) <= 0.05 * (1.0 + 1e-4)
    assert first.run.step < 1.0
    assert loss_of(shop, shop.snapshot(), second.snapshot) > 0.05


def test_where_nobody_may_judge_lists_of_the_training_groups_count(
    shops: dict[str, Shop],
) -> None:
    """As of a parent that may have seen clicks of all groups."""
    shop = shops["linear"]
    unknown = msgspec.structs.replace(shop.snapshot(), groups=[], version=3)
    settings = with_training(shop.settings, largest_loss=0.05)
    run = trained(shop, settings=settings, parent=unknown).run
    assert run.reward is None
    assert run.largest_loss is not None
    assert 0.04 < run.largest_loss <= 0.05


def test_a_run_of_the_release_before_is_verified(shops: dict[str, Shop]) -> None:
    """Its record has neither the figures nor the settings; nothing else may differ."""
    shop = shops["linear"]
    found = by(shop)
    fields = msgspec.msgpack.decode(encode_record(found.run))[:-N_SINCE]
    before: RunRecord = decode_record("run", msgspec.msgpack.encode(fields))
    assert {"largest_loss", "proximal_ratio"}.isdisjoint(before.settings["training"])
    again = made_of(shop.settings, before, shop.snapshot(), lambda _: inputs_of(shop))

    assert before.largest_loss is None
    assert again == found
    assert differences_of_runs(before, again.run) == []
    wrong = msgspec.structs.replace(found.run, largest_loss=0.5)
    assert len(differences_of_runs(wrong, again.run)) == 1
    further = msgspec.structs.replace(found.run, step=0.5)
    assert differences_of_runs(further, again.run) == [
        "step of the run was 0.5, is 1.0"
    ]


def test_settings_that_nobody_chose_are_not_recorded() -> None:
    """Those that somebody did come back."""
    for fields, there in (
        ({}, set()),
        ({"largest_loss": 0.2}, {"largest_loss"}),
        ({"loss": "proximal"}, {"proximal_ratio"}),
        (
            {"loss": "selected", "losses": ["arp-linear", "proximal"]},
            {"proximal_ratio"},
        ),
    ):
        model = model_of(**fields)
        form = recorded_model(model)
        assert {"largest_loss", "proximal_ratio"} & {*form["training"]} == there
        assert model_of_record(form) == model


def test_a_floor_that_the_bound_leaves_out_of_reach_is_refused() -> None:
    """The parent shows some items hardly ever; it says what to turn."""
    shop = shop_of("linear")
    features = np.full(len(shop.snapshot().weights) // 4, 30.0, "<f4")
    sure = msgspec.structs.replace(shop.snapshot(), weights=features.tobytes())
    settings = with_training(
        shop.settings, largest_loss=0.01, exposure_floor=0.05, temperature=2.0
    )
    with pytest.raises(
        TrainingRefused,
        match=r"a version of 'm' within largest_loss, 0.01, must have a mean least "
        r"exposure of 0.05; it has .*raise largest_loss, or lower exposure_floor",
    ):
        trained(shop, settings=settings, parent=sure)
    unbound = with_training(settings, largest_loss=None)
    assert trained(shop, settings=unbound, parent=sure).run.least_exposure >= 0.05


def test_the_ratio_of_the_proximal_loss_is_a_setting(shops: dict[str, Shop]) -> None:
    """A wider one trains another ranker; the run makes it again."""
    shop = shops["linear"]
    near, far = (by(shop, loss="proximal", proximal_ratio=c) for c in (1.05, 20.0))
    assert near.snapshot.weights != far.snapshot.weights
    assert near.run.settings["training"]["proximal_ratio"] == 1.05
    again = made_of(shop.settings, near.run, shop.snapshot(), lambda _: inputs_of(shop))
    assert again == near
