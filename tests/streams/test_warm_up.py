"""What a worker compiles before it takes a partition."""

import pytest

from models.interleaving.registry import METHODS
from models.learners.registry import LEARNERS
from rankstream.settings import (
    ExperimentSettings,
    KafkaSettings,
    ModelSettings,
    Settings,
)
from streams.warm_up import warm_up


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(
            kafka=KafkaSettings(partitions=3, learner_partitions=2),
            models={
                "linear": ModelSettings(features=3),
                "neural": ModelSettings(features=2, kind="neural", hidden=[4]),
            },
        ),
        *(
            Settings(models={"m": ModelSettings(features=2, learner=name)})
            for name in LEARNERS
        ),
        *(
            Settings(
                experiments={
                    "x": ExperimentSettings(rankers={"a": "", "b": ""}, method=name)
                }
            )
            for name in METHODS
        ),
    ],
)
def test_every_kind_of_stage_is_warmed(settings):
    """Made-up events go through whatever the settings name; nothing refuses them."""
    warm_up(settings)
