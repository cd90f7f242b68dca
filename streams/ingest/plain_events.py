"""Events that are plain, as elements of `events`: decoded here, the rest is in C.

Whether bytes are an event, msgspec alone decides, by the structs of
`rankstream.wire.events`. What is not plain, `streams.ingest.validation` takes.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from rankstream.wire.events import ClickEvent, QueryEvent
from rankstream.wire.topics import QUERIES
from streams.ingest.elements import UNREADABLE, Unpacked
from streams.ingest.identifiers import query_of, query_of_click
from streams.native.input_events import (
    FOREIGN,
    PARTITION,
    Clicked,
    Int64,
    Rules,
    Written,
    write_clicks,
    write_queries,
)

AT_ONCE = 128
"""Events that are decoded before they are handed on; no collector of garbage sees
so few."""

_encode = msgspec.msgpack.Encoder().encode


class _Query(
    QueryEvent,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """The same event; what it does not say takes no room."""


class _Click(
    ClickEvent,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,
):
    """The same event; what it does not say takes no room."""


class PlainEvents:
    """Of one partition of an input topic.

    Parameters
    ----------
    segment
        The attribute of lists that is part of their query; empty where none is.
    """

    def __init__(
        self, topic: str, partition: int, rules: Rules, segment: str = ""
    ) -> None:
        self._is_of_queries = topic == QUERIES
        struct = _Query if self._is_of_queries else _Click
        self._decode: Callable[[bytes], Any] = msgspec.json.Decoder(struct).decode
        self._rules = rules
        self._segment = segment if self._is_of_queries else ""
        # An array of four, of which offset and place in the record are still to come.
        self._origin = b"\x94" + _encode(topic) + _encode(partition)

    def write(self, found: Unpacked) -> Written:
        """The elements of those that are plain; all others are odd."""
        if self._segment:
            return self._write(found, self._normalised, is_normalised=True)
        written = self._write(found, self._decode)
        which = np.flatnonzero(written.outcomes[:, PARTITION] == FOREIGN)
        if not len(which):
            return written
        foreign = found.selected(which)
        others = self._write(foreign, self._normalised, is_normalised=True)
        return written.joined(which, others)

    def bridged(
        self, raws: Sequence[bytes], decode: Callable[[bytes], Any] | None = None
    ) -> bytes:
        """Events as C takes them, nil for what is none."""
        decode, parts = decode or self._decode, []
        for first in range(0, len(raws), AT_ONCE):
            some = raws[first : first + AT_ONCE]
            try:
                parts.append(_encode(list(map(decode, some))))
            except UNREADABLE:
                parts += [_bridged_alone(raw, decode) for raw in some]
        return b"".join(parts)

    def _write(
        self,
        found: Unpacked,
        decode: Callable[[bytes], Any],
        *,
        is_normalised: bool = False,
    ) -> Written:
        bridge = self.bridged(found.raws, decode)
        rules = self._rules._replace(is_normalised=is_normalised)
        if self._is_of_queries:
            return write_queries(bridge, found.times_ms, rules)
        clicked = Clicked(b"".join(found.raws), _places(found), self._origin)
        return write_clicks(bridge, found.times_ms, rules, clicked)

    def _normalised(self, raw: bytes) -> Any:
        """An event with its query in the form under which it is kept.

        Raises
        ------
        ValueError
            Where that is to be refused.
        """
        event = self._decode(raw)
        if event.query_id is None:
            return event
        if isinstance(event, _Query):
            query = query_of(event, self._segment)
        else:
            query = query_of_click(event.query_id)
        return msgspec.structs.replace(event, query_id=query)


def _bridged_alone(raw: bytes, decode: Callable[[bytes], Any]) -> bytes:
    try:
        return _encode([decode(raw)])
    except UNREADABLE:
        return _encode([None])


def _places(found: Unpacked) -> Int64:
    n = len(found.raws)
    places = np.empty((n, 3), np.int64)
    np.cumsum(np.fromiter(map(len, found.raws), np.int64, n), out=places[:, 0])
    places[:, 1] = found.offsets
    places[:, 2] = found.indexes
    return places
