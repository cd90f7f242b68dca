"""What was deployed under a name of its own, and how many names an era has room for.

Each deployment is a record of the topic `snapshots` beside the snapshot itself, which
the next one of its model replaces there:

    key    MODEL@EPOCH.VERSION/deployed
    value  MessagePack array: schema, intervention, at_ms
"""

from collections.abc import Iterable

import msgspec

from rankstream.wire.envelope import MAGIC
from rankstream.wire.schemas import check_schema, decoded

SCHEMA = 1

_SUFFIX = b"/deployed"

_encode = msgspec.msgpack.Encoder().encode


class Deployment(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot was deployed as an intervention, at a time of the deployer's clock."""

    schema: int
    intervention: str
    at_ms: int

    @property
    def model(self) -> str:
        """The model that lists of this intervention name."""
        return self.intervention.rpartition("@")[0]


_decode = msgspec.msgpack.Decoder(Deployment).decode


def deployment_record(intervention: str, at_ms: int) -> tuple[bytes, bytes]:
    """Key and value of the record of one."""
    value = _encode(Deployment(SCHEMA, intervention, at_ms))
    return intervention.encode() + _SUFFIX, value


def is_deployment(key: bytes, value: bytes) -> bool:
    """Whether a record of `snapshots` is one: models may have any name, so both."""
    return key.endswith(_SUFFIX) and not value.startswith(MAGIC)


def decode_deployment(value: bytes) -> Deployment:
    """What `deployment_record` made.

    Raises
    ------
    SchemaRefused, msgspec.DecodeError
        Where another release wrote it, or something else.
    """
    check_schema(value, SCHEMA, "a deployment", "snapshots")
    return decoded(_decode, value)


def interventions_of_era(
    deployments: Iterable[Deployment], models: Iterable[str], era: int, keep_ms: int
) -> set[str]:
    """All names that lists shown in an era may have been logged under, as far as known.

    The models that learn online, what was deployed in the era, and what was served of
    each model when it began.

    Parameters
    ----------
    models
        Names of those that learn online.
    era
        Counted from 1970, each `keep_ms` long.
    """
    found = set(models)
    last_before: dict[str, Deployment] = {}
    for each in sorted(deployments, key=lambda each: each.at_ms):
        if each.at_ms // keep_ms == era:
            found.add(each.intervention)
        elif each.at_ms // keep_ms < era:
            last_before[each.model] = each
    return found | {each.intervention for each in last_before.values()}
