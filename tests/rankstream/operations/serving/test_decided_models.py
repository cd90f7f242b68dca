"""Rankers of a server serve the rule or the bandit of their model."""

import msgspec

from rankstream.operations.serving.application import parts_of
from rankstream.settings import BanditSettings, DecisionSettings, ModelSettings
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
