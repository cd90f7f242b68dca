"""What is valued: items that nobody saw, and rankers on clicks of others."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rankstream
from streams.estimation.question import LOGGED
from tests.clicked_tables import N_ITEMS, N_QUERIES, N_RANKS, Shop, shop

EXAMINATION = [1.0 / rank for rank in range(1, N_RANKS + 1)]


def best_of(own: Shop, first: list[str]) -> dict[str, list[str]]:
    """Rankings of all queries, the most relevant item behind those that are given."""
    names = [*own.relevance]
    found = {}
    for query in range(N_QUERIES):
        items = names[query * N_ITEMS : (query + 1) * N_ITEMS]
        ranked = sorted(items, key=lambda item: -own.relevance[item])
        found[f"query {query}"] = [*first, *ranked]
    return found


def test_new_items_keep_their_ranks_with_features_too(
    own: Shop, log: rankstream.Log
) -> None:
    """Features make candidates of what a query showed; what is none was never seen."""
    policies = {
        "best": best_of(own, []),
        "new": best_of(own, ["new 1", "new 2"]),
        "all new": best_of(own, [f"new {rank}" for rank in range(N_RANKS)]),
    }
    plain = rankstream.read(own.clicks, progress=False)
    for each in (plain, log):
        rows = {
            row.name: row for row in each.evaluate(policies, examination=EXAMINATION)
        }
        share = sum(EXAMINATION[:2]) / sum(EXAMINATION)
        assert rows["best"].unseen == pytest.approx(0.0)
        assert rows["new"].unseen == pytest.approx(share)
        assert rows["all new"].unseen == pytest.approx(1.0)
        assert rows["all new"].reward == pytest.approx(0.0)
        assert rows["new"].reward < rows[LOGGED].reward < rows["best"].reward


def test_a_ranker_is_valued_on_groups_that_it_has_not_learned_from(
    log: rankstream.Log, ranker: rankstream.ClickRanker, tmp_path: Path
) -> None:
    """Whatever it is called, and read from its file too."""
    learned = {*ranker.snapshot_.groups}
    n_groups = log.counted.source.statistics.counted[0].groups
    assert learned
    file = ranker.save(tmp_path / "ranker.snapshot")
    for policy in (ranker, file, rankstream.load(file)):
        found = log.evaluate({"new": policy})
        assert {*found.to_dict()["groups"]} == {*range(n_groups)} - learned
        assert f"'new' was chosen from clicks of {len(learned)} groups" in repr(found)
    rankings = log.evaluate({"new": {"query 1": ["item 7", "item 6"]}})
    assert len(rankings.to_dict()["groups"]) == n_groups


def test_a_ranker_of_noise_is_not_better(own: Shop) -> None:
    """Where all items are liked alike, it is worth what was logged."""
    verdicts = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        clicks = own.clicks
        looked = np.array(EXAMINATION)[np.array(clicks["position"]) - 1]
        clicked = rng.random(len(clicks)) < 0.5 * looked
        place = clicks.column_names.index("clicked")
        clicks = clicks.set_column(place, "clicked", pa.array(clicked))
        noise = {f"n{n}": rng.normal(size=len(own.relevance)) for n in range(25)}
        products = pa.table({"item": [*own.relevance], **noise})
        log = rankstream.read(clicks, features=products, progress=False)
        ranker = log.train(epochs=10, examination=EXAMINATION)
        found = log.evaluate({"new": ranker}, temperature=0, examination=EXAMINATION)
        verdicts.append(found.rows[1].verdict)
    assert "better" not in verdicts


@pytest.mark.parametrize("temperature", [-1.0, float("nan"), float("inf")])
def test_a_temperature_below_0_is_refused(
    log: rankstream.Log, temperature: float
) -> None:
    """It would turn the ranking round."""
    with pytest.raises(ValueError, match="temperature must be 0 or above"):
        log.evaluate({"new": {"query 1": ["item 6"]}}, temperature=temperature)


def test_without_a_known_curve_there_are_no_intervals(
    own: Shop, log: rankstream.Log
) -> None:
    """Of items that were shown seldom ratios are too large, and all fits as far off."""
    policies = {"best": best_of(own, [])}
    for found in (log.evaluate(policies), log.evaluate(policies, estimator="naive")):
        assert all(math.isnan(row.low) and not row.verdict for row in found)
        assert "no intervals: items were shown too seldom for the curve" in repr(found)
        assert "give examination=[1.0, 0.6, ...]" in repr(found)
    known = log.evaluate(policies, examination=EXAMINATION)
    assert [row.verdict for row in known] == ["", "better"]
    many = rankstream.read(shop(n_lists=12_000).clicks, progress=False)
    assert [row.verdict for row in many.evaluate(policies)] == ["", "better"]
