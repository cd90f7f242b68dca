"""The catalogue of formats: each is found, and gets the options that are its own."""

import inspect
import typing
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import producers.formats
from producers.formats.canonical_dump import Header, write_dump
from producers.formats.joined import joined
from producers.formats.log_files import read_log
from producers.formats.registry import CATALOGUE, FORMATS, format_of, read_events
from rankstream.wire.input_events import Event
from tests.modules import defined_in


def test_every_reader_of_events_has_a_row() -> None:
    """A reader without a row could be chosen by nobody."""
    written = {
        each
        for each in defined_in(producers.formats)
        if inspect.isfunction(each)
        and not each.__name__.startswith("_")
        and typing.get_type_hints(each).get("return") == Iterator[Event]
    }
    # Those of a whole log ask them.
    of_logs = {read_events, read_log, joined}
    assert written - of_logs == {row.read for row in CATALOGUE}


def test_every_reader_takes_its_options_and_no_other() -> None:
    """Named in its row, as keywords of its function."""
    for each in CATALOGUE:
        keywords = [
            name
            for name, parameter in inspect.signature(each.read).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        ]
        assert sorted(keywords) == sorted(each.options), each.name
    assert ("auto", *(each.name for each in CATALOGUE)) == FORMATS


def test_an_option_goes_to_the_formats_that_take_it(tmp_path) -> None:
    """A bad line is noted by JSON lines; the zero of time is nothing to them."""
    path = tmp_path / "events.jsonl"
    path.write_text('{"impression_id": 1}\nnonsense\n')
    bad_lines: list[int] = []

    assert format_of(path).name == "jsonl"
    list(read_events([path], epoch_ms=5, bad_lines=bad_lines))
    assert bad_lines


def test_the_place_of_a_row_decides_nothing(tmp_path, monkeypatch) -> None:
    """Each file is told alike, whichever row is asked first."""
    files = {name: tmp_path / name for name in ("jsonl", "parquet", "canonical")}
    files["jsonl"].write_text("{}\n")
    pq.write_table(pa.table({"at_ms": [1]}), files["parquet"])
    write_dump(files["canonical"], Header("events", 1), [])
    for first in range(len(CATALOGUE)):
        rows = (*CATALOGUE[first:], *CATALOGUE[:first])
        monkeypatch.setattr("producers.formats.registry.CATALOGUE", rows)
        assert {n: format_of(f).name for n, f in files.items()} == {n: n for n in files}


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path) -> None:
    """By whoever calls the reader; the command line knows them anyway."""
    with pytest.raises(ValueError, match="canonical"):
        list(read_events([tmp_path], form="papyrus"))
