"""Whatever comes in, an adapter gives events that can be read, or a reason."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rankstream.adapters.adapter import AdapterOptions, Headers, NotAdapted
from rankstream.adapters.impressions import Making, Seen, SeenItems
from rankstream.adapters.known_queries import KnownQueries
from rankstream.adapters.registry import NAMES, adapter_named
from rankstream.wire.input_events import LARGEST_TIME, recognised, refusal_in
from rankstream.wire.topics import CLICKS, QUERIES
from tests.session.cases import n_cases

FIELDS = (
    "action_name",
    "at_ms",
    "data",
    "data_base64",
    "event",
    "event_attributes",
    "event_id",
    "fields",
    "id",
    "impression_id",
    "item",
    "item_id",
    "items",
    "name",
    "object",
    "object_id",
    "ordinal",
    "position",
    "query_id",
    "query_response_hit_ids",
    "query_response_object_ids",
    "ranking",
    "session",
    "shown",
    "source",
    "specversion",
    "time",
    "timestamp",
    "type",
    "user",
    "user_query",
    "value",
    "_source",
    "_index",
)

WORDS = (
    "1.0",
    "click",
    "impression",
    "interaction",
    "item",
    "query",
    "ranking",
    "2024-12-10T00:01:29.378Z",
    "1733788889378",
    "",
    "\u0000",
    "ﬀ\u0301\u200d\U0010ffff",
)

NUMBERS = (0, 1, -1, 1_733_788_889_378, 1_733_788_889, 10**17)

ENDLESS = (2**63, 2**64, -(2**70), 1e308, -1e308, 10**309, -(10**400), 10**4299)
"""Numbers for which a time, a place or a float has no room."""

plain = (
    st.none()
    | st.booleans()
    | st.sampled_from(NUMBERS + ENDLESS)
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.sampled_from(WORDS)
    | st.text(max_size=12)
)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=8)
    ),
    max_leaves=24,
)
documents = st.dictionaries(st.sampled_from(FIELDS), values, max_size=12)
headers_of = st.lists(
    st.tuples(
        st.sampled_from(("ce_specversion", "ce_id", "ce_source", "ce_time", "x")),
        st.binary(max_size=8) | st.sampled_from((b"1.0", b"2024-12-10T00:01:29Z")),
    ),
    max_size=4,
)
chosen = st.builds(
    AdapterOptions,
    ordinal_base=st.sampled_from((0, 1)),
    query=st.sampled_from(("text", "id")),
    time_unit=st.sampled_from(("", "s", "ms", "us")),
    data=st.sampled_from(("rankstream", "ubi", "metarank", "other")),
)


def judge(name: str, raw: bytes, options: AdapterOptions, headers: Headers) -> None:
    """Fail where it neither adapts nor refuses as it promises."""
    events, refusal = [], None
    items, known = SeenItems(), KnownQueries()
    try:
        adapter_named(name).adapt(raw, options, headers, known, Seen(items))
    except NotAdapted:
        known = KnownQueries()
    try:
        events = adapter_named(name).adapt(raw, options, headers, known, Making(items))
    except NotAdapted as error:
        refusal = error
    if refusal is not None:
        told = refusal_in((refusal.header,))
        assert told is not None
        assert told.startswith(f"{refusal.code}: {str(refusal)[:99]}"[:300])
        assert refusal.code
        assert refusal.kind in (QUERIES, CLICKS)
    for event in events:
        assert recognised(event.value)[:2] == (event.at_ms, event.kind)
        assert abs(event.at_ms) <= LARGEST_TIME


@pytest.mark.parametrize("name", NAMES)
@settings(
    max_examples=n_cases(60, 200),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(document=documents, options=chosen, headers=headers_of)
def test_documents_of_any_shape(
    name: str,
    document: dict[str, Any],
    options: AdapterOptions,
    headers: list[tuple[str, bytes]],
) -> None:
    """With the right names and any values, NaN among them."""
    judge(name, json.dumps(document).encode(), options, tuple(headers))


WITH_NUMBERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("ubi", {"query_id": 1, "user_query": 2, "user_id": 3, "session_id": 4,
             "timestamp": 5, "query_response_hit_ids": [6]}),
    ("ubi", {"action_name": "click", "query_id": 1, "user_query": 2, "timestamp": 3,
             "event_id": 4, "event_attributes": {"object": {"object_id": 5},
                                                 "position": {"ordinal": 6}}}),
    ("metarank", {"event": "ranking", "id": 1, "timestamp": 2, "user": 3, "session": 4,
                  "fields": [{"name": "query", "value": 5}],
                  "items": [{"id": 6, "fields": [{"name": "price", "value": 7}]}]}),
    ("metarank", {"event": "interaction", "id": 1, "ranking": 2, "timestamp": 3,
                  "type": "click", "item": 4,
                  "fields": [{"name": "query", "value": 5}]}),
    ("rankstream", {"impression_id": "i", "query_id": "q", "shown": ["a"], "at_ms": 1,
                    "features": [[2]]}),
    ("rankstream", {"impression_id": "i", "query_id": "q", "item_id": "a", "at_ms": 1,
                    "position": 2}),
    ("cloudevents", {"specversion": "1.0", "id": "1", "source": "/s", "time": 1,
                     "data": {"impression_id": "i", "query_id": "q", "item_id": "a",
                              "position": 2}}),
    ("cloudevents", {"specversion": "1.0", "id": "1", "source": "/s", "time": 1,
                     "data": {"impression_id": "i", "query_id": "q", "item_id": "a",
                              "at_ms": 2}}),
)  # fmt: skip
"""Documents that are sound once each small number is one that fits its field."""


def numbered(value: Any, numbers: dict[int, Any]) -> Any:
    """The document with other numbers in the place of the small ones."""
    if isinstance(value, dict):
        return {name: numbered(each, numbers) for name, each in value.items()}
    if isinstance(value, list):
        return [numbered(each, numbers) for each in value]
    return numbers.get(value, 1_733_788_889_378) if isinstance(value, int) else value


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("number", ENDLESS, ids=range(len(ENDLESS)))
@pytest.mark.parametrize(("name", "document"), WITH_NUMBERS)
def test_numbers_without_an_end_in_each_field(
    name: str, document: dict[str, Any], number: float, as_text: bool
) -> None:
    """One field after another, whatever unit its times are said to have."""
    for place in range(1, 8):
        changed = numbered(document, {place: str(number) if as_text else number})
        for unit in ("", "s", "ms", "us"):
            options = AdapterOptions(time_unit=unit, ordinal_base=0)
            judge(name, json.dumps(changed).encode(), options, ())


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=n_cases(50, 100), deadline=None)
@given(raw=st.binary(max_size=200), options=chosen, headers=headers_of)
def test_bytes_of_any_kind(
    name: str,
    raw: bytes,
    options: AdapterOptions,
    headers: list[tuple[str, bytes]],
) -> None:
    """JSON or not."""
    judge(name, raw, options, tuple(headers))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
        b'{"event_attributes":' + b'{"object":' * 5_000 + b"1" + b"}" * 5_001,
        b'{"specversion": "1.0", "id": "1", "data": '
        + b"[" * 5_000
        + b"]" * 5_000
        + b"}",
        b'{"action_name": "click", "query_id": "\\ud800"}',
        b'{"timestamp": ' + b"9" * 100_000 + b"}",
        b'{"at_ms": 1e999}',
        '{"query_id": "\u202e\u0000"}'.encode("utf-16"),
    ],
)
def test_documents_that_break_decoders(name: str, raw: bytes) -> None:
    """Depth, length, surrogates, numbers without an end."""
    judge(name, raw, AdapterOptions(), ())
