"""Input events into canonical elements in C: those that are plain, many in a call.

Events come as the maps of their structs in MessagePack, in arrays one behind the other,
and what was no event as nil. What is not plain is left to Python.
"""

import ctypes
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.native.core_library import core

END, PARTITION, AT_MS, SIZE = range(4)
"""Columns of an outcome: where the element ends, where it goes, when the event was, and
its bytes at most."""

N_COLUMNS = 4

ODD, FOREIGN = -1, -2
"""The partition of what is left to Python, and of that whose query alone may be odd."""

OVERHEAD, FACTOR = 512, 4
"""What an element takes beside and for each byte of its event, at most."""

NO_MEMORY = -2

Bytes = NDArray[np.uint8]
Int64 = NDArray[np.int64]

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64

for _name, _types in {
    "ingest_queries": (
        _PLACE, _NUMBER, _PLACE, _NUMBER, _PLACE, _PLACE, _NUMBER, _PLACE,
    ),
    "ingest_clicks": (
        _PLACE, _NUMBER, _PLACE, _NUMBER, _PLACE, _PLACE, _NUMBER, _PLACE, _PLACE,
        _NUMBER, _PLACE, _NUMBER, _PLACE,
    ),
    "ingest_gather": (_PLACE, _NUMBER, _PLACE, _NUMBER, _PLACE, _NUMBER),
    "fold_blake2b": (_PLACE, _NUMBER, _PLACE, _NUMBER),
}.items():  # fmt: skip
    _function = getattr(core, _name)
    _function.argtypes, _function.restype = _types, _NUMBER


class Rules(NamedTuple):
    """What all events of a call share.

    Parameters
    ----------
    n_partitions
        Of `events`.
    ahead_ms
        How far an event's time may be ahead of that at which it was appended.
    most_documents
        Most candidates that a list may have.
    is_normalised
        Whether queries were put into their normalised form, segment included.
    """

    n_partitions: int
    ahead_ms: int
    most_documents: int
    is_normalised: bool = False


class Written(NamedTuple):
    """Elements, one behind the other.

    `encoded` [n_bytes] holds them, `bounds` [n, 2] says of each event where its own
    begins and ends there, `outcomes` [n, 4] what came of it.
    """

    encoded: Bytes
    bounds: Int64
    outcomes: Int64

    def joined(self, which: Int64, others: "Written") -> "Written":
        """With what others say of the events `which` [n_others]."""
        encoded = np.concatenate((self.encoded, others.encoded))
        self.bounds[which] = others.bounds + len(self.encoded)
        self.outcomes[which] = others.outcomes
        return self._replace(encoded=encoded)


class Clicked(NamedTuple):
    """What a click carries beside its event.

    `raws` are the bytes of all clicks, one behind the other, `places` [n, 3] where
    those of each end, its offset and its place in the record. `origin` is what stands
    before these two in the packed origin of each.
    """

    raws: bytes
    places: Int64
    origin: bytes


def write_queries(bridge: bytes, appended_ms: Int64, rules: Rules) -> Written:
    """Query events, appended at `appended_ms` [n].

    Raises
    ------
    ValueError
        Where `bridge` is not n events.
    """
    n = len(appended_ms)
    encoded, outcomes = _room(len(bridge), n)
    own = np.array(rules, np.int64)
    _check(
        core.ingest_queries(
            bridge, len(bridge), appended_ms.ctypes.data, n, own.ctypes.data,
            encoded.ctypes.data, len(encoded), outcomes.ctypes.data,
        )
    )  # fmt: skip
    return _written(encoded, outcomes)


def write_clicks(
    bridge: bytes, appended_ms: Int64, rules: Rules, clicked: Clicked
) -> Written:
    """Click events, appended at `appended_ms` [n]; see `write_queries`."""
    n = len(appended_ms)
    raws, places, origin = clicked
    encoded, outcomes = _room(len(bridge) + len(raws) + n * len(origin), n)
    own = np.array(rules, np.int64)
    _check(
        core.ingest_clicks(
            bridge, len(bridge), appended_ms.ctypes.data, n, own.ctypes.data,
            raws, len(raws), places.ctypes.data, origin, len(origin),
            encoded.ctypes.data, len(encoded), outcomes.ctypes.data,
        )
    )  # fmt: skip
    return _written(encoded, outcomes)


def gather(data: Bytes, bounds: Int64) -> Bytes:
    """Pieces of `data` [n_bytes] in the order of `bounds` [n, 2], each from and to.

    Raises
    ------
    ValueError
        Where one does not lie in it.
    """
    bounds = np.ascontiguousarray(bounds)
    out = np.empty(int((bounds[:, 1] - bounds[:, 0]).sum()), np.uint8)
    _check(
        core.ingest_gather(
            data.ctypes.data, len(data), bounds.ctypes.data, len(bounds),
            out.ctypes.data, len(out),
        )
    )  # fmt: skip
    return out


def blake2b(content: bytes, n_digest: int) -> bytes:
    """The digest of 1 to 64 bytes that identities and routes are made by."""
    digest = ctypes.create_string_buffer(n_digest)
    _check(core.fold_blake2b(content, len(content), digest, n_digest))
    return digest.raw


def _room(n_bytes: int, n: int) -> tuple[Bytes, Int64]:
    encoded = np.empty(FACTOR * n_bytes + OVERHEAD * n, np.uint8)
    return encoded, np.empty((n, N_COLUMNS), np.int64)


def _written(encoded: Bytes, outcomes: Int64) -> Written:
    bounds = np.zeros((len(outcomes), 2), np.int64)
    bounds[:, 1] = outcomes[:, END]
    bounds[1:, 0] = outcomes[:-1, END]
    return Written(encoded[: bounds[-1, 1]], bounds, outcomes)


def _check(result: int) -> None:
    if result == NO_MEMORY:
        raise MemoryError("no memory for input events")
    if result:
        raise ValueError("input events must be whole, and as many as are said")
