"""Networks and losses of the settings, from clicks to lists that users see."""

import numpy as np
import pytest

from models.losses.registry import LOSSES
from models.rankers.registry import KINDS
from rankstream.ranking.scoring import normalised, scores_of
from rankstream.wire.envelope import Snapshot
from rankstream.wire.models.training import decode_record, encode_record
from streams.training.inputs import TrainingRefused
from streams.training.trained_snapshot import Outcome
from streams.training.versions.fitted_ranker import ranker_of_model
from tests.streams.training.shop import EXAMINATION, Shop, model_of, settings_of
from tests.streams.training.test_trained_snapshot import trained, with_training

N_LISTS = 600
PLAN = {
    "examination": EXAMINATION.tolist(),
    "least_support": 1.0,
    "most_unsupported": 1.0,
    "temperature": 0.5,
    "batch": 4,
}
ONE_HELD_OUT = 0.02
"""Of the queries, as their hashes fall."""

SOME = ["arp-linear", "truncated-lambda", "policy-gradient"]


def shop_of(**fields: object) -> Shop:
    """A site whose lists were shown by version 0."""
    shop = Shop(settings_of({"m": model_of(**PLAN | fields)}))
    shop.show(N_LISTS, np.random.default_rng(1))
    shop.pipeline.end()
    return shop


@pytest.fixture(scope="module")
def linear() -> Shop:
    """One for all who change nothing but how it is trained."""
    return shop_of()


def by(shop: Shop, **fields: object) -> Outcome:
    """A training of what the site has, under other settings."""
    found: Outcome = trained(shop, settings=with_training(shop.settings, **fields))
    return found


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"linear"}))
def test_a_network_is_trained_and_served(kind: str) -> None:
    """It ranks better, explores as it says, and services score as training does."""
    shop = shop_of(kind=kind, hidden=[8, 4])
    start = shop.snapshot()
    found = trained(shop)
    snapshot, run = found
    model = shop.settings.models["m"]
    ranker = ranker_of_model(model)
    weights = np.frombuffer(snapshot.weights, "<f4").astype(np.float64)
    rows = slice(*shop.data.offsets[:2])
    features = normalised(shop.data.features[rows], model.normalisation)
    served = scores_of(features, weights.astype(np.float32), model.hidden, model.kind)

    assert (snapshot.kind, snapshot.hidden) == (kind, [8, 4])
    assert len(weights) == ranker.n_parameters
    assert run.best_epoch > 0
    assert shop.ndcg(snapshot) > shop.ndcg(start) + 0.1
    assert served == pytest.approx(
        ranker.score(weights, features.astype(float)), rel=1e-4, abs=1e-5
    )
    assert spread(shop, snapshot) == pytest.approx(1.0 / run.temperature, rel=0.2)
    assert run.reward is not None
    assert trained(shop) == found


def spread(shop: Shop, snapshot: Snapshot) -> float:
    """Mean standard deviation of scores, over all queries."""
    weights = np.frombuffer(snapshot.weights, "<f4")
    return float(
        np.mean(
            [
                scores_of(
                    normalised(shop.data.features[begin:end], snapshot.normalisation),
                    weights,
                    snapshot.hidden,
                    snapshot.kind,
                ).std()
                for begin, end in zip(
                    shop.data.offsets[:-1], shop.data.offsets[1:], strict=True
                )
            ]
        )
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_of_the_settings_makes_lists_better(linear: Shop, loss: str) -> None:
    """And the run says which it was."""
    snapshot, run = by(linear, loss=loss)

    assert (run.loss, run.losses) == (loss, [])
    assert run.settings["training"]["loss"] == loss
    assert linear.ndcg(snapshot) > linear.ndcg(linear.snapshot()) + 0.1


def test_a_selected_loss_is_told_with_all_others(linear: Shop) -> None:
    """Its snapshot is that of the same loss alone, to the byte."""
    snapshot, run = by(linear, loss="selected", losses=SOME)
    alone = by(linear, loss=run.loss)

    assert snapshot.weights == alone.snapshot.weights
    assert (run.epochs, run.best_epoch) == (alone.run.epochs, alone.run.best_epoch)
    assert [each.loss for each in run.losses] == SOME
    chosen = run.losses[SOME.index(run.loss)]
    assert (chosen.behind, chosen.behind_error) == (0.0, 0.0)
    # On the same queries differences are known better than values.
    assert all(
        each.behind_error is not None
        and each.error is not None
        and (each.behind == 0.0 or 0.0 < each.behind_error < each.error)
        for each in run.losses
    )
    assert any(each.behind > 0.0 for each in run.losses)
    assert max(each.dcg for each in run.losses) == next(
        each.dcg for each in run.losses if each.loss == run.loss
    )
    assert all(each.behind >= 0.0 for each in run.losses)
    assert all(each.error > 0.0 for each in run.losses if each.error is not None)
    assert decode_record("run", encode_record(run)) == run


def test_one_query_that_chooses_tells_no_error(linear: Shop) -> None:
    """It has no spread; the run can be written all the same."""
    _, run = by(linear, loss="selected", losses=SOME, held_out=ONE_HELD_OUT)

    assert run.sizes.n_held_out == 1
    assert [(each.error, each.behind_error) for each in run.losses] == [
        (None, None)
    ] * 3
    assert decode_record("run", encode_record(run)) == run


@pytest.mark.parametrize("loss", ["truncated-lambda", "selected"])
def test_each_number_of_the_settings_counts(linear: Shop, loss: str) -> None:
    """None is left at what it is by default."""
    how = {"loss": loss, "losses": SOME[:2] if loss == "selected" else []}
    plain = by(linear, **how).run.epochs
    for name, value in (
        ("cutoff", 1), ("epochs", 2), ("batch", 9), ("learning_rate", 0.003),
        ("patience", 1), ("least_gain", 100.0), ("seed", 5),
    ):  # fmt: skip
        assert by(linear, **how, **{name: value}).run.epochs != plain, name


def test_values_that_choose_are_not_raised(linear: Shop) -> None:
    """Those that weights come from are, where averages are below the least one."""
    _, run = by(linear, loss="selected", losses=SOME)
    of_chosen = run.losses[SOME.index(run.loss)]
    judged_by_raised = {number: dcg for number, _, dcg in run.epochs}

    assert of_chosen.dcg > 1.1 * judged_by_raised[of_chosen.best_epoch]


def test_losses_that_all_diverge_are_refused(linear: Shop) -> None:
    """In the words of one that does."""
    with pytest.raises(TrainingRefused, match="lower learning_rate"):
        by(linear, loss="selected", losses=SOME, learning_rate=1e308)
