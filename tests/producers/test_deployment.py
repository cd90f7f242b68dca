"""How much may be deployed in an era."""

import pytest

from producers.deployment import deployments_among
from producers.topic_reader import Record
from rankstream.deployment_rules import DeploymentRefused, check_room
from rankstream.settings import LimitSettings, ModelSettings, Settings, TimeSettings
from rankstream.wire.deployments import SCHEMA, Deployment, deployment_record
from tests.snapshot_factory import envelope

SETTINGS = Settings(
    limits=LimitSettings(interventions=3),
    time=TimeSettings(keep_ms=86_400_000),
    models={"m": ModelSettings(features=3)},
)
NOW_MS = 86_400_000 + 5


def test_nothing_is_deployed_beyond_what_statistics_keep_apart() -> None:
    """The model itself is one of the names; the next era begins with what is served."""
    made = [Deployment(SCHEMA, "m@1.1", NOW_MS)]
    check_room(SETTINGS, made, at_ms=NOW_MS)
    made.append(Deployment(SCHEMA, "m@2.7", NOW_MS + 1))
    with pytest.raises(
        DeploymentRefused, match=r"3, as .* this one has 3: .*01-03 00:"
    ):
        check_room(SETTINGS, made, at_ms=NOW_MS + 2)
    check_room(SETTINGS, made, at_ms=NOW_MS + 86_400_000)


def test_deployments_are_found_among_snapshots_and_all_are_read() -> None:
    """One that cannot be read is refused: there would be room for one too many."""
    noted, packed = deployment_record("m@1.1", 5)
    kept = [
        Record(0, 0, 0, b"m/0.1", envelope(1), ()),
        Record(0, 1, 0, b"m/0.1", None, ()),
        Record(0, 2, 0, noted, packed, ()),
    ]
    assert deployments_among(kept) == [Deployment(SCHEMA, "m@1.1", 5)]
    for wrong in (b"", b"\x93\x02\xa1x\x05", b"\x93\x01\xa1x\xa1y"):
        with pytest.raises(DeploymentRefused, match=r"readable; .* at offset 9: run"):
            deployments_among([*kept, Record(0, 9, 0, noted, wrong, ())])
