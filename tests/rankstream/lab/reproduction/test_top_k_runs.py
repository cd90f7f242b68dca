"""What each run of the tables of chapter 7 is given: seeds, splits, losses, steps.

What is called is written down on its way, and runs as ever, for an epoch.
"""

import json
from typing import Any

import numpy as np
import pytest

from models.rankers.registry import ranker_of
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan, train_ranker
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.data import prepare
from rankstream.lab.reproduction.engine import Job, Setup
from rankstream.lab.reproduction.top_k import fitting, runs
from rankstream.lab.reproduction.top_k.clicks import labelled_chunk
from rankstream.lab.reproduction.top_k.fitting import (
    fitted,
    tuned,
    worth_of_queries,
    worths_for,
)
from rankstream.lab.reproduction.top_k.plan import (
    CANDIDATES,
    LABELS,
    LINEAR_ARP,
    PRODUCTION,
    SELECTED,
    TRUNCATED,
    Cell,
    Logging,
)
from rankstream.lab.reproduction.top_k.runs import (
    Fold,
    _some_queries,
    fold_of,
    learned,
    logged_chunks,
    production_weights,
    rng_of,
    selected,
    worth,
)
from tests.rankstream.lab.reproduction.test_top_k import write_split

LOGGED = Logging(3, True, 400)


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """One fold, whose splits are of different sizes."""
    folder = tmp_path_factory.mktemp("data") / "shop"
    folder.mkdir()
    for number, n_queries in enumerate((40, 30, 20), 1):
        write_split(folder / f"S{number}.txt", 100 * number, number, n_queries)
    plan = {"Fold1": {"train": ["S1"], "vali": ["S2"], "test": ["S3"]}}
    (folder / "folds.json").write_text(json.dumps(plan))
    place = tmp_path_factory.mktemp("place")
    prepare(folder, 1, place, normalisation="min-max")
    return Setup(place, "min-max", 1, 1)


class Kept:
    """Calls of a function, which runs all the same."""

    def __init__(self, module: Any, name: str, patch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
        self.results: list[Any] = []
        self._function = getattr(module, name)
        patch.setattr(module, name, self)

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Run it, and keep what went in and came out."""
        self.calls.append((given, named))
        self.results.append(self._function(*given, **named))
        return self.results[-1]


def test_each_kind_of_draw_has_its_own_seed(setup: Setup) -> None:
    """By data, fold, run and what is drawn; cells have none of their own."""
    cells = Cell("rerank", TRUNCATED, LOGGED), Cell(LABELS, LINEAR_ARP, LOGGED)

    def draw(
        setup: Setup, fold: int, run: int, what: str, cell: Cell = cells[0]
    ) -> float:
        return float(rng_of(setup, Job(cell, fold, run), what).random())

    first = draw(setup, 1, 0, "ties")
    others = [
        draw(Setup(setup.place, "min-max", 1, 2), 1, 0, "ties"),
        draw(setup, 2, 0, "ties"),
        draw(setup, 1, 1, "ties"),
        draw(setup, 1, 0, "order"),
    ]
    assert draw(setup, 1, 0, "ties", cells[1]) == first
    assert len({first, *others}) == 5


def test_clicks_that_judge_are_not_those_that_were_learned_from(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the same queries as many clicks would else be the same, noise included."""
    fold = fold_of(setup, 1)
    monkeypatch.setattr(
        runs, "fold_of", lambda *_: Fold(fold.train, fold.test, fold.train)
    )
    monkeypatch.setattr(runs, "VALIDATION_SHARE", 1.0)
    production = np.zeros(fold.train.features.shape[1])
    job = Job(Cell("oblivious", TRUNCATED, LOGGED), 1, 0)
    (training,), judged = (
        (found := logged_chunks(setup, job, production))[0].values(),
        found[1],
    )

    assert training.offsets.tolist() == judged.offsets.tolist()
    assert training.weights.tolist() != judged.weights.tolist()
    assert training.values.tolist() != judged.values.tolist()


@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (LABELS, LINEAR_ARP),
        (PRODUCTION, TRUNCATED),
        ("rerank", TRUNCATED),
        ("policy-aware", LINEAR_ARP),
        ("policy-aware", SELECTED),
    ],
)
def test_test_queries_are_for_figures_alone(
    estimator: str, loss: str, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are none the same is learned: of training queries, each by its loss.

    Validation queries stop it, and nothing is learned from them.
    """
    fold = fold_of(setup, 1)
    without: Any = None
    monkeypatch.setattr(fitting, "EPOCHS", 1)
    monkeypatch.setattr(
        runs, "fold_of", lambda *_: Fold(fold.train, without, fold.validation)
    )
    monkeypatch.setattr(
        runs, "worth", lambda weights, test, **_: {"weights": weights, "of": test}
    )
    production_weights.cache_clear()
    kept = Kept(runs, "tuned", monkeypatch)
    made = Kept(runs, "fitted", monkeypatch)
    job = Job(Cell(estimator, loss, LOGGED), 1, 3)
    found = (selected if loss == SELECTED else learned)(setup, job)
    production_weights.cache_clear()

    ((_, few, stops), _), *more = made.calls
    assert not more
    assert few.features.shape[0] == stops.features.shape[0] == 12
    assert rows(few) < rows(labelled_chunk(fold.train))
    assert rows(stops) < rows(labelled_chunk(fold.validation))
    every = found["losses"].values() if loss == SELECTED else [found]
    assert all(each["of"] is None for each in every)
    losses = {PRODUCTION: (), "": CANDIDATES}.get(
        "" if loss == SELECTED else estimator, (loss,)
    )
    assert tuple(given[0] for given, _ in kept.calls) == losses
    order = int(rng_of(setup, job, "order").integers(2**31))
    for (_, trainings, held_out), named in kept.calls:
        assert named == {"seed": order}
        assert rows(held_out) <= rows(labelled_chunk(fold.validation))
        for one in trainings.values():
            assert rows(one) <= rows(labelled_chunk(fold.train))
        if estimator == LABELS:
            assert held_out.values.tolist() == fold.validation.labels.tolist()
            assert trainings[""].values.tolist() == fold.train.labels.tolist()
    for each, result in zip(every, kept.results, strict=estimator != PRODUCTION):
        assert each["weights"].tolist() == result.weights.tolist()


def rows(chunk: QueryChunk) -> set[bytes]:
    """Documents, by their features."""
    return {row.tobytes() for row in chunk.features}


def test_how_far_a_selection_is_behind_has_the_error_of_that_difference(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few clicks select another loss than the best one in some run."""
    monkeypatch.setattr(fitting, "EPOCHS", 2)
    select = Kept(runs, "select", monkeypatch)
    cell = Cell("policy-aware", SELECTED, LOGGED)
    found = [selected(setup, Job(cell, 1, run)) for run in range(3)]

    assert any(each["best"] != each["chosen"] for each in found)
    for each, ((_, shares), _), selection in zip(
        found, select.calls, select.results, strict=True
    ):
        at = CANDIDATES.index(each["best"])
        assert each["behind"] == selection.behind[at]
        assert each["behind_error"] == selection.behind_errors[at]
        assert len({*shares.tolist()}) > 1
        assert each["chosen"] == selection.chosen
        true = {name: one["true"] for name, one in each["losses"].items()}
        assert each["lost"] == max(true.values()) - true[each["chosen"]]


def test_production_rankers_know_a_query_in_a_hundred_and_one_more() -> None:
    """Of those that tell one document from another; each draw has others."""
    labels = np.tile([[0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 1]], (60, 1))
    offsets = np.arange(0, labels.size + 1, 3)
    world = World(np.zeros((labels.size, 1), np.float32), labels.ravel(), offsets)
    drawn = [_some_queries(world, np.random.default_rng(seed)) for seed in range(5)]

    assert {len(queries) for queries in drawn} == {int(240 * 0.01) + 1}
    assert all((queries % 4 >= 2).all() for queries in drawn)
    assert len({tuple(queries) for queries in drawn}) == 5
    nothing = world._replace(labels=np.ones(labels.size, np.int64))
    with pytest.raises(ValueError, match="choose another --relevant-from"):
        _some_queries(nothing, np.random.default_rng(0))


def test_a_ranker_is_worth_what_its_order_is() -> None:
    """One relevant document of three: first, and last."""
    world = World(
        np.array([[3.0], [1.0], [2.0]], np.float32),
        np.array([1, 0, 0]),
        np.array([0, 3]),
    )
    best, worst = (
        worth(np.array([sign]), world, rng=np.random.default_rng(0))
        for sign in (1.0, -1.0)
    )

    assert best == {"ndcg": 1.0, "arp": 1.0}
    assert worst == {"ndcg": pytest.approx(0.5), "arp": 3.0}


@pytest.mark.parametrize("loss", [TRUNCATED, LINEAR_ARP])
def test_training_has_the_steps_that_keys_tell(
    loss: str, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the bit, as long as held-out queries say."""
    monkeypatch.setattr(fitting, "EPOCHS", 12)
    monkeypatch.setattr(fitting, "PATIENCE", 3)
    fold = fold_of(setup, 1)
    training, held_out = (
        labelled_chunk(each) for each in (fold.train, fold.validation)
    )
    n_features = training.features.shape[1]
    plan = TrainingPlan(5, 12, learning_rate=0.01, patience=3, seed=7, loss=loss)
    wanted = train_ranker(
        ranker_of("linear", n_features, ()),
        np.zeros(n_features),
        [training],
        [held_out],
        plan,
        worths=worths_for(loss, held_out),
    )
    found = fitted(loss, training, held_out, seed=7)

    assert found.weights.tobytes() == wanted.weights.tobytes()
    assert found.epochs == len(wanted.epochs) - 1
    assert (
        found.weights.tolist()
        != fitted(loss, training, held_out, seed=8).weights.tolist()
    )


def test_ranks_that_lists_differ_in_are_worth_something() -> None:
    """The longest list says how many there are."""
    lists = QueryChunk(
        np.array([0, 1, 4]),
        np.zeros((4, 1), np.float32),
        np.zeros(4),
        np.ones(4, np.bool_),
        np.ones(2),
    )

    assert worths_for(LINEAR_ARP, lists).tolist() == [-1.0, -2.0, -3.0]


def test_production_rankers_are_others_of_each_seed_fold_and_run(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where folds are of the same queries."""
    fold = fold_of(setup, 1)
    monkeypatch.setattr(fitting, "EPOCHS", 1)
    monkeypatch.setattr(runs, "fold_of", lambda *_: fold)
    other = Setup(setup.place, "min-max", 1, 2)
    production_weights.cache_clear()
    found = [
        production_weights(*each).tobytes()
        for each in ((setup, 1, 0), (setup, 2, 0), (setup, 1, 1), (other, 1, 0))
    ]
    production_weights.cache_clear()

    assert len({*found}) == 4


@pytest.mark.parametrize("loss", [TRUNCATED, LINEAR_ARP])
def test_settings_are_chosen_by_what_the_loss_is_for(
    loss: str, setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks of all documents, or the first ones."""
    monkeypatch.setattr(fitting, "EPOCHS", 1)
    select = Kept(fitting, "select", monkeypatch)
    fold = fold_of(setup, 1)
    good, held_out = labelled_chunk(fold.train), labelled_chunk(fold.validation)
    bad = good._replace(values=1.0 - good.values)
    tuned(loss, {"bad": bad, "good": good}, held_out, seed=1)
    (((candidates, shares), _),) = select.calls

    assert shares is held_out.weights
    for name, training in (("bad", bad), ("good", good)):
        weights = fitted(loss, training, held_out, seed=1).weights
        wanted = worth_of_queries(weights, held_out, worths_for(loss, held_out))
        assert candidates[name].tolist() == wanted.tolist()
