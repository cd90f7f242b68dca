"""Decisions on a real broker: they appear by themselves, and users click more."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from models.arrays import Floats
from producers.event_producer import EventProducer, send_records
from rankstream.operations.cli import main
from rankstream.ranker import Ranker
from rankstream.snapshots import SnapshotStore
from rankstream.wire.topics import CLICKS, DECISIONS, QUERIES
from tests.clicked_lists import (
    CUTOFF,
    EXAMINATION,
    N_FEATURES,
    N_ITEMS,
    features_of,
    relevance_of,
)
from tests.decision_factory import rewrite
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    PATIENCE_S,
    WorkerProcess,
    configured,
    running,
    settings_of,
)

SETTINGS = f"""
[time]
click_window_ms = 1_000
disorder_ms = 2_000
idle_ms = 600_000
[delivery]
state_s = 1.0
[models.search]
features = {N_FEATURES}
versions = "trained"
[models.search.training]
examination = {[*EXAMINATION]}
[models.safe]
features = {N_FEATURES}
versions = "promoted"
[decisions.orders]
general = "search"
logging = "safe"
temperature = 1.0
every_s = 2.0
[models.shelf]
features = {N_FEATURES}
versions = "trained"
[models.shelf.training]
examination = {[*EXAMINATION]}
[bandits.best]
model = "shelf"
length = 3
every_s = 1.0
[train]
value_every_s = 0
"""
ROLES = [
    word
    for role in ("ingest", "fold", "learn", "publish", "decide")
    for word in ("--role", role)
]
N_QUERIES, STEP_MS = 4, 20
ITEMS = [f"d{item}" for item in range(N_ITEMS)]


def likes_of(query: int) -> Floats:
    """What users like; of every other query no feature tells it."""
    likes = relevance_of(query)
    return likes if query % 2 else np.random.default_rng(query).permutation(likes)


class Shop(NamedTuple):
    """Where it is set up, who ranks for it, and who counts."""

    config: Path
    ranker: Ranker
    bandit: Ranker
    producer: EventProducer
    worker: WorkerProcess

    def told(self, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
        """What a verb of `rankstream decisions` prints; None where there is nothing."""
        capsys.readouterr()
        status = main(["decisions", *words, "--json", "--config", str(self.config)])
        return json.loads(capsys.readouterr().out) if status == 0 else None

    def show(self, first: int, n_lists: int, at_ms: int) -> float:
        """Show lists of all queries in turn; returns clicks per list."""
        n_clicks, rng = 0, np.random.default_rng((3, first))
        for number in range(first, first + n_lists):
            query, at = number % N_QUERIES, at_ms + number * STEP_MS
            ranking = self.ranker.rank(
                features_of(query), cutoff=CUTOFF, seed=int(rng.integers(2**63)),
                query_id=f"q{query}", items=ITEMS,
            )  # fmt: skip
            event = self.ranker.query_event(
                ranking, query_id=f"q{query}", items=ITEMS, at_ms=at,
                impression_id=f"i{number}", session=f"s{number // 2}",
            )  # fmt: skip
            self.producer.send(QUERIES, event)
            clicked = rng.random(CUTOFF) < likes_of(query)[ranking.order] * EXAMINATION
            for row in np.flatnonzero(clicked).tolist():
                click = self.ranker.click_event(
                    f"i{number}", query_id=f"q{query}", position=row + 1, at_ms=at + 1
                )
                self.producer.send(CLICKS, click)
            n_clicks += int(clicked.sum())
        self.producer.flush()
        return n_clicks / n_lists


@pytest.fixture
def shop(
    tmp_path: Path, kafka: KafkaService, redis_server: RedisService
) -> Iterator[Shop]:
    """A worker and a ranker that follows its decisions."""
    name = f"decisions-{time.time_ns()}"
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, name, SETTINGS)
    store = SnapshotStore(redis_server.url, namespace=name)
    ranker = Ranker("search", store=store, decisions="orders")
    bandit = Ranker("shelf", store=store, decisions="best")
    with running(config, tmp_path / "worker.log", *ROLES) as worker:
        assert ranker.wait(PATIENCE_S), worker.said()[-3_000:]
        with EventProducer(settings_of(config)) as producer:
            yield Shop(config, ranker, bandit, producer, worker)
    ranker.close()
    bandit.close()
    store.close()


@pytest.mark.broker
def test_decisions_appear_and_users_click_more(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of each query its own order, for users of all groups, with what it rests on."""
    at_ms = int(time.time() * 1_000) - 3_000_000
    ends_s, rates, n_lists = time.monotonic() + PATIENCE_S, [], 0
    while time.monotonic() < ends_s:
        shop.ranker.refresh()
        told = shop.told(capsys, "list")
        if told is not None and told[-1]["decided"] == N_QUERIES:
            break
        if n_lists < 12_000:
            rates.append(shop.show(n_lists, 600, at_ms))
            n_lists += 600
        time.sleep(0.5)
    else:
        raise AssertionError(f"{told}: {shop.worker.said()[-3_000:]}")
    (_, rule) = told
    assert (rule["default"], rule["undecided"]) == ("safe@0.0", 0)
    while time.monotonic() < ends_s:
        shop.ranker.refresh()
        after = shop.show(n_lists, 400, at_ms)
        n_lists += 400
        best = [np.sort(likes_of(q))[::-1][:CUTOFF] @ EXAMINATION for q in range(4)]
        if after > rates[0] + 0.5 * (np.mean(best) - rates[0]):
            break
    else:
        raise AssertionError(f"{rates} {after} {best}")
    for query in range(N_QUERIES):
        (one,) = shop.told(capsys, "show", "orders", f" Q{query}")
        order = [item for block in one["order"] for item in block]
        assert likes_of(query)[int(order[0][1:])] >= np.sort(likes_of(query))[-2]
        own = [x for x in one["evidence"] if x["policy"] == "own"]
        assert len(own) == 2
        assert all(0.0 < x["lower"] < x["estimate"] for x in own)
    assert main(["decisions", "list", "orders", "--config", str(shop.config)]) == 0
    assert "4 decisions of 4 candidate sets" in capsys.readouterr().out
    assert shop.told(capsys, "show", "orders", "nobody asked") is None
    a_bandit_finds_the_best(shop, capsys, at_ms + n_lists * STEP_MS)
    withdraw_one_of_before(shop, capsys)


def a_bandit_finds_the_best(
    shop: Shop, capsys: pytest.CaptureFixture[str], at_ms: int
) -> None:
    """Of a query of its own, by lists that all bear its one name."""
    rng, likes = np.random.default_rng(9), likes_of(0)
    ends_s, n_lists, found = time.monotonic() + PATIENCE_S, 0, None
    names, policies = set(), set()
    while time.monotonic() < ends_s:
        shop.bandit.refresh()
        for _ in range(200 if n_lists < 6_000 and shop.bandit.rewrite else 0):
            name, at = f"b{n_lists}", at_ms + n_lists * STEP_MS
            given: dict[str, Any] = {"query_id": "shelf", "items": ITEMS}
            ranking = shop.bandit.rank(
                features_of(0), cutoff=3, seed=int(rng.integers(2**63)), **given
            )
            event = shop.bandit.query_event(
                ranking, at_ms=at, impression_id=name, session=name, **given
            )
            names.add(ranking.intervention)
            policies.add(ranking.policy)
            shop.producer.send(QUERIES, event)
            clicked = rng.random(3) < likes[ranking.order] * EXAMINATION[:3]
            for row in np.flatnonzero(clicked).tolist():
                click = shop.bandit.click_event(
                    name, query_id="shelf", position=row + 1, at_ms=at + 1
                )
                shop.producer.send(CLICKS, click)
            n_lists += 1
        shop.producer.flush()
        found = shop.told(capsys, "show", "best", "shelf")
        (bandit, _) = shop.told(capsys, "list")
        has_lists = found and found[0]["bandit"]["lists"] > 3_000
        # How many lists a rewrite finds is the machine's: some must follow another.
        if has_lists and bandit["number"] > 2:
            break
        time.sleep(0.5)
    else:
        raise AssertionError(f"{n_lists} {found}: {shop.worker.said()[-3_000:]}")
    (one,) = found
    order = [int(item[1:]) for block in one["order"] for item in block]
    assert likes[order[0]] >= np.sort(likes)[-2]
    assert (one["served"], len(names)) == ("pie", 1)
    assert {"plackett-luce", "logged"} <= policies
    assert bandit["intervention"] == names.pop()
    assert bandit["intervention"].startswith("best@1.")
    assert (bandit["bandit"], bandit["decided"]) == ("pie, lists of 3", 1)


def withdraw_one_of_before(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """A rule that the settings have no more is ended, and no other one."""
    withdraw = ["decisions", "withdraw", "--config", str(shop.config)]
    for name, said in (("orders", "must be out of the"), ("old", "have been written")):
        assert main([*withdraw, name]) == 2
        assert said in capsys.readouterr().err
    pairs = [(x or b"", y or b"") for x, y in rewrite(3, name="old").records]
    send_records(settings_of(shop.config), DECISIONS, pairs)
    (_, old, _) = shop.told(capsys, "list")
    assert (old["name"], old["decided"]) == ("old", 1)
    assert main([*withdraw, "old", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"rule": "old", "rewrite": 4}
    (_, old, _) = shop.told(capsys, "list")
    assert (old["number"], old["decided"], old["intervention"]) == (4, 0, "")
    assert shop.told(capsys, "list", "old") is None
