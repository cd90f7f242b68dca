"""Names that lists of an era may bear."""

import pytest

from rankstream.wire.deployments import (
    SCHEMA,
    Deployment,
    decode_deployment,
    deployment_record,
    interventions_of_era,
    is_deployment,
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


def test_an_era_has_what_was_served_when_it_began_and_what_came() -> None:
    """Models that learn, the last deployment of each before, and those within."""
    made = [
        Deployment(SCHEMA, name, at_ms)
        for name, at_ms in (
            ("b@1.1", 100),
            ("a@1.1", 2_500),
            ("a@2.1", 2_900),
            ("a@3.1", 3_000),
            ("a@4.1", 3_999),
            ("a@5.1", 4_000),
        )
    ]
    for order in (made, made[::-1]):
        found = interventions_of_era(order, ["a", "c"], 3, KEEP_MS)
        assert found == {"a", "c", "b@1.1", "a@2.1", "a@3.1", "a@4.1"}
    assert interventions_of_era(made, [], 0, KEEP_MS) == {"b@1.1"}
