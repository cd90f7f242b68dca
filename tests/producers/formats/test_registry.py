"""The catalogue of formats: each is found, and gets the options that are its own."""

import inspect

import pytest

from producers.formats.registry import CATALOGUE, FORMATS, format_of, read_events


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


def test_an_unknown_format_is_refused_with_the_known_ones(tmp_path) -> None:
    """By whoever calls the reader; the command line knows them anyway."""
    with pytest.raises(ValueError, match="canonical"):
        list(read_events([tmp_path], form="csv"))
