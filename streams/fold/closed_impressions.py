"""Closed impressions as they leave the join: encoded, one behind the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.counts.count_tables import Int64
from models.kernels.compilation import compiled
from rankstream.wire.events import Interaction, encode_record
from rankstream.wire.topics import BATCH_BYTES
from streams.fold.identities import Names
from streams.fold.messagepack import PADDING, Bytes

INTERACTIONS_AT_ONCE = 1_024
"""No more go into one record."""

_decode = msgspec.msgpack.Decoder(Interaction).decode


@dataclass(frozen=True, slots=True)
class Closed:
    """Interactions in the order in which they closed.

    `encoded` [n_bytes] holds them as MessagePack and padding behind them, `ends` [n]
    the end of each, `models` [n, 2] a digest of the name of each one's model, `extras`
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
        starts = np.concatenate(([0], self.ends[:-1]))[which]
        lengths = self.ends[which] - starts
        ends = np.cumsum(lengths)
        encoded = np.empty(int(ends[-1]) + PADDING, np.uint8)
        _gather(self.encoded, starts, lengths, encoded)
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


@compiled
def _gather(encoded: Bytes, starts: Int64, lengths: Int64, out: Bytes) -> None:
    at = 0
    for i in range(starts.shape[0]):
        length = lengths[i]
        out[at : at + length] = encoded[starts[i] : starts[i] + length]
        at += length


def closed_of(interactions: Sequence[Interaction]) -> Closed:
    """Interactions as the join would give them, without digests of models."""
    packed = [encode_record(interaction) for interaction in interactions]
    ends = np.cumsum([len(one) for one in packed], dtype=np.int64)
    joined = np.frombuffer(b"".join(packed) + bytes(PADDING), np.uint8).copy()
    models = np.zeros((len(packed), 2), np.uint64)
    extras = np.array([len(one.impression.extra) > 0 for one in interactions], np.bool_)
    return Closed(joined, ends, models, extras)


def batches_of(pieces: Sequence[Closed], size: int) -> Iterator[Closed]:
    """The same interactions in batches of a size, the last one smaller."""
    encoded, parts, n = [], [], 0
    for piece in pieces:
        first = 0
        while first < len(piece):
            last = min(len(piece), first + size - n)
            part = piece.slice(first, last)
            encoded.append(part.encoded[: part.ends[-1]])
            parts.append(part)
            n += last - first
            first = last
            if n == size:
                yield _together(encoded, parts)
                encoded, parts, n = [], [], 0
    if n:
        yield _together(encoded, parts)


def _together(encoded: list[Bytes], parts: list[Closed]) -> Closed:
    offsets = np.cumsum([0, *(len(one) for one in encoded[:-1])])
    return Closed(
        np.concatenate([*encoded, np.zeros(PADDING, np.uint8)]),
        np.concatenate([one.ends + by for one, by in zip(parts, offsets, strict=True)]),
        np.concatenate([one.models for one in parts]),
        np.concatenate([one.extras for one in parts]),
    )
