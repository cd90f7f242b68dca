"""`rankstream snapshots promote`, `rollback` and `history` on a real broker."""

import contextlib
import json
import multiprocessing
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream.operations.answers.models import deployment
from rankstream.snapshots import Pointer, store_of
from streams.kafka.deployment.operator_change import Wanted
from tests.clicked_lists import N_FEATURES, TASTE
from tests.deployed_shop import DeployedShop, deployed_shop
from tests.served import until
from tests.services import KafkaService, RedisService
from tests.worker_process import settings_of

SETTINGS = f"""
[statistics]
groups = 20
[models.search]
features = {N_FEATURES}
versions = "promoted"
log_candidates = true
"""
LEARNED: dict[str, Any] = {
    "normalisation": "none",
    "groups": [0, 1, 2, 3],
    "version": 10_000,
}


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaService,
    redis_server: RedisService,
) -> Iterator[DeployedShop]:
    """Lists of the first version, counted; two versions of others, and a worker."""
    folder = tmp_path_factory.mktemp("shop")
    with deployed_shop(folder, kafka, redis_server, SETTINGS) as shop:
        shop.count(1_200, n_queries=3)
        for model, sign in (("better", 4.0), ("flipped", -4.0), ("unknown", 4.0)):
            fields = LEARNED | ({"groups": []} if model == "unknown" else {})
            weights = (sign * TASTE).astype("<f4").tobytes()
            shop.publish(model, weights=weights, **fields)
        shop.publish("wider", n_features=4, version=10_000)
        yield shop


@pytest.mark.broker
def test_a_version_goes_out_on_evidence_alone(
    shop: DeployedShop, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was trained on flipped labels stays out, and its look is counted."""
    assert shop.run("promote", "search", "--from", "flipped@0.10000") == 1
    said = capsys.readouterr().err
    assert "search 0.0 stays: flipped@0.10000 differs by -" in said
    assert "look 1: it must lie above 0" in said
    words = ("promote", "search", "--from", "unknown@0.10000", "--json")
    assert shop.run(*words) == 1
    reason = json.loads(capsys.readouterr().out)["reason"]
    assert reason.startswith("policies were chosen")

    assert shop.run("promote", "search", "--from", "better@0.10000") == 0
    told = capsys.readouterr().out
    assert told.startswith("search 1.10000 is served (from better@0.10000; +0.")
    assert "look 3; at worst -0." in told
    assert told.endswith("), until `rankstream snapshots promote search`\n")
    assert shop.store.standing(["search"]) == {"search": Pointer(1, 10_000)}
    shop.ranker.refresh()
    assert shop.ranker.snapshot.intervention == "search@1.10000"
    assert shop.ranker.snapshot.log_candidates

    first, second, third = shop.past(capsys)
    assert [row["what"] for row in (first, second, third)] == [
        "looked", "looked", "promoted",
    ]  # fmt: skip
    assert (third["before"], third["version"]) == ("0.0", "1.10000")
    evidence = third["evidence"]
    assert evidence["from"] == "better@0.10000"
    assert evidence["look"] == 3
    assert evidence["confidence"] == pytest.approx(1 - 0.05 / 12)
    assert 0.0 < evidence["low"] < evidence["difference"] < evidence["high"]
    assert evidence["groups"] == [*range(4, 20)]
    # From lists that show each item alike to lists that hardly show the last one.
    assert 0.0 < evidence["least_ratio"] < 0.5 < evidence["largest_loss"] < 2.8
    assert first["evidence"]["high"] < 0.0


@pytest.mark.broker
def test_what_is_no_longer_served_is_refused_in_words(
    shop: DeployedShop,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who saw another version, who gives no reason, who names another model."""
    if shop.store.standing(["search"])["search"] == Pointer(0, 0):
        force = ("--force", "--why", "as a start")
        assert shop.run("promote", "search", "--from", "better@0.10000", *force) == 0
    n_before = len(shop.past(capsys))
    for words, reason in (
        (["rollback", "search", "0.0", "--expect", "0.3"], "--expect 1.10000 to go on"),
        (["promote", "search", "--from", "flipped@0.10000", "--force"], "--why TEXT"),
        (["promote", "better", "--from", "flipped@0.10000"], "has no section: its"),
        (["promote", "search", "--from", "flipped@0.7"], "must be kept in Redis to"),
        (["promote", "search", "--from", "wider@0.10000"], "4 and search has 3, or"),
        (["follow", "search"], "'search' does not: roll back"),
    ):
        assert shop.run(*words) == 2, words
        assert reason in " ".join(capsys.readouterr().err.split())
    assert len(shop.past(capsys)) == n_before

    force = ("--force", "--why", "a rehearsal")
    assert shop.run("promote", "search", "--from", "flipped@0.10000", *force) == 0
    back = ["rollback", "search", "1.10000", "--why", "clicks fell"]
    assert shop.run(*back, "--expect", "2.10000") == 0
    *_, forced, back_again = shop.past(capsys)
    assert forced["evidence"] == {"from": "flipped@0.10000", "forced": True}
    assert (forced["why"], back_again["why"]) == ("a rehearsal", "clicks fell")
    assert (back_again["what"], back_again["version"]) == ("rolled back", "3.10000")
    monkeypatch.setenv("COLUMNS", "240")
    assert shop.run("history", "search") == 0
    shown = capsys.readouterr().out
    assert "a rehearsal; from flipped@0.10000; by force" in " ".join(shown.split())


N_KILLS = 20


def turned_back(config: Path, seen: Pointer) -> None:
    """What a process does that is killed somewhere in it: serve the first version."""
    settings = settings_of(config)
    with contextlib.closing(store_of(settings)) as store:
        wanted = Wanted("search", seen, "killed")
        deployment.roll_back(settings, store, wanted, Pointer(0, 0))


@pytest.mark.broker
def test_kills_leave_the_old_version_or_the_new_one_with_its_row(
    shop: DeployedShop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twenty processes that roll back are killed at any moment of it."""
    forking = multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload([__name__])
    rng = np.random.default_rng(3)

    def killed_after(seconds: float | None) -> float:
        served = shop.store.standing(["search"])["search"]
        process = forking.Process(target=turned_back, args=(shop.config, served))
        process.start()
        begun_s = time.monotonic()
        process.join(seconds)
        process.kill()
        process.join()
        assert seconds is not None or process.exitcode == 0
        return time.monotonic() - begun_s

    took_s = max(killed_after(None) for _ in range(2))
    n_changes = len(shop.past(capsys))
    n_made = 0
    for share in rng.uniform(0.5, 1.0, N_KILLS):
        before = shop.store.standing(["search"])["search"]
        killed_after(share * took_s)
        # What it had begun to commit is decided for whoever comes after it.
        assert shop.run("rollback", "search", "0.0", "--expect", "9.9") == 2
        rows = shop.past(capsys)
        n_new = len(rows) - n_changes
        assert n_new in (0, 1)
        wanted = Pointer(before.epoch + n_new, 0) if n_new else before
        assert rows[-1]["version"] == str(wanted)
        # What was committed and not told to Redis is brought there by the publisher.
        until(lambda at=wanted: shop.store.standing(["search"])["search"] == at)
        n_changes, n_made = len(rows), n_made + n_new
        # Near the moment that it takes, however busy the machine is.
        took_s *= 0.8 if n_new else 1.3
    assert 0 < n_made < N_KILLS


@pytest.mark.broker
def test_redis_that_was_emptied_has_it_again(shop: DeployedShop) -> None:
    """By the publisher, of the topic."""
    was = shop.store.standing(["search"])
    assert shop.store.discard("search", was["search"])

    def is_back() -> bool:
        return shop.store.standing(["search"]) == was

    until(is_back)
    weights = np.frombuffer(shop.ranker.snapshot.weights, "<f4")
    assert len(weights) == N_FEATURES
