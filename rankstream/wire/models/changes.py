"""What became of a model, change by change: its history on the topic `snapshots`.

Each is a record under a key of its own, so that compaction keeps them all:

    key    MODEL/changed/NUMBER, NUMBER from 1 without a gap
    value  MessagePack array: schema, number, at_ms, what, version, before, by, why,
           evidence

It is written in the transaction of the snapshot that it is about. Who writes a model's
changes has fenced all others and has read those before: see
`streams.kafka.deployment.model_log`.
"""

import contextlib
import re
from typing import Any, NamedTuple

import msgspec

from rankstream.wire.envelope import MAGIC
from rankstream.wire.schemas import SchemaRefused, check_schema, decoded

SCHEMA = 1

TRAINED = "trained"
ROLLED_BACK = "rolled back"
FOLLOWED = "followed again"
PROMOTED = "promoted"
IMPORTED = "imported"
LOOKED = "looked"
"""Evidence was looked at, and what is served stays: looks are counted by it."""

CANARY = "canary"
"""A share of sessions is served a version now, or a larger one; `version` is that of
the canary, and what all others are served stays."""

WITHDRAWN = "canary withdrawn"
"""It is worse for sure, or an operator took it back: all are served what was served."""

UNDECIDED = "canary undecided"
"""It ended by what was planned, without a verdict; all are served what was served."""

STAY = frozenset({LOOKED, CANARY, WITHDRAWN, UNDECIDED})
"""What is served of all sessions that are in no canary stays."""

_KEY = re.compile(rb"(.+)/changed/([1-9][0-9]{0,14})", re.DOTALL)

_encode = msgspec.msgpack.Encoder().encode


class Change(msgspec.Struct, frozen=True, array_like=True):
    """One change of what is served of a model, or a look that changed nothing.

    Attributes
    ----------
    number
        Of the model's changes, from 1.
    at_ms
        By the clock of who made it.
    what
        One of the words of this module.
    version
        EPOCH.VERSION that is served by it; of a look that which is served still, of a
        canary its own.
    before
        EPOCH.VERSION that was served until then; empty of the first.
    by, why
        Who made it, and the reason that was given; `why` may be empty.
    evidence
        What it was decided on: names and figures.
    """

    schema: int
    number: int
    at_ms: int
    what: str
    version: str
    before: str
    by: str
    why: str = ""
    evidence: dict[str, Any] = {}


_decode = msgspec.msgpack.Decoder(Change).decode


def change_record(model: str, change: Change) -> tuple[bytes, bytes]:
    """Key and value of the record of one."""
    return f"{model}/changed/{change.number}".encode(), _encode(change)


def decode_change(value: bytes) -> Change:
    """What `change_record` made.

    Raises
    ------
    SchemaRefused, msgspec.DecodeError
        Where another release wrote it, or something else.
    """
    check_schema(value, SCHEMA, "a change of a model", "snapshots")
    return decoded(_decode, value)


class ChangeKey(NamedTuple):
    """Whose change a record is, and which."""

    model: str
    number: int


def change_key(key: bytes, value: bytes | None) -> ChangeKey | None:
    """What the key of a record of `snapshots` says, where it is that of a change.

    Models may have any name, so the value counts too: no envelope is one.
    """
    found = _KEY.fullmatch(key)
    if found is None or (value or b"").startswith(MAGIC):
        return None
    return ChangeKey(found[1].decode(errors="replace"), int(found[2]))


class History:
    """Changes of models, taken record by record.

    Attributes
    ----------
    changes
        By model and number; None where one cannot be read, as its number is taken all
        the same.
    """

    def __init__(self) -> None:
        self.changes: dict[str, dict[int, Change | None]] = {}

    def take(self, key: bytes, value: bytes | None) -> bool:
        """Take a record of `snapshots`; whether it was a change."""
        found = change_key(key, value)
        if found is None:
            return False
        change = None
        with contextlib.suppress(SchemaRefused, msgspec.DecodeError):
            change = decode_change(value or b"")
        self.changes.setdefault(found.model, {})[found.number] = change
        return True

    def next_number(self, model: str) -> int:
        """Of the change that is to come."""
        return max(self.changes.get(model, {}), default=0) + 1

    def last(self, model: str) -> Change | None:
        """The last change that can be read of what is served of a model."""
        known = sorted(self.changes.get(model, {}).items(), reverse=True)
        return next((x for _, x in known if x and x.what not in STAY), None)

    def newest(self, model: str) -> Change | None:
        """The last row of a model that can be read, whatever it is of."""
        known = sorted(self.changes.get(model, {}).items(), reverse=True)
        return next((each for _, each in known if each), None)

    def n_looks(self, model: str) -> int:
        """Looks at evidence since the last change of what is served."""
        n = 0
        for _, change in sorted(self.changes.get(model, {}).items(), reverse=True):
            if change is None or change.what not in STAY:
                break
            n += change.what == LOOKED
        return n
