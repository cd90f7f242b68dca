"""Times of documents: each unit is told, or refused with what converts it."""

import pytest

from rankstream.adapters.adapter import NotAdapted
from rankstream.adapters.times import at_ms_of
from rankstream.wire.topics import QUERIES

NOW_MS = 1_733_788_889_378

HUGE = pytest.param(10**400, id="10**400")


@pytest.mark.parametrize(
    ("value", "at_ms"),
    [
        ("2024-12-10T00:01:29.378Z", NOW_MS),
        ("2024-12-10t00:01:29.378z", NOW_MS),
        ("2024-12-10T01:01:29.378+01:00", NOW_MS),
        ("2024-12-10T00:01:29.378+0000", NOW_MS),
        ("2024-12-10T00:01:29.378999999Z", NOW_MS),
        ("2024-12-10T00:01:29Z", NOW_MS // 1_000 * 1_000),
        (NOW_MS, NOW_MS),
        (float(NOW_MS), NOW_MS),
        (str(NOW_MS), NOW_MS),
        (f" {NOW_MS}.9 ", NOW_MS),
        (0, 0),
        (5_000, 5_000),
    ],
)
def test_iso_and_milliseconds_are_read(value: object, at_ms: int) -> None:
    """As numbers, as text, with any zone."""
    assert at_ms_of(value, "", kind=QUERIES) == at_ms


@pytest.mark.parametrize(
    ("unit", "value"),
    [
        ("s", NOW_MS // 1_000),
        ("s", str(NOW_MS // 1_000)),
        ("us", NOW_MS * 1_000),
        ("us", str(NOW_MS * 1_000)),
    ],
)
def test_another_unit_is_refused_with_the_option_that_converts_it(
    unit: str, value: object
) -> None:
    """And that option does."""
    with pytest.raises(NotAdapted, match=f'set time_unit = "{unit}"') as refusal:
        at_ms_of(value, "", kind=QUERIES)
    assert (refusal.value.code, refusal.value.kind) == ("time", QUERIES)

    assert at_ms_of(value, unit, kind=QUERIES) // 1_000 == NOW_MS // 1_000


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("value", [1e308, HUGE, float("nan"), float("inf"), -1])
def test_no_unit_makes_a_time_of_what_is_none(unit: str, value: float) -> None:
    """However large it is."""
    with pytest.raises(NotAdapted, match="1970 to 9999"):
        at_ms_of(value, unit, kind=QUERIES)


@pytest.mark.parametrize("unit", ["s", "us"])
def test_iso_has_its_unit_whatever_the_option_says(unit: str) -> None:
    """The option is about numbers."""
    assert at_ms_of("2024-12-10T00:01:29.378Z", unit, kind=QUERIES) == NOW_MS


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "must be there"),
        (True, "must be a time"),
        ([NOW_MS], "must be a time"),
        ({}, "must be a time"),
        ("", "ISO 8601"),
        ("yesterday", "ISO 8601"),
        ("2024-12-10T00:01:60Z", "ISO 8601"),
        ("2024-12-10T00:01:29", "zone"),
        ("2024-12-10", "zone"),
        ("0001-01-01T00:00:00+23:59", "1970 to 9999|ISO 8601"),
        ("9999-12-31T23:59:59-23:59", "1970 to 9999"),
        ("1969-12-31T23:59:59Z", "1970 to 9999"),
        (-1, "1970 to 9999"),
        (float("nan"), "1970 to 9999"),
        (float("inf"), "1970 to 9999"),
        (10**16, "microseconds"),
        (10**18, "nanoseconds"),
        (10**30, "1970 to 9999"),
        pytest.param(10**400, "1970 to 9999", id="10**400"),
        pytest.param(-(10**400), "1970 to 9999", id="-10**400"),
        (1e308, "1970 to 9999"),
        ("9" * 20, "nanoseconds"),
        ("9" * 21, "ISO 8601"),
    ],
)
def test_what_is_no_time_is_refused(value: object, words: str) -> None:
    """In words, and in no other way."""
    with pytest.raises(NotAdapted, match=words):
        at_ms_of(value, "", kind=QUERIES)
