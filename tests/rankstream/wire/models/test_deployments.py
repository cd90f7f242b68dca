"""Names that lists of an era may bear."""

import pytest

from rankstream.wire.models.deployments import (
    SCHEMA,
    Deployment,
    decode_deployment,
    deployment_record,
    fitted_groups,
    interventions_of_era,
    is_deployment,
    learned_models,
)
from rankstream.wire.schemas import SchemaRefused
from tests.snapshot_factory import envelope

KEEP_MS = 1_000


def test_a_record_says_what_was_deployed_and_when() -> None:
    """And no snapshot is taken for one, whatever its model is called."""
    key, value = deployment_record("shop@2@1.5", 77)
    assert key == b"shop@2@1.5/deployed"
    assert is_deployment(key, value)
    assert decode_deployment(value) == Deployment(SCHEMA, "shop@2@1.5", 77)
    assert decode_deployment(value).model == "shop@2"
    assert not is_deployment(b"a/deployed", envelope(1, model="a/deployed"))
    with pytest.raises(SchemaRefused):
        decode_deployment(b"\x93\x02" + value[2:])


def test_groups_are_of_deployments_that_say_them() -> None:
    """What is not known, not readable or gone is not there; no groups, no bytes."""
    key, value = deployment_record("m@1.5", 77, [3, 0])
    assert decode_deployment(value).groups == [3, 0]
    without = deployment_record("m@2.5", 78)
    assert without == deployment_record("m@2.5", 78, [])
    assert without[1] == b"\x93\x01\xa5m@2.5\x4e"
    unreadable = b"m@3.5/deployed", b"\x94\x02" + value[2:]
    records = [(key, value), without, unreadable, (b"m/0.1", envelope(1))]
    assert fitted_groups(records) == {"m@1.5": frozenset({0, 3})}
    assert fitted_groups([(key, None)]) == {}


def test_models_that_learned_are_told_by_their_versions() -> None:
    """Not by version 0, which no click moved, nor by what was deployed."""
    records = [
        (b"m/0.0", envelope(0)),
        (b"m/0.12", envelope(12)),
        (b"a/b/0.7", envelope(7, model="a/b")),
        (b"trained/0.0", envelope(0, model="trained")),
        (b"trained", envelope(5, model="trained", epoch=1)),
        (b"gone/0.3", None),
        (b"m/follow", envelope(12, epoch=2)),
        deployment_record("other@1.5", 77),
    ]
    assert learned_models(records) == {"m", "a/b"}


def test_an_era_has_what_was_served_when_it_began_and_what_came() -> None:
    """Models that learn, the last two of each before, and those within.

    Of the last two one may be a canary, and the other what all others are served.
    """
    made = [
        Deployment(SCHEMA, name, at_ms)
        for name, at_ms in (
            ("b@1.1", 100),
            ("a@0.9", 2_400),
            ("a@1.1", 2_500),
            ("a@2.1", 2_900),
            ("a@3.1", 3_000),
            ("a@4.1", 3_999),
            ("a@5.1", 4_000),
        )
    ]
    for order in (made, made[::-1]):
        found = interventions_of_era(order, ["a", "c"], 3, KEEP_MS)
        assert found == {
            "a", "c", "b@1.1", "a@1.1", "a@2.1", "a@3.1", "a@4.1",
        }  # fmt: skip
    assert interventions_of_era(made, [], 0, KEEP_MS) == {"b@1.1"}
