"""How much may be deployed in an era."""

import pytest

from rankstream.deployment_rules import DeploymentRefused, check_room
from rankstream.settings import LimitSettings, ModelSettings, Settings, TimeSettings
from rankstream.wire.models.deployments import SCHEMA, Deployment

SETTINGS = Settings(
    limits=LimitSettings(interventions=4),
    time=TimeSettings(keep_ms=86_400_000),
    models={"m": ModelSettings(features=3)},
)
NOW_MS = 86_400_000 + 5


def test_nothing_is_deployed_beyond_what_statistics_keep_apart() -> None:
    """The model itself is one of the names; the next era begins with what is served."""
    made = [Deployment(SCHEMA, f"m@1.{n}", NOW_MS) for n in range(2)]
    check_room(SETTINGS, made, at_ms=NOW_MS)
    made.append(Deployment(SCHEMA, "m@2.7", NOW_MS + 1))
    with pytest.raises(
        DeploymentRefused, match=r"4, as .* this one has 4: .*01-03 00:"
    ):
        check_room(SETTINGS, made, at_ms=NOW_MS + 2)
    check_room(SETTINGS, made, at_ms=NOW_MS + 86_400_000)
