"""Lists by trees over HTTP, and the events that tell of them."""

import base64
from typing import Any

import msgspec
import numpy as np

from rankstream.ranker import Ranker
from rankstream.settings import ModelSettings
from rankstream.wire.topics import QUERIES
from tests.forest_factory import drawn_forest, packed, scored_by_hand
from tests.served import served, settings_of
from tests.snapshot_factory import envelope

N_FEATURES = 6
MODEL = ModelSettings(
    features=N_FEATURES, kind="trees", normalisation="none", versions="promoted"
)
GIVEN = envelope(2, kind="trees", n_features=N_FEATURES, weights=packed())


def test_features_may_be_missing_in_a_request() -> None:
    """As NaN in base64; the list is logged without features then, and with scores."""
    settings = msgspec.structs.replace(settings_of(), models={"m": MODEL})
    features = np.random.default_rng(2).normal(size=(5, N_FEATURES)).astype("<f4")
    with served(settings, rankers={"m": Ranker("m", source=lambda: GIVEN)}) as server:
        for ranker in server.parts.rankers.values():
            ranker.load()
        for is_whole in (True, False):
            if not is_whole:
                features[1, :4] = np.nan
            items = [
                {"id": f"d{row}", "features": base64.b64encode(values).decode()}
                for row, values in enumerate(features)
            ]
            asked: dict[str, Any] = {
                "model": "m", "query_id": "shoes", "items": items, "k": 5,
                "policy": "deterministic",
            }  # fmt: skip
            answer = server.ask("/v1/rank", asked)
            assert answer.status == 200, answer.body
            scores = np.array(scored_by_hand(drawn_forest(1), features), np.float32)
            order = np.argsort(-scores, kind="stable")
            assert answer.json["ranking"] == [f"d{row}" for row in order]
            (event,) = (
                each for each in server.events(QUERIES)
                if each["impression_id"] == answer.json["impression_id"]
            )  # fmt: skip
            logged = np.frombuffer(base64.b64decode(event["scores"]), "<f4")
            assert logged.tolist() == scores.tolist()
            assert ("features" in event) == is_whole
