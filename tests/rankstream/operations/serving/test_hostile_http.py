"""Bytes that nobody should send: refused in words or closed; nothing stays behind."""

import contextlib
import gc
import gzip
import http.client
import json
import resource
import socket
import time
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from rankstream.operations.serving.http.connections import PIECE_BYTES
from rankstream.wire.topics import CLICKS, QUERIES
from tests.rankstream.operations.serving.test_events import clicked, listed
from tests.served import PATIENCE_S, Served, all_of, served, settings_of, until

HEAD = b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\n"
BODY = json.dumps(listed("hostile")).encode()


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """A server with small limits."""
    settings = settings_of(
        body_bytes=100_000,
        head_bytes=4_096,
        under_way_bytes=2 << 20,
        head_s=2.0,
        body_s=2.0,
        answer_s=10.0,
        connections=300,
    )
    with served(settings) as found:
        yield found


@pytest.fixture(autouse=True)
def _nothing_stays(server: Served) -> Iterator[None]:
    """No byte, no connection and no task; and the server goes on."""
    yield
    until(lambda: server.parts.room.taken == 0)
    until(lambda: not server.server.server_state.connections)
    until(lambda: not server.server.server_state.tasks)
    assert server.ask("/v1/events", listed("after")).status == 202


def status_of(answer: bytes) -> int:
    """Of the first answer."""
    assert answer.startswith(b"HTTP/1.1 "), answer[:100]
    return int(answer.split(b" ", 2)[1])


def posted(body: bytes, *more: bytes) -> bytes:
    """A request of these bytes."""
    length = b"Content-Length: %d\r\n" % len(body)
    return HEAD + b"".join(each + b"\r\n" for each in more) + length + b"\r\n" + body


def n_sent(server: Served) -> int:
    """Records that reached Kafka."""
    return len(server.values(QUERIES)) + len(server.values(CLICKS))


def test_a_body_that_says_it_is_too_large_is_not_read(server: Served) -> None:
    """Nor one that only turns out to be."""
    answer = server.raw(HEAD + b"Content-Length: 99999999999\r\n\r\n")
    assert status_of(answer) == 413
    large = b'{"a":"' + b"x" * 200_000 + b'"}'
    assert status_of(server.raw(posted(large))) == 413
    pieces = b"".join(b"%x\r\n%b\r\n" % (5_000, b"x" * 5_000) for _ in range(30))
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + pieces + b"0\r\n\r\n"
    answer = server.raw(chunked)
    assert status_of(answer) == 413
    assert b'"code":"too-large"' in answer


def test_a_client_that_expects_to_go_on_is_told_not_to(server: Served) -> None:
    """Where its body would be refused; else it may."""
    with server.connect() as client:
        client.sendall(
            HEAD + b"Expect: 100-continue\r\nContent-Length: 9999999\r\n\r\n"
        )
        assert status_of(all_of(client)) == 413
    with server.connect() as client:
        head = HEAD + b"Expect: 100-continue\r\nConnection: close\r\n"
        client.sendall(head + b"Content-Length: %d\r\n\r\n" % len(BODY))
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        client.sendall(BODY)
        assert status_of(all_of(client)) == 202


def test_a_compressed_bomb_is_refused_before_it_unfolds(server: Served) -> None:
    """A gigabyte of nothing, and one bomb inside another."""
    process = psutil.Process()
    bomb = gzip.compress(b"\0" * (64 << 20))
    assert len(bomb) < 100_000
    before = process.memory_info().rss
    for body in (bomb, gzip.compress(b"[" + b" " * (32 << 20))):
        answer = server.raw(posted(body, b"Content-Encoding: gzip"))
        assert status_of(answer) == 413
    assert process.memory_info().rss - before < 40 << 20
    answer = server.raw(posted(gzip.compress(bomb), b"Content-Encoding: gzip, gzip"))
    assert status_of(answer) == 415


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"P",
        HEAD,
        HEAD + b"X-Slow: a",
        HEAD + b"Content-Length: 50\r\n\r\n{",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    ],
)
def test_a_client_that_stops_in_the_middle_is_closed(
    server: Served, start: bytes
) -> None:
    """Before a head, within it, and within a body."""
    with server.connect() as client:
        client.sendall(start)
        client.settimeout(PATIENCE_S)
        found = b""
        with contextlib.suppress(ConnectionError):
            while piece := client.recv(4_096):
                found += piece
        assert found == b"" or status_of(found) == 408


def test_a_head_that_drips_is_closed(server: Served) -> None:
    """A byte now and then does not put it off."""
    with server.connect() as client:
        ends_s = time.monotonic() + PATIENCE_S
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < ends_s:
                client.sendall(b"X")
                time.sleep(0.1)
                client.settimeout(0.01)
                with contextlib.suppress(TimeoutError):
                    if not client.recv(10):
                        break
        assert time.monotonic() < ends_s


def test_slow_clients_do_not_keep_others_from_being_served(server: Served) -> None:
    """As many as there may be but a few."""
    slow = [server.connect() for _ in range(250)]
    for client in slow:
        client.sendall(HEAD + b"Content-Length: 90000\r\n\r\n" + b"x" * 1_000)
    try:
        for number in range(20):
            assert server.ask("/v1/events", listed(f"beside-{number}")).status == 202
    finally:
        for client in slow:
            client.close()


def test_more_connections_than_may_be_are_told_to_come_again() -> None:
    """And memory holds what the limit says."""
    # Who says nothing is not closed meanwhile, however long it takes to connect all.
    patient = settings_of(connections=300, head_s=PATIENCE_S)
    with served(patient) as server, contextlib.ExitStack() as held:
        for _ in range(300):
            held.enter_context(server.connect())
        until(lambda: len(server.server.server_state.connections) >= 300)
        answer = server.raw(b"")
        assert status_of(answer) == 503
        assert b"retry-after: 1" in answer


def test_bodies_that_wait_together_are_bounded(server: Served) -> None:
    """Beyond, a client is told to come again before its body is read."""
    slow = [server.connect() for _ in range(60)]
    try:
        for client in slow:
            client.sendall(HEAD + b"Content-Length: 90000\r\n\r\n" + b"x" * 80_000)
        until(lambda: server.parts.room.refused > 0)
        assert server.parts.room.taken <= 2 << 20
        answers = [all_of(client) for client in slow]
        statuses = {status_of(answer) for answer in answers if answer}
        assert 503 in statuses
        assert statuses <= {503, 408}
    finally:
        for client in slow:
            client.close()


def test_a_client_that_reads_nothing_is_closed(server: Served) -> None:
    """Answers that it does not take pile up for seconds only."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", server.port))
        ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
        client.settimeout(0.5)
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(2_000):
                client.sendall(ask)
        until(lambda: not server.server.server_state.connections)


@pytest.mark.parametrize(
    "lines",
    [
        [b"Content-Length: %d" % len(BODY), b"Transfer-Encoding: chunked"],
        [b"Transfer-Encoding: chunked", b"Content-Length: %d" % len(BODY)],
        [b"Content-Length: %d" % len(BODY), b"Content-Length: 5"],
        [b"Content-Length: %d" % len(BODY)] * 2,
        [b"Content-Length: %d, 5" % len(BODY)],
        [b"Content-Length: +%d" % len(BODY)],
        [b"Content-Length: 0x10"],
        [b"Content-Length: -1"],
        [b"Content-Length : %d" % len(BODY)],
        [b"Content-Length: 99999999999999999999999"],
        [b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"],
        [b"Transfer-Encoding: chunked, identity"],
        [b"Transfer-Encoding: identity"],
        [b"Transfer-Encoding: xchunked"],
        [b"Transfer-Encoding: \x0bchunked"],
        [b"Transfer-Encoding : chunked"],
        [b"X: a\r\n folded", b"Content-Length: %d" % len(BODY)],
        [b"X\x00Y: a", b"Content-Length: %d" % len(BODY)],
        [b"X: a\x00b", b"Content-Length: %d" % len(BODY)],
        [b"Host: evil.example", b"Content-Length: %d" % len(BODY)],
        [b"Content-Type: a/b", b"Content-Type: a/c", b"Content-Length: 0"],
        [b"Authorization: Bearer a", b"Authorization: Bearer b", b"Content-Length: 0"],
    ],
)
def test_a_request_that_two_servers_could_read_differently_is_refused(
    server: Served, lines: list[bytes]
) -> None:
    """And what comes behind it is not taken for another."""
    before = n_sent(server)
    smuggled = posted(json.dumps(listed("smuggled")).encode())
    head = HEAD + b"".join(line + b"\r\n" for line in lines) + b"\r\n"
    answer = server.raw(head + BODY + smuggled)
    assert status_of(answer) in (400, 413, 501)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert n_sent(server) == before


@pytest.mark.parametrize(
    "coding", ["identity, chunked", "gzip, chunked", "chunked, chunked", ", chunked"]
)
def test_a_body_is_in_chunks_and_coded_in_no_other_way(
    server: Served, coding: str
) -> None:
    """Some servers look at the first coding, and others at the last."""
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    for said, status in ((coding, 400), ("Chunked", 202)):
        head = HEAD + b"Transfer-Encoding: %b\r\n" % said.encode()
        closing = b"Connection: close\r\n\r\n"
        before = n_sent(server)
        answer = server.raw(head + closing + chunked)
        assert status_of(answer) == status
        assert n_sent(server) - before == (status == 202)


@pytest.mark.parametrize(
    "chunks",
    [
        b"5\r\nhello6\r\n world\r\n0\r\n\r\n",
        b"FFFFFFFFFFFFFFFFF\r\nx\r\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"5;\n\r\nhello\r\n0\r\n\r\n",
        b"zz\r\nhello\r\n0\r\n\r\n",
    ],
)
def test_chunks_that_are_none_are_refused(server: Served, chunks: bytes) -> None:
    """Whatever their length says."""
    before = n_sent(server)
    answer = server.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert not answer or status_of(answer) == 400
    assert n_sent(server) == before


@pytest.mark.parametrize(
    "line",
    [
        b"GET / HTTP/1.1",
        b"GET /../../etc/passwd HTTP/1.1",
        b"GET /..%2f..%2fetc/passwd HTTP/1.1",
        b"GET /%2e%2e/%2e%2e/etc/passwd HTTP/1.1",
        b"GET /beacon.js/../../x HTTP/1.1",
        b"GET //beacon.js HTTP/1.1",
        b"GET /beacon.js%00 HTTP/1.1",
        b"GET /v1/events/ HTTP/1.1",
        b"GET /beacon.py HTTP/1.1",
        b"GET /v1/events HTTP/1.1",
        b"DELETE /v1/events HTTP/1.1",
        b"PUT /beacon.js HTTP/1.1",
        b"TRACE /healthz HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"CONNECT evil.example:80 HTTP/1.1",
        b"GET http://evil.example/healthz HTTP/9.9",
        b"GET /healthz",
        b"\x16\x03\x01\x02\x00\x01",
        b"PRI * HTTP/2.0",
        b"GET \xff\xfe HTTP/1.1",
        b"GET /" + b"a" * 8_000 + b" HTTP/1.1",
    ],
)
def test_other_paths_and_methods_lead_nowhere(server: Served, line: bytes) -> None:
    """There are no files here."""
    answer = server.raw(line + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert not answer or status_of(answer) in (400, 404, 405, 421, 431, 505)
    for secret in (b"root:", b"Traceback", b"import ", b"/work", b"site-packages"):
        assert secret not in answer


def test_heads_are_bounded_in_bytes_and_lines(server: Served) -> None:
    """Also one that never ends."""
    long = b"X-Long: " + b"a" * 8_000
    assert status_of(server.raw(posted(BODY, long))) == 431
    many = [b"X-%d: a" % number for number in range(200)]
    assert status_of(server.raw(posted(BODY, *many))) == 431
    assert status_of(server.raw(HEAD + b"X-Endless: " + b"a" * 300_000)) == 431


def test_a_head_may_be_as_long_as_the_one_before_it(server: Served) -> None:
    """Of what came before on its connection nothing counts."""
    unsaid = len(b"POST  HTTP/1.1\r\n\r\n")
    bare = len(posted(BODY, b"X-Long: ")) - len(BODY) - unsaid
    longest = b"X-Long: " + b"a" * (4_096 - bare)
    with server.connect() as client:
        for over, status in ((b"", 202), (b"", 202), (b"a", 431)):
            client.sendall(posted(BODY, longest + over))
            answer = http.client.HTTPResponse(client)
            answer.begin()
            answer.read()
            assert answer.status == status


def test_pipelined_requests_are_answered_in_order(server: Served) -> None:
    """Each with its own body, and nothing of it is mixed."""
    bodies = [json.dumps(clicked(f"p{n}")).encode() for n in range(50)]
    answer = server.raw(b"".join(map(posted, bodies)))
    assert answer.count(b"HTTP/1.1 202 ") == 50
    found = [e["impression_id"] for e in server.events(CLICKS)]
    assert {f"p{n}" for n in range(50)} <= set(found)


def test_an_offer_to_speak_http_2_is_answered_in_http_1(server: Served) -> None:
    """As clients in Java make it, with a body, and again on the same connection."""
    offer = (
        b"Connection: Upgrade, HTTP2-Settings",
        b"Upgrade: h2c",
        b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    )
    one = posted(json.dumps(listed("h2c-1")).encode(), *offer)
    two = posted(json.dumps(listed("h2c-2")).encode())
    with server.connect() as client:
        client.sendall(one)
        client.settimeout(5.0)
        assert status_of(client.recv(65_536)) == 202
        client.sendall(two)
        second = all_of(client)
    assert not second or status_of(second) == 202
    names = {each.get("impression_id") for each in server.events(QUERIES)}
    assert "h2c-1" in names


OFFER = (b"Connection: Upgrade", b"Upgrade: h2c")


def test_headers_beyond_the_limit_cannot_be_lost_in_an_offer(server: Served) -> None:
    """Or the length behind them would be, and the body be another request."""
    before = n_sent(server)
    hidden = posted(json.dumps(clicked("hidden")).encode())
    many = [b"X-%d: a" % number for number in range(110)]
    lines = [b"GET /healthz HTTP/1.1", b"Host: localhost", *OFFER, *many]
    length = b"Content-Length: %d" % len(hidden)
    answer = server.raw(b"\r\n".join([*lines, length, b"", b""]) + hidden)
    assert status_of(answer) == 431
    assert answer.count(b"HTTP/1.1 ") == 1
    assert n_sent(server) == before


@pytest.mark.parametrize(
    ("start", "lines"),
    [
        (b"GET /healthz HTTP/1.0", OFFER),
        (b"GET /healthz HTTP/1.1", (b"Connection: Upgrade, close", OFFER[1])),
        (b"GET /healthz HTTP/1.1", (b"Connection: close", *OFFER)),
    ],
)
def test_an_offer_keeps_its_version_and_its_end(
    server: Served, start: bytes, lines: tuple[bytes, ...]
) -> None:
    """The connection is closed behind one answer, as it would be without the offer."""
    request = b"\r\n".join([start, b"Host: localhost", *lines, b"", b""])
    answer = server.raw(request + request)
    assert status_of(answer) == 200
    assert b"connection: close" in answer
    assert answer.count(b"HTTP/1.1 ") == 1


def test_offers_in_a_row_are_answered_one_by_one(server: Served) -> None:
    """However many there are; a tunnel is refused behind them."""
    one = b"\r\n".join([b"GET /healthz HTTP/1.1", b"Host: localhost", *OFFER, b"", b""])
    tunnel = b"CONNECT / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = server.raw(one * 1_000 + tunnel + one)
    assert answer.count(b"HTTP/1.1 200 ") == 1_000
    assert answer.count(b"HTTP/1.1 ") == 1_001
    assert status_of(answer[answer.rindex(b"HTTP/1.1 ") :]) == 400


@pytest.mark.parametrize(
    ("bad", "status"),
    [
        (b"\x16\x03\x01\r\n\r\n", 400),
        (HEAD + b"".join(b"X-%d: a\r\n" % n for n in range(110)) + b"\r\n", 431),
        (HEAD + b"X-Long: " + b"a" * 8_000, 431),
    ],
)
def test_a_refusal_comes_behind_the_answers_before_it(
    server: Served, bad: bytes, status: int
) -> None:
    """Or it would be taken for the answer to another request."""
    server.gate.is_shut = True
    with server.connect() as client:
        client.sendall(posted(json.dumps(clicked("first")).encode()) * 2 + bad)
        until(lambda: server.parts.room.taken > 0)
        server.gate.is_shut = False
        answer = all_of(client)
    found = [int(each[:3]) for each in answer.split(b"HTTP/1.1 ")[1:]]
    assert found == [202, 202, status]


def test_what_trails_a_body_is_no_header(server: Served) -> None:
    """Whoever looked at the head has not seen it."""
    start = HEAD.replace(b"Host: localhost\r\n", b"")
    chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n"
    body = chunked % (len(BODY), BODY)
    assert status_of(server.raw(start + body + b"Host: localhost\r\n\r\n")) == 421


def test_requests_that_are_sent_ahead_wait_as_bytes(server: Served) -> None:
    """However many a client sends whose answers it does not read."""
    ask = b"GET / HTTP/1.1\r\nHost:localhost\r\n\r\n"
    n_clients, n_asked = 60, 8_000
    with contextlib.ExitStack() as held:
        clients = [held.enter_context(server.connect()) for _ in range(n_clients)]
        for client in clients:
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                sent = 0
                while sent < n_asked * len(ask):
                    sent += client.send(ask * n_asked)
        until(lambda: server.parts.room.taken > 0 or server.parts.room.refused > 0)
        most = 0
        for _ in range(20):
            open_ones: set[Any] = server.server.server_state.connections
            waiting = [len(each.pipeline) for each in list(open_ones)]
            most = max(most, *waiting, 0)
            assert server.parts.room.taken <= 2 << 20
            time.sleep(0.05)
        assert 0 < most <= PIECE_BYTES // len(ask) + 1


def test_requests_behind_the_rest_of_a_body_wait_as_bytes() -> None:
    """Of what comes with it no more is taken at once than is left of it."""
    ask, n_asked = b"GET / HTTP/1.1\r\nHost:localhost\r\n\r\n", 1_000
    request = posted(BODY + b" " * 60_000)
    settings = settings_of(body_s=PATIENCE_S, answer_s=PATIENCE_S)
    with served(settings) as server, server.connect() as client:
        server.gate.is_shut = True
        client.sendall(request[:-10])
        until(lambda: server.parts.room.taken >= len(BODY) + 60_000 - 10)
        (connection,) = list[Any](server.server.server_state.connections)
        client.sendall(request[-10:] + ask * n_asked)
        until(lambda: connection.pipeline)
        assert len(connection.pipeline) <= PIECE_BYTES // len(ask) + 1
        server.gate.is_shut = False
        answers = b""
        while answers.count(b"HTTP/1.1 ") < 1 + n_asked:
            answers += client.recv(65_536)


def test_requests_that_were_sent_ahead_are_all_answered(server: Served) -> None:
    """In their order, with bodies that are larger than a piece too."""
    wide = {"attributes": {"wide": "x" * 3_000}}
    bodies = [json.dumps(listed(f"w{n}", **wide)).encode() for n in range(200)]
    answer = server.raw(b"".join(map(posted, bodies)))
    assert answer.count(b"HTTP/1.1 202 ") == answer.count(b"HTTP/1.1 ") == 200
    found = {each["impression_id"] for each in server.events(QUERIES)}
    assert {f"w{n}" for n in range(200)} <= found


def test_memory_stays_flat_under_all_of_it(server: Served) -> None:
    """Thousands of refused requests leave nothing."""
    process = psutil.Process()
    bomb = posted(gzip.compress(b"\0" * (8 << 20)), b"Content-Encoding: gzip")
    spoilt = posted(b"[" * 50_000)
    bad = posted(json.dumps([{"impression_id": "x" * 300}] * 500).encode())

    def torment(n: int) -> None:
        for _ in range(n):
            for each in (bomb, spoilt, bad):
                with server.connect() as client:
                    client.sendall(each + b"")
                    client.recv(65_536)

    torment(60)
    gc.collect()
    before = process.memory_info().rss
    torment(300)
    gc.collect()
    grown = process.memory_info().rss - before
    assert grown < 12 << 20, f"grew by {grown:,} bytes"
    assert process.num_fds() < resource.getrlimit(resource.RLIMIT_NOFILE)[0]
