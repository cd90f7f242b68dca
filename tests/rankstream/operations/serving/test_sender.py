"""Outages of Kafka: nothing is claimed, nothing grows, and all of it ends."""

import concurrent.futures
import json
import socket
from collections.abc import Iterator
from typing import Any

import msgspec
import psutil
import pytest
from aiokafka.errors import OutOfOrderSequenceNumber

from rankstream.operations.serving.http.limits import RECORD_BYTES
from rankstream.operations.serving.sender import joined
from rankstream.wire.topics import BATCH_BYTES, CLICKS, QUERIES
from tests.fakes.producer import FakeProducer
from tests.rankstream.operations.serving.test_events import clicked, listed
from tests.served import (
    N_PARTITIONS,
    PATIENCE_S,
    Answered,
    Served,
    served,
    settings_of,
    until,
)


@pytest.fixture
def server() -> Iterator[Served]:
    """A server that waits for Kafka for a moment only."""
    settings = settings_of(answer_s=1.0, body_bytes=100_000, under_way_bytes=1 << 20)
    with served(settings) as found:
        yield found


@pytest.fixture
def patient() -> Iterator[Served]:
    """One that waits as long as a busy machine takes."""
    with served(settings_of(answer_s=PATIENCE_S)) as found:
        yield found


def is_another(server: Served, first: FakeProducer) -> bool:
    """Whether a producer has taken the place of the first one."""
    return server.producers[-1] is not first and not server.parts.sender.trouble


def test_an_outage_fills_the_room_and_then_refuses_at_once(server: Served) -> None:
    """What was under way arrives afterwards, each once, and gives its room back."""
    server.gate.is_shut = True
    wide = {"attributes": {"wide": "x" * 60_000}}
    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        answers = list(
            clients.map(
                lambda n: server.ask("/v1/events", listed(f"out-{n}", **wide)),
                range(64),
            )
        )
    codes = {answer.json["code"] for answer in answers}
    assert {answer.status for answer in answers} == {503}
    assert codes == {"unanswered", "busy"}
    assert all(answer.headers["retry-after"] == "1" for answer in answers)
    assert 0 < server.parts.room.taken <= 1 << 20
    for number in range(20):
        answers.append(server.ask("/v1/events", listed(f"late-{number}", **wide)))
        if answers[-1].json["code"] == "busy":
            break
    assert answers[-1].json["code"] == "busy"
    assert server.ask("/healthz").status == 200
    server.gate.is_shut = False
    until(lambda: server.parts.room.taken == 0)
    under_way = sum(answer.json["code"] == "unanswered" for answer in answers)
    names = [each["impression_id"] for each in server.events(QUERIES)]
    assert len(names) == len(set(names)) == under_way
    until(lambda: server.ask("/v1/events", listed("after")).status == 202)


def test_readiness_says_that_kafka_is_silent(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that it is there again."""
    monkeypatch.setattr("rankstream.operations.serving.sender.PROBE_EVERY_S", 0.1)
    monkeypatch.setattr("rankstream.operations.serving.sender.PROBE_S", 0.2)
    server.gate.is_shut = True
    until(lambda: server.ask("/readyz").status == 503)
    assert server.ask("/readyz").json["reasons"] == ["Kafka: it does not answer"]
    server.gate.is_shut = False
    until(lambda: server.ask("/readyz").status == 200)


def test_what_is_answered_lies_with_all_replicas_once(server: Served) -> None:
    """That is how the client is asked to send."""
    (options,) = server.options
    assert (options["acks"], options["enable_idempotence"]) == ("all", True)


def test_a_list_whose_event_failed_is_made_and_sent_anew(patient: Served) -> None:
    """Under its id; nobody was told of the first one."""
    first = patient.producers[-1]

    async def broken(*_: object, **__: object) -> None:
        raise OutOfOrderSequenceNumber

    first.send_batch = broken  # type: ignore[method-assign,assignment]
    item = {"id": "a", "features": [1.0, 2.0, 3.0]}
    asked = {"model": "m", "query_id": "q", "items": [item], "impression_id": "anew"}
    failed = patient.ask("/v1/rank", asked)
    assert (failed.status, failed.json["code"]) == (503, "unanswered")
    assert not patient.events(QUERIES)
    until(lambda: is_another(patient, first))
    assert patient.ask("/v1/rank", asked | {"k": 5}).status == 200
    assert [each["impression_id"] for each in patient.events(QUERIES)] == ["anew"]


def test_a_producer_that_failed_is_replaced(patient: Served) -> None:
    """Its numbers have a gap: it would send nothing any more."""
    first = patient.producers[-1]

    async def broken(*_: object, **__: object) -> None:
        raise OutOfOrderSequenceNumber

    first.send_batch = broken  # type: ignore[method-assign,assignment]
    answer = patient.ask("/v1/events", clicked("again"))
    assert (answer.status, answer.json["code"]) == (503, "unanswered")
    until(lambda: is_another(patient, first))
    assert patient.ask("/v1/events", clicked("again")).status == 202
    assert patient.parts.sender.failed == 1
    assert [each["event_id"] for each in patient.events(CLICKS)] == ["e-again"]


def test_what_waits_as_a_producer_fails_goes_to_the_next_one(patient: Served) -> None:
    """What was refused is told alone: others had no part in it."""
    first, send = patient.producers[-1], patient.producers[-1].send_batch

    async def refusing(batch: Any, topic: str, *, partition: int) -> Any:
        if b"bad" in batch.contents[0].value:
            raise OutOfOrderSequenceNumber
        return await send(batch, topic, partition=partition)

    first.send_batch = refusing  # type: ignore[method-assign]
    patient.gate.is_shut = True
    room = patient.parts.room
    clicks = [clicked(f"{number:02}") for number in range(30)]
    size = RECORD_BYTES + len(json.dumps(clicks[0]))
    with concurrent.futures.ThreadPoolExecutor(32) as clients:
        good = [clients.submit(patient.ask, "/v1/events", click) for click in clicks]
        until(lambda: room.taken == 30 * size)
        bad = clients.submit(patient.ask, "/v1/events", listed("bad"))
        assert bad.result().status == 503
        until(lambda: patient.producers[-1] is not first)
        patient.gate.is_shut = False
        assert [each.result().status for each in good] == [202] * 30
    assert len(patient.events(CLICKS)) == patient.parts.sender.sent == 30
    assert patient.parts.sender.failed == 1


def test_what_is_wrong_with_kafka_is_for_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Who asks without a token hears no address, no topic and no command."""
    caplog.set_level("INFO", logger="rankstream.serve")
    settings = msgspec.structs.replace(settings_of(), file="/etc/shop.toml")

    async def broken(*_: object, **__: object) -> None:
        raise OutOfOrderSequenceNumber("at 10.1.2.3:9092")

    with served(settings) as server:
        server.producers[-1].send_batch = broken  # type: ignore[method-assign,assignment]
        server.parts.sender._n_partitions = N_PARTITIONS + 1
        refused = server.ask("/v1/events", clicked("unheard"))
        until(lambda: "/etc/shop.toml" in caplog.text)
        ready = server.ask("/readyz")
        busy = server.ask("/v1/events", clicked("unheard"))
    assert (refused.status, ready.status, busy.status) == (503, 503, 503)
    assert (refused.json["code"], busy.json["code"]) == ("unanswered", "busy")
    assert "10.1.2.3:9092" in caplog.text
    assert ready.json["reasons"] == [
        "Kafka: it cannot be used; the log of the server says why"
    ]
    for answer in (refused, ready, busy):
        for secret in (b"10.1.2.3", b"9092", b"shop.toml", b"topics", b"queries"):
            assert secret not in answer.body


def test_a_stop_answers_what_was_begun(patient: Served) -> None:
    """And takes no new connection."""
    port = patient.port
    patient.gate.is_shut = True
    with concurrent.futures.ThreadPoolExecutor(4) as clients:
        asking = [
            clients.submit(patient.ask, "/v1/events", clicked(f"last-{n}"))
            for n in range(4)
        ]
        until(lambda: patient.parts.room.taken >= 4 * RECORD_BYTES)
        patient.server.should_exit = True
        until(lambda: patient.parts.pages.is_draining)
        patient.gate.is_shut = False
        answers: list[Answered] = [each.result() for each in asking]
    assert [answer.status for answer in answers] == [202] * 4
    with pytest.raises(ConnectionError):
        socket.create_connection(("127.0.0.1", port), timeout=20).close()


def test_what_clients_gave_up_still_arrives_once(server: Served) -> None:
    """A client that hangs up has no answer; its event may come again."""
    server.gate.is_shut = True
    body = json.dumps(clicked("gone")).encode()
    for _ in range(3):
        with server.connect() as client:
            client.sendall(
                b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body) + body
            )
            until(lambda: server.parts.room.taken > 0)
    server.gate.is_shut = False
    until(lambda: server.parts.room.taken == 0)
    assert {each["event_id"] for each in server.events(CLICKS)} == {"e-gone"}


def test_events_share_records_up_to_the_size_of_a_batch() -> None:
    """In their order; one that is larger has its own."""
    values = [b'"%s"' % (b"x" * n) for n in (10, BATCH_BYTES, 20, 30, BATCH_BYTES // 2)]
    values += [b'"%s"' % (b"y" * (BATCH_BYTES // 2))]
    records = list(joined(values))
    found: list[str] = []
    for record in records:
        decoded = json.loads(record)
        found += decoded if isinstance(decoded, list) else [decoded]
        assert len(record) <= BATCH_BYTES + 2
    assert found == [json.loads(value) for value in values]
    assert len(records) == 4
    assert list(joined([])) == []


@pytest.mark.parametrize(("n_more", "n_records"), [(0, 2), (1, 3)])
def test_a_record_of_several_events_is_a_batch_at_most(
    n_more: int, n_records: int
) -> None:
    """To the byte, with brackets and commas, also behind a full one."""
    n_first = BATCH_BYTES // 2
    n_second = BATCH_BYTES - len(b"[,]") - n_first + n_more
    values = [b"x" * BATCH_BYTES, b"y" * n_first, b"z" * n_second]
    records = list(joined(values))
    assert len(records) == n_records
    assert max(map(len, records)) == BATCH_BYTES


def test_memory_stays_flat_while_kafka_is_away(server: Served) -> None:
    """Refusals hold nothing."""
    server.gate.is_shut = True
    process = psutil.Process()
    body = json.dumps([clicked(f"flat-{n}") for n in range(400)]).encode()

    def ask(_: int) -> int:
        return server.ask("/v1/events", body).status

    with concurrent.futures.ThreadPoolExecutor(16) as clients:
        assert set(clients.map(ask, range(100))) == {503}
        before = process.memory_info().rss
        assert set(clients.map(ask, range(400))) == {503}
    grown = process.memory_info().rss - before
    # Held, they would be 160,000 events: several times as much.
    assert grown < 24 << 20, f"grew by {grown:,} bytes"
