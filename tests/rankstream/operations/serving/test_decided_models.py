"""A server ranks by the rule or the bandit of a model, and tells its exposures."""

import msgspec
import numpy as np

from rankstream.operations.serving.application import parts_of
from rankstream.operations.serving.matrices import exposures_of
from rankstream.ranker import Ranker
from rankstream.settings import BanditSettings, DecisionSettings, ModelSettings
from rankstream.wire.decision_shards import Slot
from tests.decision_factory import ITEMS, decision, rewrite
from tests.held_decisions import Held
from tests.served import settings_of


def test_each_model_has_the_decisions_that_its_rankers_serve() -> None:
    """And none where nothing is decided for its lists."""
    model = ModelSettings(features=3, versions="promoted")
    settings = msgspec.structs.replace(
        settings_of(),
        models=dict.fromkeys(("search", "safe", "shelf"), model),
        decisions={"orders": DecisionSettings(general="search", logging="safe")},
        bandits={"best": BanditSettings(model="shelf", policy="cascade")},
    )
    rankers = parts_of(settings).rankers
    followed = {name: each._decisions for name, each in rankers.items()}
    told = {
        name: str(each and each.misuse(None, [])) for name, each in followed.items()
    }
    assert "with decisions 'orders'" in told["search"]
    assert "with decisions 'best'" in told["shelf"]
    assert followed["safe"] is None


def test_exposures_of_a_decided_list_are_those_that_are_logged() -> None:
    """Whatever the model scores; also where nothing is drawn."""
    sure = decision()
    slot = decision(order=[2, 0, 1, 3, 4, 5], slot=Slot(3, 0.5, [5]))
    held = Held(rewrite(1, {"sure": sure, "slot": slot}))
    ranker = Ranker("m", store=held, decisions="rule")
    ranker.load()
    for query, third in (("sure", {3: 1.0}), ("slot", {1: 0.5, 5: 0.5})):
        ranking = ranker.rank(np.eye(6, 3), cutoff=3, query_id=query, items=ITEMS)
        exposures = exposures_of(ranking)
        assert exposures[:, 2].tolist() == [third.get(row, 0.0) for row in range(6)]
        assert exposures.sum(axis=0).tolist() == [1.0, 1.0, 1.0]
