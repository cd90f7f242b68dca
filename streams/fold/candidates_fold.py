"""Features of candidates, out of closed impressions into a topic that keeps them.

The first features of a query, its candidate set and a list of features stand; what
differs later is counted. They are written as outputs, in the fold's transaction, and
leave when the last living era with a scope of that query and set leaves. State is only
what tells a repeat from a difference: it does not grow with the number of features.
"""

import base64
import binascii
import hashlib
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from rankstream.wire.candidates import candidates_key, candidates_value
from rankstream.wire.events import Impression
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import CANDIDATES, state_topic
from streams.native.closed_impressions import Closed
from streams.native.counting import name_of_set
from streams.stage import Change, Output

STATE_TOPIC = state_topic("candidates")
SCHEMA = 1

MARK = b"\xadfeatures_hash"
"""The name of the field as MessagePack: impressions without it are not decoded."""

LISTS = 8
"""Lists of features that are kept of a query and set; more are counted only."""

COUNTS = b"counts"
DIGEST_BYTES = 8

KINDS = ("written", "repeated", "different", "beyond", "unreadable")
"""What becomes of features; `beyond` are those that no statistics will ask for."""

UNREADABLE = (
    binascii.Error, KeyError, RecursionError, TypeError, ValueError, ZeroDivisionError,
    msgspec.MsgspecError,
)  # fmt: skip
"""What comes of a log that something else wrote."""

_encode = msgspec.msgpack.Encoder().encode


class CandidatesFold:
    """Features of candidates of one partition of the canonical log.

    Parameters
    ----------
    keep_ms
        Length of an era.
    has_set
        Whether a living era has a scope of a query and the set of a name; asked after
        the statistics have taken the same impressions, and heard of the same time.
    """

    topic = STATE_TOPIC

    def __init__(
        self, partition: int, keep_ms: int, has_set: Callable[[str, bytes], bool]
    ) -> None:
        self._partition = partition
        self._keep_ms = keep_ms
        self._has_set = has_set
        self._known: dict[bytes, dict[bytes, bytes]] = {}
        self._changed: set[bytes] = set()
        self._outputs: list[Output] = []
        self._counts = dict.fromkeys(KINDS, 0)
        self._era: int | None = None

    def take(self, closed: Closed) -> None:
        """Take closed impressions; those without features are not even decoded."""
        if not closed.extras.any():
            return
        packed = closed.encoded.tobytes()
        at = packed.find(MARK)
        while at >= 0:
            which = int(np.searchsorted(closed.ends, at, "right"))
            if which >= len(closed):
                return
            self._take(closed[which].impression)
            at = packed.find(MARK, int(closed.ends[which]))

    def _take(self, impression: Impression) -> None:
        try:
            found = _features_of(impression)
        except UNREADABLE:
            self._counts["unreadable"] += 1
            return
        if found is not None:
            self._counts[self._outcome(impression, *found)] += 1

    def _outcome(
        self, impression: Impression, list_hash: bytes, features: bytes, n_features: int
    ) -> str:
        query, candidates = impression.query_id, impression.candidates
        name = name_of_set(candidates)
        place = _encode([query, name])
        lists = self._known.get(place, {})
        value = candidates_value(candidates, features, n_features)
        digest = hashlib.blake2b(value, digest_size=DIGEST_BYTES).digest()
        known = lists.get(list_hash)
        if known is not None:
            return "repeated" if known == digest else "different"
        if len(lists) >= LISTS or not self._has_set(query, name):
            return "beyond"
        self._known[place] = {**lists, list_hash: digest}
        self._changed.add(place)
        key = candidates_key(query, name, list_hash)
        self._outputs.append(Output(CANDIDATES, self._partition, key, value))
        return "written"

    def advance(self, watermark_ms: int) -> None:
        """Hear of the watermark; where an era is over, let go of what nobody counts."""
        era = watermark_ms // self._keep_ms
        if era == self._era:
            return
        self._era = era
        for place in list(self._known):
            query, name = msgspec.msgpack.decode(place)
            if not self._has_set(query, name):
                for list_hash in self._known.pop(place):
                    key = candidates_key(query, name, list_hash)
                    self._outputs.append(Output(CANDIDATES, self._partition, key, None))
                self._changed.add(place)

    def settle(self) -> None:
        """Nothing is pending here."""

    def outputs(self) -> list[Output]:
        """Features that are new, and tombstones of those that left."""
        written, self._outputs = self._outputs, []
        return written

    def changes(self, _outcomes: Mapping[str, int] | None = None) -> Iterator[Change]:
        """What changed since the last call; nothing before the first features."""
        for place in sorted(self._changed):
            lists = self._known.get(place)
            packed = lists and _encode([SCHEMA, sorted(lists.items())])
            yield Change(STATE_TOPIC, place, packed or None)
        self._changed.clear()
        if any(self._counts.values()):
            counts = [SCHEMA, self._era, list(self._counts.values())]
            yield Change(STATE_TOPIC, COUNTS, _encode(counts))

    def restore(self, items: Iterable[Change]) -> None:
        """Take back what `changes` gave.

        Raises
        ------
        SchemaRefused
            Where another release wrote it.
        """
        for topic, key, value in items:
            if topic != STATE_TOPIC or value is None:
                continue
            where = f"{STATE_TOPIC}[{self._partition}]"
            check_schema(value, SCHEMA, "what is known of candidates", where)
            _, *state = msgspec.msgpack.decode(value)
            if key == COUNTS:
                self._era, counts = state
                self._counts = dict(zip(KINDS, counts, strict=True))
            else:
                self._known[key] = dict(state[0])

    def fingerprint(self) -> bytes:
        """Counts that equal states share; empty where no features ever came."""
        numbers = list(self._counts.values())
        if not any(numbers):
            return b""
        return struct.pack(f"<{len(numbers) + 1}q", *numbers, len(self._known))

    def counters(self) -> dict[str, int]:
        """What became of features since the beginning of the log, and what is known."""
        counts = {f"candidates_{name}": n for name, n in self._counts.items()}
        return counts | {"known_candidate_sets": len(self._known)}


def _features_of(impression: Impression) -> tuple[bytes, bytes, int] | None:
    """Hash of the list, features and their number; None where there are none.

    Raises
    ------
    One of `UNREADABLE`.
    """
    extra: Any = msgspec.msgpack.decode(impression.extra)
    if "features_hash" not in extra:
        return None
    features = base64.b64decode(extra["candidate_features"], validate=True)
    n_items = len(msgspec.msgpack.decode(impression.candidates))
    n_features, rest = divmod(len(features), 4 * n_items)
    if rest or not n_features or impression.is_open_set:
        raise ValueError("features must be a row for each candidate")
    return bytes.fromhex(extra["features_hash"]), features, n_features
