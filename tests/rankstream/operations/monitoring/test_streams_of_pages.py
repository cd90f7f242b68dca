"""Streams of pages: how many there may be, what they cost, and where they listen."""

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.web import (
    CONNECTIONS,
    MOST_STREAMS,
    MOST_STREAMS_A_HOST,
    News,
    Server,
)
from tests import chromium, monitored
from tests.chromium import Talk
from tests.rankstream.operations.monitoring.test_monitoring import got
from tests.rankstream.operations.monitoring.test_page_states import served


@pytest.fixture
def listening() -> Iterator[Server]:
    """A page on any port."""
    with served(Gathered()) as server:
        yield server


def test_streams_of_one_host_leave_room_for_others(
    listening: Server,
) -> None:
    """Who reads nothing keeps nobody from the page; what ends makes room."""
    server = listening
    held = [
        socket.create_connection(("127.0.0.1", server.port), 60)
        for _ in range(CONNECTIONS - 1)
    ]
    request = f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n\r\n"
    statuses = []
    for each in held:
        each.sendall(request.encode())
        statuses.append(each.recv(12)[-3:])
    expected = [b"200"] * MOST_STREAMS_A_HOST
    assert statuses == expected + [b"503"] * (CONNECTIONS - 1 - len(expected))
    assert got(server, "/overview")[0] == 200
    for each in held:
        each.close()
    ends_s = time.monotonic() + 60.0
    while not _is_streaming(server):
        assert time.monotonic() < ends_s


def _is_streaming(server: Server) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=300)
    connection.request("GET", "/events")
    status = connection.getresponse().status
    connection.close()
    return status == 200


def test_no_more_streams_than_leave_connections() -> None:
    """Of however many hosts; none is counted that was not let in."""
    streams = News(Gathered())
    hosts = [f"10.0.0.{n % 9}" for n in range(100)]
    let_in = [host for host in hosts if streams.admits(host)]
    assert len(let_in) == MOST_STREAMS < CONNECTIONS
    for host in let_in:
        streams.leave(host)
    assert [streams.admits("one") for _ in range(MOST_STREAMS_A_HOST + 1)].count(
        True
    ) == MOST_STREAMS_A_HOST


def test_the_overview_is_encoded_once_for_all_streams(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However many look, and whatever moved meanwhile; the next look has the rest."""
    gathered = Gathered()
    made: list[int] = []
    whole = gathered.overview

    def encoded() -> dict[str, Any]:
        made.append(1)
        return whole()

    monkeypatch.setattr(gathered, "overview", encoded)

    async def first_of_ten() -> list[bytes]:
        streams = News(gathered)
        readers = [streams.stream() for _ in range(10)]
        told = []
        for number, reader in enumerate(readers):
            gathered.set_counts({"late": number})
            told.append(await anext(reader))
        second = await anext(readers[0])
        assert b'"late":9' in second
        return told

    told = asyncio.run(first_of_ten())
    assert set(told) == {told[0]}
    assert len(made) == 2


def test_an_address_of_the_other_family_can_be_bound() -> None:
    """Its host stands in brackets, in its address as in what is asked."""
    try:
        server = Server("::1", 0, Gathered())
    except OSError as error:  # pragma: no cover
        pytest.skip(f"no loopback of IPv6 here: {error}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    assert server.url == f"http://[::1]:{server.port}/"
    connection = http.client.HTTPConnection("::1", server.port, timeout=300)
    connection.request("GET", "/overview")
    assert connection.getresponse().status == 200
    connection.close()
    server.close()
    thread.join()


def test_a_detail_that_failed_once_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nothing of the experiment moves."""
    gathered = Gathered()
    gathered.take_verdict(msgspec.json.encode(monitored.verdict_at(900, "boost")))
    whole, n_asked = gathered.experiment, [0]

    def second_time(name: str, pair: int = 0) -> dict[str, Any] | None:
        n_asked[0] += 1
        return whole(name, pair) if n_asked[0] > 1 else None

    monkeypatch.setattr(gathered, "experiment", second_time)

    async def look(talk: Talk) -> bool:
        await talk.go(server.url)
        return bool(
            await talk.once_true(
                "document.getElementById('title').textContent === 'boost, epoch 1'"
            )
        )

    with served(gathered) as server:
        assert chromium.visited(chromium.path(), tmp_path, look)
    assert n_asked[0] == 2
