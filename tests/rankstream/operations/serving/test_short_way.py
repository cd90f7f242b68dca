"""Requests of plain clicks are answered without a task, and as all others are."""

import concurrent.futures
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from rankstream.operations.serving.documents import Documents
from rankstream.operations.serving.http.exchanges import Exchange
from rankstream.operations.serving.http.limits import RECORD_BYTES
from rankstream.wire.topics import CLICKS
from tests.rankstream.operations.serving.test_events import clicked, listed
from tests.served import PATIENCE_S, Served, served, settings_of, until

SETTINGS: dict[str, Any] = {
    "answer_s": PATIENCE_S, "head_s": PATIENCE_S, "events": 50,
    "body_bytes": 100_000, "under_way_bytes": 1 << 20,
    "origins": ("https://shop.example",),
}  # fmt: skip

MANY = [clicked(f"many-{n}") for n in range(50)]

CASES: dict[str, tuple[Any, dict[str, str]]] = {
    "one": (clicked("one"), {}),
    "many": (MANY, {}),
    "wide": ([click | {"action": "a" * 200} for click in MANY], {}),
    "too many": ([*MANY, clicked("more")], {}),
    "too many, wide": ([click | {"action": "a" * 200} for click in MANY * 2], {}),
    "with a list": ([clicked("a"), listed("b")], {}),
    "refused": ([clicked("a"), {"impression_id": "x"}], {}),
    "too large": (b"[" + b" " * 100_001 + b"]", {}),
    "empty": (b"", {}),
    "no events": (b"[]", {}),
    "no JSON": (b"[{", {}),
    "a line": (clicked("line"), {"content_type": "application/x-ndjson"}),
    "an array in a line": (MANY[:2], {"content_type": "application/x-ndjson"}),
    "other type": (clicked("type"), {"content_type": "image/png"}),
    "other packing": (clicked("packed"), {"content_encoding": "br"}),
    "no gzip": (clicked("packed"), {"content_encoding": "gzip"}),
    "a page": (clicked("page"), {"origin": "https://shop.example"}),
    "a strange page": (clicked("page"), {"origin": "https://other.example"}),
    "other host": (clicked("host"), {"host": "other.example"}),
}


@pytest.fixture
def server() -> Iterator[Served]:
    """A server that waits as long as a busy machine takes."""
    with served(settings_of(**SETTINGS)) as found:
        yield found


@pytest.fixture
def impatient() -> Iterator[Served]:
    """One that waits for Kafka, and for clients, for a moment only."""
    with served(settings_of(**SETTINGS | {"answer_s": 1.0, "head_s": 1.0})) as found:
        yield found


def at_once(events: Any) -> bytes:
    """A request that comes in one piece; `http.client` sends a head and a body."""
    body = json.dumps(events).encode()
    return (
        b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )


def answers() -> dict[str, tuple[int, dict[str, str], bytes]]:
    """What a server of its own says to each case, but for the date."""
    found = {}
    with served(settings_of(**SETTINGS)) as server:
        for name, (body, headers) in CASES.items():
            answer = server.ask("/v1/events", body, **headers)
            kept = {k: v for k, v in answer.headers.items() if k != "date"}
            found[name] = answer.status, kept, answer.body
    return found


def test_the_short_way_answers_as_the_long_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the byte, whatever is asked."""
    short = answers()
    monkeypatch.setattr(Documents, "begin", lambda *_: None)
    long = answers()
    assert short == long
    statuses = {status for status, _, _ in short.values()}
    assert statuses == {202, 400, 403, 413, 415, 421, 422}


def test_plain_clicks_wait_for_kafka_without_a_task(server: Served) -> None:
    """Others do with one; all are answered."""
    server.gate.is_shut = True
    tasks = server.server.server_state.tasks
    with concurrent.futures.ThreadPoolExecutor(5) as clients:
        plain = [
            clients.submit(server.raw, at_once(clicked(f"short-{n}"))) for n in range(4)
        ]
        until(lambda: server.parts.room.taken > 4 * RECORD_BYTES)
        assert not tasks
        other = clients.submit(server.ask, "/v1/events", listed("long"))
        until(lambda: len(tasks) == 1)
        server.gate.is_shut = False
        assert other.result().status == 202
        assert all(each.result().startswith(b"HTTP/1.1 202 ") for each in plain)
    assert server.parts.room.taken == 0
    assert server.parts.sender.sent == 5
    assert server.parts.counts.answers["/v1/events", 202] == 5


def test_who_waits_too_long_is_told_and_the_clicks_still_arrive(
    impatient: Served,
) -> None:
    """Then the connection goes on."""
    impatient.gate.is_shut = True
    answer = impatient.ask("/v1/events", clicked("late"))
    assert (answer.status, answer.json["code"]) == (503, "unanswered")
    assert impatient.parts.room.taken > RECORD_BYTES
    impatient.gate.is_shut = False
    until(lambda: impatient.parts.room.taken == 0)
    assert [each["event_id"] for each in impatient.events(CLICKS)] == ["e-late"]
    assert impatient.parts.counts.answers["/v1/events", 503] == 1


def test_a_body_takes_room_once_whoever_looks_at_it(server: Served) -> None:
    """What the short way leaves to the long one is not too much for it."""
    room = server.parts.room
    refused = [clicked("a"), {"impression_id": "x"}]
    others = room.n_bytes - len(json.dumps(refused)) * 3 // 2
    room.take(others)
    answer = server.raw(at_once(refused))
    room.give(others)
    assert answer.startswith(b"HTTP/1.1 422 ")
    assert (room.taken, room.refused) == (0, 0)


def test_a_fault_in_one_answer_holds_up_no_other(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the same batch are answered; that one's connection ends."""
    write, lock, faults = Exchange.answer, threading.Lock(), [ValueError("broken")]

    def broken(*given: Any) -> None:
        with lock:
            if faults:
                raise faults.pop()
        write(*given)

    monkeypatch.setattr(Exchange, "answer", broken)
    body = json.dumps([clicked("fault")]).encode()

    def ask(_: int) -> int:
        try:
            return server.ask("/v1/events", body).status
        except ConnectionError:
            return 0

    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        assert sorted(clients.map(ask, range(4))) == [0, 202, 202, 202]
    assert server.ask("/v1/events", body).status == 202


def test_a_silent_client_is_hung_up_on_and_was_not_slow(impatient: Served) -> None:
    """One that stops in the middle of a head was."""
    body = json.dumps(clicked("silent")).encode()
    request = (
        b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    counts = impatient.parts.counts
    with impatient.connect() as client:
        client.sendall(request)
        assert client.recv(4_096).startswith(b"HTTP/1.1 202 ")
        assert client.recv(1) == b""
    until(lambda: counts.n_connections == 0)
    assert counts.aborted == 0
    with impatient.connect() as client:
        client.sendall(request)
        client.recv(4_096)
        client.sendall(b"POST /v1")
        until(lambda: counts.aborted == 1)
