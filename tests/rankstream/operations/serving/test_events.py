"""Events over HTTP: all to Kafka or none, and why not."""

import gzip
import json
import shutil
import subprocess
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from aiokafka import TopicPartition

from rankstream.operations.commands.serve import EPILOG
from rankstream.operations.serving.calls import GZIP_PIECE
from rankstream.operations.serving.documents import (
    MOST_CHARACTERS,
    MOST_QUERIES,
    Queries,
)
from rankstream.settings import Settings
from rankstream.wire.input_events import REFUSED_HEADER
from rankstream.wire.topics import CLICKS, QUERIES
from streams.local import LocalPipeline, local_settings
from tests.fakes.partition_log import Content
from tests.served import N_PARTITIONS, PATIENCE_S, Served, served, settings_of

NOW_MS = time.time_ns() // 1_000_000


def listed(name: str, **fields: Any) -> dict[str, Any]:
    """A query event."""
    event = {
        "impression_id": name, "query_id": "shoes", "at_ms": NOW_MS,
        "shown": ["a", "b"],
    }  # fmt: skip
    return event | fields


def clicked(name: str, **fields: Any) -> dict[str, Any]:
    """A click on it."""
    event = {
        "impression_id": name, "query_id": "shoes", "at_ms": NOW_MS, "position": 1,
        "event_id": f"e-{name}",
    }  # fmt: skip
    return event | fields


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """One server for all."""
    with served() as found:
        yield found


def contents(server: Served, topic: str) -> list[Content]:
    """What the records of a topic hold."""
    logs = (server.kafka.log(TopicPartition(topic, n)) for n in range(N_PARTITIONS))
    fetched = (log.fetch(0, is_committed=False, limit=None) for log in logs)
    return [r.content for one in fetched for r in one.records if r.content]


def named(server: Served, topic: str, name: str) -> list[Any]:
    """Events of a list."""
    return [each for each in server.events(topic) if each.get("impression_id") == name]


def test_an_event_is_answered_once_kafka_has_it(server: Served) -> None:
    """And reaches the partition that its bytes say, as from `feed`."""
    body = json.dumps(listed("one")).encode()
    answer = server.ask("/v1/events", body, content_type="application/json")
    assert (answer.status, answer.json["queries"], answer.json["clicks"]) == (202, 1, 0)
    place = TopicPartition(QUERIES, zlib.crc32(body) % N_PARTITIONS)
    records = server.kafka.log(place).fetch(0, is_committed=False, limit=None).records
    values = [record.content.value for record in records if record.content]
    assert values.count(body) == 1


@pytest.mark.parametrize("kind", ["application/x-ndjson", "application/json", ""])
def test_many_events_arrive_each_once(server: Served, kind: str) -> None:
    """One a line, or as an array; those of a partition share a record."""
    name = f"many-{kind or 'none'}"
    events = [listed(f"{name}-{n}") for n in range(200)]
    events += [clicked(f"{name}-{n}") for n in range(300)]
    packed = [json.dumps(each).encode() for each in events]
    body = b"\n".join(packed) if "ndjson" in kind else b"[" + b",".join(packed) + b"]"
    answer = server.ask("/v1/events", body, content_type=kind)
    assert (answer.status, answer.json["queries"], answer.json["clicks"]) == (
        202, 200, 300,
    )  # fmt: skip
    for topic, n in ((QUERIES, 200), (CLICKS, 300)):
        found = [
            e
            for e in server.events(topic)
            if e.get("impression_id", "").startswith(name)
        ]
        assert len({each["impression_id"] for each in found}) == len(found) == n


def test_gzip_is_unpacked(server: Served) -> None:
    """Whole streams of it only."""
    body = gzip.compress(json.dumps(listed("packed")).encode())
    assert server.ask("/v1/events", body, content_encoding="gzip").status == 202
    assert len(named(server, QUERIES, "packed")) == 1
    for wrong in (body[:-3], body + b"x", b"{}", body + body):
        answer = server.ask("/v1/events", wrong, content_encoding="gzip")
        assert (answer.status, answer.json["code"]) == (400, "gzip")
    answer = server.ask("/v1/events", body, content_encoding="br")
    assert (answer.status, answer.json["code"]) == (415, "encoding")


def test_one_bad_document_keeps_all_from_being_sent(server: Served) -> None:
    """The answer says which are bad, by the codes of dead letters."""
    body = [
        listed("kept-back"),
        listed("kept-back", shown=[]),
        clicked("kept-back", position=0),
        {"impression_id": "kept-back"},
    ]
    answer = server.ask("/v1/events", body)
    assert answer.status == 422
    assert answer.headers["content-type"] == "application/problem+json"
    told = [(each["index"], each["code"]) for each in answer.json["rejected"]]
    assert told[:2] == [(1, "shown"), (2, "position")]
    assert [index for index, _ in told] == [1, 2, 3]
    assert all(each["reason"] for each in answer.json["rejected"])
    assert not named(server, QUERIES, "kept-back")


def test_what_is_refused_can_become_a_dead_letter(server: Served) -> None:
    """With what the answer would have said; good documents of the request pass."""
    body = [listed("beside"), listed("beside", shown=[]), {"no": "event"}]

    def words() -> list[str]:
        return [
            dict(each.headers)[REFUSED_HEADER].decode()
            for topic in (QUERIES, CLICKS)
            for each in contents(server, topic)
            if each.headers
        ]

    before = words()
    answer = server.ask("/v1/events?refused=dead-letter", body)
    assert (answer.status, answer.json["queries"]) == (202, 1)
    assert answer.json["dead_letters"] == 2
    new = Counter(words()) - Counter(before)
    assert new.total() == 2
    assert any(each.startswith("shown: ") for each in new)


@pytest.mark.parametrize("refused", ["request", "dead-letter"])
def test_what_kafka_cannot_take_is_refused_before_anything_is_sent(
    refused: str,
) -> None:
    """Nor can it be a dead letter, so nothing of the request is."""
    wide = json.dumps(listed("wide")).replace(",", "," + " " * 3_000_000).encode()
    body = b"[" + json.dumps(listed("narrow")).encode() + b"," + wide + b"]"
    settings = settings_of(body_bytes=32 << 20, under_way_bytes=128 << 20)
    with served(settings) as server:
        answer = server.ask(f"/v1/events?refused={refused}", body)
        assert answer.status == 422
        (told,) = answer.json["rejected"]
        assert (told["index"], told["code"]) == (1, "too-large")
        assert not server.events(QUERIES)
        assert server.ask("/v1/events", listed("narrow")).status == 202


def test_ingestion_takes_whatever_was_answered(server: Served) -> None:
    """Nothing becomes a dead letter but what was sent as one."""
    body = [listed("taken"), clicked("taken"), listed("not-taken", shown=[])]
    assert server.ask("/v1/events?refused=dead-letter", body).status == 202
    pipeline = LocalPipeline(local_settings(Settings()), now=lambda: NOW_MS)
    n_events = n_letters = 0
    for topic in (QUERIES, CLICKS):
        for each in contents(server, topic):
            assert each.value is not None
            pipeline.send(topic, each.value, headers=each.headers)
            n_letters += bool(each.headers)
            n_events += each.value.count(b'"at_ms"') * (not each.headers)
    pipeline.flush()
    counts = pipeline.counters()
    assert counts["ingestion_dead_letter"] == n_letters > 0
    assert counts["ingestion_passed"] == n_events > 1


@pytest.mark.parametrize(
    ("body", "kind", "status", "code"),
    [
        (b"", "application/json", 400, "empty"),
        (b"  \n ", "application/json", 400, "empty"),
        (b"[]", "application/json", 400, "empty"),
        (b"\n\n", "application/x-ndjson", 400, "empty"),
        (b"[{]", "application/json", 400, "not-json"),
        (b"[" * 100_000, "application/json", 400, "not-json"),
        (b"{", "application/json", 422, "rejected"),
        (b"[7]", "application/json", 422, "rejected"),
        (b'{"impression_id":"\xff"}', "application/json", 422, "rejected"),
        (b"{}", "application/xml", 415, "type"),
        (b"{}", "multipart/form-data; boundary=x", 415, "type"),
    ],
)
def test_what_is_no_event_is_refused_in_words(
    server: Served, body: bytes, kind: str, status: int, code: str
) -> None:
    """And nothing is sent."""
    before = len(server.values(QUERIES)), len(server.values(CLICKS))
    answer = server.ask("/v1/events", body, content_type=kind)
    assert (answer.status, answer.json["code"]) == (status, code)
    assert answer.json["detail"]
    assert (len(server.values(QUERIES)), len(server.values(CLICKS))) == before


@pytest.mark.parametrize(
    "query",
    ["format=avro", "refused=no", "nothing=1", "ordinal_base=2", "ordinal_base=x",
     "ordinals=perhaps", "data=xml"],
)  # fmt: skip
def test_an_unknown_format_or_option_is_refused(server: Served, query: str) -> None:
    """Before anything is read as something else."""
    answer = server.ask(f"/v1/events?{query}", listed("i"))
    assert (answer.status, answer.json["code"]) == (400, "format")


@pytest.mark.parametrize("form", ["rankstream", "ubi"])
def test_a_time_in_seconds_names_the_parameter_that_converts_it(
    server: Served, form: str
) -> None:
    """In the refusal; with that parameter the same document is taken."""
    name = f"seconds-{form}"
    body = {"impression_id": name, "query_id": "q", "at_ms": 1_750_000_000}
    body |= {"shown": ["a"]}
    if form == "ubi":
        body = {"query_id": name, "timestamp": 1_750_000_000}
        body |= {"query_response_hit_ids": ["a"]}
    answer = server.ask(f"/v1/events?format={form}", body)
    assert (answer.status, answer.json["rejected"][0]["code"]) == (422, "time")
    reason = answer.json["rejected"][0]["reason"]
    assert "seconds" in reason
    parameters = f"?format={form}&time_unit=s"
    assert parameters in reason
    assert server.ask(f"/v1/events{parameters}", body).status == 202
    (event,) = named(server, QUERIES, name)
    assert event["at_ms"] == 1_750_000_000_000


def test_ubi_is_taken_as_it_is(server: Served) -> None:
    """A query and its click, from the names that UBI has."""
    body = [
        {
            "query_id": "u1", "user_query": "red shoes", "client_id": "c",
            "timestamp": "2026-01-01T10:00:00Z",
            "query_response_hit_ids": ["p1", "p2"],
        },
        {
            "action_name": "click", "query_id": "u1", "client_id": "c",
            "timestamp": "2026-01-01T10:00:05Z",
            "event_attributes": {
                "object": {"object_id": "p2"}, "position": {"ordinal": 1},
            },
        },
    ]  # fmt: skip
    answer = server.ask("/v1/events?format=ubi&ordinal_base=0", body)
    assert (answer.status, answer.json["queries"], answer.json["clicks"]) == (202, 1, 1)
    (click,) = named(server, CLICKS, "u1")
    assert (click["item_id"], click["position"]) == ("p2", 2)
    assert click["query_id"] == named(server, QUERIES, "u1")[0]["query_id"]


def seen(name: str, place: int) -> dict[str, Any]:
    """An impression of UBI."""
    return {
        "action_name": "impression", "query_id": name, "user_query": "red",
        "timestamp": "2026-01-01T10:00:05Z",
        "event_attributes": {
            "object": {"object_id": f"p{place}"}, "position": {"ordinal": place},
        },
    }  # fmt: skip


def test_impressions_of_one_request_are_a_list(server: Served) -> None:
    """One that comes alone is none, as nobody knows what else was seen."""
    alone = server.ask("/v1/events?format=ubi", seen("u3", 1))
    assert (alone.status, alone.json["ignored"]) == (202, 1)
    body = [seen("u3", 2), seen("u3", 1), {"query_id": "u3", "timestamp": NOW_MS}]
    answer = server.ask("/v1/events?format=ubi", body)
    assert (answer.status, answer.json["queries"], answer.json["ignored"]) == (
        202, 1, 2,
    )  # fmt: skip
    (event,) = named(server, QUERIES, "u3")
    assert (event["shown"], event["query_id"]) == (["p1", "p2"], "red")
    again = server.ask("/v1/events?format=ubi", body)
    assert (again.status, again.json["ignored"]) == (202, 3)
    off = server.ask("/v1/events?format=ubi&impression_ms=0", [seen("u4", 1)] * 2)
    assert (off.status, off.json["ignored"]) == (202, 2)


def test_much_that_is_packed_is_unpacked_whole(server: Served) -> None:
    """Piece by piece; what is in it cannot be made small."""
    wide = np.random.default_rng(7).bytes(3 * GZIP_PIECE).hex()
    event = listed("much", attributes={"wide": wide})
    body = gzip.compress(json.dumps(event).encode())
    assert len(body) > 2 * GZIP_PIECE
    assert server.ask("/v1/events", body, content_encoding="gzip").status == 202
    assert named(server, QUERIES, "much") == [event]


def test_a_list_that_is_known_has_its_query_until_it_comes_again(
    server: Served,
) -> None:
    """A click before it in a request is one on what was shown before."""
    at = "2026-01-01T10:00:05Z"
    lists = [
        {
            "query_id": "u6", "user_query": query, "timestamp": at,
            "query_response_hit_ids": ["p1", "p2"],
        }
        for query in ("blue", "green")
    ]  # fmt: skip
    as_click = {"action_name": "click", "user_query": None}
    before, after = (seen("u6", place) | as_click for place in (1, 2))
    assert server.ask("/v1/events?format=ubi", lists[0]).status == 202
    assert server.ask("/v1/events?format=ubi", [before, lists[1], after]).status == 202
    clicks = named(server, CLICKS, "u6")
    found = {each["item_id"]: each["query_id"] for each in clicks}
    assert found == {"p1": "blue", "p2": "green"}


def test_a_list_of_a_refused_request_is_made_of_the_next_one(server: Served) -> None:
    """It was not sent, so it is not known."""
    wrong = seen("u5", 1) | {"action_name": "click", "timestamp": "soon"}
    refused = server.ask("/v1/events?format=ubi", [seen("u5", 1), wrong])
    assert refused.status == 422
    answer = server.ask("/v1/events?format=ubi", [seen("u5", 1), seen("u5", 2)])
    assert answer.json["queries"] == 1
    assert named(server, QUERIES, "u5")[0]["shown"] == ["p1", "p2"]


@pytest.mark.parametrize(
    ("query", "n_clicks"),
    [("actions=", 2), ("actions=click", 1), ("actions=click,buy", 2),
     ("impression_actions=", 3)],
)  # fmt: skip
def test_an_option_of_several_words_may_have_none(
    server: Served, query: str, n_clicks: int
) -> None:
    """Which is no empty word that no action has."""
    acted = {
        "query_id": "u2", "user_query": "shoes", "timestamp": "2026-01-01T10:00:05Z",
        "event_attributes": {"object": {"object_id": "p2"}},
    }  # fmt: skip
    body = [acted | {"action_name": name} for name in ("click", "buy", "view")]
    answer = server.ask(f"/v1/events?format=ubi&{query}", body)
    assert (answer.status, answer.json["clicks"]) == (202, n_clicks)
    assert answer.json["ignored"] == 3 - n_clicks


def test_an_option_is_a_switch_where_it_is_one(server: Served) -> None:
    """And a name that reads like one is a name."""
    body = [seen("u7", 5), seen("u7", 6)]
    asked = "/v1/events?format=ubi&model=true&ordinals="
    assert server.ask(f"{asked}true", body).status == 422
    assert server.ask(f"{asked}false", body).status == 202
    (event,) = named(server, QUERIES, "u7")
    assert (event["shown"], event["model"]) == (["p5", "p6"], "true")


def test_a_cloud_event_of_either_mode_gives_its_id(server: Served) -> None:
    """Without one of the click's own."""
    click = clicked("cloud")
    del click["event_id"]
    headers = {
        "ce_specversion": "1.0", "ce_id": "7", "ce_source": "/shop", "ce_type": "click",
    }  # fmt: skip
    assert server.ask("/v1/events", click, **headers).status == 202
    envelope = {
        "specversion": "1.0", "id": "8", "source": "/shop", "type": "click",
        "data": click,
    }  # fmt: skip
    kind = "application/cloudevents+json"
    assert server.ask("/v1/events", envelope, content_type=kind).status == 202
    kind = "application/cloudevents-batch+json"
    batch = [envelope | {"id": "9"}]
    assert server.ask("/v1/events", batch, content_type=kind).status == 202
    ids = sorted(each["event_id"] for each in named(server, CLICKS, "cloud"))
    assert ids == ["/shop#7", "/shop#8", "/shop#9"]


def test_more_documents_than_may_be_are_refused() -> None:
    """However small and plain they are."""
    with served(settings_of(events=3)) as server:
        for event in (listed, clicked):
            events = [event(f"i{n}") for n in range(4)]
            answer = server.ask("/v1/events", events)
            assert (answer.status, answer.json["code"]) == (413, "too-many")
            assert server.ask("/v1/events", events[:3]).status == 202
        lines = json.dumps([clicked(f"line-{n}") for n in range(4)]).encode()
        answer = server.ask("/v1/events", lines, content_type="application/x-ndjson")
        assert answer.status == 422
        assert not named(server, CLICKS, "line-0")


def test_queries_are_remembered_of_the_newest_lists_only() -> None:
    """And not those that are long: memory is bounded whatever is sent."""
    queries = Queries()
    for number in range(MOST_QUERIES + 10):
        queries[str(number)] = "q"
    queries["long"] = "q" * MOST_CHARACTERS
    assert len(queries) == MOST_QUERIES
    assert "long" not in queries
    assert "9" not in queries
    assert queries["10"] == "q"


@pytest.mark.parametrize(
    ("document", "form"),
    [
        ({"user_query": "red", "query_id": "u", "timestamp": NOW_MS}, "ubi"),
        ({"event": "interaction", "ranking": "r", "timestamp": NOW_MS}, "metarank"),
        ({"specversion": "1.0", "id": "1", "data": {}}, "cloudevents"),
    ],
)
def test_what_looks_like_another_format_is_told_how_to_name_it(
    server: Served, document: dict[str, Any], form: str
) -> None:
    """As `replay` tells it."""
    for kind in ("application/json", "application/x-ndjson"):
        answer = server.ask("/v1/events", document, content_type=kind)
        assert answer.status == 422
        (told,) = answer.json["rejected"]
        assert told["reason"].endswith(
            f"it looks like {form}: name it with ?format={form}"
        )
    answer = server.ask(f"/v1/events?format={form}", document)
    assert "looks like" not in answer.body.decode()


def test_headers_of_a_cloud_event_need_its_version(server: Served) -> None:
    """Without it the body is not taken for an event of ours."""
    headers = {"ce_id": "7", "ce_source": "/shop", "ce_type": "click"}
    answer = server.ask("/v1/events", clicked("headed"), **headers)
    assert answer.status == 422
    assert "specversion must be 1.0" in answer.json["detail"]


def test_the_example_of_the_help_works(server: Served) -> None:
    """As it stands there, with the port of this server."""
    curl, bash = shutil.which("curl"), shutil.which("bash")
    if not curl or not bash:
        pytest.skip("curl and bash must be there to run the example")
    example = EPILOG[EPILOG.index("curl") :].partition("\n\n")[0]
    command = example.replace(":8088/", f":{server.port}/").replace("i1", "helped")
    told = subprocess.run(
        [bash, "-c", command], check=True, capture_output=True, timeout=PATIENCE_S
    )
    assert json.loads(told.stdout)["queries"] == 1, told
    assert len(named(server, QUERIES, "helped")) == 1


@pytest.mark.parametrize("path", ["/v1/events", "/v1/click", "/v1/rank"])
@pytest.mark.parametrize("origin", ["https://stranger.example", "null"])
def test_a_form_of_a_strangers_page_is_refused(
    server: Served, path: str, origin: str
) -> None:
    """Pages may send its content type without asking first, and always say Origin."""
    kind = "application/x-www-form-urlencoded"
    answer = server.ask(path, clicked("forged"), content_type=kind, origin=origin)
    assert (answer.status, answer.json["code"]) == (403, "origin")
    assert not named(server, CLICKS, "forged")
