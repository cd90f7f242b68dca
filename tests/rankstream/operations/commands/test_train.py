"""`rankstream train` and `rank`: from files to a trained ranker, and its scores."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import lightgbm
import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from producers.formats.registry import read_events
from rankstream.operations.answers.folders import STATISTICS_FILE
from rankstream.operations.answers.models.training_folder import read_training
from rankstream.operations.cli import main
from rankstream.ranker import Ranker
from rankstream.settings import ModelSettings, load_settings
from rankstream.wire.envelope import Snapshot, decode_snapshot, encode_snapshot
from rankstream.wire.models.forests import unpack_forest
from streams.local import LocalPipeline, read_changes, write_changes
from streams.stage import Change
from streams.training.local_trainer import LocalTrainer
from streams.training.recorded_inputs import first_version
from tests.clicked_lists import N_FEATURES, Shown, show

START_MS = 1_750_000_000_000

CONFIG = f"""
[models.m]
features = {N_FEATURES}
versions = "trained"
[models.m.training]
epochs = 4
batch = 8
least_support = 1.0
examination = [1.0, 0.7, 0.5, 0.35, 0.25]
"""

NAMES = ("rating", "price", "age")
TASTE = np.array([3.0, -3.0, 0.0])
N_ITEMS, N_CANDIDATES, N_SHOWN = 30, 6, 4
QUERIES = [f"Query {number}" for number in range(12)]
HEAD = [
    *("impression", "query", "at", "position", "item", "clicked", "policy", "session")
]
LOOKED = (1.0, 0.7, 0.5, 0.35)


class Lines:
    """A log of JSON lines."""

    def __init__(self) -> None:
        self.values: list[bytes] = []

    def send(self, _: str, value: bytes) -> None:
        """Take one."""
        self.values.append(value)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings, a log with policies and features, and what a training of it leaves."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.toml").write_text(CONFIG)
    first = encode_snapshot(
        first_version("m", ModelSettings(features=N_FEATURES, versions="trained"))
    )
    ranker, lines = Ranker("m", source=lambda: first), Lines()
    ranker.load()
    show(lines, ranker, Shown(0, START_MS), 400, step_ms=1_000)
    (folder / "log.jsonl").write_bytes(b"\n".join(lines.values) + b"\n")
    assert trained(folder / "log.jsonl", folder, "--model", "m") == 0
    return folder


def trained(log: Path, folder: Path, *words: str, out: str = "run") -> int:
    """Train from a log, under the settings of the folder if it has some."""
    config = folder / "shop.toml"
    own = ["--config", str(config)] if config.exists() else []
    return main(["train", "--log", str(log), "--out", str(folder / out), *own, *words])


def snapshot_of(folder: Path) -> tuple[bytes, Snapshot]:
    """The envelope that a training left, and the snapshot in it."""
    (file,) = folder.glob("*.snapshot")
    return file.read_bytes(), decode_snapshot(file.read_bytes())


def verified(folder: Path, *words: str) -> int:
    """Train again from the folder, or from a log."""
    return main(["train", "--verify", str(folder), *words])


def test_it_makes_what_the_pipeline_with_its_trainer_makes(shop: Path) -> None:
    """Byte for byte, in as many partitions as the settings have."""
    settings = load_settings(shop / "shop.toml", {})
    pipeline = LocalPipeline(settings, now=lambda: START_MS + 10**9)
    trainer = LocalTrainer(settings, pipeline)
    pipeline.start()
    for event in read_events([shop / "log.jsonl"]):
        pipeline.send(event.kind, event.value)
    pipeline.end()
    found = trainer.train("m")
    envelope, snapshot = snapshot_of(shop / "run")
    assert settings.kafka.partitions == 4
    assert envelope == encode_snapshot(found.snapshot)
    assert snapshot.weights != first_version("m", settings.models["m"]).weights


def test_lists_of_a_model_that_learns_online_are_known_as_such(tmp_path: Path) -> None:
    """Whichever model is trained: settings of the others stay."""
    own = "".join(x for x in CONFIG.splitlines(True) if "examination" not in x)
    own = own.replace("[models.m.t", 'learns_from = ["old"]\n[models.m.t')
    other = f"[models.old]\nfeatures = {N_FEATURES}\nlog_candidates = true\n"
    (tmp_path / "shop.toml").write_text(own + other)
    old = ModelSettings(features=N_FEATURES, log_candidates=True)
    ranker, lines = Ranker("old", source=lambda: first), Lines()
    first = encode_snapshot(first_version("old", old))
    ranker.load()
    show(lines, ranker, Shown(0, START_MS), 800, step_ms=1_000)
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"\n".join(lines.values) + b"\n")
    assert trained(log, tmp_path, "--model", "m") == 0
    assert read_training(tmp_path / "run").run.online == ["old"]


def test_the_file_that_is_served_is_what_is_verified(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not only what lies beside it."""
    folder = shutil.copytree(shop / "run", tmp_path / "run")
    (file,) = folder.glob("*.snapshot")
    other = msgspec.structs.replace(
        decode_snapshot(file.read_bytes()), log_candidates=False
    )
    file.write_bytes(encode_snapshot(other))
    assert verified(folder) == 1
    assert "log_candidates was False, is True" in capsys.readouterr().out
    file.write_bytes(b"rubbish")
    assert verified(folder) == 1
    assert "it cannot be read" in capsys.readouterr().out
    file.unlink()
    assert verified(folder) == 2
    assert f"{file} is not there" in capsys.readouterr().err


def test_it_is_made_again_from_its_folder_and_from_the_log(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Settings are those of the run, whatever there is now."""
    assert verified(shop / "run") == 0
    assert verified(shop / "run", "--log", str(shop / "log.jsonl"), "--json") == 0
    told = capsys.readouterr().out
    assert "m@0.400: equal bytes" in told
    assert json.loads(told.splitlines()[-1])["is_equal"]


def test_a_folder_whose_sums_are_others_is_seen(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One more set of features, or one less, or weights that are others."""
    for file in (shop / "run").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    kept = dict(read_changes(tmp_path / "candidates.bin"))
    kept.pop(min(kept))
    write_changes(
        tmp_path / "candidates.bin",
        [Change("candidates", *each) for each in kept.items()],
    )
    assert verified(tmp_path) == 1
    told = capsys.readouterr().out
    assert "m@0.400: NOT equal" in told
    assert "features of the run was" in told
    (tmp_path / STATISTICS_FILE).unlink()
    assert verified(tmp_path) == 2
    assert f"{STATISTICS_FILE} is not there" in capsys.readouterr().err


def test_it_goes_on_from_a_parent(shop: Path) -> None:
    """As the role does from what it serves: the next epoch of as many lists."""
    words = ["--model", "m", "--parent", str(shop / "run"), "--json"]
    assert trained(shop / "log.jsonl", shop, *words, out="next") == 0
    _, parent = snapshot_of(shop / "run")
    _, snapshot = snapshot_of(shop / "next")
    assert snapshot.intervention == "m@1.400"
    assert (snapshot.parent_epoch, snapshot.parent) == (0, parent.version)
    assert verified(shop / "next") == 0


# A table of clicks, and features in another one.


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`clicks.csv`, and what a training from it and `items.csv` leaves.

    The same features are in `pairs.jsonl`, by query and item, and in `wide.csv`.
    """
    folder = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(3)
    features = rng.random((N_ITEMS, len(NAMES))).round(3)
    liked = 1.0 / (1.0 + np.exp(1.0 - (features - 0.5) @ TASTE))
    of_query = [
        rng.choice(N_ITEMS, N_CANDIDATES, replace=False) for _ in range(len(QUERIES))
    ]
    write(folder / "items.csv", ["item", "title", *NAMES], [
        [f"sku-{n}", f"Shoe {n}", *row] for n, row in enumerate(features.tolist())
    ])  # fmt: skip
    rows: list[list[Any]] = []
    for number in range(480):
        query = number % len(QUERIES)
        order = rng.permutation(of_query[query])[:N_SHOWN].tolist()
        one = [f"l{number}", QUERIES[query], START_MS + 1_000 * number]
        for rank, item in enumerate(order):
            is_clicked = int(rng.random() < LOOKED[rank] * liked[item])
            seen = [rank + 1, f"sku-{item}", is_clicked]
            rows.append([*one, *seen, "deterministic", f"s{number // 2}"])
    write(folder / "clicks.csv", HEAD, rows)
    wide = [[*row, *features[int(row[4][4:])].tolist()] for row in rows]
    write(folder / "wide.csv", [*HEAD, *(f"f_{name}" for name in NAMES)], wide)
    pairs = {(row[1], row[4]): features[int(row[4][4:])].tolist() for row in rows}
    (folder / "pairs.jsonl").write_text("".join(
        json.dumps({"query_id": query.upper(), "item_id": item,
                    "features": dict(zip(NAMES, row, strict=True))}) + "\n"
        for (query, item), row in pairs.items()
    ))  # fmt: skip
    words = ["--features", str(folder / "items.csv"), "--model", "search"]
    assert trained(folder / "clicks.csv", folder, *words) == 0
    return folder


def write(file: Path, head: list[str], rows: list[list[Any]]) -> None:
    """A CSV file."""
    with file.open("w", newline="") as lines:
        csv.writer(lines).writerows([head, *rows])


def test_a_table_of_clicks_trains_a_ranker(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It finds what users like, under the names that the features have."""
    _, snapshot = snapshot_of(table / "run")
    weights = dict(
        zip(snapshot.feature_names, np.frombuffer(snapshot.weights, "<f4"), strict=True)
    )
    assert tuple(weights) == NAMES
    assert weights["rating"] > 2.0 * abs(weights["age"])
    assert weights["price"] < -2.0 * abs(weights["age"])
    assert verified(table / "run") == 0
    capsys.readouterr()
    settings = load_settings(table / "run" / "model.toml", {})
    assert settings.models["search"].learns_from == [""]
    words = ["--features", str(table / "items.csv"), "--model", "search"]
    config = ["--config", str(table / "run" / "model.toml")]
    assert trained(table / "clicks.csv", table, *words, *config, out="again") == 0
    assert "no settings" not in capsys.readouterr().err
    assert snapshot_of(table / "again") == snapshot_of(table / "run")


def test_a_table_of_clicks_trains_trees(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By what the log suggests, said, made again, and gone on from."""
    words = ["--features", str(table / "items.csv"), "--model", "search"]
    trees = ["--kind", "trees"]
    assert trained(table / "clicks.csv", table, *words, *trees, out="trees") == 0
    said = " ".join(capsys.readouterr().err.split())
    _, snapshot = snapshot_of(table / "trees")
    run = read_training(table / "trees").run
    forest = unpack_forest(snapshot.weights)

    assert "no settings of 'search': trees of 3 features, least_support 1," in said
    assert "leaves 8, least_items 10, for 12 queries" in said
    assert (snapshot.kind, snapshot.normalisation) == ("trees", "none")
    assert len(forest.roots) == run.best_epoch > 0
    assert set(forest.features.tolist()) <= {0, 1, 2}
    assert verified(table / "trees") == 0
    more = [*words, "--config", str(table / "trees" / "model.toml")]
    parent = ["--parent", str(table / "trees")]
    assert trained(table / "clicks.csv", table, *more, *parent, out="more") == 0
    _, on = snapshot_of(table / "more")
    n_more = read_training(table / "more").run.best_epoch
    assert len(unpack_forest(on.weights).roots) == run.best_epoch + n_more
    assert verified(table / "more") == 0


def test_trees_go_on_from_those_of_another_library(table: Path) -> None:
    """A model of LightGBM is imported, and trained further from the own log."""
    rng = np.random.default_rng(4)
    features = rng.random((300, 3))
    dataset = lightgbm.Dataset(
        features, features @ TASTE, feature_name=[*NAMES], params={"verbose": -1}
    )
    plan = {"objective": "regression", "num_leaves": 4, "verbose": -1}
    lightgbm.train(plan, dataset, 5).save_model(table / "brought.txt")
    settings = table / "trees.toml"
    settings.write_text(
        f"[models.search]\nfeatures = 3\nfeature_names = {json.dumps(NAMES)}\n"
        'kind = "trees"\nnormalisation = "none"\nversions = "trained"\n'
        "[models.search.training]\nleast_support = 1.0\nheld_out = 0.3\n"
    )
    own = ["--config", str(settings)]
    brought = ["--from", str(table / "brought.txt"), "--out", str(table / "brought")]
    assert main(["snapshots", "import", "search", *brought, *own]) == 0
    words = ["--features", str(table / "items.csv"), "--model", "search", *own]
    parent = ["--parent", str(table / "brought")]
    assert trained(table / "clicks.csv", table, *words, *parent, out="further") == 0
    _, snapshot = snapshot_of(table / "further")

    n = read_training(table / "further").run.best_epoch
    assert len(unpack_forest(snapshot.weights).roots) == 5 + n
    assert verified(table / "further") == 0


def test_features_may_lie_beside_the_clicks_or_in_pairs(table: Path) -> None:
    """The same numbers under other names train the same; so do those of pairs."""
    columns = "features=f_rating+f_price+f_age"
    words = ["--columns", columns, "--model", "search"]
    assert trained(table / "wide.csv", table, *words, out="wide") == 0
    _, wide = snapshot_of(table / "wide")
    _, found = snapshot_of(table / "run")
    assert wide.feature_names == [f"f_{name}" for name in NAMES]
    assert wide.weights == found.weights
    pairs = ["--features", str(table / "pairs.jsonl"), "--model", "search"]
    assert trained(table / "clicks.csv", table, *pairs, out="pairs") == 0
    assert snapshot_of(table / "pairs")[0] == snapshot_of(table / "run")[0]


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_file_is_ranked_as_a_ranker_ranks_it(table: Path, ending: str) -> None:
    """Each query by itself; columns are found by name, whatever their order."""
    out = table / f"ranked.{ending}"
    words = ["--features", str(table / "pairs.jsonl"), "--out", str(out)]
    assert main(["rank", "--model", str(table / "run"), *words]) == 0
    envelope, _ = snapshot_of(table / "run")
    ranker = Ranker("search", source=lambda: envelope)
    ranker.load()
    lines = json_in(table / "pairs.jsonl")
    for query, items in ranked_in(out).items():
        own = [line for line in lines if line["query_id"] == query]
        matrix = [[line["features"][name] for name in NAMES] for line in own]
        ranking = ranker.rank(matrix, cutoff=len(own), policy="deterministic")
        assert items == [own[row]["item_id"] for row in ranking.order]
    assert len(ranked_in(out)) == len(QUERIES)


def json_in(file: Path) -> list[Any]:
    """Objects of a line each."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def ranked_in(out: Path) -> dict[str, list[str]]:
    """Items of each query, the best first, by any form of file."""
    if out.suffix == ".jsonl":
        return {each["query_id"]: each["items"] for each in json_in(out)}
    rows = (
        pq.read_table(out).to_pylist()
        if out.suffix == ".parquet"
        else [*csv.DictReader(out.read_text().splitlines())]
    )
    ordered: dict[str, list[str]] = {}
    for row in rows:
        ordered.setdefault(row["query"], []).append(row["item"])
        assert int(row["rank"]) == len(ordered[row["query"]])
    return ordered


def test_letor_files_are_ranked_by_number(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Items go by their comments, else by their place in the query."""
    file = shop / "test.txt"
    lines = "0 qid:1 1:0.1 2:0.9 3:0\n1 qid:1 1:0.9 2:0.1 3:0\n0 qid:2 1:1 2:1 3:1\n"
    file.write_text(lines)
    assert main(["rank", "--model", str(shop / "run"), "--features", str(file)]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()]
    assert [row[:3] for row in rows] == [
        ["query", "rank", "item"], ["1", "1", "2"], ["1", "2", "1"], ["2", "1", "1"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "search", "--out", "new"], "--log must be given; it is missing"),
        (["--log", "clicks.csv", "--out", "new"], "--model must be given; it is miss"),
        (["--log", "clicks.csv", "--model", "search"], "--out must be given; it is mi"),
        (
            ["--log", "clicks.csv", "--model", "search", "--out", "run"],
            "--out must be a folder without a training; run has one",
        ),
        (
            ["--log", "clicks.csv", "--model", "search", "--out", "new"],
            "a log must have features to train a ranker from; it has none: give a "
            "table of them with --features FILE",
        ),
        (
            ["--log", "clicks.csv", "--model", "s", "--out", "new", "--features",
             "clicks.csv", "--columns", "features=f_*"],
            "columns of features must be there; no 'f_*' among",
        ),
        (["--verify", "run", "--out", "new"], "--verify must be given alone or with"),
        (["--verify", "run", "--kind", "trees"], "--verify must be given alone or wi"),
        (
            ["--log", "clicks.csv", "--model", "own", "--kind", "trees", "--out",
             "new", "--config", "on.toml"],
            "--kind must be that of models.own, 'linear'; got 'trees'",
        ),
        (["--verify", "nowhere"], "training.bin is not there"),
        (
            ["--log", "clicks.csv", "--model", "search", "--out", "new", "--features",
             "others.csv"],
            "features must be of the items of the log; none of 480 lists has all",
        ),
        (
            ["--log", "clicks.csv", "--model", "search", "--out", "new", "--features",
             "gaps.csv"],
            "a feature must be a number in each row; 'price' is '': fill it",
        ),
        (
            ["--log", "clicks.csv", "--model", "on", "--out", "new", "--config",
             "on.toml"],
            "--model must be one that is trained, or one that no settings",
        ),
        (
            ["--log", "clicks.csv", "--model", "eyes", "--out", "new", "--config",
             "on.toml"],
            "--model must be a model; 'eyes' is a curve, [curves.eyes]: give the",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_remedy(
    table: Path,
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And nothing is written."""
    monkeypatch.chdir(table)
    eyes = '[curves.eyes]\nestimator = "position"\n'
    own = '[models.own]\nfeatures = 3\nversions = "trained"\n'
    Path("on.toml").write_text("[models.on]\nfeatures = 3\n" + own + eyes)
    Path("others.csv").write_text("item,price\nx,1\n")
    Path("gaps.csv").write_text("item,price\nsku-1,1\nsku-2,\n")
    is_of_the_log = said.startswith("a log must have features")
    assert main(["train", *words]) == (1 if is_of_the_log else 2)
    assert said in " ".join(capsys.readouterr().err.split())
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "run", "--features", "clicks.csv"], "no column 'rating' among"),
        (
            ["--model", "clicks.csv", "--features", "items.csv"],
            "must be an envelope as",
        ),
        (["--model", ".", "--features", "items.csv"], "must have one file *.snapshot"),
        (
            ["--model", "run", "--features", "items.csv", "--out", "ranked.txt"],
            "--out must end with one of .csv, .jsonl",
        ),
    ],
)
def test_what_cannot_be_ranked_is_refused(
    table: Path,
    words: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the remedy."""
    monkeypatch.chdir(table)
    assert main(["rank", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_curve_may_be_given_on_the_command_line(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As by the settings, which the folder then has; trust bias is refused."""
    told = [1.0, 0.6, 0.4, 0.3, 0.2]
    words = ["--config", str(shop / "shop.toml"), "--model", "m"]
    words += ["--log", str(shop / "log.jsonl"), "--out", str(tmp_path / "run")]
    assert main(["train", *words, "--examination", "1,0.6,0.4,0.3,0.2"]) == 0
    kept = read_training(tmp_path / "run")
    assert kept.run.curve.alpha == told
    assert kept.run.settings["training"]["examination"] == told
    assert "none, as the curve was given" in capsys.readouterr().out
    assert main(["train", "--verify", str(tmp_path / "run")]) == 0
    curve = {"alpha": [0.9, 0.5], "beta": [0.1, 0.1]}
    (tmp_path / "trust.json").write_text(json.dumps(curve))
    with pytest.raises(SystemExit):
        main(["train", *words, "--examination", str(tmp_path / "trust.json")])
    assert "must be without trust bias" in capsys.readouterr().err


def test_settings_that_the_log_would_not_suggest_are_said(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are taken, as the role `train` takes them."""
    assert trained(shop / "log.jsonl", shop, "--model", "m", out="again") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "settings of 'm' are taken, with their defaults: batch 8" in said
    assert "of this log without settings it would be batch = 4" in said


def test_its_folder_gives_training_files_their_features(table: Path) -> None:
    """As it read them: each item of each query has those of its row."""
    run, file = table / "run", table / "train.txt"
    words = ["--local", str(run), "--config", str(run / "model.toml"), "--to"]
    words += ["training", "--format", "lightgbm", "--model", "search"]
    given = ["--grades", "0.2,0.4", "--examination", "1,1,1,1"]
    assert main(["statistics", "export", str(file), *words, *given]) == 0
    lines = [line.split() for line in file.read_text().splitlines()]
    assert {len(line) for line in lines} == {1 + len(NAMES)}
    assert {line[0] for line in lines} <= {"0", "1", "2"}
    with (table / "items.csv").open(newline="") as rows:
        items = {row["item"]: row for row in csv.DictReader(rows)}
    with (table / "train.txt.csv").open(newline="") as rows:
        for line, row in zip(lines, csv.DictReader(rows), strict=True):
            told = [float(each.partition(":")[2]) for each in line[1:]]
            expected = [float(items[row["item"]][name]) for name in NAMES]
            assert told == pytest.approx(expected, abs=1e-6)
