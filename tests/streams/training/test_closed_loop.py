"""A model that shows lists, is trained from their clicks, and shows better ones."""

import numpy as np

from tests.streams.training.shop import Shop, model_of, queries_of, settings_of

N_RUNS, N_LISTS, FIRST, RECENT = 5, 900, 250, 150


def test_interventions_by_themselves_raise_what_is_shown() -> None:
    """Paired over runs: by more than two standard errors, on lists that users saw."""
    model = model_of(
        first=FIRST, last=700, interventions=3, least_support=1.0, temperature=0.5
    )
    gains, orders = [], []
    for seed in range(N_RUNS):
        shop = Shop(settings_of({"m": model}), data=queries_of(seed=seed))
        start = shop.ndcg(shop.snapshot())
        shop.show(N_LISTS, np.random.default_rng(seed))
        assert len(shop.trainer.runs) == 3
        assert not shop.trainer.refusals
        gains.append(
            np.mean(shop.shown_ndcg[-RECENT:]) - np.mean(shop.shown_ndcg[:FIRST])
        )
        orders.append(shop.ndcg(shop.snapshot()) - start)
    for found in (gains, orders):
        error = np.std(found, ddof=1) / np.sqrt(N_RUNS)
        assert np.mean(found) > 2 * error
        assert np.mean(found) > 0.1


def test_a_model_learns_from_the_lists_of_another() -> None:
    """With what those lists logged; its own are not even shown."""
    models = {
        "search": model_of(),
        "shadow": model_of(after=[400, 700], learns_from=["search"], least_support=1.0),
    }
    shop = Shop(settings_of(models), shown="search")
    start = shop.ndcg(shop.snapshot("shadow"))
    shop.show(900, np.random.default_rng(1))
    assert [run.model for run in shop.trainer.runs] == ["shadow"] * 2
    assert shop.snapshot("search").version == 0
    assert shop.ndcg(shop.snapshot("shadow")) > start + 0.1
    alone = Shop(settings_of({"search": model_of(after=[400, 700], least_support=1)}))
    # Lists of a policy that stays are the same, whoever learns from them.
    alone.trainer.flush = list  # type: ignore[method-assign]
    alone.show(900, np.random.default_rng(1))
    alone.pipeline.end()
    shop.pipeline.end()
    shadow = shop.trainer.train("shadow").run
    own = alone.trainer.train("search").run
    assert shadow.sizes == own.sizes
    assert (shadow.features, shadow.curve) == (own.features, own.curve)
