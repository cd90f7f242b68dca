"""What rankers of a server expect, by whose decisions they rank, and what it tells."""

import msgspec
import numpy as np
import pytest

from rankstream.operations.serving.application import parts_of
from rankstream.operations.serving.matrices import exposures_of
from rankstream.ranker import Ranker
from rankstream.settings import BanditSettings, DecisionSettings, ModelSettings
from rankstream.snapshots import SnapshotError, features_hash
from rankstream.wire.decision_shards import Slot
from tests.decision_factory import ITEMS, decision, rewrite
from tests.held_decisions import Held
from tests.served import settings_of
from tests.snapshot_factory import snapshot


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


def test_a_model_of_named_features_is_served_with_no_others() -> None:
    """One without names with as many, whatever they are called."""
    names = ["bm25", "age", "ctr"]
    named = ModelSettings(features=3, feature_names=names)
    models = {"named": named, "numbered": ModelSettings(features=3)}
    settings = msgspec.structs.replace(settings_of(), models=models)
    rankers = parts_of(settings).rankers
    own, turned = (
        snapshot(feature_names=each, features_hash=features_hash(each))
        for each in (names, names[::-1])
    )
    with pytest.raises(SnapshotError, match="another list of 3, beginning ctr"):
        rankers["named"]._taken.take(turned)
    assert rankers["named"]._taken.take(own) == (True, None)
    with pytest.raises(SnapshotError, match="features"):
        rankers["numbered"]._taken.take(snapshot(n_features=4))
    assert rankers["numbered"]._taken.take(turned) == (True, None)


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
