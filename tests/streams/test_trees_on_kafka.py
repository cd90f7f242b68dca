"""Trees on a broker: trained, selected, and compared with those of another library.

One worker has all roles that this takes. Lists of first versions are shown by chance,
and models are trained from them by schedule.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import xgboost
from numpy.typing import NDArray

from rankstream.experiments import Experiments
from rankstream.ranker import Ranker
from rankstream.snapshots import Pointer
from tests.clicked_lists import (
    EXAMINATION,
    N_FEATURES,
    N_QUERIES,
    Shown,
    features_of,
    relevance_of,
    show,
    show_compared,
)
from tests.deployed_shop import COUNTING, DeployedShop, deployed_shop
from tests.rankstream.lab.commands.test_simulate_on_kafka import n_counted
from tests.services import KafkaService, RedisService
from tests.streams.test_logging_policy_on_kafka import last_verdict
from tests.trained_elsewhere import OF_TASTE, matrix, models_of_taste
from tests.worker_process import PATIENCE_S, settings_of, waited_until

OF_TURNED = [f"turned_{name}" for name in OF_TASTE]
N_LISTS = 900
"""By chance, of each model that is shown; and as many that compare."""

N_BY_CHANCE = 2 * N_LISTS

LENGTH = 4
LOOKS = np.array(EXAMINATION[:LENGTH])
Features = Callable[[int], NDArray[np.float64]]

FEATURES = f"""
features = {N_FEATURES}
feature_names = {OF_TASTE}
"""
TRAINED = f"""
versions = "trained"
training.after = [{N_BY_CHANCE}]
training.least_support = 1.0
training.most_unsupported = 1.0
training.examination = {[*EXAMINATION]}
training.trees = {{ rounds = 30, leaves = 6, least_items = 8, learning_rate = 0.2 }}
"""
SELECTED = f"""{FEATURES}
kind = "selected"
training.learning_rate = 0.1
training.batch = 4
{TRAINED}
"""
SETTINGS = f"""
[train]
value_every_s = 0
[models.brought]
{FEATURES}
kind = "trees"
normalisation = "none"
versions = "promoted"
[models.own]
{FEATURES}
kind = "trees"
normalisation = "none"
learns_from = ["search"]
{TRAINED}
[models.search]
{SELECTED}
[models.bent]
{SELECTED.replace(str(OF_TASTE), str(OF_TURNED))}
[experiments.boost]
method = "team-draft"
rankers = {{ own = "own", brought = "brought" }}
length = {LENGTH}
"""


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaService,
    redis_server: RedisService,
) -> Iterator[DeployedShop]:
    """A worker that has counted lists of first versions; and files."""
    folder = tmp_path_factory.mktemp("shop")
    models_of_taste(folder)
    roles = (*COUNTING, "train", "evaluate")
    with deployed_shop(folder, kafka, redis_server, SETTINGS, roles=roles) as shop:
        bent = Ranker("bent", store=shop.store)
        assert bent.wait(PATIENCE_S), shop.worker.said()[-3_000:]
        shown = Shown(0, int(time.time() * 1_000) - 120_000)
        shown = show(shop.producer, bent, shown, N_LISTS, features=turned)
        show(shop.producer, shop.ranker, shown, N_LISTS)
        shop.producer.end()
        assert n_counted(shop.config, at_least=N_BY_CHANCE) == N_BY_CHANCE
        yield shop


def turned(query: int) -> NDArray[np.float64]:
    """Features of which the upper fifth begins anew at 0: no weighted sum is taste."""
    return (features_of(query) + 0.2) % 1.0


def beyond_the_first(shop: DeployedShop, model: str) -> Ranker:
    """A ranker of a model, as soon as it serves more than version 0."""
    ranker = Ranker(model, store=shop.store)

    def has_news() -> bool:
        ranker.refresh()
        return ranker.pointer is not None and ranker.pointer > Pointer(0, 0)

    waited_until(has_news, shop.worker.log)
    return ranker


def clicks_of(ranker: Ranker, features: Features = features_of) -> float:
    """Clicks on lists of its own that users make in the mean, by what was planted."""
    found = []
    for query in range(N_QUERIES):
        ranking = ranker.rank(features(query), policy="deterministic", cutoff=LENGTH)
        found.append(relevance_of(query)[ranking.order] @ LOOKS)
    return float(np.mean(found))


def clicks_by_chance() -> float:
    """The same of lists that show all items alike."""
    likes = [relevance_of(query).mean() for query in range(N_QUERIES)]
    return float(np.mean(likes) * LOOKS.sum())


@pytest.mark.broker
def test_trained_trees_are_compared_with_imported_ones_to_a_verdict(
    shop: DeployedShop, capsys: pytest.CaptureFixture[str]
) -> None:
    """By team draft, both from Redis: who ranks as users like it wins."""
    words = ("--from", str(shop.folder / "model.ubj"), "--why", "what we run today")
    assert shop.run("import", "brought", *words) == 0
    assert shop.command("experiments", "publish") == 0
    rankers = {name: beyond_the_first(shop, name) for name in ("own", "brought")}
    assert {each.snapshot.kind for each in rankers.values()} == {"trees"}
    better = max(rankers, key=lambda name: clicks_of(rankers[name]))
    assert better == "own"

    client, begin_ms = Experiments(shop.store), int(time.time() * 1_000) - 60_000
    assert client.refresh()
    running = client.of("boost", unit="s0", now_ms=begin_ms)
    assert running is not None
    begin = Shown(N_BY_CHANCE, begin_ms)
    show_compared(shop.producer, running, rankers, begin, N_LISTS)
    shop.producer.end()
    settings = settings_of(shop.config)

    def has_all() -> bool:
        totals = last_verdict(settings).get("totals", {})
        return bool(totals.get("impressions") == N_LISTS)

    waited_until(has_all, shop.worker.log)
    verdict = last_verdict(settings)["methods"]["team-draft"]
    assert (verdict["winner"], verdict["impressions"]) == (better, N_LISTS)
    capsys.readouterr()
    assert shop.command("experiments", "show", "boost") == 0
    assert f"winner: {better}" in capsys.readouterr().out


@pytest.mark.broker
@pytest.mark.parametrize(
    ("model", "kind", "features"),
    [("search", "linear", features_of), ("bent", "trees", turned)],
)
def test_the_kind_that_was_selected_is_served_and_told(
    model: str,
    kind: str,
    features: Features,
    shop: DeployedShop,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    """Weights where taste is a sum of features, else trees; made again to the byte."""
    ranker = beyond_the_first(shop, model)
    version = str(ranker.pointer)
    assert ranker.snapshot.kind == kind
    capsys.readouterr()
    assert shop.command("intervene", model, "--show", version, "--json") == 0
    run = json.loads(capsys.readouterr().out)
    worth = {each["kind"]: each["dcg"] for each in run["losses"]}
    assert run["reason"] == "count"
    assert {*worth} == {"linear", "trees"}
    assert max(worth, key=lambda each: worth[each]) == kind
    (row,) = shop.past(capsys, model)
    assert (row["what"], row["version"]) == ("trained", version)
    assert row["evidence"]["kind"] == kind

    given = features(3).astype(np.float32)
    if kind == "linear":
        low, high = given.min(axis=0), given.max(axis=0)
        weights = np.frombuffer(ranker.snapshot.weights, "<f4")
        expected = (given - low) / (high - low) @ weights
    else:
        out = tmp_path / "trees.json"
        to = ("--to", "xgboost", "--out", str(out))
        assert shop.run("export", model, version, *to) == 0
        booster = xgboost.Booster(model_file=out)
        expected = booster.predict(matrix(given, names=OF_TURNED), output_margin=True)
    ranking = ranker.rank(given, policy="deterministic", cutoff=len(given))
    assert ranking.scores == pytest.approx(expected, rel=1e-5, abs=1e-5)
    assert ranking.intervention == f"{model}@{version}"
    assert clicks_of(ranker, features) > 1.1 * clicks_by_chance()

    assert shop.run("verify", model) == 0
    dump = tmp_path / "events.dump.zst"
    assert shop.command("dump", str(dump)) == 0
    capsys.readouterr()
    words = ("--verify", version, "--events", str(dump))
    assert shop.command("intervene", model, *words) == 0
    assert "equal bytes" in capsys.readouterr().out
