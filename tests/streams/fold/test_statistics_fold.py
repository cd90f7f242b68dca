"""The fold of statistics against plain counts, and against itself."""

from collections import Counter, defaultdict

import msgspec
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.counts.cells import TOTAL_NAMES
from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    MULTILEAVE,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
    ClickMark,
    Impression,
    Interaction,
)
from rankstream.wire.exposures import pack_exposures
from streams.fold.statistics_fold import Pieces, StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.stage import Change
from streams.statistics.reader import Statistics
from tests import event_factory
from tests.session.cases import n_cases
from tests.streams.fold.plain_statistics import (
    OPEN_SET,
    OVERFLOW_SET,
    PAIR_COUNTS,
    PlainStatistics,
    applied,
    comparable,
    state_of,
)
from tests.streams.fold.plain_topic import MOST_MASKS, chunks, decoded, topic_of

LIMITS = LimitSettings(candidate_sets=2, interventions=2, exposure_rows=2, lists=3)
ACTIONS = {"buy": "purchase", "pay": "purchase", "linger": "dwell"}
KEEP_MS = 1_000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

LONG = tuple(f"x{n:02}" for n in range(36))
LISTS = (("a", "b", "c"), ("a", "b", "c", "d"), ("b", "d"), ("e", "f", "g"), LONG)
TIMES_MS = (0, 1, KEEP_MS - 1, KEEP_MS, KEEP_MS + 1, 2 * KEEP_MS, 3 * KEEP_MS + 7)
MARKS = st.builds(
    ClickMark,
    st.integers(1, 4),
    st.just(5),
    st.sampled_from(("click", "other", *ACTIONS)),
)


def kept(reward="click", groups=3):
    """Settings with several classes."""
    return StatisticsSettings(groups=groups, reward=reward, actions=ACTIONS)


def fold_of(statistics, limits=LIMITS, pieces=None):
    """A new fold of the first partition."""
    return StatisticsFold(limits, statistics, KEEP_MS, 0, pieces)


@st.composite
def interactions(draw, lists=LISTS, queries="qr", interventions="mno", units=(3, 23)):
    """A closed impression of few queries, lists and interventions, with clicks."""
    candidates = draw(st.sampled_from(lists))
    n_items = len(candidates)
    order = draw(st.permutations(range(min(n_items, 4))))
    n_shown = draw(st.integers(1, len(order)))
    if n_items > 4 and draw(st.booleans()):
        order = list(range(n_items))
        n_shown = draw(st.integers(31, 35))
    is_open = draw(st.integers(0, 4)) == 0
    if is_open:
        policy = draw(st.sampled_from((UNKNOWN, DETERMINISTIC, TAIL_SHUFFLE)))
        candidates = tuple(sorted(candidates[row] for row in order[:n_shown]))
        order = draw(st.sampled_from((range(n_shown), range(n_shown)[::-1])))
    else:
        policy = draw(
            st.sampled_from(
                (
                    UNKNOWN,
                    DETERMINISTIC,
                    TAIL_SHUFFLE,
                    PLACKETT_LUCE,
                    LOGGED,
                    MULTILEAVE,
                )
            )
        )
    n_items = len(candidates)
    scores = draw(st.sampled_from((0.0, 1.0, 30.0)))
    exposures = np.full(
        (n_items, n_shown), draw(st.sampled_from((0.1, 1e-8, 0.0))), "<f4"
    )
    exposures[order[0], 0] = draw(st.sampled_from((0.0, 0.4)))
    impression = Impression(
        identity=b"i" * 16,
        impression_id="i",
        query_id=draw(st.sampled_from(queries)),
        at_ms=draw(st.sampled_from(TIMES_MS)),
        model="m",
        version=1,
        intervention=draw(st.sampled_from(interventions)),
        seed=0,
        policy=policy,
        candidates=_encode(list(candidates)),
        shown=np.array(order[:n_shown], "<u2").tobytes(),
        is_open_set=is_open,
        scores=(np.arange(n_items, dtype="<f4") * scores).astype("<f4").tobytes(),
        exposures=pack_exposures(exposures) if policy == LOGGED else b"",
        features=b"",
        n_features=0,
        unit=draw(st.sampled_from(units)),
        extra=b"",
    )
    marks = draw(st.lists(MARKS, max_size=4))
    return Interaction(impression, [mark for mark in marks if mark.position <= n_shown])


ONE_SCOPE = {"lists": LISTS[:1], "queries": "q", "interventions": "m", "units": (5,)}
WATERMARKS = st.integers(0, 12).map(lambda half: half * KEEP_MS // 2)

STEPS = st.one_of(
    st.lists(
        st.one_of(interactions(units=(3, 23, 2**64 - 1)), interactions(), WATERMARKS),
        max_size=40,
    ),
    # One scope, so that its lists and rows are counted again, and run out of room.
    st.lists(st.one_of(*[interactions(**ONE_SCOPE)] * 9, WATERMARKS), max_size=40),
)
"""Impressions, and watermarks."""

REWARDS = st.sampled_from(("click", "purchase", "dwell"))
PIECES = st.builds(Pieces, st.sampled_from((0, 30, 4_096)), st.integers(1, 2))


def play(fold, steps, reached_ms=-1):
    """Give steps to a fold; the watermark never falls."""
    for step in steps:
        if isinstance(step, int):
            reached_ms = max(reached_ms, step)
            fold.advance(reached_ms)
        else:
            fold.take(closed_of([step]))
    return reached_ms


def plain_of(statistics, steps, limits=LIMITS):
    """Plain counts of the same steps."""
    plain = PlainStatistics(limits, statistics, KEEP_MS)
    for step in steps:
        plain.take(step)
    return plain


def cells_of(state):
    """What readers see of each group, in the plain form, without rewards."""
    statistics = Statistics(state.items())
    rows_by_name = {
        tuple(_decode(key)[1:]): tuple(_decode(value)[1:])
        for key, value in state.items()
        if _decode(key)[0] == "row"
    }
    found = {}
    for name in statistics.names():
        query, candidate_set, intervention, era, group = name
        cell = statistics.cell(name)
        items, scope = cell.items, (query, candidate_set, intervention, era)
        squares = cell.squared_inverses()
        sums = zip(cell.sums.tolist(), squares, strict=True)
        counts = zip(cell.row_names, cell.row_counts.tolist(), strict=True)
        columns = (*PAIR_COUNTS, "exposure")
        of_set: object = candidate_set
        if candidate_set not in (OPEN_SET, OVERFLOW_SET):
            of_set = tuple(
                _decode(state[_encode(["set", query, candidate_set, era])])[1]
            )
        found[query, of_set, intervention, era, group] = comparable(
            {
                "totals": Counter({n: cell.total(n) for n in TOTAL_NAMES}),
                "pairs": {
                    (items[p[0]], p[1]): Counter(dict(zip(columns, p[2:], strict=True)))
                    for p in cell.pairs.tolist()
                },
                "sums": {
                    items[s[0]]: Counter(
                        plus=s[1], minus=s[2], inverse=s[3], squared=squared
                    )
                    for s, squared in sums
                },
                "click_pairs": Counter(
                    {
                        tuple(sorted(((items[a], r), (items[b], s)))): n
                        for a, r, b, s, n in cell.click_pairs.tolist()
                    }
                ),
                "rows": Counter({rows_by_name[*scope, n]: c for n, c in counts}),
            }
        )
    return found


def expected_cells(plain):
    """The same of plain counts."""
    found = {}
    for name, cell in plain.cells().items():
        pairs = Counter(
            {((a, r), (b, s)): n for (a, r, b, s), n in cell["click_pairs"].items()}
        )
        parts = {part: counts for part, counts in cell.items() if part != "rewards"}
        found[name] = comparable({**parts, "click_pairs": pairs})
    return found


@settings(
    max_examples=n_cases(120, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(STEPS, REWARDS, PIECES)
def test_the_topic_is_what_plain_counts_would_write(steps, reward, pieces):
    """Both forms, rows, rewards, flags and limits; whole scopes that leave."""
    fold = fold_of(kept(reward), pieces=pieces)
    play(fold, steps)
    assert decoded(state_of(fold)) == decoded(topic_of(plain_of(kept(reward), steps)))


@settings(
    max_examples=n_cases(120, 300),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(STEPS, REWARDS, PIECES)
def test_readers_see_the_definitions_in_whatever_form_they_lie(steps, reward, pieces):
    """Sums over both forms are what each impression by itself says."""
    fold = fold_of(kept(reward), pieces=pieces)
    play(fold, steps)
    assert cells_of(state_of(fold)) == expected_cells(plain_of(kept(reward), steps))


@settings(
    max_examples=n_cases(80, 200),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    STEPS,
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2)), max_size=8),
    PIECES,
)
def test_cuts_and_restores_change_no_byte(steps, cuts, pieces):
    """Settling, writing or restoring anywhere gives the same state."""
    whole = fold_of(kept(), pieces=pieces)
    play(whole, steps)
    fold = fold_of(kept(), pieces=pieces)
    state: dict[bytes, bytes] = {}
    at = defaultdict(list)
    for place, action in cuts:
        at[place].append(action)
    reached_ms = -1
    for i, step in enumerate([*steps, None]):
        for action in at[i]:
            if action == 0:
                fold.settle()
            else:
                state = applied(state, fold.changes({}))
            if action == 2:
                mark = fold.fingerprint()
                fold = fold_of(kept(), pieces=pieces)
                fold.restore(Change("statistics", *item) for item in state.items())
                assert fold.fingerprint() == mark
        if step is not None:
            reached_ms = play(fold, [step], reached_ms)
    assert fold.fingerprint() == whole.fingerprint()
    state = applied(state, fold.changes({}))
    assert state == state_of(whole)
    assert {change.key for change in fold.changes({})} <= {_encode(["counted", 0])}
    assert fold.counters().keys() == whole.counters().keys()


def shown_once(*marks, unit=0, n_items=3, **fields):
    """A list of a few items, and the ranks clicked on it."""
    items = [f"d{n:05}" for n in range(n_items)]
    one = event_factory.impression(items=items, unit=unit, at_ms=0, **fields)
    return Interaction(
        one, [ClickMark(rank, n, "click") for n, rank in enumerate(marks)]
    )


def heads_of(state):
    """Values of scopes."""
    return [_decode(v) for k, v in state.items() if _decode(k)[0] == "scope"]


def test_clicks_that_repeat_take_no_room() -> None:
    """Thousands of clicks on a list of three are three clicked ranks."""
    fold = fold_of(kept())
    fold.take(closed_of([shown_once(*(1 + n % 3 for n in range(3_000)))]))
    (head,) = heads_of(state_of(fold))
    assert head[4][2] == [0, 1, [7, 1]]


def test_masks_beyond_their_number_go_to_the_general_form() -> None:
    """Sixty-three of a list and group with clicks; another group has its own."""
    fold = fold_of(kept(groups=2))
    taken = [
        shown_once(*(r for r in range(1, 9) if mask >> (r - 1) & 1), n_items=8, unit=g)
        for mask in range(100)
        for g in (0, 1)
    ]
    fold.take(closed_of(taken))
    state = state_of(fold)
    (head,) = heads_of(state)
    assert head[1] == 2
    assert [(g, n, len(m)) for g, n, m in chunks(head[4][2], 3)] == [
        (0, 64, 2 * MOST_MASKS),
        (1, 64, 2 * MOST_MASKS),
    ]
    assert decoded(state) == decoded(topic_of(plain_of(kept(groups=2), taken)))


def test_a_query_with_all_sets_and_interventions_is_exact_or_capped() -> None:
    """Sixty-four sets and 256 interventions, and one more of each."""
    limits = LimitSettings()
    pairs = [(n, 0) for n in range(65)] + [(0, m) for m in range(257)]
    pairs += [(n, 255 - n) for n in range(64)] + [(64, 0), (0, 256)]
    taken = [
        shown_once(1, n_items=2 + n, shown=["d00000", "d00001"], intervention=f"{m}")
        for n, m in pairs
    ]
    fold = fold_of(kept(), limits)
    fold.take(closed_of(taken))
    plain = plain_of(kept(), taken, limits)
    assert plain.totals["capped"] == 4
    assert decoded(state_of(fold)) == decoded(topic_of(plain))


def test_an_era_leaves_also_where_its_impressions_close_after_it() -> None:
    """A window longer than an era: what closes then is counted, and leaves at once."""
    fold = fold_of(kept())
    fold.advance(5 * KEEP_MS)
    fold.take(closed_of([shown_once(1)]))
    assert len(heads_of(state_of(fold))) == 1
    fold.advance(5 * KEEP_MS + 1)
    state = applied({}, fold.changes({}))
    assert [_decode(key) for key in state] == [["counted", 0]]
    n_left, oldest, *_ = _decode(state[_encode(["counted", 0])])[7]
    assert (n_left, oldest) == (1, None)
