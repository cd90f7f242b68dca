"""Documents of several partitions, passed on in one order."""

from hypothesis import given
from hypothesis import strategies as st

from streams.adaptation.merge import MOST_DOCUMENTS, Document, Merge

LATER_MS = 10**9


def turn(merge: Merge[str], behind: tuple[str, ...] = ()) -> list[tuple[str, int]]:
    """All that one turn passes on."""
    passed = []
    merge.begin(behind, now_ms=LATER_MS)
    while (head := merge.head()) is not None:
        passed.append((head.place, head.document.taken_ms))
        merge.pass_on()
    return passed


def documents(*times_ms: int) -> list[Document]:
    """Documents that were taken then."""
    return [Document(n, at_ms, b"{}") for n, at_ms in enumerate(times_ms)]


def merged(**times_ms: tuple[int, ...]) -> Merge[str]:
    """Partitions that hold documents of these times."""
    merge: Merge[str] = Merge()
    merge.start(times_ms)
    for place, times in times_ms.items():
        merge.add(place, documents(*times))
    return merge


@given(st.lists(st.lists(st.integers(0, 50)), min_size=1, max_size=5))
def test_what_was_taken_first_goes_first(times: list[list[int]]) -> None:
    """All of it, each partition in its own order; across them by time."""
    named = {f"p{n}": tuple(sorted(each)) for n, each in enumerate(times)}
    passed = turn(merged(**named))
    assert [at for _, at in passed] == sorted(at for each in times for at in each)
    for place, each in named.items():
        assert [at for name, at in passed if name == place] == list(each)


@given(st.lists(st.integers(1, 9), min_size=1), st.integers(0, 40))
def test_fetches_in_pieces_change_nothing(pieces: list[int], seed: int) -> None:
    """However much comes at once, and of which partition first."""
    merge: Merge[str] = Merge()
    merge.start("ab")
    left = {"a": documents(*range(0, 60, 2)), "b": documents(*range(1, 90, 3))}
    expected = sorted(one.taken_ms for each in left.values() for one in each)
    passed: list[tuple[str, int]] = []
    for number in range(1_000):
        place = "ab"[(number + seed) % 2]
        n = pieces[number % len(pieces)]
        merge.add(place, left[place][:n])
        left[place] = left[place][n:]
        passed += turn(merge, tuple(name for name in left if left[name]))
    assert [at for _, at in passed] == expected


def test_nothing_passes_a_partition_that_has_more() -> None:
    """Until that is there, or the partition is found to be at its end."""
    merge = merged(a=(1, 5, 9), b=(2,))
    assert turn(merge, ("a", "b")) == [("a", 1), ("b", 2)]
    assert turn(merge, ("b",)) == []
    merge.add("b", documents(6))
    assert turn(merge, ("b",)) == [("a", 5), ("b", 6)]
    assert turn(merge) == [("a", 9)]


def test_what_waits_is_looked_at_once() -> None:
    """In the order of each partition; what was passed on meanwhile is not."""
    merge = merged(a=(1, 2), b=(5,))
    assert [at.taken_ms for _, at in merge.look_ahead()] == [1, 2, 5]
    assert [*merge.look_ahead()] == []
    merge.add("b", [Document(1, 6, b""), Document(2, 7, b"")])
    assert turn(merge)[-1] == ("b", 7)
    merge.add("a", [Document(2, 8, b""), Document(3, 9, b"")])
    assert [(at, one.taken_ms) for at, one in merge.look_ahead()] == [
        ("a", 8), ("a", 9)
    ]  # fmt: skip


def test_a_document_that_is_held_lets_the_others_pass_for_so_long() -> None:
    """And what is behind it in its partition waits too."""
    merge = merged(a=(10, 11), b=(12, 19, 21))
    merge.begin((), now_ms=LATER_MS)
    merge.hold(10)
    passed = []
    while (head := merge.head()) is not None:
        passed.append((head.place, head.document.taken_ms, head.was_held))
        merge.pass_on()
    assert passed == [
        ("b", 12, False),
        ("b", 19, False),
        ("a", 10, True),
        ("a", 11, False),
        ("b", 21, False),
    ]


def test_a_document_is_held_by_the_clock_where_nothing_else_comes() -> None:
    """At the end of all partitions there is nobody to pass it."""
    merge = merged(a=(10,), b=(12,))
    merge.begin((), now_ms=15)
    merge.hold(10)
    head = merge.head()
    assert head is not None
    assert head.place == "b"
    merge.pass_on()
    assert merge.head() is None
    merge.begin((), now_ms=15)
    head = merge.head()
    assert head is not None
    assert not head.was_held  # it is tried again in each turn
    merge.hold(10)
    assert merge.head() is None
    merge.begin((), now_ms=20)
    merge.hold(10)
    head = merge.head()
    assert head is not None
    assert head.was_held


def test_a_clock_that_is_ahead_holds_nothing_back() -> None:
    """Nor does one that is behind let others through before their time."""
    ahead = merged(a=(900, 10, 20, 30, 40), b=tuple(range(0, 60, 5)))
    passed = [at for _, at in turn(ahead)]
    assert passed.index(900) < passed.index(25)
    assert passed.index(10) < passed.index(25)
    behind = merged(a=(30, 31, 0, 32, 33, 34), b=tuple(range(0, 60, 5)))
    passed = [at for _, at in turn(behind)]
    assert passed.index(25) < passed.index(31) < passed.index(35)


def test_a_full_partition_is_read_no_more() -> None:
    """By number or by bytes; and its next offset is where it lags."""
    merge = merged(a=(), b=())
    assert merge.wanted() == ["a", "b"]
    assert merge.next_offset("a") is None
    merge.add("a", documents(*range(MOST_DOCUMENTS)))
    merge.add("b", [Document(7, 1, bytes((4 << 20) - 1))])
    assert merge.wanted() == ["b"]
    merge.add("b", [Document(8, 1, b"1")])
    assert merge.wanted() == []
    assert merge.next_offset("b") == 7
    assert len(merge) == MOST_DOCUMENTS + 2
    turn(merge)
    assert merge.wanted() == ["a", "b"]
    merge.start(["c"])
    assert merge.wanted() == ["c"]


def test_a_head_that_waits_is_passed_on_once_all_is_read_up_to_its_time() -> None:
    """Or as much of a partition as may wait."""
    merge = merged(a=(10,), b=(12,))
    for behind, n_more, is_read in (
        ((), 0, True),
        (("b",), 0, False),
        (("b",), 1, True),
    ):
        merge.add("b", documents(*([30] * n_more)))
        merge.begin(behind, now_ms=LATER_MS)
        merge.hold(20)
        # Those of b go first now.
        while (head := merge.head()) is not None and not head.was_held:
            merge.hold(20)
        assert merge.is_read_ahead() == is_read
    merge = merged(a=(10,), b=(12,) * MOST_DOCUMENTS)
    merge.begin(("b",), now_ms=LATER_MS)
    merge.hold(1)
    merge.head()
    assert merge.is_read_ahead()
