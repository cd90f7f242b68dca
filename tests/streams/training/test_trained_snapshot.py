"""What a trained snapshot is a function of, and what is refused in words."""

import re

import msgspec
import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve
from rankstream.configuration.former import recorded_model
from rankstream.wire.candidates import candidates_value, decode_candidates_key
from rankstream.wire.envelope import (
    LARGEST_NUMBER,
    decode_snapshot,
    encode_snapshot,
)
from rankstream.wire.models.snapshot_names import sha256_of
from rankstream.wire.models.training import ASKED, COUNT, decode_record, encode_record
from rankstream.wire.topics import CANDIDATES
from streams.stage import Output
from streams.statistics.reader import Statistics
from streams.training.curves.known_curve import KnownCurve
from streams.training.inputs import Inputs, TrainingRefused, feature_records_for
from streams.training.progress import TrainingProgress
from streams.training.trained_snapshot import train_model
from streams.training.verification import made_of
from tests.streams.training.shop import (
    EXAMINATION,
    N_FEATURES,
    Shop,
    model_of,
    settings_of,
)

N_LISTS = 1_500
PLAN = {"examination": EXAMINATION.tolist()}


def shop_of(*, partitions=1, n_lists=N_LISTS, change=lambda _: None, **fields):
    """A site that showed lists of one model, trained by hand only."""
    settings = settings_of({"m": model_of(**PLAN | fields)}, partitions=partitions)
    shop = Shop(settings)
    shop.show(n_lists, np.random.default_rng(1), change=change)
    shop.pipeline.end()
    return shop


@pytest.fixture(scope="module")
def shop():
    """One for all who change nothing."""
    return shop_of()


def inputs_of(shop, *, model=None, rng=None):
    """What a training reads; with a generator, in another order of the topics."""
    statistics = [*shop.trainer.statistics().items()]
    features = [(x.key, x.value) for x in shop.outputs if x.topic == CANDIDATES]
    if rng is not None:
        rng.shuffle(statistics)
        rng.shuffle(features)
    settings = msgspec.structs.replace(
        shop.settings, models={"m": model or shop.settings.models["m"]}
    )
    return Inputs(Statistics(statistics), feature_records_for(settings, "m", features))


def trained(shop, *, parent=None, inputs=None, settings=None, **how):
    """A training of what the site has."""
    return train_model(
        "m",
        settings or shop.settings,
        inputs or inputs_of(shop),
        parent or shop.snapshot(),
        reason=ASKED,
        **how,
    )


def with_training(settings, **fields):
    """The same settings with another plan."""
    model = settings.models["m"]
    plan = msgspec.structs.replace(model.training, **fields)
    model = msgspec.structs.replace(model, training=plan)
    return msgspec.structs.replace(settings, models={"m": model})


def test_a_snapshot_says_what_it_came_from(shop):
    """And its run all that it is a function of."""
    parent = shop.snapshot()
    found = trained(shop)
    snapshot, run = found
    assert (snapshot.model, snapshot.epoch, snapshot.version) == ("m", 0, N_LISTS)
    assert snapshot.intervention == run.intervention == f"m@0.{N_LISTS}"
    assert snapshot.parent == parent.version == 0
    assert snapshot.sources == run.counts == [(0, N_LISTS)]
    assert snapshot.groups == run.groups == [0, 1, 2, 3, 4, 5]
    assert snapshot.created_ms == dict(run.watermarks)[0]
    assert (snapshot.features_hash, snapshot.kind) == (parent.features_hash, "linear")
    assert snapshot.log_candidates
    assert run.sha256 == sha256_of(encode_snapshot(snapshot))
    assert run.parent.sha256 == sha256_of(encode_snapshot(parent))
    assert (run.reason, run.curve.source, run.curve.groups) == (ASKED, "given", [])
    assert (
        sum(x.n_records for x in run.features)
        == run.sizes.n_queries + run.sizes.n_held_out
        == 60
    )
    assert run.epochs[0][0] == 0
    assert 0 < run.sizes.n_below < run.sizes.n_items == 480
    assert 0 < run.sizes.share_below < 1
    best = max(run.epochs, key=lambda epoch: epoch[2])
    assert (run.best_epoch, run.temperature) == (best[0], 1.0)
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
    assert decode_record("run", encode_record(run)) == run
    assert (np.frombuffer(snapshot.weights, "<f4") != 0.0).any()


@pytest.mark.parametrize("name", ["affine-shown", "rerank", "doubly-robust"])
def test_any_estimator_may_be_asked_for(shop, name):
    """Its values are learned from, and the run says so."""
    settings = with_training(shop.settings, most_unsupported=1.0)
    usual = trained(shop, settings=settings)
    found = trained(shop, settings=with_training(settings, estimator=name))
    assert (usual.run.estimator, found.run.estimator) == ("intervention-aware", name)
    assert found.run.settings["training"]["estimator"] == name
    assert found.snapshot.weights != usual.snapshot.weights
    assert found.run.sizes.n_clicks == usual.run.sizes.n_clicks
    assert found.run.reward == pytest.approx(usual.run.reward, rel=0.2)
    again = made_of(
        shop.settings, found.run, shop.snapshot(), lambda _: inputs_of(shop)
    )
    assert again == found


def test_the_usual_estimator_is_the_same_when_asked_for(shop):
    """Made of other sums, so but for rounding; the record of none is that of before."""
    settings = with_training(shop.settings, most_unsupported=1.0)
    usual = trained(shop, settings=settings)
    named = with_training(settings, estimator="intervention-aware")
    asked = trained(shop, settings=named)
    one, other = (np.frombuffer(x.snapshot.weights, "<f4") for x in (usual, asked))
    np.testing.assert_allclose(one, other, rtol=1e-3)
    assert asked.run.reward == pytest.approx(usual.run.reward, rel=1e-6)
    assert asked.run.sizes == usual.run.sizes
    assert "estimator" not in usual.run.settings["training"]


def test_an_estimator_that_cannot_take_the_curve_is_refused(shop):
    """Ratios may make alpha + beta 0 or less, which nothing is divided by."""
    curve = KnownCurve(
        BiasCurve(np.array([1.0, 0.5]), np.array([0.0, -0.6]), is_ratio_only=True),
        "of ratios",
        (),
    )
    settings = with_training(shop.settings, estimator="rerank", examination=[])
    with pytest.raises(TrainingRefused, match=r"alpha \+ beta must be more than 0"):
        trained(shop, settings=settings, curve=curve)


def test_equal_inputs_give_equal_bytes_in_any_order(shop):
    """Of records, whatever partition or batch they came in."""
    first = trained(shop)
    for seed in range(2):
        inputs = inputs_of(shop, rng=np.random.default_rng(seed))
        assert trained(shop, inputs=inputs) == first


def test_partitions_change_nothing_but_the_counts(shop):
    """Queries of three partitions are learned from as those of one."""
    three = trained(shop_of(partitions=3))
    one = trained(shop)
    assert [n for _, n in three.run.counts] != [N_LISTS]
    assert sum(n for _, n in three.run.counts) == N_LISTS
    assert three.snapshot.weights == one.snapshot.weights
    n_read = [sum(x.n_records for x in each.run.features) for each in (three, one)]
    assert n_read[0] == n_read[1]
    for name in ("curve", "sizes", "epochs", "scale", "reward"):
        assert getattr(three.run, name) == getattr(one.run, name)


@pytest.mark.parametrize(
    "fields",
    [
        {"seed": 1},
        {"learning_rate": 0.03},
        {"least_support": 3.0},
        {"cutoff": 2},
        {"examination": [1.0, 0.9]},
        {"temperature": 2.0},
        {"held_out": 0.5},
        {"loss": "dcg-at-k-logistic"},
    ],
)
def test_each_setting_tells(shop, fields):
    """Weights are others, and the run says under which settings."""
    settings = with_training(shop.settings, **fields)
    found = trained(shop, settings=settings)
    assert found.snapshot.weights != trained(shop).snapshot.weights
    assert found.run.settings == recorded_model(settings.models["m"])
    # An estimator that was left to the log is not recorded.
    assert "estimator" not in found.run.settings["training"]


def test_features_are_shifted_as_the_parent_has_it(shop):
    """And the new version shifts them likewise."""
    parent = shop.snapshot()
    shift = np.linspace(0, 1, parent.n_features).astype("<f4")
    scale = np.linspace(1, 2, parent.n_features).astype("<f4")
    moved = msgspec.structs.replace(
        parent, shift=shift.tobytes(), scale=scale.tobytes()
    )
    found = trained(shop, parent=moved).snapshot
    assert (found.shift, found.scale) == (moved.shift, moved.scale)
    # Scaling each query from 0 to 1 undoes both, but for rounding.
    weights = [np.frombuffer(x.weights, "<f4") for x in (found, trained(shop).snapshot)]
    assert weights[0] == pytest.approx(weights[1], abs=2e-2)
    assert weights[0].tolist() != weights[1].tolist()


def test_retraining_at_the_same_count_takes_the_next_epoch(shop):
    """It goes on from the version of before; an epoch may be asked for."""
    first = trained(shop).snapshot
    second = trained(shop, parent=first)
    assert second.snapshot.intervention == f"m@1.{N_LISTS}"
    assert (second.snapshot.parent, second.run.parent.epoch) == (N_LISTS, 0)
    assert second.snapshot.groups == first.groups
    assert trained(shop, parent=first, epoch=7).snapshot.epoch == 7
    with pytest.raises(TrainingRefused, match=r"come after its parent, 0.1500; .*ep"):
        trained(shop, parent=first, epoch=0)
    with pytest.raises(TrainingRefused, match=r"at most 999,999,999,999,999; got 1000"):
        trained(shop, parent=first, epoch=LARGEST_NUMBER + 1)


def test_whose_clicks_a_snapshot_saw_goes_on_to_its_heirs(shop):
    """Those of its parent, and of the curve; unknown ones make all unknown."""
    other = msgspec.structs.replace(shop.snapshot(), groups=[9], version=3)
    assert trained(shop, parent=other).snapshot.groups == [0, 1, 2, 3, 4, 5, 9]
    of_curve = trained(shop, settings=with_training(shop.settings, examination=[]))
    assert of_curve.run.curve.groups == [6, 7]
    assert of_curve.run.groups == [0, 1, 2, 3, 4, 5]
    assert of_curve.snapshot.groups == [0, 1, 2, 3, 4, 5, 6, 7]
    unknown = msgspec.structs.replace(shop.snapshot(), groups=[], version=3)
    found = trained(shop, parent=unknown)
    assert found.snapshot.groups == []
    assert found.run.reward is None
    assert "seen clicks of all groups" in found.run.reward_reason


def test_an_early_curve_leaves_somebody_to_judge_all_heirs():
    """From too few clicks of the validation groups, it takes none of selection."""
    judged = {"examination": [], "least_support": 0.0, "most_unsupported": 1.0}
    shop = shop_of(n_lists=200, after=[200, 500, 800], **judged)
    shop.show(1_000, np.random.default_rng(2))
    shop.end()
    runs = shop.trainer.runs
    assert len(runs) == 3
    assert runs[0].curve.groups == [0, 1, 2, 3, 4, 5, 6, 7]
    assert "as those of the validation groups do not tell it" in runs[0].curve.source
    for run in runs:
        assert run.reward is not None, run.reward_reason
        assert "documents were shown too seldom" in run.curve.warning
    assert [run.parent.version for run in runs] == [0, *(x.version for x in runs[:2])]
    assert shop.snapshot().groups == [0, 1, 2, 3, 4, 5, 6, 7]


def test_the_reward_is_refused_where_too_little_is_known_of_what_it_shows(shop):
    """By a setting; it is a number elsewhere, never from groups that were seen."""
    found = trained(shop)
    assert found.run.reward is None
    assert "too little support in the selection groups" in found.run.reward_reason
    wide = with_training(shop.settings, least_support=0.5, most_unsupported=0.5)
    run = trained(shop, settings=wide).run
    assert run.reward_reason == ""
    counts = inputs_of(shop).statistics.queries().values()
    clicks = sum(clicked for _, clicked in counts) / N_LISTS
    assert run.reward == pytest.approx(clicks, rel=0.5)


def test_training_ends_as_soon_as_somebody_asks(shop):
    """At any of its steps, of which each is told."""
    stages: list[TrainingProgress] = []
    trained(shop, on_progress=stages.append)
    assert {each.stage for each in stages} == {
        "reading", "epoch", "bounding", "judging",
    }  # fmt: skip
    for place in range(len(stages)):
        left = iter(range(place))

        def stop(_, left=left):
            next(left)

        with pytest.raises(StopIteration):
            trained(shop, on_progress=stop)


# Misuse.


def without_features(fields):
    """As a service logs that gives none."""
    fields.pop("candidate_features", None)
    fields.pop("features_hash", None)


def test_lists_without_features_are_refused():
    """It says what to log; nothing is published."""
    shop = shop_of(n_lists=300, change=without_features)
    with pytest.raises(TrainingRefused, match=r"must have features .* `candidate_fea"):
        trained(shop)
    before = shop.snapshot()
    with pytest.raises(TrainingRefused):
        shop.trainer.train("m")
    assert shop.snapshot() == before
    assert shop.trainer.positions == {}


def test_features_of_another_list_are_said(shop):
    """They may be those of a model of before."""
    model = model_of(**PLAN, feature_names=list("abcdef"))
    settings = msgspec.structs.replace(shop.settings, models={"m": model})
    parent = Shop(settings).snapshot()
    with pytest.raises(TrainingRefused, match="60 records are of other lists"):
        trained(
            shop,
            settings=settings,
            parent=parent,
            inputs=inputs_of(shop, model=model),
        )


def test_a_query_without_features_is_left_out_and_counted(shop):
    """Others are learned from."""
    known = [x for x in shop.outputs if x.topic == CANDIDATES]
    features = [
        (x.key, x.value)
        for x in known
        if decode_candidates_key(x.key).query != "query 0000"
    ]
    statistics = Statistics(shop.trainer.statistics().items())
    records = feature_records_for(shop.settings, "m", features)
    run = trained(shop, inputs=Inputs(statistics, records)).run
    assert run.sizes.n_without_features == 1
    assert run.sizes.n_queries + run.sizes.n_held_out == 59


@pytest.mark.parametrize(
    ("items", "told"), [(["d0", "x"], "of other items"), ([], "of none")]
)
def test_features_of_other_items_are_refused(items, told):
    """Of a record that something else wrote; what is due then is refused as well."""
    shop = Shop(settings_of({"m": model_of(**PLAN, after=[300])}))
    refused: list[Output] = []

    def spoil(output):
        if output.topic == CANDIDATES and not refused:
            refused.append(output)
            rows = np.zeros((len(items), N_FEATURES), "<f4").tobytes()
            value = candidates_value(msgspec.msgpack.encode(items), rows, N_FEATURES)
            shop.trainer._take(output._replace(value=value))

    shop.pipeline.show_also(spoil)
    shop.show(400, np.random.default_rng(1))
    shop.end()
    query = decode_candidates_key(refused[0].key or b"").query
    message = f"'m' cannot be trained: features of query {query!r} must .* {told}: let"
    assert re.match(message, shop.trainer.refusals["m"])
    assert shop.trainer.runs == []
    with pytest.raises(TrainingRefused, match=message):
        shop.trainer.train("m")


@pytest.mark.parametrize(
    ("share", "told"),
    [(1e-9, r"held out, to tell where to stop.*raise"), (1 - 1e-9, "learn from.*low")],
)
def test_an_empty_split_of_queries_is_refused(shop, share, told):
    """Either side; it says which setting to turn."""
    with pytest.raises(TrainingRefused, match=told):
        trained(shop, settings=with_training(shop.settings, held_out=share))


def test_too_few_groups_are_refused():
    """Nobody could be split."""
    shop = Shop(settings_of({"m": model_of(**PLAN)}, groups=5))
    shop.show(300, np.random.default_rng(1))
    shop.pipeline.end()
    with pytest.raises(TrainingRefused, match="groups must be at least 6"):
        trained(shop)


def test_nothing_counted_and_no_lists_are_refused(shop):
    """Of the model itself, and of the one that it learns from."""
    with pytest.raises(TrainingRefused, match="none are counted: wait"):
        trained(Shop(shop.settings))
    model = model_of(**PLAN, learns_from=["search"])
    settings = msgspec.structs.replace(shop.settings, models={"m": model})
    plans: list[dict[str, list[float]]] = [{}, {"examination": []}]
    for plan in plans:
        with pytest.raises(TrainingRefused, match="none of 'search' are counted"):
            trained(shop, settings=with_training(settings, **plan))


def test_a_parent_of_another_form_is_refused(shop):
    """Another list of features or normalisation, or weights that are no number."""
    parent = shop.snapshot()
    for fields in ({"features_hash": b"x" * 8}, {"normalisation": "none"}):
        wrong = msgspec.structs.replace(parent, **fields)
        with pytest.raises(TrainingRefused, match=r"the parent, must be of the model"):
            trained(shop, parent=wrong)
    weights = np.full(parent.n_features, np.nan, "<f4").tobytes()
    broken = msgspec.structs.replace(parent, weights=weights)
    with pytest.raises(TrainingRefused, match="finite weights"):
        trained(shop, parent=broken)


def test_a_parent_of_other_layers_is_refused(shop):
    """Its parameters would mean something else."""
    model = model_of(**PLAN, kind="neural", hidden=[3])
    settings = msgspec.structs.replace(shop.settings, models={"m": model})
    with pytest.raises(TrainingRefused, match=r"neural \[3\], min-max; it is of"):
        trained(shop, settings=settings)


def test_a_loss_that_diverges_is_refused(shop):
    """No number that is none reaches a snapshot."""
    far = msgspec.structs.replace(
        shop.snapshot(),
        weights=np.full(shop.snapshot().n_features, 3e38, "<f4").tobytes(),
    )
    settings = with_training(shop.settings, learning_rate=1e308)
    with pytest.raises(TrainingRefused, match="learning_rate"):
        trained(shop, parent=far, settings=settings)


def test_a_floor_out_of_reach_is_refused(shop):
    """Of what is shown even by chance."""
    settings = with_training(shop.settings, exposure_floor=0.9)
    with pytest.raises(TrainingRefused, match="least exposure"):
        trained(shop, settings=settings)


def test_items_of_too_little_support_leave_nothing_to_learn(shop):
    """It is said which setting, what there is, and what to set, with which it goes."""
    largest = []
    for share, told in ((0.2, "to learn from"), (0.9, "to learn from")):
        few = with_training(shop.settings, least_support=1e6, held_out=share)
        with pytest.raises(TrainingRefused) as refused:
            trained(shop, settings=few)
        found = re.fullmatch(
            r"'m' must have items of least_support, 1e\+06 expected looks, in queries "
            rf"{told}; the largest support there is ([\d.]+): wait for more lists, or "
            r"lower models\.m\.training\.least_support, to ([\d.]+) say",
            str(refused.value),
        )
        assert found is not None, refused.value
        largest.append(float(found[1]))
        enough = with_training(few, least_support=float(found[2]))
        assert trained(shop, settings=enough).run.sizes.n_items
    # Of fewer queries, and rounded.
    assert largest[1] < largest[0]
    just = with_training(shop.settings, least_support=largest[0] - 0.01)
    above = with_training(shop.settings, least_support=largest[0] + 0.01)
    with pytest.raises(TrainingRefused, match=r"to learn from"):
        trained(shop, settings=above)
    # Of those held out none may have so much.
    with pytest.raises(TrainingRefused, match=r"held out, to tell where to stop; the"):
        trained(shop, settings=just)


def test_clicks_that_do_not_tell_the_curve_are_refused():
    """Lists that never change; a curve may be given."""
    fields = {"examination": [], "temperature": 1.0}
    shop = Shop(settings_of({"m": model_of(**fields)}))
    order = [f"d{row}" for row in range(5)]

    def fixed(event):
        event |= {"shown": order, "policy": "deterministic"}
        for name in ("scores", "seed", "features"):
            event.pop(name, None)

    shop.show(300, np.random.default_rng(1), change=fixed)
    shop.pipeline.end()
    with pytest.raises(TrainingRefused, match=r"hardly clicked.*training.examination"):
        trained(shop)


def test_the_schedule_trains_and_serves():
    """Each point once; a refusal stays in words until more is counted."""
    fields = {"after": [200, 600], **PLAN}
    shop = Shop(settings_of({"m": model_of(**fields, least_support=1e6)}))
    shop.show(450, np.random.default_rng(1))
    assert "least_support" in shop.trainer.refusals["m"]
    assert shop.trainer.runs == []
    shop = Shop(settings_of({"m": model_of(**fields, least_support=1.0)}))
    shop.show(1_000, np.random.default_rng(1))
    assert [run.reason for run in shop.trainer.runs] == [COUNT, COUNT]
    position = shop.trainer.positions["m"]
    assert (position.n_done, position.intervention) == (2, shop.snapshot().intervention)
    assert shop.ranker.snapshot == shop.snapshot()
    shop.end()
    names = {scope.intervention for scope in inputs_of(shop).statistics.scopes()}
    assert names == {"m", *(run.intervention for run in shop.trainer.runs)}
