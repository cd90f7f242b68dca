"""Features of candidates follow their query where the log gets more partitions."""

import msgspec
import pytest

from rankstream.wire.candidates import candidates_key, candidates_value
from rankstream.wire.routing import partition_of_route, route_of_query
from rankstream.wire.topics import CANDIDATES
from streams.fold.candidates_fold import COUNTS, CandidatesFold
from streams.repartitioning.records import divided_candidates, moved_features

HEIRS = range(1, 16, 4)


def queries() -> list[str]:
    """Some of partition 1 of 4."""
    named = (f"q{number}" for number in range(400))
    return [one for one in named if partition_of_route(route_of_query(one), 4) == 1]


def heir_of(query: str) -> int:
    """Where it goes among 16."""
    return partition_of_route(route_of_query(query), 16)


def test_what_is_known_goes_with_its_query() -> None:
    """Counts stay with the partition; each child takes its share back, and no other."""
    places = {msgspec.msgpack.encode([query, b"set"]): query for query in queries()}
    known = msgspec.msgpack.encode([1, [(b"list", b"digest")]])
    counts = msgspec.msgpack.encode([1, 7, [len(places), 3, 2, 1, 0]])
    values = dict.fromkeys(places, known) | {COUNTS: counts}
    shares = divided_candidates(values, HEIRS, 16)
    found = {child: {key for _, key, _ in share} for child, share in shares.items()}
    for child in HEIRS:
        expected = {key for key, query in places.items() if heir_of(query) == child}
        assert expected
        assert found[child] - {COUNTS} == expected
        assert (COUNTS in found[child]) == (child == 1)
        fold = CandidatesFold(child, 1_000, lambda _query, _name: True)
        fold.restore(shares[child])
        assert fold.counters()["known_candidate_sets"] == len(expected)
        assert fold.counters()["candidates_repeated"] == 3 * (child == 1)


def test_features_move_and_leave_a_tombstone() -> None:
    """The last value of each key that is there; what stays is not written again."""
    value = candidates_value(msgspec.msgpack.encode(["a"]), b"\0" * 4, 1)
    keys = {candidates_key(query, b"set", b"list"): query for query in queries()}
    first, *others = keys
    records = [(first, b"older"), *((key, value) for key in others), (first, value)]
    gone = next(key for key in others if heir_of(keys[key]) != 1)
    written = [*moved_features([*records, (gone, None)], HEIRS, 16)]
    expected = {
        key: child for key, query in keys.items() if (child := heir_of(query)) != 1
    }
    expected.pop(gone)
    assert len(expected) > 10
    put = [(one.partition, one.key, one.value) for one in written if one.value]
    assert sorted(put) == sorted((child, key, value) for key, child in expected.items())
    left = [(one.partition, one.key) for one in written if one.value is None]
    assert sorted(left) == sorted((1, key) for key in expected)
    assert {one.topic for one in written} == {CANDIDATES}


def test_no_features_are_no_share() -> None:
    """Where nothing is known, children get nothing."""
    shares = divided_candidates({}, HEIRS, 16)
    assert shares == {child: [] for child in HEIRS}


def test_a_query_of_another_partition_is_refused() -> None:
    """It would be put where nobody asks for it."""
    stray = next(f"q{i}" for i in range(99) if heir_of(f"q{i}") not in HEIRS)
    key = candidates_key(stray, b"s" * 16, b"f" * 8)
    with pytest.raises(ValueError, match=rf"\[1, 5, 9, 13\]; '{stray}' is of"):
        list(moved_features([(key, b"x")], HEIRS, 16))
    state = {msgspec.msgpack.encode([stray, b"s" * 16]): b"x"}
    with pytest.raises(ValueError, match=rf"'{stray}' is of"):
        divided_candidates(state, HEIRS, 16)
