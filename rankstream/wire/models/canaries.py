"""A canary: a version that a share of sessions is served before all are.

Of each model there is one at most. Its record lies on the topic `snapshots`, beside
that of the version which all other sessions are served:

    key    MODEL/canary
    value  MessagePack array: schema, intervention, stage, share, before, begun_ms,
           rules, envelope

No value where there is none any more. Redis holds the same bytes, for rankers. What
became of it is in the history: see `rankstream.wire.models.changes`.
"""

import hashlib
from functools import lru_cache

import msgspec

from rankstream.wire.envelope import MAGIC
from rankstream.wire.schemas import check_schema, decoded

SCHEMA = 1

FIELD = "canary"
"""The field of a query event that says during which stage its list was made."""

WITHOUT_CLICK = "without click"
"""The guardrail of lists that nobody clicked on; all others are classes of actions."""

_SUFFIX = b"/canary"

_encode = msgspec.msgpack.Encoder().encode


class CanaryRules(msgspec.Struct, frozen=True, array_like=True):
    """By what a canary is judged, fixed when it begins.

    Attributes
    ----------
    shares
        Of sessions, rising, each in (0, 1): those of the stages.
    planned
        Lists of the canary by which it ends without a verdict; the interval is
        narrowest there.
    least
        Lists of the canary in a stage, at least, before the share rises.
    alpha
        Probability that it is ever taken for worse where it is not.
    margin
        Clicks per list that it may be worse by and still go on.
    guardrails
        Beside clicks: `without click`, or classes of actions.
    """

    shares: list[float]
    planned: int
    least: int
    alpha: float
    margin: float
    guardrails: list[str] = []


class Canary(msgspec.Struct, frozen=True, array_like=True):
    """A version that is going out.

    Attributes
    ----------
    intervention
        MODEL@EPOCH.VERSION: its lists are logged under that, as when it is served.
    stage
        From 1.
    share
        Of sessions that are served it, in (0, 1), as of this stage.
    before
        EPOCH.VERSION that all others are served.
    begun_ms
        When this stage began, by the clock of who wrote it.
    envelope
        Of the snapshot.
    """

    schema: int
    intervention: str
    stage: int
    share: float
    before: str
    begun_ms: int
    rules: CanaryRules
    envelope: bytes

    @property
    def model(self) -> str:
        """Whose version it is."""
        return self.intervention.rpartition("@")[0]

    @property
    def tag(self) -> str:
        """Names the stage, in events of both arms: INTERVENTION/STAGE."""
        return f"{self.intervention}/{self.stage}"


_decode = msgspec.msgpack.Decoder(Canary).decode


def canary_key(model: str) -> bytes:
    """The key of a model's record."""
    return model.encode() + _SUFFIX


def encode_canary(canary: Canary) -> bytes:
    """The value of its record; equal canaries have equal bytes."""
    return _encode(canary)


def decode_canary(value: bytes) -> Canary:
    """What `encode_canary` made.

    Raises
    ------
    SchemaRefused, msgspec.DecodeError
        Where another release wrote it, or something else.
    """
    check_schema(value, SCHEMA, "a canary", "snapshots")
    return decoded(_decode, value)


def model_of_canary(key: bytes, value: bytes | None) -> str | None:
    """The model whose canary a record of `snapshots` is; None of other records.

    Models may have any name, so the value counts too: no envelope is one.
    """
    if not key.endswith(_SUFFIX) or (value or b"").startswith(MAGIC):
        return None
    return key[: -len(_SUFFIX)].decode(errors="replace")


@lru_cache(maxsize=64)
def _salted(intervention: str) -> "hashlib.blake2b":
    # Copied for each session: the salt is hashed once.
    return hashlib.blake2b(intervention.encode() + b"\0", digest_size=8)


def is_in_canary(session: str, intervention: str, share: float) -> bool:
    """Whether a session is served the canary.

    The hash is salted with the intervention, so it is independent of groups and of
    other canaries; a share that rises only adds sessions.

    Parameters
    ----------
    share
        In [0, 1].
    """
    salted = _salted(intervention).copy()
    salted.update(session.encode("utf-8", "surrogatepass"))
    return int.from_bytes(salted.digest(), "big") < share * 2.0**64
