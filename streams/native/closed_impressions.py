"""Closed impressions as they leave the join: encoded, one behind the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankstream.wire.events import Interaction, encode_record
from rankstream.wire.topics import BATCH_BYTES

Bytes = NDArray[np.uint8]
Int64 = NDArray[np.int64]
Names = NDArray[np.uint64]

INTERACTIONS_AT_ONCE = 1_024
"""No more go into one record."""

_decode = msgspec.msgpack.Decoder(Interaction).decode


@dataclass(frozen=True, slots=True)
class Closed:
    """Interactions in the order in which they closed.

    `encoded` [n_bytes] holds them as MessagePack, one behind the other, `ends` [n] the
    end of each, `models` [n, 2] a digest of the name of each one's model, `extras`
    [n] whether an impression holds what only experiments and some learners read.
    """

    encoded: Bytes
    ends: Int64
    models: Names
    extras: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, i: int) -> Interaction:
        start = int(self.ends[i - 1]) if i else 0
        return _decode(self.encoded[start : self.ends[i]].tobytes())

    def interactions(self) -> list[Interaction]:
        """All of them, decoded."""
        return [self[i] for i in range(len(self))]

    def slice(self, first: int, last: int) -> "Closed":
        """Those from `first` up to `last`, which is not among them."""
        start = int(self.ends[first - 1]) if first else 0
        return Closed(
            self.encoded[start:],
            self.ends[first:last] - start,
            self.models[first:last],
            self.extras[first:last],
        )

    def select(self, which: Int64) -> "Closed":
        """Those with the numbers `which` [n_selected], in that order."""
        starts = np.concatenate(([0], self.ends[:-1]))[which].tolist()
        spans = zip(starts, self.ends[which].tolist(), strict=True)
        packed = self.encoded.tobytes()
        encoded = np.frombuffer(b"".join(packed[i:j] for i, j in spans), np.uint8)
        ends = np.cumsum(self.ends[which] - starts, dtype=np.int64)
        return Closed(encoded, ends, self.models[which], self.extras[which])

    def parts(self) -> Iterator[tuple[int, bytes]]:
        """How many interactions, and their bytes, each small enough for a record."""
        first, base = 0, 0
        while first < len(self):
            last = int(np.searchsorted(self.ends, base + BATCH_BYTES, "right"))
            last = min(max(last, first + 1), first + INTERACTIONS_AT_ONCE)
            end = int(self.ends[last - 1])
            yield last - first, self.encoded[base:end].tobytes()
            first, base = last, end


def closed_of(interactions: Sequence[Interaction]) -> Closed:
    """Interactions as the join would give them, without digests of models."""
    packed = [encode_record(interaction) for interaction in interactions]
    ends = np.cumsum([len(one) for one in packed], dtype=np.int64)
    joined = np.frombuffer(b"".join(packed), np.uint8)
    models = np.zeros((len(packed), 2), np.uint64)
    extras = np.array([len(one.impression.extra) > 0 for one in interactions], np.bool_)
    return Closed(joined, ends, models, extras)
