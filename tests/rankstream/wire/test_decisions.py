"""Records and shards of decisions: whole, small, the same bytes, and never misread."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.ranking.tied_list import TiedList
from rankstream.wire import decisions as wire
from rankstream.wire.bounds import LARGEST
from rankstream.wire.decision_shards import (
    EMPTY_SHARD,
    N_SHARDS,
    DecisionError,
    Entry,
    Slot,
    TiedOrder,
    digest_of,
    hash_of_items,
    load_shard,
    pack_order,
    pack_shard,
    pack_shards,
    shard_number,
    unpack_order,
)
from rankstream.wire.decisions import entry_of
from rankstream.wire.routing import route_of_query
from rankstream.wire.topics import DECISIONS
from tests.decision_factory import ITEMS, decision, rewrite
from tests.snapshot_factory import envelope


@pytest.mark.parametrize("n", [1, 2, 7, 20, 255, 256, 257, 700, 65_535])
@pytest.mark.parametrize("seed", range(4))
def test_an_order_comes_back_with_its_ties(n: int, seed: int) -> None:
    """Whatever its length; a block of one is no tie."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(n).tolist()
    cuts = np.flatnonzero(rng.random(n - 1) < seed / 3) + 1
    ends = [*cuts.tolist(), n]
    blocks = np.diff([0, *ends]).tolist()
    found = unpack_order(pack_order(order, blocks))
    assert list(found.order) == order
    bounds = zip(blocks, ends, strict=True)
    assert found.ties == [(end - size, end - 1) for size, end in bounds if size > 1]


@pytest.mark.parametrize(
    ("order", "blocks"),
    [
        ([], []), ([0, 0], [1, 1]), ([1, 2], [1, 1]), ([0, 1], [1]), ([0, 1], [1, 2]),
        ([0, 1], [2, 0]), ([0, -1], [2]), (list(range(65_536)), [65_536]),
    ],
)  # fmt: skip
def test_what_is_no_order_in_blocks_is_refused(
    order: list[int], blocks: list[int]
) -> None:
    """Where it is written: a reader finds good ones only."""
    with pytest.raises(DecisionError):
        pack_order(order, blocks)


def test_a_query_of_twenty_items_takes_at_most_seventy_bytes() -> None:
    """With its keys; one tie of all that nobody clicked is among them."""
    rng = np.random.default_rng(3)
    items = sorted(f"item {row}" for row in range(20))
    blocks = [1] * 8 + [12]
    orders = [rng.permutation(20).tolist() for _ in range(5_000)]
    shards = pack_shards(
        entry_of(f"q {number}", decision(items=items, order=order, blocks=blocks))
        for number, order in enumerate(orders)
    )  # fmt: skip
    assert sum(map(len, shards)) / 5_000 < 70
    assert min(map(len, shards)) > 0


def test_shards_find_what_was_decided_and_nothing_else() -> None:
    """By query first, then by candidate set; a query may have several."""
    sets = {
        "a": [["x", "y"]], "b": [["x", "y"], ["x", "y", "z"], ["v"]],
        **{f"query {number}": [["x", f"y{number}"]] for number in range(3_000)},
    }  # fmt: skip
    decided = {
        (query, *items): list(range(len(items)))[:: -1 if len(query) % 2 else 1]
        for query, each in sets.items()
        for items in each
    }
    entries = [
        entry_of(query, decision(items=list(items), order=order, blocks=[len(order)]))
        for (query, *items), order in decided.items()
    ]
    packed = pack_shards(entries)
    assert packed == pack_shards(reversed(entries))
    shards = [load_shard(each, digest_of(each)) for each in packed]

    def found(query: str, items: list[str]) -> list[int] | None:
        route = route_of_query(query)
        shard = shards[shard_number(route)]
        row = shard.first_rows.get(route)
        order = None if row is None else shard.order(row, hash_of_items(items))
        return None if order is None else list(order.order)

    for (query, *items), order in decided.items():
        assert found(query, list(items)) == order
    assert found("a", ["x", "y", "z"]) is None
    assert found("b", ["x"]) is None
    assert found("c", ["x", "y"]) is None
    with pytest.raises(DecisionError, match="once"):
        pack_shard([entries[0], entries[0]])


def test_a_set_is_known_by_its_items_not_by_their_text() -> None:
    """No character parts them."""
    sets = [["a", "b"], ["a,b"], ["ab"], ["a", "b", ""], ["a\x1fb"], ["b", "a"], []]
    assert len({hash_of_items(each) for each in sets}) == len(sets)


def test_a_shard_without_entries_lies_nowhere() -> None:
    """It has neither bytes nor a digest."""
    assert pack_shards([]) == [b""] * N_SHARDS
    assert digest_of(b"") == b""
    assert load_shard(b"", b"") is EMPTY_SHARD
    assert EMPTY_SHARD.first_rows == {}


def test_damaged_shards_are_refused() -> None:
    """Each byte that changes, each length, and none at all."""
    packed = pack_shard([entry_of("q", decision()), entry_of("r", decision())])
    digest = digest_of(packed)
    for at in range(len(packed)):
        with pytest.raises(DecisionError):
            load_shard(packed[:at], digest)
        with pytest.raises(DecisionError):
            load_shard(packed[:at] + bytes([packed[at] ^ 1]) + packed[at + 1 :], digest)


@pytest.mark.parametrize("slot", [None, Slot(2, 0.5, [0, 1])])
def test_no_bytes_make_a_look_up_fail(slot: Slot | None) -> None:
    """What somebody made up, with its own digest, is refused or can be looked up."""
    entries = [
        entry_of("q", decision(blocks=[3, 3], slot=slot)),
        entry_of("r", decision()),
    ]
    packed = pack_shard(entries)
    rng = np.random.default_rng(8)
    n_refused = 0
    for _ in range(3_000):
        made = bytearray(packed)
        for _ in range(rng.integers(1, 4)):
            made[rng.integers(len(made))] = rng.integers(256)
        made = made[: rng.integers(len(made) // 2, len(made) + 1)]
        try:
            shard = load_shard(bytes(made), digest_of(bytes(made)))
        except DecisionError:
            n_refused += 1
            continue
        for row, hashed in enumerate(shard.hashes):
            order, ties, found = shard.order(row, hashed) or TiedOrder((), ())
            assert sorted(order) == list(range(len(order))) != []
            assert all(0 <= first < last < len(order) for first, last in ties)
            if found is not None:
                assert 1 <= found.n_ranks < len(order)
                assert {*found.tried} < {*order}
            listed = TiedList([*order], ties, found)
            for cutoff in (1, 2, 6):
                assert len({*listed.drawn(cutoff=cutoff, seed=1)[0]}) <= cutoff
                assert listed.exposures(cutoff).sum() < cutoff + 1e-5
    assert 500 < n_refused < 3_000


SLOTS = [
    (20, Slot(4, 0.5, [19, 17])), (20, Slot(6, 0.25, [])), (300, Slot(5, 1.0, [299])),
    (300, Slot(4, 0.5, [*range(8, 300)])),
]  # fmt: skip


@pytest.mark.parametrize(("n", "slot"), SLOTS)
def test_a_slot_comes_back(n: int, slot: Slot) -> None:
    """With the order and its ties, and its shard has the other schema."""
    blocks = [4, 4, *[1] * (n - 8)]
    plain = decision(items=_items(n), order=[*range(n)], blocks=blocks)
    with_slot = msgspec.structs.replace(plain, slot=slot)
    assert wire.decode_decision(wire.encode_decision(with_slot)) == with_slot
    for one, expected in ((plain, 1), (with_slot, 2)):
        entry = entry_of("q", one)
        packed = pack_shard([entry, entry_of("r", plain)])
        assert int.from_bytes(packed[4:6], "little") == expected
        shard = load_shard(packed, digest_of(packed))
        row = shard.first_rows[entry.route]
        found = shard.order(row, entry.items_hash)
        assert found is not None
        assert [*found.order] == one.order
        assert found.ties == [(0, 3), (4, 7)]
        told = found.slot
        assert (told and (told.n_ranks, told.share, [*told.tried])) == one.slot


def _items(n: int) -> list[str]:
    return [f"{number:03}" for number in range(n)]


@pytest.mark.parametrize(
    "slot",
    [
        Slot(0, 0.5, [5]), Slot(6, 0.5, [5]), Slot(4, 0.0, [5]), Slot(4, 1.1, [5]),
        Slot(4, float("nan"), [5]), Slot(4, 0.5, [5, 5]), Slot(4, 0.5, [6]),
        Slot(4, 0.5, [0]), Slot(4, 0.5, [4]), Slot(2, 0.5, []),
    ],
)  # fmt: skip
def test_a_slot_that_tries_what_it_cannot_is_refused(slot: Slot) -> None:
    """What is above it or tied with it, what is not there, and nothing at all."""
    with pytest.raises(DecisionError, match="a slot must be"):
        pack_order([*range(6)], [1, 1, 1, 2, 1], slot)


def test_bodies_that_are_no_orders_are_refused() -> None:
    """Those that no encoder of ours makes."""
    bodies = [
        b"", b"\0\0", b"\2\0\0", b"\2\0\0\0", b"\2\0\0\2", b"\2\0\0\1\0",
        b"\2\0\0\1\0\0", b"\2\0\0\1\0\2", b"\3\0\0\1\2\1\2\0\1", b"\3\0\0\1\2\0\1\1\2",
        bytes(28_000),  # two thousand slots, one within another
    ]  # fmt: skip
    for body in bodies:
        packed = pack_shard([Entry(1, 2, body)])
        with pytest.raises(DecisionError, match="whole entries"):
            load_shard(packed, digest_of(packed))


def test_keys_come_back_and_others_are_refused() -> None:
    """A name alone is a manifest's."""
    key = wire.decode_key(wire.decision_key("rule", "a query", b"0123"))
    assert (*key, key.is_manifest) == ("rule", "a query", b"0123", False)
    key = wire.decode_key(wire.manifest_key("rule"))
    assert (key.name, key.is_manifest) == ("rule", True)
    encode = msgspec.msgpack.encode
    for other in ([], [""], ["a", "q"], ["a", "", b"s"], ["a", "q", b""], 7, {"a": 1}):
        with pytest.raises(DecisionError):
            wire.decode_key(encode(other))
    with pytest.raises(DecisionError):
        wire.decode_key(b"rule")


def test_decisions_come_back_with_their_evidence() -> None:
    """Equal ones have equal bytes; those of another release are refused."""
    one = decision(blocks=[2, 4])
    assert wire.decode_decision(wire.encode_decision(one)) == one
    for other in (b"", b"x", wire.encode_decision(decision(schema=2))):
        with pytest.raises(DecisionError):
            wire.decode_decision(other)


@pytest.mark.parametrize(
    "fields",
    [
        {"items": ITEMS[::-1]},
        {"items": ITEMS[:5]},
        {"items": [*ITEMS[:5], ITEMS[4]]},
        {"blocks": [1, 1]},
        {"order": [0] * 6},
    ],
)
def test_a_decision_that_orders_other_items_is_refused(fields: dict[str, Any]) -> None:
    """Items must be sorted and differ, and each be ordered once."""
    with pytest.raises(DecisionError):
        entry_of("q", decision(**fields))


def test_a_manifest_comes_back_with_its_snapshot() -> None:
    """Its place names its bytes."""
    plain = rewrite(3)
    assert wire.decode_manifest(plain.value) == plain.manifest
    assert wire.default_snapshot(plain.manifest) is None
    other = rewrite(3, envelope=envelope(4, model="general"), default="general@0.4")
    snapshot = wire.default_snapshot(wire.decode_manifest(other.value))
    assert snapshot is not None
    assert (snapshot.model, snapshot.version) == ("general", 4)
    places = {wire.place_of(each.value, 3) for each in (plain, other)}
    assert len(places) == 2
    assert all(each.startswith("3.") for each in places)


FAULTS: dict[str, Callable[[], Any]] = {
    "number": lambda: rewrite(0),
    "too large a number": lambda: rewrite(10**15),
    "stands on nothing": lambda: rewrite(stands_on="1", default="m@1"),
    "another default, not brought": lambda: rewrite(default="m@0.2"),
    "no name": lambda: rewrite(name=""),
    "long name": lambda: rewrite(intervention="x" * 257),
    "few shards": lambda: rewrite(shards=[b""] * 255),
    "short digest": lambda: rewrite(shards=[b"x"] * N_SHARDS),
    "decisions that were withdrawn": lambda: rewrite(intervention=""),
}


@pytest.mark.parametrize("make", FAULTS.values(), ids=FAULTS)
def test_a_manifest_that_contradicts_itself_is_refused(make: Callable[[], Any]) -> None:
    """Where it is written, and where it is read."""
    with pytest.raises(DecisionError):
        make()


def test_a_manifest_that_is_none_is_refused() -> None:
    """Also one whose snapshot is damaged, or another."""
    for value in (
        b"",
        b"x",
        b"\x90",
        msgspec.msgpack.encode([2]),
        rewrite().value[:-1],
    ):
        with pytest.raises(DecisionError):
            wire.decode_manifest(value)
    for other in (envelope(4)[:-1], envelope(5)):
        bad = rewrite(envelope=other, default="m@0.4")
        with pytest.raises(DecisionError, match="bring its default"):
            wire.default_snapshot(bad.manifest)


def test_a_rewrite_that_fits_no_record_is_refused() -> None:
    """With its default snapshot and its key, to the byte."""
    beside = len(rewrite(default="m@0.2", envelope=bytes(1 << 16)).value) - (1 << 16)
    most = LARGEST[DECISIONS] - len(wire.manifest_key("rule")) - beside
    assert len(rewrite(default="m@0.2", envelope=bytes(most)).value) == most + beside
    with pytest.raises(DecisionError, match="take a smaller model"):
        rewrite(default="m@0.2", envelope=bytes(most + 1))
