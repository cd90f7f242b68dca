"""What begins a canary, as records."""

from rankstream.configuration.canary import CanarySettings
from rankstream.settings import ModelSettings, Settings
from rankstream.snapshots import decode_snapshot
from rankstream.wire.models.canaries import decode_canary
from rankstream.wire.models.deployments import decode_deployment, is_deployment
from streams.kafka.deployment.canary_change import Decided, begun
from streams.training.model_records import ModelRecords
from tests.snapshot_factory import envelope

SETTINGS = Settings(models={"m": ModelSettings(features=3, versions="promoted")})


def test_what_all_are_served_is_noted_again_beside_it() -> None:
    """The last two names that a model was deployed by are those that go on."""
    records = ModelRecords(frozenset({"m"}))
    records.take_snapshot(b"m", envelope(4, epoch=2, intervention="m@2.4"))
    candidate = decode_snapshot(envelope(7, epoch=2))
    _, outputs = begun(
        SETTINGS, records, candidate, CanarySettings().rules(), Decided("ann")
    )
    noted = [
        decode_deployment(each.value).intervention
        for each in outputs
        if each.value is not None and is_deployment(each.key or b"", each.value)
    ]
    assert noted == ["m@2.4", "m@3.7"]
    canary = decode_canary(outputs[-1].value or b"")
    assert (canary.intervention, canary.before) == ("m@3.7", "2.4")
