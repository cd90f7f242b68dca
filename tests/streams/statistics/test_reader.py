"""What readers see of the topic `statistics`."""

from collections import Counter

import msgspec
import numpy as np
import pytest

from models.counts import placements
from models.counts.cells import merge
from models.counts.definition import ClosedImpression, count
from models.counts.scope_record import CONVERTED
from rankstream.wire import events
from rankstream.wire.schemas import SchemaRefused
from streams.state_pieces import Parts
from streams.statistics import keys
from streams.statistics.keys import OPEN_SET, Counted, Row, ScopeName
from streams.statistics.reader import CellName, Statistics, summaries_of
from tests.models.counts.scope_values import ScopeValue
from tests.placed_list import placement_probabilities
from tests.streams.statistics.statistics_records import (
    COUNTED,
    NAME,
    counted_record,
    logged,
    logged_row,
    scope_records,
)

ITEMS = ("a", "b", "c")
MATRIX = [[0.5, 0.25], [0.25, 0.5], [0.25, 0.25]]
ROW, OTHER_ROW = b"r" * 16, b"t" * 16
ROWS = {ROW: logged_row(MATRIX)}

LOG = [
    logged([0, 1], [1], MATRIX, ROW, group=3),
    logged([1, 2], [], MATRIX, ROW, group=3),
    ClosedImpression(4, [2, 0], {0: [1, 2], 2: [2]}),
    ClosedImpression(200, [0], {0: [1]}, placements.UNKNOWN),
]


def value_of(log=LOG, **how):
    """A scope of these impressions."""
    return ScopeValue(ITEMS, **how).take(log)


def of_era(era):
    """The name of the same scope in another era."""
    return NAME._replace(era=era)


def test_policies_are_those_of_events():
    """The models' numbers and the wire's are the same."""
    for name in ("UNKNOWN", "PLACKETT_LUCE", "DETERMINISTIC", "TAIL_SHUFFLE"):
        assert getattr(placements, name) == getattr(events, name)
    assert placements.LOGGED == events.LOGGED
    assert placements.MULTILEAVE == events.MULTILEAVE


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"piece_lists": 1},
        {"piece_lists": 3},
        {"most_lists": 0},
        {"most_lists": 0, "pieces": (3, 4)},
        {"most_lists": 2, "pieces": (3, 200), "piece_lists": 1},
    ],
)
def test_cells_are_those_of_their_impressions(how):
    """In either form, with cells apart, and with values in parts."""
    records = scope_records(NAME, value_of(**how), ROWS)
    parts = Parts(part_bytes=20)
    split = [part for key, value in records for part in parts.split(key, value)]
    assert len(split) > len(records)
    for stored in (records, split):
        statistics = Statistics(stored)
        defined = count(LOG, ITEMS)
        assert statistics.names() == [CellName(*NAME, g) for g in (3, 4, 200)]
        for name in statistics.names("q"):
            assert statistics.cell(name).encode() == defined[name.group].encode()
        pooled = statistics.merged("q")[b"s" * 16, "m"]
        assert pooled.encode() == merge(defined.values()).encode()
        assert statistics.queries() == {"q": (4, 4)}
        assert [name for name, _ in summaries_of(stored)] == statistics.names()
        assert len(statistics) == 1


def test_eras_and_interventions_are_told_apart_and_pooled():
    """A pooled estimate adds what lives."""
    other = NAME._replace(intervention="n")
    records = [
        *scope_records(of_era(-1), value_of(LOG[:2]), ROWS),
        *scope_records(of_era(2), value_of(LOG), ROWS),
        *scope_records(other, value_of(LOG[2:])),
    ]
    statistics = Statistics(records)
    assert statistics.scopes() == [of_era(-1), of_era(2), other]
    assert not statistics.scopes("nothing")
    assert not statistics.names("nothing")
    merged = statistics.merged("q")
    expected = [*count(LOG, ITEMS).values(), *count(LOG[:2], ITEMS).values()]
    assert merged[NAME.candidate_set, "m"].encode() == merge(expected).encode()
    assert merged[NAME.candidate_set, "n"].total("impressions") == 2
    living = Statistics([*records, (keys.scope_key(of_era(-1)), None)])
    assert living.scopes() == [of_era(2), other]


def test_scopes_read_together_have_rows_of_their_own():
    """The second row of the first scope comes before the first of the second."""
    others = [[0.0, 0.75], [0.75, 0.0], [0.25, 0.25]]
    log = [*LOG, logged([2, 0], [2], others, OTHER_ROW, group=4)]
    rows = {**ROWS, OTHER_ROW: logged_row(others)}
    wider = ("x", "y", "z", "zz")
    matrix = [[0.5, 0.0], [0.0, 0.5], [0.25, 0.5], [0.25, 0.0]]
    next_log = [logged([3, 1], [2], matrix, ROW, group=4)]
    second = NAME._replace(candidate_set=b"w" * 16)
    records = [
        *scope_records(NAME, value_of(log), rows),
        *scope_records(second, ScopeValue(wider).take(next_log),
                       {ROW: logged_row(matrix)}),
    ]  # fmt: skip
    found = {name: cell.encode() for name, cell in summaries_of(records)}
    assert found == {
        CellName(*name, group): cell.encode()
        for name, taken, items in ((NAME, log, ITEMS), (second, next_log, wider))
        for group, cell in count(taken, items).items()
    }


def test_exposures_of_eras_together_find_rows_of_each():
    """Also a row that came in an earlier era only."""
    records = [
        *scope_records(of_era(-1), value_of(LOG[:2]), ROWS),
        *scope_records(of_era(2), value_of(LOG[2:])),
    ]
    statistics = Statistics(records)
    ((place, cell),) = statistics.merged("q").items()
    added: Counter[tuple[str, int]] = Counter()
    for era in (-1, 2):
        one = statistics.summary(of_era(era))
        added.update(statistics.exposures("q", *place, one, era))
    assert statistics.summary(of_era(-1)).row_names
    assert not statistics.summary(of_era(2)).row_names
    assert statistics.exposures("q", *place, cell) == pytest.approx(dict(added))


def test_scopes_of_eras_that_left_are_not_read():
    """Should they be there at all."""
    records = [
        *scope_records(of_era(5), value_of()),
        *scope_records(of_era(6), value_of()),
    ]
    assert Statistics([counted_record(), *records]).scopes() == [of_era(6)]
    idle = COUNTED._replace(sources={1: 5}, oldest=None)
    young = [counted_record(idle), counted_record(), *records]
    assert Statistics(young).scopes() == [of_era(6)]
    old = COUNTED._replace(sources={1: 5}, oldest=5)
    assert len(Statistics([*young, counted_record(old)])) == 2


def test_exposures_are_expected_views():
    """Of rows times impressions, and of what follows from lists."""
    statistics = Statistics(scope_records(NAME, value_of(), ROWS))
    (cell,) = statistics.merged("q").values()
    expected = {
        (item, rank + 1): 2 * MATRIX[row][rank]
        for row, item in enumerate(ITEMS)
        for rank in range(2)
    }
    expected["c", 1] += 1
    expected["a", 2] += 1
    for era in (None, NAME.era):
        assert statistics.exposures(*NAME[:3], cell, era) == pytest.approx(expected)
    with pytest.raises(ValueError, match="there is none of era 8"):
        statistics.exposures(*NAME[:3], cell, 8)


def test_plackett_luce_rows_are_computed():
    """From the scores that are stored."""
    scores = np.array([0.5, 0.0, -1.0], np.float32)
    placement = placement_probabilities(scores.astype(np.float64), 2)
    one = ClosedImpression(
        0, [1, 0], {0: [2]}, placements.PLACKETT_LUCE, ROW, placement
    )
    row = Row(placements.PLACKETT_LUCE, 2, scores.tobytes(), b"")
    statistics = Statistics(scope_records(NAME, value_of([one]), {ROW: row}))
    cell = statistics.cell(CellName(*NAME, 0))
    found = statistics.exposures(*NAME[:3], cell)
    assert found["a", 2] == pytest.approx(placement[0, 1])
    assert cell.encode() == count([one], ITEMS)[0].encode()


def test_rows_of_growing_sets_number_their_own_items():
    """Inverse sums and exposures go by item."""
    name = NAME._replace(candidate_set=OPEN_SET)
    placement = np.zeros((3, 2))
    placement[[2, 0]] = [[0.5, 0.5], [0.25, 0.75]]
    one = logged([0, 2], [1, 2], placement, ROW)
    rows = {ROW: logged_row([[0.5, 0.5], [0.25, 0.75]], ("c", "a"))}
    value = value_of([one], is_growing=True)
    statistics = Statistics(scope_records(name, value, rows))
    cell = statistics.cell(CellName(*name, 0))
    assert cell.encode() == count([one], ITEMS, is_growing=True)[0].encode()
    found = statistics.exposures(*name[:3], cell)
    assert found == {("c", 1): 0.5, ("c", 2): 0.5, ("a", 1): 0.25, ("a", 2): 0.75}


def test_converted_scopes_have_no_exposures():
    """Of that era, or of all together; their counts are read."""
    records = [
        *scope_records(NAME, value_of(flags=CONVERTED), ROWS),
        *scope_records(of_era(8), value_of(), ROWS),
    ]
    statistics = Statistics(records)
    cell = statistics.summary(of_era(8))
    assert statistics.summary(NAME).encode() == cell.encode()
    assert statistics.exposures(*NAME[:3], cell, 8)
    for era in (None, 7):
        with pytest.raises(ValueError, match="converted from an earlier release"):
            statistics.exposures(*NAME[:3], cell, era)


def test_what_is_missing_is_refused_in_words():
    """A piece, a candidate set, or an exposure row; with the scope and the remedy."""
    general = scope_records(NAME, value_of(most_lists=0, pieces=(4,)), ROWS)
    listed = scope_records(NAME, value_of(piece_lists=1), ROWS)
    for records, number, kind, words in (
        (general, 1, b"piece", r"those of groups \[4\] are missing"),
        (general, 2, b"set", "the candidate set of each scope must be in statistics"),
        (listed, 3, b"lists", "all 4 pieces of its lists; piece 2 is missing"),
    ):
        assert kind in records[number][0]
        left = [*records[:number], *records[number + 1 :]]
        with pytest.raises(ValueError, match=words) as refused:
            Statistics(left).summary(NAME)
        assert "from its beginning" in str(refused.value)
    statistics = Statistics(scope_records(NAME, value_of()))
    with pytest.raises(ValueError, match=f"row {ROW.hex()}"):
        statistics.summary(NAME)
    with pytest.raises(ValueError, match=r"must be whole.*at scope ScopeName"):
        Statistics([(keys.scope_key(NAME), b"\x92\x02\x01")]).scope(NAME)


def test_what_was_counted_is_read_of_each_partition():
    """The last record of each partition stands."""
    one = counted_record(COUNTED._replace(sources={0: 50}))
    other = COUNTED._replace(sources={1: 300}, n_left=75, watermark_ms=None)
    statistics = Statistics([one, counted_record(other), counted_record()])
    assert statistics.counted == (COUNTED, other)
    assert statistics.share_left() == 100 / 400
    assert Statistics([]).share_left() == 0.0


def test_the_layout_of_small_values_stands():
    """As it is decided; what is written must be read by other releases."""
    assert msgspec.msgpack.decode(keys.encode_counted(COUNTED)) == [
        2, 20, 90 * 86_400_000, ["click", "long", "purchase"], "click",
        1_700_000_000_000, [[0, 100]], [25, 6, 1, 2, 3], [],
    ]  # fmt: skip
    assert keys.decode_counted(keys.encode_counted(COUNTED)) == COUNTED
    for key, expected in (
        (keys.scope_key(NAME), ["scope", *NAME]),
        (keys.piece_key(NAME, 19), ["piece", *NAME, 19]),
        (keys.set_key("q", b"s" * 16, -3), ["set", "q", b"s" * 16, -3]),
        (keys.row_key(NAME, ROW), ["row", *NAME, ROW]),
        (keys.counted_key(7), ["counted", 7]),
    ):
        assert msgspec.msgpack.decode(key) == expected
    row = Row(4, 2, b"xyz", b"")
    assert keys.decode_row(msgspec.msgpack.encode([2, 4, 2, b"xyz", b""])) == row


@pytest.mark.parametrize(
    "record",
    [
        (msgspec.msgpack.encode(["cell", "q", b"s" * 16, "m", 1]), b"\x01\x00"),
        (msgspec.msgpack.encode(["set", "q", b"s" * 16]), b"\x92\x01\x90"),
        (msgspec.msgpack.encode(["counts"]), b"\x91\x01"),
        (keys.counted_key(7), b"\x91\x01"),
    ],
)
def test_statistics_of_the_earlier_schema_are_refused(record):
    """With what can be done about them."""
    with pytest.raises(SchemaRefused) as refused:
        Statistics([record])
    told = str(refused.value)
    assert "must have schema 2; got 1" in told
    assert "an earlier release wrote it" in told
    assert "begin anew in another --namespace" in told
    assert "stop all workers and run `rankstream statistics convert`" in told


def test_counted_is_a_tuple_of_what_it_names():
    """A field that is added must be given a place in the layout."""
    assert len(Counted._fields) == 12
    assert ScopeName._fields == CellName._fields[:4]
