"""Elements of the canonical log where they lie: fields found, nothing decoded.

A field is the place at which it begins. What is rare is decoded after all, from the
bytes of its element.
"""

import copy
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankstream.wire.events import Click, Frontier, Impression
from streams.native import core_library

IMPRESSION, CLICK, FRONTIER = 1, 2, 3
"""Tags of elements, as `rankstream.wire.events` gives them."""

# Fields of an impression, in the order of `rankstream.wire.events.Impression`.
TAG, IDENTITY, IMPRESSION_ID, QUERY, AT_MS, MODEL, VERSION, INTERVENTION, SEED = range(
    9
)
POLICY, CANDIDATES, SHOWN, IS_OPEN_SET, SCORES, EXPOSURES, FEATURES = range(9, 16)
N_FEATURES, UNIT, EXTRA = 16, 17, 18
N_FIELDS = 19

# Fields of a click.
CLICK_IMPRESSION, CLICK_ITEM, CLICK_POSITION, CLICK_AT_MS, CLICK_ACTION = range(2, 7)
N_CLICK_FIELDS = 9

# Fields of a frontier.
SOURCE, N_SOURCES, FRONTIER_MS, STATE = range(1, 5)
N_FRONTIER_FIELDS = 5

IDENTITY_BYTES = 16

Tags = NDArray[np.int8]
Int64 = NDArray[np.int64]

WIDTH = N_FIELDS + 1
"""Places of an element: those of its fields, then its end."""

decode_impression = msgspec.msgpack.Decoder(Impression).decode
decode_click = msgspec.msgpack.Decoder(Click).decode
decode_frontier = msgspec.msgpack.Decoder(Frontier).decode


class Elements:
    """A record of `events`, and where the fields of its elements begin.

    Raises
    ------
    ValueError
        Where the record is not whole, or holds something else.
    """

    __slots__ = (
        "_data",
        "addresses",
        "places",
        "record",
        "schema",
        "sequence",
        "source",
        "tags",
    )

    def __init__(self, record: bytes) -> None:
        self.record = record
        data = np.frombuffer(record, np.uint8)
        head = np.zeros(4, np.int64)
        first = core_library.find_head(data, len(record), head)
        n_elements = int(head[3]) if first >= 0 else 0
        self.schema, self.source, self.sequence, _ = head.tolist()
        self.tags: Tags = np.empty(n_elements, np.int8)
        self.places: Int64 = np.empty((n_elements, WIDTH), np.int64)
        self._data = data
        self.addresses = _addresses_of(data, self.tags, self.places)
        if first < 0 or core_library.find_elements(
            data, first, len(record), self.tags, self.places
        ):
            raise ValueError("elements must be whole and of a known layout")

    def __len__(self) -> int:
        return len(self.tags)

    def select(self, which: Int64) -> "Elements":
        """Those with the numbers `which` [n_selected], in that order.

        Raises
        ------
        ValueError
            Where there is no element of such a number.
        """
        if len(which) and int(which.max()) >= len(self):
            raise ValueError(
                f"elements must be below {len(self)}; got {int(which.max())}"
            )
        chosen = copy.copy(self)
        chosen.tags, chosen.places = self.tags[which], self.places[which]
        chosen.addresses = _addresses_of(self._data, chosen.tags, chosen.places)
        return chosen

    def raw(self, i: int) -> bytes:
        """The bytes of an element."""
        return self.record[self.places[i, TAG] : self.places[i, N_FIELDS]]


def _addresses_of(*arrays: NDArray[Any]) -> tuple[int, ...]:
    """Of arrays that live as long as the elements."""
    return tuple(one.ctypes.data for one in arrays)
