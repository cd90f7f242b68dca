"""Times in another unit: said before anything is sent, in every format."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producers.formats.recognised_units import MOST_LOOKED_AT, OtherUnit
from producers.formats.registry import read_events
from rankstream.adapters.adapter import AdapterOptions

AT_S = 1_733_788_889
IN = {"s": AT_S, "us": AT_S * 10**6, "ns": AT_S * 10**9}


def log_of(form: str, path: Path, times: list[int]) -> Path:
    """A file of lists with these times."""
    rows = list(enumerate(times))
    if form == "csv":
        lines = ["impression,item,at", *(f"i{n},a,{at}" for n, at in rows)]
        path.write_text("\n".join(lines))
    elif form == "parquet":
        columns = {"query_id": ["q"] * len(rows), "shown": [["a"]] * len(rows)}
        ids = [f"i{n}" for n, _ in rows]
        pq.write_table(
            pa.table({"impression_id": ids, "at_ms": times, **columns}), path
        )
    else:
        names = ("query_id", "timestamp", "query_response_hit_ids")
        if form == "jsonl":
            names = ("impression_id", "at_ms", "shown")
        documents = [
            dict(zip(names, (f"i{n}", at, ["a"]), strict=True)) for n, at in rows
        ]
        path.write_text("\n".join(map(json.dumps, documents)))
    return path


@pytest.mark.parametrize("unit", IN)
@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "ubi"])
def test_the_unit_is_told_and_its_option_converts_it(tmp_path, form, unit) -> None:
    """In formats of ours and of others."""
    path = log_of(form, tmp_path / "log", [IN[unit]] * 3)
    reading = read_events([path], form=form)
    with pytest.raises(OtherUnit, match=f"such as {IN[unit]}, .*=2024|2024.*=") as said:
        next(reading)
    assert f"--option time_unit={unit}" in str(said.value)

    options = AdapterOptions(time_unit=unit)
    found = list(read_events([path], form=form, adapter_options=options))
    assert [each.at_ms for each in found] == [AT_S * 1_000] * 3
    assert not any(each.refusal for each in found)


@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet", "ubi"])
def test_a_unit_that_was_said_wrongly_is_told_too(tmp_path, form) -> None:
    """Milliseconds that are called seconds."""
    path = log_of(form, tmp_path / "log", [AT_S * 1_000] * 3)
    options = AdapterOptions(time_unit="s")
    with pytest.raises(OtherUnit, match="must be in seconds; 3 of the first 3 "):
        list(read_events([path], form=form, adapter_options=options))


@pytest.mark.parametrize(("n_odd", "is_told"), [(1, False), (2, True)])
def test_a_few_odd_times_are_dead_letters_and_no_unit(tmp_path, n_odd, is_told) -> None:
    """Half of them is not more than half."""
    path = log_of("csv", tmp_path / "log", [AT_S] * n_odd + [AT_S * 1_000])
    reading = read_events([path], form="csv")
    if is_told:
        with pytest.raises(OtherUnit):
            list(reading)
    else:
        assert [bool(each.refusal) for each in reading] == [True, False]


def test_only_the_first_thousand_are_looked_at(tmp_path) -> None:
    """All of them are given."""
    times = [AT_S * 1_000] * (MOST_LOOKED_AT // 2 + 1) + [AT_S] * MOST_LOOKED_AT
    found = list(read_events([log_of("jsonl", tmp_path / "log", times)], form="jsonl"))
    assert [each.at_ms for each in found] == times
