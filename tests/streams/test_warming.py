"""What a worker compiles before it takes a partition."""

import pytest

from rankstream.settings import KafkaSettings, ModelSettings, Settings
from streams.warming import warm_up


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
    ],
)
def test_every_kind_of_stage_is_warmed(settings):
    """Made-up events go through whatever the settings name; nothing refuses them."""
    warm_up(settings)
