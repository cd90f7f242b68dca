"""Whether a snapshot that was made again is the one that was published, in words."""

import json
from typing import NamedTuple

import msgspec
import numpy as np

from rankstream.wire.curves import CurveRecord
from rankstream.wire.envelope import CURVE, SnapshotError, decode_snapshot
from rankstream.wire.training import RunRecord

_encode = msgspec.msgpack.Encoder().encode

NOT_KEPT = "neither `snapshots` nor Redis has it: the digest in its run was compared"


class Verdict(NamedTuple):
    """Whether a snapshot that was made again is the one that was published.

    Parameters
    ----------
    published, made
        Digests of the two envelopes.
    differences
        In words; empty where they are equal, or where only the digest of what was
        published is kept.
    is_kept
        Whether what was published is; else `published` is what the run says of it.
    """

    intervention: str
    published: bytes
    made: bytes
    differences: list[str]
    is_kept: bool = True

    @property
    def is_equal(self) -> bool:
        """Whether each byte is, and the run says what came of it."""
        return self.published == self.made and not self.differences


def told_of(verdict: Verdict, *, as_json: bool) -> str:
    """The verdict in words, or as JSON."""
    if as_json:
        return json.dumps(
            {
                "intervention": verdict.intervention,
                "is_equal": verdict.is_equal,
                "published": verdict.published.hex(),
                "made": verdict.made.hex(),
                "is_kept": verdict.is_kept,
                "differences": verdict.differences,
            }
        )
    name = verdict.intervention
    if verdict.is_equal:
        equal = f"{name}: equal bytes, sha256 {verdict.made.hex()[:16]}"
        return equal if verdict.is_kept else f"{equal}; {NOT_KEPT}"
    told = verdict.differences or [NOT_KEPT]
    return "\n".join([f"{name}: NOT equal", *(f"  {each}" for each in told)])


def differences_of_runs(
    written: RunRecord | CurveRecord, made: RunRecord | CurveRecord
) -> list[str]:
    """What a record says that its training did not; who asked is in no log."""
    return [
        f"{name} of the run was {getattr(written, name)!r:.100}, is "
        f"{getattr(made, name)!r:.100}"
        for name in written.__struct_fields__
        if name not in ("request", "settings", "sha256")
        # As bytes: a number that is not known equals nothing, itself included.
        and _encode(getattr(written, name)) != _encode(getattr(made, name))
    ]


def differences_of_envelopes(published: bytes, made: bytes) -> list[str]:
    """In what two envelopes differ, in words; nothing where their bytes are equal."""
    if published == made:
        return []
    try:
        was, now = decode_snapshot(published), decode_snapshot(made)
    except SnapshotError as error:
        return [f"it cannot be read: {error}"]
    told = [
        f"{name} was {getattr(was, name)!r:.100}, is {getattr(now, name)!r:.100}"
        for name in was.__struct_fields__
        if name != "weights" and getattr(was, name) != getattr(now, name)
    ]
    if was.weights != now.weights:
        form = "<f8" if now.kind == CURVE else "<f4"
        before, after = (np.frombuffer(x.weights, form) for x in (was, now))
        if len(before) == len(after):
            largest = np.nanmax(np.abs(before - after), initial=0.0)
            told.append(f"weights differ by {largest:.3g} at most")
        else:
            told.append(f"weights were {len(before)}, are {len(after)}")
    return told or ["the same snapshot in other bytes"]
