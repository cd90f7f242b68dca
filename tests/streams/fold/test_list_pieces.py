"""Lists of large scopes lie in pieces: one impression more writes one of them."""

from functools import cache
from typing import Any

import msgspec
import numpy as np
import pytest

from models.counts.definition import ClosedImpression, count
from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import ClickMark, Interaction
from streams.fold import statistics_fold
from streams.fold.statistics_fold import Pieces, StatisticsFold, StatisticsRefused
from streams.native.closed_impressions import closed_of
from streams.stage import Change
from streams.statistics.keys import counted_key
from streams.statistics.reader import Statistics
from tests.event_factory import impression
from tests.streams.recount.recounted import Folded, random_log

N_LISTS, N_GROUPS, N_ITEMS = 60, 20, 10
ITEMS = tuple(f"d{row}" for row in range(N_ITEMS))
KEEP_MS = 1_000_000
TINY = Pieces(0, 1)

_decode = msgspec.msgpack.Decoder().decode

State = dict[bytes, bytes]


def new_fold(pieces: Pieces | None = None, lists: int = 64) -> StatisticsFold:
    """An empty fold."""
    limits = LimitSettings(lists=lists)
    settings = StatisticsSettings(groups=N_GROUPS)
    return StatisticsFold(limits, settings, KEEP_MS, 0, pieces)


def restored(state: State, pieces: Pieces | None = None) -> StatisticsFold:
    """A fold that goes on from a state, the newest records first."""
    fold = new_fold(pieces)
    fold.restore(Change("statistics", *each) for each in reversed(state.items()))
    return fold


def applied(state: State, fold: StatisticsFold) -> State:
    """The records that a fold has changed; the state has them then."""
    changes = {change.key: change.value for change in fold.changes()}
    for key, value in changes.items():
        if value is None:
            del state[key]
        else:
            state[key] = value
    return {key: value or b"" for key, value in changes.items()}


def records_of(state: State, kind: str) -> State:
    """Those of a kind."""
    return {key: value for key, value in state.items() if _decode(key)[0] == kind}


@cache
def orders() -> list[list[int]]:
    """The lists, as rows of the candidates."""
    rng = np.random.default_rng(1)
    return [rng.permutation(N_ITEMS).tolist() for _ in range(N_LISTS)]


def shown(order: list[int], unit: int, *ranks: int) -> Interaction:
    """A closed impression of all items."""
    one = impression(
        at_ms=5, items=list(ITEMS), shown=[ITEMS[row] for row in order], unit=unit
    )
    return Interaction(one, [ClickMark(rank, 9, "click") for rank in ranks])


def log_of(n: int) -> list[Interaction]:
    """Impressions of all lists and groups; who looks at rank r clicks with .3."""
    rng = np.random.default_rng(2)
    looks = 0.3 / np.sqrt(np.arange(1, N_ITEMS + 1))
    clicks = rng.random((n, N_ITEMS)) < looks
    which, units = rng.integers(N_LISTS, size=n), rng.integers(N_GROUPS, size=n)
    return [
        shown(orders()[row], int(unit), *(np.flatnonzero(clicked) + 1).tolist())
        for row, unit, clicked in zip(which, units, clicks, strict=True)
    ]


def n_bytes(records: State) -> int:
    """Of keys and values."""
    return sum(len(key) + len(value) for key, value in records.items())


@pytest.mark.parametrize(("n", "most"), [(50, 3_000), (1_000, 1_000), (50_000, 4_500)])
def test_one_impression_more_writes_little(n: int, most: int) -> None:
    """The head, the piece of its list, and what was counted; not the other lists."""
    fold, state = new_fold(), State()
    fold.take(closed_of(log_of(n)))
    applied(state, fold)
    assert len(records_of(state, "lists")) == (0 if n == 50 else N_LISTS // 2)
    largest = 0
    for row in range(0, N_LISTS, 7):
        fold.take(closed_of([shown(orders()[row], row, 1)]))
        changed = applied(state, fold)
        assert changed.keys() >= {counted_key(0), *records_of(state, "scope")}
        assert len(changed) == (2 if n == 50 else 3)
        largest = max(largest, n_bytes(changed))
    assert largest < most


def test_a_small_scope_is_one_record_as_before() -> None:
    """It has no byte more than its numbers; a larger one begins to lie apart."""
    fold, state, n = new_fold(Pieces(100, 2)), State(), 0
    for row in range(20):
        fold.take(closed_of([shown(orders()[row], 0)]))
        applied(state, fold)
        n += records_of(state, "lists") == {}
        (head,) = map(_decode, records_of(state, "scope").values())
        if not records_of(state, "lists"):
            assert len(msgspec.msgpack.encode(head[4])) <= 100
            assert head[:4] == [2, 0, 5, []]
            assert head[5:] == [[], [], []]
        else:
            assert head[4] == len(records_of(state, "lists")) == (row + 2) // 2
    assert n == 6


def test_pieces_follow_from_what_was_counted_and_not_from_checkpoints() -> None:
    """Written at once, after each impression, or over restarts: the same bytes."""
    log, whole = log_of(400), State()
    fold = new_fold(Pieces(300, 3))
    fold.take(closed_of(log))
    applied(whole, fold)
    for restarts in (False, True):
        fold, state = new_fold(Pieces(300, 3)), State()
        for start in range(0, 400, 8):
            fold.take(closed_of(log[start : start + 8]))
            applied(state, fold)
            if restarts:
                fold = restored(state, Pieces(300, 3))
        assert state == whole
        assert len(records_of(state, "lists")) == N_LISTS // 3


def test_lists_without_limit_are_exact() -> None:
    """Thousands of a scope: no record is large, and each is counted."""
    fold, state = new_fold(lists=10_000), State()
    rng = np.random.default_rng(3)
    drawn = [rng.permutation(N_ITEMS).tolist() for _ in range(4_000)]
    log = [shown(order, 7 * n, 1 + n % 10) for n, order in enumerate(drawn)]
    fold.take(closed_of(log))
    applied(state, fold)
    assert max(map(len, state.values())) < 200
    found = Statistics(state.items())
    (name,) = found.scopes()
    closed = [
        ClosedImpression(7 * n % N_GROUPS, order, {0: [1 + n % 10]})
        for n, order in enumerate(drawn)
    ]
    for group, cell in count(closed, ITEMS).items():
        assert found.cells(name)[group].encode() == cell.encode()
    applied(state, restored(state))


def test_a_piece_of_lists_that_is_missing_is_refused() -> None:
    """Wherever it lay, and the head too; by the fold and by readers."""
    fold, state = new_fold(TINY), State()
    fold.take(closed_of(log_of(600)))
    applied(state, fold)
    restored(state, TINY)
    lists = list(records_of(state, "lists"))
    assert len(lists) == N_LISTS
    for gone in (lists[0], lists[9], lists[-1], *records_of(state, "scope")):
        left = {key: value for key, value in state.items() if key != gone}
        with pytest.raises(StatisticsRefused, match="must be whole"):
            restored(left, TINY)
    del state[lists[9]]
    with pytest.raises(ValueError, match="all 60 pieces of its lists; piece 9 is miss"):
        Statistics(state.items()).queries()


@pytest.mark.parametrize("kind", ["lists", "piece"])
def test_a_head_that_names_too_few_pieces_is_refused_by_readers(kind: str) -> None:
    """What the others hold would be missing, and nobody would know."""
    fold, state = new_fold(TINY, lists=40), State()
    fold.take(closed_of(log_of(600)))
    applied(state, fold)
    pieces = records_of(state, kind)
    assert len(pieces) in (40, N_GROUPS)
    ((key, value),) = records_of(state, "scope").items()
    head = _decode(value)
    if kind == "lists":
        head[4] -= 1
    else:
        head[6].pop()
    with pytest.raises(ValueError, match=r"does not name \[(39|19)\]"):
        Statistics({**state, key: msgspec.msgpack.encode(head)}.items()).queries()


@pytest.mark.parametrize("pieces", [None, TINY])
def test_readers_tell_of_a_scope_whose_head_is_missing(pieces: Pieces | None) -> None:
    """It would be left out, and nobody would know; also one that is only a head."""
    fold, state = new_fold(pieces), State()
    log = [shown(orders()[row % 60], row, 1) for row in range(300)]
    fold.take(closed_of(log))
    applied(state, fold)
    whole = Statistics(state.items())
    assert whole.n_missing(300) == 0
    (head,) = records_of(state, "scope")
    query = _decode(head)[1]
    assert whole.n_headless(query) == 0
    del state[head]
    found = Statistics(state.items())
    assert found.n_missing(0) == 300
    assert found.n_headless(query) == 1
    assert found.n_headless("another") == 0


def test_a_list_in_two_pieces_is_refused() -> None:
    """As where one was written over the other, though the sums are right."""
    fold, state = new_fold(TINY), State()
    fold.take(closed_of([shown(order, 0) for order in orders()[:2]]))
    applied(state, fold)
    one, other = records_of(state, "lists")
    assert state[one] != state[other]
    with pytest.raises(StatisticsRefused, match="must be whole"):
        restored({**state, one: state[other]}, TINY)


def test_pieces_of_another_size_are_refused() -> None:
    """What changed would be written into pieces that are not theirs.

    Also where there are as many: four lists are two pieces of two, or of three and one.
    """
    fold, state = new_fold(Pieces(0, 3)), State()
    fold.take(closed_of([shown(order, 0) for order in orders()[:4]]))
    applied(state, fold)
    assert len(records_of(state, "lists")) == 2
    restored(state, Pieces(0, 3))
    for n in (1, 2, 4):
        with pytest.raises(StatisticsRefused, match="must be whole"):
            restored(state, Pieces(0, n))


def test_a_state_that_was_written_whole_is_taken_back() -> None:
    """As a release without pieces wrote it: the next change writes them."""
    fold, state = new_fold(Pieces(1 << 20, 1)), State()
    fold.take(closed_of(log_of(2_000)))
    applied(state, fold)
    assert not records_of(state, "lists")
    fold = restored(state)
    assert applied(state, fold).keys() == {counted_key(0)}
    fold.take(closed_of([shown(orders()[0], 0)]))
    applied(state, fold)
    assert len(records_of(state, "lists")) == N_LISTS // 2
    again = new_fold()
    again.take(closed_of([*log_of(2_000), shown(orders()[0], 0)]))
    expected = State()
    applied(expected, again)
    assert state == expected


@pytest.mark.parametrize("restarts", [False, True])
def test_pieces_leave_with_their_era(restarts: bool) -> None:
    """Each gets its tombstone, also where a state was taken back."""
    fold, state = new_fold(TINY), State()
    fold.take(closed_of(log_of(600)))
    applied(state, fold)
    assert len(records_of(state, "lists")) == N_LISTS
    if restarts:
        fold = restored(state, TINY)
    fold.advance(2 * KEEP_MS)
    applied(state, fold)
    assert state.keys() == {counted_key(0)}


@pytest.mark.parametrize("seed", range(4))
def test_the_recount_agrees_over_pieces(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And sees a piece that no scope names."""
    monkeypatch.setattr(statistics_fold, "PIECES", TINY)
    folded = Folded(random_log(seed), [None, 200][seed % 2])
    kept = {key: value for key, value in folded.state.items() if value}
    pieces = records_of(kept, "lists")
    assert len(pieces) > (30 if seed % 2 else 2)
    verdict = folded.verdict()
    assert verdict.is_clean, verdict.differences
    key, value = next(iter(pieces.items()))
    folded.state[msgspec.msgpack.encode([*_decode(key)[:5], 99])] = value
    assert folded.verdict().extra == 1


def test_a_mask_in_a_piece_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one in a head is."""
    monkeypatch.setattr(statistics_fold, "PIECES", TINY)
    folded = Folded(random_log(1, 150))

    def change(piece: Any) -> bool:
        masks = piece[1][2][2]
        if masks:
            masks[0] ^= 3
        return bool(masks) and masks[0] > 0

    folded.change("lists", change)
    assert not folded.verdict().is_clean
