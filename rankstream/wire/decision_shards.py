"""Shards of decisions: what rankers look up, as bytes that never change.

A rewrite has 256 of them, one for each first byte of a query's route. A shard is named
by its digest, so one that stays as it was is written and fetched once. Little-endian:

    magic (4) | schema (2) | n_entries (4) | routes (8 each, ascending) |
    hashes of candidate sets (8 each) | ends of bodies (4 each) | bodies

    body   n_items (2) | order | first and last place of each tie, from 0

Numbers of a body take a byte up to 256 items, else two. A query is found without its
candidates, which are hashed only where it is there. A body with a slot, as bandits have
them, has more before and behind it, and its shard another schema:

    0 (2) | n_ranks (2) | n_tried (2) | share (8) | n_items ... as above | items tried
"""

import hashlib
import struct
import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import msgspec

MAGIC = b"RSDS"
SCHEMA, WITH_SLOTS = 1, 2
"""Of shards; the second where a body has a slot."""

N_SHARDS = 256
DIGEST_BYTES = 16
MOST_ITEMS = 65_535
"""Candidates of a decision, at most."""

_HEADER = struct.Struct("<4sHI")
_COUNT = struct.Struct("<H")
_SLOT = struct.Struct("<HHHd")
_WIDEST_OF_BYTES = 256

_encode = msgspec.msgpack.Encoder().encode


class DecisionError(ValueError):
    """Decisions are not what they should be.

    Operator action: `rankstream decisions list`; rankers keep the last good ones.
    """


class Slot(NamedTuple):
    """What the last rank of a list shows now and then instead of its own item.

    Parameters
    ----------
    n_ranks
        Length of the lists that have it, less than there are items.
    share
        How often it tries another item, above 0 and at most 1.
    tried : [n_tried]
        Numbers in the sorted set of items that are worse than that of the last rank,
        and not tied with it. Those that are tied with it, and were not drawn, are tried
        beside them; each as often as another.
    """

    n_ranks: int
    share: float
    tried: Sequence[int]


class TiedOrder(NamedTuple):
    """An order of candidates, and which of them are tied.

    `order` [n_items] are numbers in the sorted set, best first. `ties` are first and
    last place of each block of several, from 0: each order of its items is as good.
    `slot` is None where lists have none.
    """

    order: Sequence[int]
    ties: Sequence[tuple[int, int]]
    slot: Slot | None = None


class Entry(NamedTuple):
    """One decision as a shard holds it."""

    route: int
    items_hash: int
    body: bytes


class DecisionShard(NamedTuple):
    """A shard, verified: look up by route, then by the hash of the candidates.

    `first_rows` are the first entries of queries, by route; `routes`, `hashes` and
    `ends` [n_entries].
    """

    first_rows: Mapping[int, int]
    routes: "array[int]"
    hashes: "array[int]"
    ends: "array[int]"
    bodies: bytes

    def order(self, row: int, items_hash: int) -> TiedOrder | None:
        """What is decided for a candidate set; None for another one.

        Parameters
        ----------
        row
            The first entry of the query.
        """
        route = self.routes[row]
        while row < len(self.routes) and self.routes[row] == route:
            if self.hashes[row] == items_hash:
                start = self.ends[row - 1] if row else 0
                return unpack_order(self.bodies[start : self.ends[row]])
            row += 1
        return None


EMPTY_SHARD = DecisionShard({}, array("Q"), array("Q"), array("I"), b"")


def shard_number(route: int) -> int:
    """Which shard has a route of 64 bits."""
    return route >> 56


def hash_of_items(items: Sequence[str]) -> int:
    """By what a candidate set is known; `items` must be sorted."""
    # Ids may have any character, so none of them can part them.
    packed = hashlib.blake2b(_encode(items), digest_size=8).digest()
    return int.from_bytes(packed, "little")


def digest_of(shard: bytes) -> bytes:
    """The name of a shard; empty of one without entries, which lies nowhere."""
    if not shard:
        return b""
    return hashlib.blake2b(shard, digest_size=DIGEST_BYTES).digest()


def pack_order(
    order: Sequence[int], blocks: Sequence[int], slot: Slot | None = None
) -> bytes:
    """The body of an entry.

    Parameters
    ----------
    order : [n_items]
        Numbers in the sorted set, best first: a permutation of 0, 1, ...
    blocks : [n_blocks]
        Sizes of the blocks of tied items, in that order; 1 where an item is alone.

    Raises
    ------
    DecisionError
        Where they are no order of items in blocks, or have no such slot.
    """
    n = len(order)
    if not 0 < n <= MOST_ITEMS or sorted(order) != list(range(n)):
        raise DecisionError(
            f"an order must have the numbers from 0 on, each once, of 1 to "
            f"{MOST_ITEMS:,} items; got {n}: {list(order)[:10]}"
        )
    if min(blocks, default=0) < 1 or sum(blocks) != n:
        raise DecisionError(
            f"blocks must be of 1 item or more each, and of {n} together; "
            f"got {list(blocks)[:10]}"
        )
    bounds = pairwise(accumulate(blocks, initial=0))
    ties = [at for start, end in bounds if end - start > 1 for at in (start, end - 1)]
    body = _COUNT.pack(n) + _numbers([*order, *ties], n)
    if slot is None:
        return body
    if not _is_slot(slot, order, ties):
        raise DecisionError(
            "a slot must be at a rank before the last item, with a share above 0 and "
            f"at most 1, and try items that are behind it and not tied with it, each "
            f"once; got {slot.n_ranks} of {n}, {slot.share}, {list(slot.tried)[:10]}"
        )
    head = _SLOT.pack(0, slot.n_ranks, len(slot.tried), slot.share)
    return head + body + _numbers(slot.tried, n)


def unpack_order(body: bytes) -> TiedOrder:
    """What `pack_order` made."""
    plain, slot = _without_slot(body)
    order, places = _parts(plain)
    ties = list(zip(places[::2], places[1::2], strict=True))
    return TiedOrder(order, ties, slot)


def pack_shard(entries: Iterable[Entry]) -> bytes:
    """The same entries give the same bytes, in whatever order; empty where none are.

    Raises
    ------
    DecisionError
        Where two are of one query and candidate set.
    """
    rows = sorted(entries)
    if not rows:
        return b""
    if any(one[:2] == other[:2] for one, other in pairwise(rows)):
        raise DecisionError("a shard must hold a query and candidate set once")
    ends = accumulate(len(each.body) for each in rows)
    schema = WITH_SLOTS if any(_has_slot(each.body) for each in rows) else SCHEMA
    return b"".join(
        (
            _HEADER.pack(MAGIC, schema, len(rows)),
            _bytes("Q", (each.route for each in rows)),
            _bytes("Q", (each.items_hash for each in rows)),
            _bytes("I", ends),
            *(each.body for each in rows),
        )
    )


def pack_shards(entries: Iterable[Entry]) -> list[bytes]:
    """All shards of a rewrite, by number.

    Raises
    ------
    DecisionError
        As `pack_shard`.
    """
    shards: list[list[Entry]] = [[] for _ in range(N_SHARDS)]
    for each in entries:
        shards[shard_number(each.route)].append(each)
    return [pack_shard(each) for each in shards]


def load_shard(packed: bytes, digest: bytes) -> DecisionShard:
    """The shard of a digest, verified.

    Raises
    ------
    DecisionError
        Where the bytes are others, or a later release wrote them.
    """
    if digest_of(packed) != digest:
        got = f"{len(packed)} others" if packed else "none"
        raise DecisionError(
            f"shard {digest.hex()} must be the bytes of its digest; got {got}"
        )
    if not packed:
        return EMPTY_SHARD
    magic, schema, n = _HEADER.unpack_from(packed.ljust(_HEADER.size, b"\0"))
    if magic != MAGIC or schema not in (SCHEMA, WITH_SLOTS):
        raise DecisionError(
            f"shard {digest.hex()} must begin with {MAGIC!r} and schema {SCHEMA} or "
            f"{WITH_SLOTS}; got {magic!r} and {schema}: run the release that wrote it"
        )
    bounds = list(accumulate((8 * n, 8 * n, 4 * n), initial=_HEADER.size))
    if len(packed) < bounds[-1]:
        raise _malformed(digest)
    routes, hashes, ends = (
        _array(kind, packed[start:end])
        for kind, (start, end) in zip("QQI", pairwise(bounds), strict=True)
    )
    # The last that is put in is the first of its query.
    first_rows = dict(zip(reversed(routes), range(n - 1, -1, -1), strict=True))
    shard = DecisionShard(first_rows, routes, hashes, ends, packed[bounds[-1] :])
    if not _is_whole(shard):
        raise _malformed(digest)
    return shard


def _is_whole(shard: DecisionShard) -> bool:
    """Whether no look-up can fail, as one in a service must not."""
    ends = [0, *shard.ends]
    if ends != sorted(ends) or ends[-1] != len(shard.bodies):
        return False
    if list(shard.routes) != sorted(shard.routes):
        return False
    bounds = pairwise(ends)
    return all(_is_order(shard.bodies[start:end]) for start, end in bounds)


def _is_order(body: bytes) -> bool:
    if _has_slot(body):
        plain, slot = _without_slot(body)
        if slot is None or _has_slot(plain) or not _is_order(plain):
            return False
        return _is_slot(slot, *_parts(plain))
    if len(body) <= _COUNT.size:
        return False
    (n,) = _COUNT.unpack_from(body)
    width = 1 if n <= _WIDEST_OF_BYTES else 2
    n_numbers, rest = divmod(len(body) - _COUNT.size, width)
    if rest or n_numbers < n or (n_numbers - n) % 2:
        return False
    order, places = _parts(body)
    if len(set(order)) < n or max(order) >= n:
        return False
    # Two places a tie, and no tie within another: they only rise.
    ends = (*places, n)
    return all(here < there for here, there in pairwise(ends))


def _parts(body: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """An order, and first and last places of its ties, one behind the other."""
    (n,) = _COUNT.unpack_from(body)
    numbers: Sequence[int] = body[_COUNT.size :]
    if n > _WIDEST_OF_BYTES:
        numbers = _array("H", body[_COUNT.size :])
    return numbers[:n], numbers[n:]


def _has_slot(body: bytes) -> bool:
    return body.startswith(_COUNT.pack(0))


def _without_slot(body: bytes) -> tuple[bytes, Slot | None]:
    """A body without its slot, and that; none where there is none, or not all of it."""
    if not _has_slot(body) or len(body) < _SLOT.size + _COUNT.size:
        return body, None
    _, n_ranks, n_tried, share = _SLOT.unpack_from(body)
    (n,) = _COUNT.unpack_from(body, _SLOT.size)
    end = len(body) - n_tried * (1 if n <= _WIDEST_OF_BYTES else 2)
    if end < _SLOT.size:
        return body, None
    tried: Sequence[int] = body[end:]
    if n > _WIDEST_OF_BYTES:
        tried = _array("H", body[end:])
    return body[_SLOT.size : end], Slot(n_ranks, share, tried)


def _is_slot(slot: Slot, order: Sequence[int], places: Sequence[int]) -> bool:
    """Whether an order may have it; `places` are first and last places of ties."""
    at = slot.n_ranks - 1
    if not 0 <= at < len(order) - 1 or not 0.0 < slot.share <= 1.0:
        return False
    ties = zip(places[::2], places[1::2], strict=True)
    last = next((last for first, last in ties if first <= at <= last), at)
    behind, tried = {*order[last + 1 :]}, {*slot.tried}
    is_each_once = len(tried) == len(slot.tried) and tried <= behind
    return is_each_once and (last > at or bool(tried))


def _malformed(digest: bytes) -> DecisionError:
    return DecisionError(
        f"shard {digest.hex()} must hold as many whole entries as it says; it does not"
    )


def _numbers(values: Iterable[int], n_items: int) -> bytes:
    return bytes(values) if n_items <= _WIDEST_OF_BYTES else _bytes("H", values)


def _bytes(kind: str, values: Iterable[int]) -> bytes:
    numbers = array(kind, values)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _array(kind: str, packed: bytes) -> "array[int]":
    numbers = array(kind, packed)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
