"""Trees that were trained elsewhere, imported, served and rolled back on a broker."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import lightgbm
import numpy as np
import pytest

from rankstream.snapshots import Pointer
from tests.clicked_lists import N_FEATURES, features_of
from tests.deployed_shop import DeployedShop, deployed_shop
from tests.services import KafkaService, RedisService
from tests.trained_elsewhere import OF_TASTE, models_of_taste

TREES = f"""
features = {N_FEATURES}
feature_names = {OF_TASTE}
kind = "trees"
normalisation = "none"
versions = "promoted"
log_candidates = true
"""
SETTINGS = f"""
[statistics]
groups = 20
[models.search]
{TREES}
[models.other]
{TREES}
"""


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaService,
    redis_server: RedisService,
) -> Iterator[DeployedShop]:
    """A worker that has published version 0, and counted lists of it; and files."""
    folder = tmp_path_factory.mktemp("shop")
    models_of_taste(folder)
    made = deployed_shop(folder, kafka, redis_server, SETTINGS, feature_names=OF_TASTE)
    with made as shop:
        shop.count(900, n_queries=3)
        yield shop


@pytest.mark.broker
def test_models_of_other_libraries_are_versions_like_others(
    shop: DeployedShop, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Served, in the history, valued, verified, rolled back to, and exported."""
    given = features_of(3)
    assert shop.ranker.rank(given, policy="deterministic").scores.tolist() == [0.0] * 6
    file, why = shop.folder / "model.txt", ("--why", "what we run today")
    words = ("import", "search", "--from", str(file))
    assert shop.run(*words, "--fitted-on", "none", *why) == 0
    told = capsys.readouterr().out
    assert told.startswith("search 1.0 is served (from model.txt), until `rankstream")
    # Nobody likes the third feature, and no split looks at it.
    words_of_file = ": 40 trees of 320 leaves by 2 features, from model.txt (lightgbm)"
    assert words_of_file in told

    shop.ranker.refresh()
    single = given.astype(np.float32).astype(np.float64)
    expected = lightgbm.Booster(model_file=file).predict(single[:, ::-1])
    ranking = shop.ranker.rank(given, policy="deterministic", cutoff=6)
    assert ranking.scores.tolist() == np.asarray(expected, np.float32).tolist()
    assert ranking.intervention == "search@1.0"
    (row,) = shop.past(capsys)
    assert (row["what"], row["version"], row["why"]) == ("imported", "1.0", why[1])
    assert row["evidence"] == {
        "from": "model.txt", "format": "lightgbm", "trees": 40,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }  # fmt: skip

    # Users like what it ranks high, and lists of version 0 were drawn by chance.
    assert shop.command("evaluate", "search@1.0", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    (valued,) = (each for each in found["policies"] if each["name"] == "search@1.0")
    assert valued["difference"] > 0.0
    assert valued["low"] < valued["high"]

    flipped = str(shop.folder / "model.ubj")
    assert shop.run("import", "search", "--from", flipped, "--json") == 0
    assert json.loads(capsys.readouterr().out)["version"] == "2.0"
    shop.ranker.refresh()
    turned = shop.ranker.rank(given, policy="deterministic", cutoff=6)
    assert turned.order[0] == np.argmin(expected)
    assert shop.run("verify", "search") == 0
    assert shop.run("rollback", "search", "1.0", "--why", "worse") == 0
    shop.ranker.refresh()
    again = shop.ranker.rank(given, policy="deterministic", cutoff=6)
    assert again.scores.tolist() == ranking.scores.tolist()
    assert again.intervention == "search@3.0"

    out = tmp_path / "back.txt"
    to = ("--to", "lightgbm", "--out", str(out))
    assert shop.run("export", "search", "3.0", *to) == 0
    back = lightgbm.Booster(model_file=out)
    assert back.feature_name() == OF_TASTE
    assert np.asarray(back.predict(single)).tolist() == np.asarray(expected).tolist()


@pytest.mark.broker
def test_what_is_refused_changes_nothing(
    shop: DeployedShop, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of other features, no model of trees, and what somebody else changed."""
    before = shop.store.standing(["search"])
    odd = shop.folder / "odd.txt"
    text = (shop.folder / "model.txt").read_text()
    odd.write_text(text.replace("noise price fit", "noise cost fit"))
    cut = shop.folder / "cut.ubj"
    cut.write_bytes((shop.folder / "model.ubj").read_bytes()[:-100])
    good = str(shop.folder / "model.txt")
    for words, told in (
        (["search", "--from", str(odd)], "'cost' is not"),
        (["search", "--from", str(cut)], "a model file must be whole"),
        (["nobody", "--from", good], "'nobody' has no section"),
        (["search", "--from", good, "--expect", "0.7"], "must be served as it was"),
        (["search", "--from", good, "--fitted-on", "all"], "must be groups, as 0,1,2"),
    ):
        try:
            status = shop.run("import", *words)
        except SystemExit as ended:
            status = int(str(ended.code))
        assert status == 2, words
        assert told in " ".join(capsys.readouterr().err.split())
    assert shop.store.standing(["search"]) == before


@pytest.mark.broker
def test_trees_are_promoted_from_one_name_to_another(
    shop: DeployedShop, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the same evidence as any version: clicks of the lists by chance."""
    file = str(shop.folder / "model.txt")
    words = ("import", "other", "--from", file, "--fitted-on", "none")
    assert shop.run(*words) == 0
    place = shop.store.standing(["other"])["other"]
    assert place == Pointer(1, 0)
    flipped = ("--from", str(shop.folder / "model.ubj"), "--why", "to be beaten")
    assert shop.run("import", "search", *flipped, "--fitted-on", "none") == 0
    capsys.readouterr()
    assert shop.run("promote", "search", "--from", f"other@{place}") == 0
    told = capsys.readouterr().out
    assert "is served (from other@1.0; +" in told
