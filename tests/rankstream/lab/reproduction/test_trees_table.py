"""The table of trees on clicks: what each ranker is given, and what is said of runs.

Law tests of lists made of sums are in `tests/laws/test_click_lists.py`.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from models.arrays import Floats
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.data import prepare
from rankstream.lab.reproduction.engine import Job, Setup, finished_runs
from rankstream.lab.reproduction.figures import Claim
from rankstream.lab.reproduction.top_k.clicks import ClickSums, labelled_chunk
from rankstream.lab.reproduction.top_k.plan import PRODUCTION, TRUNCATED, Cell, Logging
from rankstream.lab.reproduction.top_k.runs import (
    fold_of,
    logged_clicks,
    production_weights,
)
from rankstream.lab.reproduction.trees import lambdarank
from rankstream.lab.reproduction.trees.claims import claims_of
from rankstream.lab.reproduction.trees.click_lists import ClickLists, click_lists
from rankstream.lab.reproduction.trees.fitting import best_of, by_trees
from rankstream.lab.reproduction.trees.plan import (
    LINEAR,
    LINES,
    LISTS,
    OF_LABELS,
    OF_LISTS,
    OF_RATES,
    OURS,
    OURS_OF_LABELS,
    RATES,
    SELECTED,
    VALUES,
    cell_of,
    cells_over,
)
from rankstream.lab.reproduction.trees.runs import live_once, rates_of
from rankstream.operations.cli import main
from tests.rankstream.lab.reproduction.test_top_k import rows_of, write_split

SHAPE = (5, 5)
COUNTS = (10**4, 10**5, 10**6, 10**8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One fold."""
    folder = tmp_path_factory.mktemp("data") / "shop"
    folder.mkdir()
    for number in (1, 2, 3):
        write_split(folder / f"S{number}.txt", 100 * number, number)
    plan = {"Fold1": {"train": ["S1"], "vali": ["S2"], "test": ["S3"]}}
    (folder / "folds.json").write_text(json.dumps(plan))
    return folder


@pytest.fixture(scope="module")
def setup(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Setup:
    """The fold, prepared."""
    place = tmp_path_factory.mktemp("place")
    prepare(folder, 1, place, normalisation="min-max")
    return Setup(place, "min-max", 1, 1)


def test_the_table_is_written_and_not_run_twice(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every ranker by clicks, the selection, a picture and claims."""
    words = ["reproduce", str(folder), "--table", "trees", "--out", str(tmp_path)]
    words += ["--runs", "1", "--processes", "1", "--clicks", "100", "1000000"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    rows = rows_of(tmp_path / "trees.csv")
    untouched = (tmp_path / "trees.txt").read_bytes()

    of_rankers = [row for row in rows if row["figure"] == "NDCG@10"]
    assert [row["ranker"] for row in of_rankers] == [
        name for name in LINES for _ in range(2)
    ]
    assert all(0.0 < float(row["mean"]) <= 1.0 for row in of_rankers)
    assert {row["figure"] for row in rows} - {"NDCG@10"} == {
        "is_right", "is_within", "lost",
    }  # fmt: skip
    assert (tmp_path / "trees.svg").read_text().startswith("<?xml")
    assert "trees on values above trees on click rates by 0.02" in printed
    assert len(finished_runs(tmp_path / "trees.txt")) == 2 * 3 + 2
    assert main(words) == 0
    assert (tmp_path / "trees.txt").read_bytes() == untouched


def test_rankers_learn_from_the_clicks_of_top_k(setup: Setup) -> None:
    """All sources from the same ones; labels and what logged have none."""
    cell = cell_of(VALUES, 10**4)
    assert cell == Cell("policy-aware", TRUNCATED, Logging(5, True, 10**4))
    production = production_weights(setup, 1, 0)
    (_, clicks), (_, judged) = logged_clicks(setup, Job(cell, 1, 0), production)
    for source in (RATES, LISTS):
        job = Job(cell_of(source, 10**4), 1, 0)
        (_, others), (_, held_out) = logged_clicks(setup, job, production)
        assert others.clicked.tolist() == clicks.clicked.tolist()
        assert held_out.clicked.tolist() == judged.clicked.tolist()
    counts = [cell.logging.n_clicks for cell in cells_over((10, 100))]
    assert counts == [10, 10, 10, 0, 0, 100, 100, 100]
    assert sorted({*LINES.values()}) == sorted(
        {cell.estimator for cell in cells_over((10, 100))}
    )


def test_rates_are_clicks_by_impressions_of_a_document() -> None:
    """Of one that was never shown nothing is known."""
    world = World(
        np.zeros((3, 1), np.float32), np.zeros(3, np.int64), np.array([0, 2, 3])
    )
    clicks = ClickSums(np.array([8, 2]), np.array([8, 0, 2]), np.array([6, 0, 1]))
    found = rates_of(world, clicks)

    assert found.values.tolist() == [0.75, 0.0, 0.5]
    assert found.is_kept.tolist() == [True, False, True]
    assert found.weights.tolist() == [0.8, 0.2]


def test_a_selection_is_told_by_clicks_and_judged_by_labels(setup: Setup) -> None:
    """After very many clicks estimates are the truth, of the same queries."""
    found = live_once(setup, Job(cell_of(VALUES, 10**9), 1, 0))

    assert found["chosen"] in (LINEAR, OURS)
    assert found[SELECTED] == found[found["chosen"]]
    assert (found["is_right"], found["is_within"], found["lost"]) == (1.0, 1.0, 0.0)
    made = live_once(setup, Job(cell_of(PRODUCTION, 10**9), 1, 0))
    assert min(found[LINEAR], found[OURS]) > made[PRODUCTION] + 0.02


def test_held_out_values_choose_between_trainings_of_trees(setup: Setup) -> None:
    """As between those of linear rankers."""
    fold = fold_of(setup, 1)
    good, held_out = labelled_chunk(fold.train), labelled_chunk(fold.validation)
    bad = good._replace(values=1.0 - good.values)
    ranker, setting = best_of({"bad": bad, "good": good}, held_out, by_trees)

    assert setting == "good"
    assert ranker.rounds > 0


def some_lists(setup: Setup) -> tuple[World, ClickLists]:
    """Of few clicks, so that most lists were shown once or twice."""
    world = fold_of(setup, 1).train
    production = production_weights(setup, 1, 0)
    (shown, clicks), _ = logged_clicks(
        setup, Job(cell_of(LISTS, 1_000), 1, 0), production
    )
    rng = np.random.default_rng(3)
    return world, click_lists(clicks, shown, world.offsets, rng=rng)


def test_a_weight_of_a_list_is_as_many_lists(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LightGBM ranks as if each list were there as often as it was shown."""
    monkeypatch.setitem(lambdarank.OPTIONS, "min_data_in_leaf", 1)
    world, lists = some_lists(setup)
    # Few values have a bin each, however often they come.
    world = world._replace(features=np.round(world.features, 1))
    sizes = np.diff(lists.offsets)
    rows = np.concatenate(
        [
            np.tile(np.arange(begin, begin + size), n_times)
            for begin, size, n_times in zip(
                lists.offsets, sizes, lists.times, strict=False
            )
        ]
    )
    every = ClickLists(
        np.concatenate([[0], np.cumsum(np.repeat(sizes, lists.times))]),
        lists.documents[rows],
        lists.ranks[rows],
        lists.clicked[rows],
        np.ones(lists.times.sum(), np.int64),
    )
    by_weight, by_number = (
        lambdarank.on_clicks(world, each).scores(world.features)
        for each in (lists, every)
    )

    assert lists.times.max() > 1
    assert np.corrcoef(by_weight, by_number)[0, 1] > 0.999
    plain = lists._replace(times=np.ones_like(lists.times))
    unweighted = lambdarank.on_clicks(world, plain).scores(world.features)
    assert np.corrcoef(unweighted, by_number)[0, 1] < 0.999


def test_positions_are_taken_for_what_they_are(setup: Setup) -> None:
    """Without them all clicks count as those at one rank, and what logged stays."""
    world, lists = some_lists(setup)
    test = fold_of(setup, 1).test
    given = lambdarank.on_clicks(world, lists).scores(test.features)
    alike = lists._replace(ranks=np.ones_like(lists.ranks))
    ignored = lambdarank.on_clicks(world, alike).scores(test.features)
    logged = test.features @ production_weights(setup, 1, 0)

    likeness = [np.corrcoef(each, logged)[0, 1] for each in (given, ignored)]
    assert likeness[0] < likeness[1] - 0.05


def apart(value: float, error: float) -> Floats:
    """Runs whose mean has this value, and about this standard error."""
    signs = np.where(np.arange(25) % 2, 1.0, -1.0).reshape(SHAPE)
    return np.asarray(value + error * 5.0 * (signs - signs.mean()))


def claimed(changed: Mapping[str, Floats], is_right: float = 1.0) -> dict[str, Claim]:
    """Claims of runs that are alike but for some lines."""
    values = {name: np.full(SHAPE, 0.5) for name in LINES} | {
        OF_RATES: np.full(SHAPE, 0.45),
        OF_LISTS: np.full(SHAPE, 0.48),
    }
    runs = {
        name: dict.fromkeys(COUNTS, changed.get(name, value))
        for name, value in values.items()
    }
    right = np.zeros(SHAPE)
    right.ravel()[: round(25 * is_right)] = 1.0
    claims = claims_of(runs, dict.fromkeys(COUNTS, right), COUNTS)
    return {claim.text: claim for claim in claims}


@pytest.mark.parametrize(
    ("line", "value", "error", "failed"),
    [
        (OF_RATES, 0.481, 0.0, {f"{OURS} above {OF_RATES} by 0.02"}),
        (OF_RATES, 0.479, 0.0, set()),
        (OF_RATES, 0.479, 0.011, {f"{OURS} above {OF_RATES} by 0.02"}),
        (OF_LISTS, 0.491, 0.0, {f"{OURS} above {OF_LISTS} by 0.01"}),
        (OF_LISTS, 0.489, 0.0, set()),
        (
            OF_LISTS, 0.505, 0.002,
            {
                f"{OURS} above {OF_LISTS} by 0.01",
                f"{OURS} not below {OF_LISTS} by 2 errors",
            },
        ),
        (OF_LISTS, 0.505, 0.003, {f"{OURS} above {OF_LISTS} by 0.01"}),
        (OF_LABELS, 0.509, 0.0, set()),
        (
            OF_LABELS, 0.511, 0.0,
            {
                f"{OURS} not below {OF_LABELS}",
                f"{OURS_OF_LABELS} not below {OF_LABELS}",
            },
        ),
        (OURS_OF_LABELS, 0.511, 0.0, {f"{OURS} not below {OURS_OF_LABELS}"}),
        (LINEAR, 0.511, 0.0, {f"{SELECTED} not below {LINEAR}"}),
        (SELECTED, 0.489, 0.006, set()),
    ],
)  # fmt: skip
def test_claims_fail_where_runs_are_otherwise(
    line: str, value: float, error: float, failed: set[str]
) -> None:
    """And hold up to what counts for nothing, or two errors of it."""
    found = claimed({line: apart(value, error)})
    told = {
        text.split(", after")[0] for text, claim in found.items() if not claim.holds
    }

    assert told == failed


def test_the_better_one_is_to_be_selected_in_four_of_five_runs() -> None:
    """From 100,000 clicks on, or two errors of the share less."""
    text = "share of runs that select the better, over 0.8, after 100,000 clicks"
    for share, holds in ((1.0, True), (0.76, True), (0.64, True), (0.56, False)):
        claim = claimed({}, share)[text]
        assert claim.gap.value == pytest.approx(share - 0.8)
        assert claim.holds is holds
    assert not any(text.endswith(" 10,000 clicks") for text in claimed({}))
    assert len(claimed({})) == 3 + 2 + 1 + 3 * 3
