"""Canaries for tests: everything has a default, everything can be set."""

from typing import Any

from rankstream.wire.models.canaries import SCHEMA, Canary, CanaryRules, encode_canary
from tests.snapshot_factory import envelope

RULES = CanaryRules([0.01, 0.1, 0.5], 10_000, 100, 0.05, 0.0)


def canary(
    version: int = 9, *, epoch: int = 0, model: str = "m", **fields: Any
) -> Canary:
    """One of `EPOCH.VERSION`; what `snapshot` has may be set of its snapshot too."""
    name = f"{model}@{epoch}.{version}"
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "intervention": name,
        "stage": 1,
        "share": 0.5,
        "before": "0.1",
        "begun_ms": 1_700_000_000_000,
        "rules": RULES,
    }
    own = {key: fields.pop(key) for key in list(fields) if key in values}
    values["envelope"] = fields.pop("envelope", None) or envelope(
        version, epoch=epoch, model=model, **({"intervention": name} | fields)
    )
    return Canary(**(values | own))


def canary_record(version: int = 9, **fields: Any) -> bytes:
    """The value of its record."""
    return encode_canary(canary(version, **fields))
