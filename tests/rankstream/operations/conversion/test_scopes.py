"""Every sum of a state of before is in the scopes that it becomes.

The state is `schema1_statistics.bin`: 640 random lists of every policy, folded by the
last release before scopes under limits of 2 candidate sets, 3 interventions, 2 exposure
rows and 3 list masks, over seven days of which it kept two. So it has open sets,
overflow sets, exposure rows that were summed, items that left, click pairs, and lists
of 40. `python -m tests.rankstream.operations.conversion OLD` made it, and the expected
tables, which that release itself exported (see that module).
"""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from models.counts.scope_record import (
    CAPPED,
    CONVERTED,
    OVERFLOWED,
    TRUNCATED,
    decode_scope,
)
from rankstream.operations.conversion import scopes
from rankstream.operations.conversion.schema1 import (
    ConversionRefused,
    old_values,
    read_statistics,
)
from rankstream.operations.conversion.scopes import (
    Situation,
    check_settings,
    converted,
    set_name,
    split,
)
from rankstream.settings import (
    LimitSettings,
    Settings,
    StatisticsSettings,
    TimeSettings,
)
from rankstream.wire.events import DETERMINISTIC, Impression, Interaction
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics.keys import OVERFLOW_SET, counted_key
from streams.statistics.reader import Statistics
from tests.rankstream.operations.conversion.stored import (
    KEEP_MS,
    Tables,
    expected_tables,
    stored_values,
)
from tests.rankstream.operations.conversion.written import Written

ROW_NAME, LAST_SHOWN = 4, 11
"""Column of a row of `pairs` that goes: the latest time is one of the scope."""

WATERMARK_MS = 1_700_600_000_000
SITUATION = Situation(3, WATERMARK_MS, Settings(time=TimeSettings(keep_ms=KEEP_MS)))
ERA = WATERMARK_MS // KEEP_MS

encode = msgspec.msgpack.Encoder().encode


@pytest.fixture
def values() -> dict[bytes, bytes]:
    """The stored state."""
    return stored_values()


@pytest.fixture
def written(values: Mapping[bytes, bytes]) -> Written:
    """The stored state, converted."""
    return converted_to(values)


def converted_to(values: Mapping[bytes, bytes]) -> Written:
    """Values of schema 1 converted, split as they are for Kafka."""
    records, _ = converted(read_statistics(values), SITUATION)
    return Written({key: value for _, key, value in split(records) if value})


def sorted_tables(tables: Tables) -> Tables:
    """Rows in an order that both releases can have; names of exposure rows differ."""
    for row in tables["rows"]:
        row[ROW_NAME] = ""
    return {name: sorted(rows) for name, rows in tables.items()}


def expected() -> Tables:
    """What the old release exported, without times of single pairs."""
    tables = expected_tables()
    for row in tables["pairs"]:
        del row[LAST_SHOWN]
    return sorted_tables(tables)


def test_every_sum_survives(written: Written) -> None:
    """Totals, pairs, sums, click pairs and exposure rows, group by group."""
    assert sorted_tables(written.tables()) == expected()


def test_the_state_has_all_that_the_old_release_could_write(
    values: dict[bytes, bytes],
) -> None:
    """So that the test above speaks of all of it."""
    old = read_statistics(values)
    tables = expected_tables()
    cells = [cell for scope in old.cells for _, cell in old.cells_of(scope)]

    assert {row[6] for row in tables["rows"]} == {
        "deterministic",
        "tail-shuffle",
        "logged",
        "plackett-luce",
    }
    assert {scope[1] for scope in old.cells} >= {bytes(16), OVERFLOW_SET}
    assert any(row[-1] for row in tables["pairs"])  # exposures that were summed
    assert any(row[-1] for row in tables["rows"])  # rows of lists without candidates
    assert len(tables["click-pairs"]) > 50
    assert old.n_masks > 0
    assert old.counts.n_expired > 0
    assert old.counts.n_taken > sum(cell.totals[0] for cell in cells)
    assert any(pair[2] == 0 for cell in cells for pair in cell.pairs)
    assert any(pair[1] > 32 for cell in cells for pair in cell.pairs)


def test_a_scope_has_one_record_in_the_era_of_the_watermark(
    values: dict[bytes, bytes], written: Written
) -> None:
    """It says when it was last shown, and that it was converted."""
    old = read_statistics(values)
    latest: dict[tuple[str, str, str], int] = {}
    for row in expected_tables()["pairs"]:
        place = (row[0], row[1], row[2])
        latest[place] = max(latest.get(place, 0), row[LAST_SHOWN])
    heads = written.by_kind["scope"]

    assert {written.old_name(scope) for scope in heads} == set(old.cells)
    assert {scope[3] for scope in heads} == {ERA}
    shown = {written.old_name(scope): head[1] for scope, head in heads.items()}
    assert {(q, name.hex(), i): ms for (q, name, i), ms in shown.items()} == latest


def test_flags_say_what_a_scope_is(written: Written) -> None:
    """Capped ones stay capped; summed exposures and long lists are told too."""
    places: dict[tuple[Any, ...], list[list[Any]]] = {}
    for row in expected_tables()["pairs"]:
        places.setdefault((row[0], row[1], row[2]), []).append(row)
    for scope, head in written.by_kind["scope"].items():
        query, name, intervention = written.old_name(scope)
        rows = places[query, name.hex(), intervention]
        is_capped = name == OVERFLOW_SET
        is_overflowed = any(row[-1] for row in rows)
        is_truncated = any(row[5] > 32 for row in rows)
        assert head[0] == (
            CONVERTED
            + CAPPED * is_capped
            + OVERFLOWED * is_overflowed
            + TRUNCATED * is_truncated
        )


def test_what_the_columns_hold_is_said(values: dict[bytes, bytes]) -> None:
    """Of which partition, how much, and how much of it has left."""
    old = read_statistics(values)
    records, report = converted(old, SITUATION)
    (counted,) = Written(records).by_kind["counted"].values()
    groups, keep_ms, classes, reward, watermark_ms, taken, counts, actions = counted
    assert actions == []
    n_impressions = sum(row[4] for row in expected_tables()["cells"])
    n_clicks = sum(row[6] for row in expected_tables()["cells"])

    assert (groups, keep_ms, classes, reward) == (20, KEEP_MS, ["click"], "click")
    assert watermark_ms == WATERMARK_MS
    assert taken == [[3, 640]]
    assert counts[:2] == [640 - n_impressions, ERA]
    assert counts[2:] == [
        old.counts.n_capped,
        old.counts.n_clipped,
        old.counts.n_without_exposure,
    ]
    assert (report.n_impressions, report.n_clicks) == (n_impressions, n_clicks)
    assert report.leaves_ms == (ERA + 2) * KEEP_MS


def test_a_large_scope_lies_in_pieces(
    values: dict[bytes, bytes], written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One for each group, with the same sums."""
    monkeypatch.setattr(scopes, "HEAD_BYTES", 400)
    apart = converted_to(values)
    heads = apart.by_kind["scope"]
    n_apart = sum(bool(head[5]) for head in heads.values())

    assert 0 < n_apart < len(heads)
    assert not any(head[4] and head[5] for head in heads.values())
    assert len(apart.by_kind["piece"]) == sum(len(head[5]) for head in heads.values())
    assert sorted_tables(apart.tables()) == sorted_tables(written.tables())


def test_an_empty_state_is_converted_too(values: dict[bytes, bytes]) -> None:
    """Only what was counted is said; no era lives."""
    key = encode(["counts"])
    found = converted_to({key: values[key]})

    assert found.by_kind.keys() == {"counted"}
    (counted,) = found.by_kind["counted"].values()
    assert counted[6][:2] == [640, None]


def test_keys_of_both_releases_are_told_apart(
    values: dict[bytes, bytes],
) -> None:
    """Those of parts by what they are parts of."""
    records, _ = converted(read_statistics(values), SITUATION)
    parts = {
        encode(["part", key, 0]): b"" for keys in (values, records) for key in keys
    }

    assert old_values(values) == values
    assert old_values(records) == {}
    assert len(old_values(parts)) == len(values)
    with pytest.raises(ConversionRefused, match="must be an array; got b'marker'"):
        old_values({b"marker": b""})


@pytest.mark.parametrize(
    ("kind", "said"),
    [("set", "the candidate set of each"), ("row", "the exposure row")],
)
def test_what_a_cell_refers_to_must_be_there(
    values: dict[bytes, bytes], kind: str, said: str
) -> None:
    """A state that lost a record is refused."""
    kept = {
        key: value
        for key, value in values.items()
        if msgspec.msgpack.decode(key)[0] != kind
    }
    with pytest.raises(ConversionRefused, match=f"{said}.*a new --namespace"):
        converted_to(kept)


@pytest.mark.parametrize(
    ("statistics", "said"),
    [
        (StatisticsSettings(groups=10), "groups must be 20 to convert.*got 10"),
        (
            StatisticsSettings(reward="long", actions={"dwell": "long"}),
            "reward must be 'click' to convert.*got 'long'",
        ),
    ],
)
def test_settings_under_which_sums_mean_something_else_are_refused(
    statistics: StatisticsSettings, said: str
) -> None:
    """The old groups were 20, and every action was a click."""
    check_settings(Settings())
    with pytest.raises(ConversionRefused, match=said):
        check_settings(Settings(statistics=statistics))


def test_the_readers_of_statistics_find_the_same_sums(
    written: Written, values: dict[bytes, bytes]
) -> None:
    """The decoder that everybody uses takes every record."""
    records, _ = converted(read_statistics(values), SITUATION)
    totals = [
        row
        for scope in written.by_kind["scope"]
        for row in decode_scope(
            records[encode(["scope", *scope])], {}, {}
        ).general.totals.tolist()
    ]

    assert sorted(totals) == sorted(row[3:] for row in expected()["cells"])


def test_the_fold_takes_back_what_was_converted(values: dict[bytes, bytes]) -> None:
    """And writes nothing of it again, but the same record of what was counted."""
    settings = SITUATION.settings
    records, _ = converted(read_statistics(values), SITUATION)
    fold = StatisticsFold(
        settings.limits, settings.statistics, KEEP_MS, SITUATION.partition
    )
    fold.restore(split(records))
    changes = {change.key: change.value for change in fold.changes()}

    counted = counted_key(SITUATION.partition)
    assert changes == {counted: records[counted]}
    assert fold.counters()["statistics_scopes"] == len(Statistics(records.items()))


def closed(query: str, items: list[str]) -> Interaction:
    """A list of these candidates that nobody clicked."""
    impression = Impression(
        b"i" * 16, "i", query, WATERMARK_MS, "m", 1, "m", 0, DETERMINISTIC,
        encode(items), np.array([0], "<u2").tobytes(), False, b"", b"", b"", 0, 0, b"",
    )  # fmt: skip
    return Interaction(impression, [])


@pytest.mark.parametrize("n_items", [1, 2, 3, 6, 40])
def test_a_set_is_called_what_its_next_list_calls_it(n_items: int) -> None:
    """So that it is counted once against the limit, and read as one set."""
    items = sorted(f"d{number}" for number in range(n_items))
    fold = StatisticsFold(LimitSettings(), StatisticsSettings(), KEEP_MS, 0)
    fold.take(closed_of([closed("hats", items)]))
    written = Written({key: value for _, key, value in fold.changes() if value})

    assert [name for _, name, _ in written.by_kind["set"]] == [set_name(encode(items))]


def test_without_a_watermark_there_is_none_in_what_was_counted() -> None:
    """A worker that stopped before every source had spoken has counted nothing."""
    records, report = converted(
        read_statistics({}), SITUATION._replace(watermark_ms=-1)
    )

    (counted,) = Written(records).by_kind["counted"].values()
    assert counted[4:] == [None, [[3, 0]], [0, None, 0, 0, 0], []]
    assert report.n_scopes == 0
