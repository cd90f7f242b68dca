"""What was deployed under a name of its own, and how many names an era has room for.

Each deployment is a record of the topic `snapshots` beside the snapshot itself, which
the next one of its model replaces there:

    key    MODEL@EPOCH.VERSION/deployed
    value  MessagePack array: schema, intervention, at_ms, groups where they are known
"""

from collections.abc import Iterable, Sequence

import msgspec

from rankstream.wire.envelope import MAGIC, Pointer, is_pointer, pointer_from
from rankstream.wire.schemas import SchemaRefused, check_schema, decoded

SCHEMA = 1

_SUFFIX = b"/deployed"

_encode = msgspec.msgpack.Encoder().encode


class Deployment(msgspec.Struct, frozen=True, array_like=True):
    """A snapshot was deployed as an intervention, at a time of the deployer's clock.

    `groups` are those of the snapshot: whose clicks it came from, empty where that is
    not known.
    """

    schema: int
    intervention: str
    at_ms: int
    groups: list[int] = []

    @property
    def pointer(self) -> Pointer:
        """Epoch and version.

        Raises
        ------
        SnapshotError
            Where the name has none.
        """
        return pointer_from(self.intervention.rpartition("@")[2].encode())

    @property
    def model(self) -> str:
        """The model that lists of this intervention name."""
        return self.intervention.rpartition("@")[0]


_decode = msgspec.msgpack.Decoder(Deployment).decode


def deployment_record(
    intervention: str, at_ms: int, groups: Sequence[int] = ()
) -> tuple[bytes, bytes]:
    """Key and value of the record of one; groups are left out where there are none."""
    fields = [SCHEMA, intervention, at_ms, *([list(groups)] if groups else [])]
    return intervention.encode() + _SUFFIX, _encode(fields)


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
    each model when it began: the last two, as one of them may be a canary.

    Parameters
    ----------
    models
        Names of those that learn online.
    era
        Counted from 1970, each `keep_ms` long.
    """
    found = set(models)
    before: dict[str, list[Deployment]] = {}
    for each in sorted(deployments, key=lambda each: each.at_ms):
        if each.at_ms // keep_ms == era:
            found.add(each.intervention)
        elif each.at_ms // keep_ms < era:
            before.setdefault(each.model, []).append(each)
    return found | {each.intervention for x in before.values() for each in x[-2:]}


def fitted_groups(
    records: Iterable[tuple[bytes, bytes | None]],
) -> dict[str, frozenset[int]]:
    """Groups whose clicks interventions came from, as records of `snapshots` say.

    Of an intervention that is not among them nothing is known: a record that another
    release wrote is passed over.
    """
    found = {}
    for key, value in records:
        if value is None or not is_deployment(key, value):
            continue
        try:
            one = decode_deployment(value)
        except (SchemaRefused, msgspec.DecodeError):
            continue
        if one.groups:
            found[one.intervention] = frozenset(one.groups)
    return found


def learned_models(records: Iterable[tuple[bytes, bytes | None]]) -> frozenset[str]:
    """Models of which records of `snapshots` have a version that was learned online.

    Also those that no settings name any more. A model that is only trained keeps
    version 0, which no click has moved.
    """
    found = set()
    for key, value in records:
        model, _, version = key.rpartition(b"/")
        place = is_pointer(version)
        if value and value.startswith(MAGIC) and place and int(place[2]):
            found.add(model.decode(errors="replace"))
    return frozenset(found)
