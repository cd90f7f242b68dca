"""A version that goes out to a share of sessions, on a real broker: up, and back."""

import json
import time
from collections.abc import Iterator

import pytest

from rankstream.ranker import Ranker
from rankstream.snapshots import Pointer
from tests.clicked_lists import N_FEATURES, TASTE, Shown, show
from tests.deployed_shop import COUNTING, DeployedShop, deployed_shop
from tests.served import until
from tests.services import KafkaService, RedisService

SETTINGS = f"""
[models.search]
features = {N_FEATURES}
versions = "promoted"
[models.search.canary]
shares = [0.25, 0.5]
planned = 4_000
least = 100
margin = 0.1
guardrails = ["without click"]
[train]
value_every_s = 0
"""
STEP_MS = 20


def is_out(shop: DeployedShop, tag: str) -> bool:
    """Whether the ranker serves a stage; "" for none."""
    shop.ranker.refresh()
    return shop.ranker.canary == tag


def shown_until(shop: DeployedShop, shown: Shown, tag: str) -> Shown:
    """Show lists until a stage, or none, is served; in parts, as they count."""
    for _ in range(60):
        shown = show(shop.producer, shop.ranker, shown, 600, step_ms=STEP_MS)
        shop.producer.flush()
        ends_s = time.monotonic() + 4.0
        while time.monotonic() < ends_s:
            if is_out(shop, tag):
                return shown
            time.sleep(0.1)
    raise AssertionError(f"never came to {tag!r}: {shop.worker.said()[-3_000:]}")


@pytest.fixture(scope="module")
def shop(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaService,
    redis_server: RedisService,
) -> Iterator[DeployedShop]:
    """A worker, the first version, and two versions of other models."""
    folder, roles = tmp_path_factory.mktemp("shop"), (*COUNTING, "train")
    with deployed_shop(folder, kafka, redis_server, SETTINGS, roles=roles) as shop:
        for model, sign in (("better", 4.0), ("flipped", -4.0)):
            weights = (sign * TASTE).astype("<f4").tobytes()
            fields = {"normalisation": "none", "version": 10_000}
            shop.publish(model, weights=weights, **fields)
        yield shop


@pytest.mark.broker
def test_it_goes_back_by_itself_or_out_to_all(
    shop: DeployedShop, capsys: pytest.CaptureFixture[str]
) -> None:
    """One of flipped tastes is taken back; a better one rises, and is served to all."""
    assert shop.run("canary", "search", "--json") == 1
    assert json.loads(capsys.readouterr().out)["canary"] is None
    assert shop.run("canary", "search") == 1
    assert "nothing of 'search' is going out" in capsys.readouterr().err
    begin = ("promote", "search", "--canary", "--from")
    assert shop.run(*begin, "flipped@0.10000", "--why", "a trial") == 0
    assert "search 1.10000: goes out to 25 % of the sessions" in capsys.readouterr().out
    until(lambda: is_out(shop, "search@1.10000/1"))
    assert shop.ranker.pointer == Pointer(0, 0)
    assert shop.run(*begin, "better@0.10000") == 2
    assert "one canary at a time; search@1.10000 is" in capsys.readouterr().err

    shown = Shown(0, int(time.time() * 1_000) - 3_000_000)
    shown = shown_until(shop, shown, "")
    assert shop.run("canary", "search") == 1
    assert "the last one, search@1.10000, ended at" in capsys.readouterr().err
    assert shop.run(*begin, "flipped@0.10000") == 2
    assert "must have a reason to go out again" in capsys.readouterr().err
    assert shop.run("canary", "nobody") == 2
    assert "['search'] have" in capsys.readouterr().err
    first, second = shop.past(capsys)
    assert (first["what"], first["why"]) == ("canary", "a trial")
    assert first["evidence"] == {"from": "flipped@0.10000", "stage": 1, "share": 0.25}
    assert second["what"] == "canary withdrawn"
    assert second["evidence"]["high"] < 0.0
    assert second["why"].startswith("worse after ")

    assert shop.run(*begin, "better@0.10000") == 0
    until(lambda: is_out(shop, "search@2.10000/1"))
    shown = shown_until(shop, shown, "search@2.10000/2")
    capsys.readouterr()
    assert shop.run("canary", "search", "--json") == 0
    assert json.loads(capsys.readouterr().out)["canary"].startswith("search@")
    assert shop.run("canary", "search") == 0
    said = capsys.readouterr().out
    assert "search@2.10000 goes out beside 0.0: stage 2 of 2, 50 % of sessions" in said
    # Redis that was emptied has both again.
    assert shop.store.discard("search", Pointer(0, 0))
    fresh = Ranker("search", store=shop.store)
    until(lambda: fresh.refresh() or fresh.canary == "search@2.10000/2")
    shown_until(shop, shown, "")
    assert shop.ranker.pointer == Pointer(2, 10_000)
    assert shop.ranker.snapshot.intervention == "search@2.10000"
    *_, began, risen, last = shop.past(capsys)
    assert [began["what"], risen["what"], last["what"]] == [
        "canary", "canary", "promoted",
    ]  # fmt: skip
    assert last["version"] == "2.10000"
    assert last["evidence"]["low"] > -0.1
    assert last["evidence"]["canary_lists"] >= 200


@pytest.mark.broker
def test_an_operator_takes_it_back(
    shop: DeployedShop, capsys: pytest.CaptureFixture[str]
) -> None:
    """At once, with the reason; a second end finds nothing."""
    begin = ("promote", "search", "--canary", "--from", "flipped@0.10000")
    assert shop.run(*begin, "--force", "--why", "x") == 2
    assert "leave one of them out" in capsys.readouterr().err
    assert shop.run(*begin, "--why", "another trial") == 0
    until(lambda: bool(is_out(shop, "") or shop.ranker.canary))
    assert shop.run("canary", "search", "--end", "--why", "complaints") == 0
    assert "are served" in capsys.readouterr().out
    until(lambda: is_out(shop, ""))
    last = shop.past(capsys)[-1]
    assert (last["what"], last["why"]) == ("canary withdrawn", "complaints")
    assert shop.run("canary", "search", "--end") == 2
    assert "must have a canary to be ended" in capsys.readouterr().err
