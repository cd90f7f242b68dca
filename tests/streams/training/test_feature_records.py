"""Features that trainings read: the newest of each set, the first set of each item."""

import msgspec
import numpy as np
import pytest

from rankstream.wire.candidates import candidates_key, candidates_value
from rankstream.wire.routing import partition_of_query
from streams.native.counting import name_of_set
from streams.training.feature_records import (
    FeatureRecords,
    FeaturesDigest,
    FeaturesRefused,
)

HASH, OTHER = b"12345678", b"87654321"


def named(items):
    """The name of a set of items of one letter each."""
    return name_of_set(msgspec.msgpack.encode(list(items)))


# The second is the first by name.
A, B, C = named("wx"), named("xyz"), named("v")


def record(query, name, items, number, list_hash=HASH):
    """A set of items of one letter each, whose features are numbers."""
    rows = np.array([[ord(item), number] for item in items], "<f4")
    packed = msgspec.msgpack.encode(list(items))
    value = candidates_value(packed, rows.tobytes(), 2)
    return candidates_key(query, name, list_hash), value


def read(*items, held_bytes=1 << 20):
    """What a training reads of these records."""
    return FeatureRecords(items, HASH, 2, held_bytes=held_bytes)


def told(found):
    """Numbers by item."""
    return dict(zip(found.items, found.features[:, 1].tolist(), strict=True))


RECORDS = (
    record("q", A, "wx", 1),
    record("q", B, "xyz", 2),
    record("r", A, "wx", 5),
    record("q", C, "v", 3),
)


@pytest.mark.parametrize("held_bytes", [0, 1 << 20])
def test_an_item_has_the_features_of_its_first_set(held_bytes):
    """By the set's name, whatever came first; in memory as in a file."""
    found = read(*RECORDS, held_bytes=held_bytes).of("q", [B, A])
    assert B < A
    assert told(found) == {"w": 1, "x": 2, "y": 2, "z": 2}
    assert found.items == ("w", "x", "y", "z")
    assert found.features[:, 0].tolist() == [ord(item) for item in "wxyz"]


def test_only_sets_that_are_asked_for_are_read():
    """And a query, or a set, without features has none."""
    records = read(*RECORDS)
    assert told(records.of("q", [C])) == {"v": 3}
    assert records.of("q", [b"d" * 16]) is None
    assert records.of("s", [A]) is None


def test_the_last_value_counts_and_a_tombstone_takes_it_away():
    """As where the broker has compacted them; what comes later counts again."""
    newer = record("q", A, "wx", 9)
    gone = (newer[0], None)
    assert told(read(*RECORDS, newer).of("q", [A])) == {"w": 9, "x": 9}
    assert read(*RECORDS, gone).of("q", [A]) is None
    assert told(read(*RECORDS, gone).of("q", [A, B])) == told(
        read(*RECORDS).of("q", [B])
    )
    assert told(read(*RECORDS, gone, newer).of("q", [A])) == {"w": 9, "x": 9}


def test_other_lists_of_features_are_counted_and_not_read():
    """They may be of the same items."""
    records = read(record("q", A, "wx", 7, OTHER), *RECORDS)
    assert records.n_others == 1
    assert told(records.of("q", [A])) == {"w": 1, "x": 1}
    with pytest.raises(ValueError, match="must be 3 of an item"):
        FeatureRecords(RECORDS, HASH, 3).of("q", [A])


def features_used(features, sets):
    """Digests of what a training reads of these queries' sets, sorted by query."""
    digest = FeaturesDigest(features.n_partitions)
    for query, names in sets:
        found = features.of(query, names)
        if found is not None:
            digest.take(query, found.digests)
    return digest.used()


def test_the_digest_is_of_what_is_used_in_any_order_of_the_topic():
    """One other number, item, set or query makes another one; what is not used none."""
    sets = [("q", [B, A]), ("r", [A])]
    used = features_used(read(*RECORDS), iter(sets))
    assert [each.n_records for each in used] == [3]
    assert features_used(read(*RECORDS[::-1]), iter(sets)) == used
    assert features_used(read(*RECORDS, record("t", A, "w", 1)), iter(sets)) == used
    others = (
        record("q", B, "xyz", 4),
        record("q", A, "wx", 2),
        record("r", A, "wx", 4),
    )
    for each in others:
        assert features_used(read(*RECORDS, each), iter(sets)) != used
    assert features_used(read(*RECORDS), iter([("q", [A]), ("r", [A])])) != used


def test_each_partition_has_a_digest_of_its_own():
    """What comes in one changes that of no other."""
    sets = [("q", [B, A]), ("r", [A])]
    of = {query: partition_of_query(query, 8) for query in ("q", "r")}
    assert len({*of.values()}) == 2
    both = [
        {each.partition: each for each in features_used(records, iter(sets))}
        for records in (
            FeatureRecords(RECORDS, HASH, 2, n_partitions=8),
            FeatureRecords(
                [*RECORDS, record("r", A, "wx", 4)], HASH, 2, n_partitions=8
            ),
        )
    ]
    assert {at: x.n_records for at, x in both[0].items()} == {of["q"]: 2, of["r"]: 1}
    assert both[0][of["q"]] == both[1][of["q"]]
    assert both[0][of["r"]] != both[1][of["r"]]


@pytest.mark.parametrize(
    ("name", "items", "rest", "told"),
    [
        (A, "wy", b"", "they are of other items"),
        (A, "w", b"", "they are of other items"),
        (A, "xw", b"", "they are of other items"),
        (named(""), "", b"", "they are of none"),
        (A, "", b"", "they are of none"),
        (A, "wx", bytes(4), "20 bytes are no 2 of each"),
    ],
)
def test_a_record_that_is_not_of_its_set_is_refused(name, items, rest, told):
    """In words: its query, what is wrong, and what to do."""
    rows = np.zeros((len(items), 2), "<f4").tobytes() + rest
    value = candidates_value(msgspec.msgpack.encode(list(items)), rows, 2)
    records = read((candidates_key("q", name, HASH), value))
    with pytest.raises(FeaturesRefused, match=f"'q' must be those .*; {told}: let no"):
        records.of("q", [name])


def test_a_value_that_is_no_record_is_refused():
    """As something else wrote it."""
    for value in (b"\x94\x01", b"\x94\x01\x02\xa1x\xc4\x00"):
        records = read((candidates_key("q", A, HASH), value))
        with pytest.raises(FeaturesRefused, match=r"'q' must be those .*let nothing"):
            records.of("q", [A])
