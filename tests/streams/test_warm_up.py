"""What a worker compiles before it takes a partition."""

import subprocess
import sys

import pytest

from models.interleaving.registry import METHODS
from models.learners.registry import LEARNERS
from rankstream.settings import (
    ExperimentSettings,
    KafkaSettings,
    ModelSettings,
    Settings,
)
from streams.topology import STAGES


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
    """Made-up lists go through whatever the settings name; nothing refuses them."""
    for kind in STAGES:
        if kind.warm_up is not None:
            kind.warm_up(settings)


ONLY_FOLD = """
import sys
from rankstream.settings import Settings
from streams.topology import STAGES

(kind,) = (kind for kind in STAGES if kind.name == "fold")
kind.warm_up(Settings())
kind.build(Settings(), 0).counters()
assert "numba" not in sys.modules, "numba"
assert "scipy" not in sys.modules, "scipy"
"""


def test_a_fold_without_experiments_compiles_nothing() -> None:
    """It does not even load what compiles."""
    done = subprocess.run(
        [sys.executable, "-c", ONLY_FOLD], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
