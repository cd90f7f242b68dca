"""What ingestion takes, what it makes of it, and what it refuses and why."""

import base64
import json
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.wire.events import PLACKETT_LUCE, Click, Impression, decode_items
from rankstream.wire.models.canaries import FIELD
from rankstream.wire.routing import (
    identity,
    route_of_query,
    routed_impression_id,
)
from streams.dead_letter import Origin
from streams.ingest.elements import elements_of
from streams.ingest.refusal import Refused
from streams.ingest.validation import EventValidator

NOW_MS = 1_700_000_000_000
ORIGIN = Origin("clicks", 0, 7, 0)


def validator() -> EventValidator:
    """Ingestion with default limits."""
    return EventValidator(max_documents=10_000, ahead_ms=300_000)


def query(**fields: Any) -> bytes:
    """A query event as JSON."""
    event = {
        "impression_id": "i1",
        "query_id": "q",
        "at_ms": NOW_MS,
        "shown": ["b", "a"],
    }
    return json.dumps(event | fields).encode()


def click(**fields: Any) -> bytes:
    """A click event as JSON."""
    event = {
        "impression_id": "i1",
        "query_id": "q",
        "at_ms": NOW_MS,
        "position": 1,
    }
    return json.dumps(event | fields).encode()


def base64_of(*numbers: float) -> str:
    """Little-endian float32 in base64."""
    return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()


def taken(raw: bytes) -> Impression:
    """The impression that a query event becomes."""
    event = validator().query(raw, NOW_MS).event
    assert isinstance(event, Impression)
    return event


def test_a_list_shows_a_thousand_items_and_no_more() -> None:
    """As the contract says."""
    items = [f"d{number}" for number in range(1_001)]
    assert len(decode_items(taken(query(shown=items[:-1])).candidates)) == 1_000
    with pytest.raises(Refused, match="shown must hold 1 to 1000 items; got 1001"):
        taken(query(shown=items))


def test_candidates_are_sorted_and_everything_moves_with_them() -> None:
    """Scores and exposures keep their documents, shown become rows."""
    impression = taken(
        query(
            candidates=["c", "a", "b"],
            shown=["b", "c"],
            scores=[3.0, 1.0, 2.0],
            exposures=[0.1, 0.2, 0.3, 0.4, 0.5, 0.1],
            policy="logged",
        )
    )

    assert decode_items(impression.candidates) == ["a", "b", "c"]
    assert np.frombuffer(impression.shown, "<u2").tolist() == [1, 2]
    assert np.frombuffer(impression.scores, "<f4").tolist() == [1.0, 2.0, 3.0]
    exposures = np.frombuffer(impression.exposures, "<f4").reshape(3, 2)
    assert exposures == pytest.approx(np.array([[0.3, 0.4], [0.5, 0.1], [0.1, 0.2]]))


def test_vectors_in_base64_and_as_numbers_are_the_same() -> None:
    """Both spellings give the same bytes."""
    fields = {"candidates": ["a", "b"], "policy": "plackett-luce"}
    written = taken(query(scores=[0.5, -2.0], **fields))
    packed = taken(query(scores=base64_of(0.5, -2.0), **fields))

    assert written == packed
    assert written.policy == PLACKETT_LUCE


def test_a_list_without_candidates_is_an_open_set_of_what_was_shown() -> None:
    """Nothing is known of what else might have been shown."""
    impression = taken(query(shown=["z", "y"]))

    assert impression.is_open_set
    assert decode_items(impression.candidates) == ["y", "z"]


def test_the_intervention_is_the_model_unless_it_is_declared() -> None:
    """An empty declaration is a declaration."""
    assert taken(query(model="m")).intervention == "m"
    assert taken(query(model="m", intervention="w7")).intervention == "w7"


@pytest.mark.parametrize(
    ("same", "other"),
    [
        ("Running  Shoes ", "running shoes"),
        ("caf\u00e9", "cafe\u0301"),
        ("STRASSE", "stra\u00dfe"),
    ],
)
def test_spellings_of_one_query_share_its_statistics(same: str, other: str) -> None:
    """Case, white space and Unicode form do not make another query."""
    one = validator().query(query(query_id=same), NOW_MS)
    two = validator().query(query(query_id=other), NOW_MS)

    assert isinstance(one.event, Impression)
    assert isinstance(two.event, Impression)
    assert one.event.query_id == two.event.query_id
    assert one.route == two.route


def test_session_comes_before_user_before_impression_in_the_group() -> None:
    """The unit is the hash of the first that is given."""
    units = [
        taken(query(session="x", user="y")).unit,
        taken(query(session="x")).unit,
        taken(query(user="y")).unit,
        taken(query()).unit,
    ]

    assert units[0] == units[1]
    assert len(set(units)) == 3


def test_an_empty_session_or_user_is_none() -> None:
    """Else all lists of services that send it would be one session's."""
    assert taken(query(session="", user="")) == taken(query())
    assert taken(query(session="", user="y")) == taken(query(user="y"))


def test_the_stage_of_a_canary_is_what_later_stages_read() -> None:
    """As it came, also of one that never was; an empty one is none."""
    for tag in ("m@1.5/1", "x" * 276, "\u00fc"):
        extra = msgspec.msgpack.decode(taken(query(canary=tag, session="s")).extra)
        assert extra == {"session": "s", FIELD: tag}
    assert taken(query(canary="")) == taken(query(canary=None)) == taken(query())


def test_a_click_is_routed_by_its_query_or_by_its_impression_id() -> None:
    """An id of our rankers carries the route."""
    name = routed_impression_id("u", route_of_query("q"))

    by_query = validator().click(click(), NOW_MS, ORIGIN)
    by_id = validator().click(click(impression_id=name, query_id=None), NOW_MS, ORIGIN)

    assert by_query.route == by_id.route == route_of_query("q")


def test_a_click_is_itself_whatever_else_it_says_when_it_has_an_event_id() -> None:
    """Its identity is the event id, else impression, place, action and time."""

    def own(**fields: Any) -> bytes:
        event = validator().click(click(**fields), NOW_MS, ORIGIN).event
        assert isinstance(event, Click)
        return event.identity

    assert own(event_id="e", position=1) == own(event_id="e", position=2)
    assert own(position=1) != own(position=2)
    assert own() == identity("c", "i1", "", "1", "click", str(NOW_MS))


@pytest.mark.parametrize(
    ("at_ms", "words"),
    [
        (NOW_MS // 1_000, "seconds: send 1,000 times as much"),
        (NOW_MS * 1_000, "microseconds: send a thousandth of it"),
        (NOW_MS * 1_000_000, "nanoseconds: send a millionth of it"),
    ],
)
def test_a_time_of_another_unit_is_refused_with_its_unit(
    at_ms: int, words: str
) -> None:
    """It is not taken for January 1970."""
    with pytest.raises(Refused, match=words):
        validator().query(query(at_ms=at_ms), NOW_MS)


def test_where_the_broker_itself_is_in_1970_so_are_its_events() -> None:
    """A simulation may begin at zero."""
    accepted = validator().query(query(at_ms=200_000_000), 200_000_500)

    assert accepted.at_ms == 200_000_000


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (query(schema=2), "schema"),
        (query(at_ms=-1), "time"),
        (query(at_ms=NOW_MS + 300_001), "time-future"),
        (query(at_ms=2**70), "time"),
        (query(at_ms=NOW_MS // 1_000), "time"),
        (query(at_ms=NOW_MS * 1_000), "time"),
        (query(at_ms=True), "malformed"),
        (query(at_ms="3"), "malformed"),
        (query(at_ms=1.5), "malformed"),
        (query(shown=None), "malformed"),
        (query(surprise=1), "malformed"),
        (query(shown=[]), "shown"),
        (query(shown=["a", "a"]), "candidates"),
        (query(shown=["a", "a"], candidates=["a", "b"]), "shown"),
        (query(shown=["z"], candidates=["a", "b"]), "shown"),
        (query(shown=[f"d{i}" for i in range(1_001)]), "shown"),
        (query(candidates=[f"d{i}" for i in range(10_001)]), "too-many-documents"),
        (query(impression_id=""), "identity"),
        (query(impression_id="x" * 257), "identity"),
        (query(canary="x" * 277), "identity"),
        (query(canary=3), "malformed"),
        (query(query_id="  "), "no-route"),
        (query(policy="magic"), "policy"),
        (query(policy="plackett-luce", candidates=["a", "b"]), "scores"),
        (query(policy="plackett-luce", scores=[1, 2]), "candidates"),
        (query(candidates=["a", "b"], scores=[1]), "scores"),
        (query(candidates=["a", "b"], scores=base64_of(1, float("nan"))), "scores"),
        (query(candidates=["a", "b"], scores=[1, 1e300]), "scores"),
        (query(candidates=["a", "b"], scores="!!"), "scores"),
        (query(candidates=["a", "b"], policy="logged"), "exposures"),
        (
            query(candidates=["a", "b"], policy="logged", exposures=[1, 1, 0, 0]),
            "exposures",
        ),
        (query(features=[[1.0], [1.0, 2.0]]), "features"),
        (query(features=[[1.0]]), "features"),
        (query(features=base64_of(1, 2, 3)), "features"),
        (b"{", "not-json"),
        (b'{"impression_id": "\xff"}', "not-json"),
        (b"\xef\xbb\xbf{}", "not-json"),
        (b'{"a":' + b"9" * 5_000 + b"}", "malformed"),
        (query(attributes={}).replace(b"{}}", b"NaN}"), "not-json"),
        (query(attributes={}).replace(b"{}}", b'{"a":1e999}}'), "malformed"),
        (b'{"attributes":' + b'{"a":' * 100_000, "not-json"),
        (query(query_id="x").replace(b'"x"', b'"\\ud800"'), "not-json"),
        (b"3", "malformed"),
        (b"null", "malformed"),
    ],
)
def test_what_is_refused_says_why(raw: bytes, code: str) -> None:
    """Each rule has its stable code."""
    with pytest.raises(Refused) as refusal:
        validator().query(raw, NOW_MS)

    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (click(position=0), "position"),
        (click(position=-3), "position"),
        (click(position=1.5), "malformed"),
        (click(position=None), "identity"),
        (click(query_id=None), "no-route"),
        (click(query_id=None, impression_id="a~xyz"), "no-route"),
        (click(action=""), "identity"),
    ],
)
def test_a_click_that_is_refused_says_why(raw: bytes, code: str) -> None:
    """Clicks have rules of their own."""
    with pytest.raises(Refused) as refusal:
        validator().click(raw, NOW_MS, ORIGIN)

    assert refusal.value.code == code


def test_a_batch_is_cut_into_its_own_bytes() -> None:
    """Each element keeps the bytes that the client wrote."""
    assert elements_of(b' [ {"a": 1} , 7,"x" ] ') == [b'{"a": 1}', b"7", b'"x"']


@pytest.mark.parametrize(
    ("value", "code"),
    [(b"", "empty"), (b"  ", "empty"), (b"[]", "empty-batch"), (b"[1,", "not-json")],
)
def test_a_record_without_an_event_is_refused(value: bytes, code: str) -> None:
    """It counts as one dead letter."""
    with pytest.raises(Refused) as refusal:
        elements_of(value)

    assert refusal.value.code == code


def ranks_of(*rows: list[int]) -> str:
    """Shown items by rankers, as events have them."""
    return base64.b64encode(np.array(rows, "<u2").tobytes()).decode()


def test_multileaved_lists_keep_what_learners_need() -> None:
    """Ranks and teams as they came; features of candidates in canonical order."""
    raw = query(
        candidates=["c", "b", "a"],
        policy="multileave",
        ranks=ranks_of([1, 3], [2, 1]),
        assignments=[0, 1],
        candidate_features=[[3.0, 0.0], [2.0, 0.0], [1.0, 0.0]],
    )
    extra = msgspec.msgpack.decode(taken(raw).extra)
    features = np.frombuffer(base64.b64decode(extra["candidate_features"]), "<f4")

    assert extra["ranks"] == ranks_of([1, 3], [2, 1])
    assert extra["assignments"] == [0, 1]
    assert features.reshape(3, 2)[:, 0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "fields",
    [
        {"ranks": "no base64!"},
        {"ranks": base64.b64encode(b"abc").decode()},
        {"ranks": ""},
        {"ranks": ranks_of([0], [1])},
        {"ranks": ranks_of([3], [1])},
        {"ranks": ranks_of([1], [1])},
        {"candidate_features": [[1.0]]},
        {"candidate_features": [[1.0], [float("1e60")]]},
    ],
)
def test_ranks_and_features_that_cannot_be_are_refused(fields: dict[str, Any]) -> None:
    """Neither ranks beyond the candidates, nor twice the same, nor missing rows."""
    with pytest.raises(Refused) as refusal:
        validator().query(query(**fields), NOW_MS)
    assert refusal.value.code == next(iter(fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"features_hash": "0" * 15},
        {"features_hash": "0" * 15 + "G"},
        {"features_hash": "A" * 16},
        {"features_hash": "0" * 17},
        {"candidate_features": None},
        {"candidates": None, "policy": "unknown", "scores": None},
    ],
)
def test_a_hash_must_name_features_of_named_candidates(fields: dict[str, Any]) -> None:
    """It is taken with both, and stays with the list."""
    good = {
        "candidates": ["b", "a"],
        "shown": ["a", "b"],
        "scores": [1.0, 2.0],
        "candidate_features": [[1.0], [2.0]],
        "features_hash": "0123456789abcdef",
    }
    extra = msgspec.msgpack.decode(taken(query(**good)).extra)
    assert extra["features_hash"] == "0123456789abcdef"
    with pytest.raises(Refused, match="features_hash") as refusal:
        validator().query(query(**good | fields), NOW_MS)
    assert refusal.value.code == "candidate_features"


@pytest.mark.parametrize("letter", ["x", "a\u0301\u0316"])
def test_a_query_is_no_longer_than_it_may_be(letter: str) -> None:
    """Marks upon one letter take the square of their number to be normalised."""
    longest = (letter * 4_096)[:4_096]
    validator().query(query(query_id=longest), NOW_MS)
    for take in (
        lambda: validator().query(query(query_id=longest + "x"), NOW_MS),
        lambda: validator().click(click(query_id=longest + "x"), NOW_MS, ORIGIN),
    ):
        with pytest.raises(Refused, match="query_id must be at most 4096") as refused:
            take()
        assert refused.value.code == "identity"
