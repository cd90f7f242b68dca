"""Bandits from end to end in process: looks, lists by their rewrites, and clicks."""

import base64

import numpy as np
import pytest

from models.arrays import Floats, Integers
from models.bandits.position_pie import PiePolicy, pie_policy, placements
from rankstream.configuration.bandits import BanditSettings
from rankstream.wire.topics import CLICKS
from streams.decisions import bandit_policies
from streams.decisions.bandit_sums import bandit_sums
from tests.snapshot_factory import snapshot
from tests.streams.decisions.bandit_shop import EXAMINATION, NAME, STEP_MS, BanditShop

PIE = BanditSettings(model="m", length=3)
RATES = np.array([0.9, 0.8, 0.7, 0.4, 0.35, 0.3, 0.2, 0.2, 0.1, 0.1])
LOOKS = (25, 15, 20, 40, 80, 160, 320, 340, *[250] * 12)
"""Lists between two looks: few at first, as at a query that few know."""


def regrets(rng: np.random.Generator) -> tuple[BanditShop, list[float]]:
    """Users of one query, and regret after 1,000 and after 4,000 lists."""
    shop = BanditShop(PIE, rng.permutation(RATES)[None])
    shop.look()
    found = []
    for n_lists in LOOKS:
        shop.show(n_lists, rng)
        shop.look()
        if len(shop.sent) in (1_000, 4_000):
            found.append(shop.regret)
    return shop, found


def shown_best(shop: BanditShop) -> list[float]:
    """Rates of the items that are put first, by falling estimate."""
    return [float(shop.rates[0][x]) for x in shop.decisions()["q0"].order[:3]]


def test_the_best_items_are_found_and_regret_hardly_grows() -> None:
    """Of one query; all lists bear one name, and none is by another policy."""
    shop, (first, last) = regrets(np.random.default_rng(14))
    assert shown_best(shop) == [0.9, 0.8, 0.7]
    assert last < 1.5 * first
    assert {each["intervention"] for each in shop.sent} == {f"{NAME}@1.0"}
    assert len({each.manifest.intervention for each in shop.rewrites}) == 1
    decided = shop.sent[40:]
    assert {each["policy"] for each in decided} == {"logged", "deterministic"}


def test_without_its_slot_it_stays_with_what_it_took_for_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same users: regret grows with the lists."""

    def without(
        clicks: Integers, shows: Integers, examination: Floats, n_lists: int
    ) -> PiePolicy:
        found = pie_policy(clicks, shows, examination, n_lists, 0.0)
        return found._replace(n_tried=0)

    monkeypatch.setattr(bandit_policies, "pie_policy", without)
    shop, (first, last) = regrets(np.random.default_rng(14))
    assert shown_best(shop) != [0.9, 0.8, 0.7]
    assert last > 3.0 * first


def test_a_list_logs_the_chances_that_it_was_drawn_with() -> None:
    """Those of PIE after what was counted at the last look."""
    rng = np.random.default_rng(6)
    shop = BanditShop(PIE, rng.permutation(RATES)[None])
    shop.look()
    shop.show(40, rng)
    for n_lists in (30, 60):
        shop.look()
        sums = bandit_sums(shop.statistics(), NAME)
        counted = sums.by_rank(0, 3)
        policy = pie_policy(*counted, EXAMINATION, int(sums.lists[0]))
        assert policy.n_tried > 0
        shop.show(n_lists, rng)
        for event in shop.sent[-n_lists:]:
            raw = np.frombuffer(base64.b64decode(event["exposures"]), "<f4")
            by_item = raw.reshape(-1, 3)[np.argsort(event["candidates"])]
            np.testing.assert_allclose(by_item, placements(policy), atol=1e-6)


def test_lists_of_another_length_have_no_slot() -> None:
    """They are by the order alone, and learn nothing of what is below them."""
    rng = np.random.default_rng(6)
    shop = BanditShop(PIE, RATES[None], cutoff=2)
    shop.look()
    shop.show(60, rng)
    shop.look()
    shop.show(40, rng)
    order = shop.decisions()["q0"].order
    shown = {tuple(each["shown"]) for each in shop.sent[-40:]}
    assert shown == {tuple(shop.items[x] for x in order[:2])}


@pytest.mark.parametrize("n_items", [1, 2, 3])
def test_where_all_candidates_are_shown_nothing_is_tried(n_items: int) -> None:
    """One candidate, and lists that are longer than there are candidates."""
    rng = np.random.default_rng(3)
    shop = BanditShop(PIE, RATES[None, :n_items])
    for _ in range(3):
        shop.look()
        shop.show(60, rng)
    decision = shop.decisions()["q0"]
    assert decision.slot is None
    assert sorted(decision.order) == [*range(n_items)]
    assert {len(each["shown"]) for each in shop.sent} == {n_items}


def test_before_its_first_list_of_a_query_the_model_serves() -> None:
    """Under the name of the bandit; the query is decided once such a list counts."""
    rng = np.random.default_rng(3)
    shop = BanditShop(PIE, np.stack([RATES] * 2))
    shop.look()
    assert shop.decisions() == {}
    shop.show(60, rng)
    assert {each["policy"] for each in shop.sent} == {"plackett-luce"}
    shop.look()
    assert {*shop.decisions()} == {"q0", "q1"}
    assert all(each.lists > 10 for each in shop.decisions().values())
    shop.show(10, rng)
    assert {each["policy"] for each in shop.sent[60:]} == {"logged"}


def test_a_click_on_what_the_slot_did_not_draw_counts_for_nothing() -> None:
    """It names an item that the list did not show."""
    rng = np.random.default_rng(3)
    shop = BanditShop(PIE, RATES[None])
    shop.look()
    shop.show(60, rng)
    shop.look()
    slot = shop.decisions()["q0"].slot
    assert slot is not None
    shop.show(1, rng)
    shown = shop.sent[-1]["shown"]
    other = next(x for x in (shop.items[n] for n in slot.tried) if x not in shown)
    click = shop.ranker.click_event(
        "i60", at_ms=shop.now_ms - STEP_MS + 50, query_id="q0", item_id=other
    )
    shop.pipeline.send(CLICKS, click)
    shop.pipeline.end()
    sums = bandit_sums(shop.statistics(), NAME)
    clicked = dict.fromkeys(shop.items, 0)
    for each in shop.sent:
        for item, is_clicked in zip(each["shown"], each["clicked"], strict=True):
            clicked[item] += is_clicked
    assert sums.lists.tolist() == [61]
    assert sums.by_rank(0, 3)[0].sum(axis=1).tolist() == [*clicked.values()]
    assert shop.pipeline.counters()["dead_letter"] == 1


def test_a_rollback_of_the_model_rests_the_bandit() -> None:
    """At once, until a rewrite stands on what is served."""
    rng = np.random.default_rng(3)
    shop = BanditShop(PIE, RATES[None])
    shop.look()
    shop.show(60, rng)
    shop.look()
    shop.store.serve(2, epoch=1)
    shop.ranker.refresh()
    assert shop.ranker.rewrite == 0
    shop.show(5, rng)
    assert {each["policy"] for each in shop.sent[-5:]} == {"plackett-luce"}
    assert not any("intervention" in each for each in shop.sent[-5:])
    shop.served = snapshot(2, epoch=1)
    shop.look()
    shop.show(5, rng)
    (name,) = {each["intervention"] for each in shop.sent[-5:]}
    assert name.startswith(f"{NAME}@3.")
    assert shop.decisions()["q0"].lists > 30  # those of its other name
