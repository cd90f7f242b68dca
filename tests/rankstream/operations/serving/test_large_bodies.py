"""Bodies that are small on the way and large to decode: counted, refused, or sliced."""

import asyncio
import base64
import gzip
import json
from collections.abc import Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rankstream.lab.benchmarks.serve.clients import begun, posted, requests_of
from rankstream.operations.serving.application import endpoints_of
from rankstream.operations.serving.calls import GZIP_PIECE, Call
from rankstream.operations.serving.documents import DOCUMENT_BYTES
from rankstream.operations.serving.http.elements import WINDOW_BYTES
from rankstream.operations.serving.http.limits import SLICE_BYTES, InFlight, Turn, Turns
from rankstream.operations.serving.problems import Problem
from rankstream.operations.serving.sender import RECORDS_AT_ONCE, Outgoing, Sender
from rankstream.settings import ServeSettings
from rankstream.wire.topics import CLICKS, QUERIES
from tests.fakes.kafka import FakeKafka
from tests.fakes.producer import FakeBatch, FakeProducer
from tests.rankstream.operations.serving.test_events import clicked, listed
from tests.served import N_PARTITIONS, Gate, Served, served, settings_of

MIB = 1 << 20


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    """One with the limits that a server has unless told otherwise."""
    with served() as found:
        yield found


@pytest.fixture(scope="module")
def narrow() -> Iterator[Served]:
    """One of few documents and values."""
    with served(settings_of(events=300, values=2_000)) as found:
        yield found


def peak_bytes() -> int:
    """The most memory of this process since its peak was reset."""
    status = Path("/proc/self/status").read_text()
    return 1_024 * int(status.partition("VmHWM:")[2].split()[0])


def test_twenty_attackers_are_refused_and_others_served(server: Served) -> None:
    """In little memory; and nothing of theirs is sent."""
    before = len(server.values(CLICKS)) + len(server.values(QUERIES))
    Path("/proc/self/clear_refs").write_text("5")
    begun_bytes = peak_bytes()
    with begun(server.port, 20, 1.0) as attackers:
        n_served = 0
        while attackers.poll() is None:
            answer = server.ask("/v1/events", clicked(f"good-{n_served}"))
            assert answer.status == 202
            n_served += 1
        answers = json.loads(attackers.communicate()[0])

    assert set(answers) <= {"413", "0"}
    # Each has asked at least once; who is hung up on as it writes may hear nothing.
    assert sum(answers.values()) >= 20
    assert answers["413"] > 0
    assert n_served >= 1
    grown = peak_bytes() - begun_bytes
    assert grown < 40 * MIB, f"grew by {grown:,} bytes"
    after = len(server.values(CLICKS)) + len(server.values(QUERIES))
    assert after - before == n_served
    assert server.parts.room.taken == 0


class Coming:
    """A body that comes in pieces; counts those that were asked for."""

    def __init__(self, body: bytes, piece_bytes: int) -> None:
        self._body = body
        self._piece_bytes = piece_bytes
        self.n_bytes = 0

    async def __call__(self) -> MutableMapping[str, Any]:
        """The next piece."""
        start = self.n_bytes
        piece = self._body[start : start + self._piece_bytes]
        self.n_bytes += len(piece)
        is_more = self.n_bytes < len(self._body)
        return {"type": "http.request", "body": piece, "more_body": is_more}


@pytest.mark.parametrize("number", range(len(requests_of(1))))
def test_of_each_attack_little_is_read_and_unpacked(
    server: Served, number: int
) -> None:
    """What was read and unpacked has taken room, and no more has."""
    head, _, body = requests_of()[number].partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    path, is_packed = first.split()[1].decode(), b"gzip" in head
    named = [line.lower().split(b": ") for line in lines]
    scope = {"headers": [(name, value) for name, value in named], "query_string": b""}
    coming, room, turns = Coming(body, WINDOW_BYTES), InFlight(64 * MIB), Turns(1.0)
    serve = ServeSettings(body_bytes=4 * MIB, body_s=60.0)
    call = Call(scope, coming, room, turns, serve)
    handlers = {place.path: place.handler for place in endpoints_of(server.parts)}

    async def asked() -> None:
        await handlers[path](call)

    with pytest.raises(Problem) as refused:
        asyncio.run(asked())

    assert (refused.value.status, refused.value.code) == (413, "too-many")
    serve = server.parts.serve
    n_elements = serve.events if path == "/v1/events" else serve.values
    # An element and its comma have two or three bytes.
    most = 3 * n_elements + max(WINDOW_BYTES, GZIP_PIECE)
    assert 2 * n_elements < room.taken - len(body) * is_packed <= most
    if not is_packed:
        assert coming.n_bytes == room.taken
    call.close()
    assert room.taken == 0
    assert not turns.lock.locked()


def test_others_are_answered_between_the_slices_of_a_large_request(
    server: Served,
) -> None:
    """Of events that are all checked one by one; plain and packed."""
    turns = server.parts.turns
    events = [listed(f"sliced-{n}", query_id=f"q{n}") for n in range(3_000)]
    body = json.dumps(events).encode()
    n_least = len(events) * DOCUMENT_BYTES // SLICE_BYTES
    for packing, sent in (("identity", body), ("gzip", gzip.compress(body))):
        between: set[int] = set()
        # How often a client asks meanwhile is the machine's: it asks until it has.
        for _ in range(50):
            before, seen = turns.n_slices, set()
            with ThreadPoolExecutor(1) as clients:
                large = clients.submit(
                    server.ask, "/v1/events", sent, content_encoding=packing
                )
                while not large.done():
                    assert server.ask("/healthz").status == 200
                    seen.add(turns.n_slices)
            assert large.result().json == {
                "queries": 3_000, "clicks": 0, "ignored": 0, "dead_letters": 0,
            }  # fmt: skip
            assert turns.n_slices - before >= n_least
            between |= seen - {before, turns.n_slices}
            if len(between) >= 3:
                break
        assert len(between) >= 3, between


def ones(n: int) -> list[int]:
    """Small elements."""
    return [1] * n


def in_base64(value: Any) -> str:
    """JSON as a CloudEvent may carry it."""
    return base64.b64encode(json.dumps(value).encode()).decode()


CLOUD = "application/cloudevents+json"
ENVELOPE = {"specversion": "1.0", "id": "1", "source": "/a", "time": "2020-01-01"}
RANK = {"model": "m", "query_id": "q"}

TWICE = json.dumps(listed("a", attributes={"a": ones(600)})).encode()
TWICE = TWICE[:-1] + b',"attributes":{}}'
"""The decoder makes both members of one key, and keeps the last."""


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        ("/v1/events", ones(301), {}),
        ("/v1/events?format=ubi", ones(301), {}),
        ("/v1/events", b"1\n" * 301, {"content_type": "application/x-ndjson"}),
        ("/v1/events", listed("a", attributes={"a": ones(600)}), {}),
        ("/v1/events", TWICE, {}),
        ("/v1/events", [listed("a"), listed("b", attributes={"a": ones(600)})], {}),
        ("/v1/events", listed("a", features=[ones(1_100)] * 2), {}),
        ("/v1/events?format=ubi", {"a": ones(600)}, {}),
        ("/v1/events?format=metarank", [{"a": [[]] * 300}], {}),
        ("/v1/events", ENVELOPE | {"data": ones(600)}, {"content_type": CLOUD}),
        (
            "/v1/events",
            ENVELOPE | {"data_base64": in_base64(ones(600))},
            {"content_type": CLOUD},
        ),
        (
            "/v1/events",
            ones(600),
            {"ce_specversion": "1.0", "ce_id": "1", "ce_source": "a", "ce_type": "b"},
        ),
        ("/v1/rank", RANK | {"items": [{"id": "a", "features": ones(2_100)}]}, {}),
        (
            "/v1/combine",
            {"experiment": "x", "query_id": "q", "rankings": {"a": ["b"] * 2_100}},
            {},
        ),
    ],
)
def test_small_elements_cannot_be_hidden(
    narrow: Served, path: str, body: Any, headers: dict[str, str]
) -> None:
    """In lines, in vectors, in what may be anything, or in another document."""
    answer = narrow.ask(path, body, **headers)
    assert (answer.status, answer.json["code"]) == (413, "too-many"), answer.body


def test_clicks_of_a_page_are_few(server: Served) -> None:
    """They are counted before they are decoded, too."""
    click = {"impression_id": "few", "query_id": "q", "position": 1}
    assert server.ask("/v1/click", [click] * 100).status == 202
    for body in ([click] * 101, ones(50_000), {"action": ones(50_000)}):
        answer = server.ask("/v1/click", body)
        assert (answer.status, answer.json["code"]) == (400, "malformed")
        assert "got more" in answer.json["detail"]


def test_marks_in_texts_are_no_elements(narrow: Served) -> None:
    """Nor do they make a list of documents longer."""
    text = "a,[{" * 100
    events = [listed(f"t{n}", query_id=text) for n in range(300)]
    assert narrow.ask("/v1/events", events).status == 202
    lines = b"\n\n".join(json.dumps(event).encode() for event in events)
    kind = "application/x-ndjson"
    assert narrow.ask("/v1/events", lines, content_type=kind).status == 202


def test_a_large_list_is_ranked_at_its_turn(server: Served) -> None:
    """As it was; its features may be more than a quarter of what may be anything."""
    items = [{"id": f"d{n}", "features": [n, 1, 0]} for n in range(9_000)]
    answer = server.ask("/v1/rank", RANK | {"items": items, "k": 3})
    assert answer.status == 200
    assert len(answer.json["ranking"]) == 3
    assert not server.parts.turns.lock.locked()


def test_a_refusal_within_a_turn_ends_it(server: Served) -> None:
    """Or no large request would be answered any more."""
    events = [listed(f"r{n}") for n in range(200)] + [{"impression_id": "r"}]
    for _ in range(2):
        assert server.ask("/v1/events", events).status == 422
    bomb = b'["' + b"x" * 5 * MIB
    raw = server.raw(
        posted("/v1/events", gzip.compress(bomb), b"Content-Encoding: gzip")
    )
    assert raw.startswith(b"HTTP/1.1 413 ")
    assert not server.parts.turns.lock.locked()
    assert server.ask("/v1/events", events[:-1]).status == 202


def test_turns_are_taken_in_order_one_at_a_time() -> None:
    """Small requests need none; who waits too long is told to come again."""

    async def all_of_it() -> list[str]:
        turns, told = Turns(60.0), []

        async def large(name: str) -> None:
            turn = Turn(turns)
            for _ in range(5):
                await turn.spend(SLICE_BYTES)
                told.append(name)
            turn.end()

        await asyncio.gather(large("a"), large("b"))
        small = Turn(turns)
        for _ in range(10):
            await small.spend(SLICE_BYTES // 10)
        assert not turns.lock.locked()
        first, impatient = Turn(turns), Turn(Turns(0.01))
        impatient._turns.lock = turns.lock
        await first.begin()
        with pytest.raises(Problem, match="its turn"):
            await impatient.begin()
        impatient.end()
        assert turns.lock.locked()
        return told

    told = asyncio.run(all_of_it())
    assert told[1:] == ["b", *["a"] * 4, *["b"] * 4] or told == ["a"] * 5 + ["b"] * 5


def test_others_are_looked_at_while_letters_are_given_to_the_producer() -> None:
    """Each is a record of its own, and the producer may take all without a pause."""

    async def all_of_it() -> set[int]:
        kafka, settings, passes = FakeKafka(), settings_of(), Passes()
        for topic in (QUERIES, CLICKS):
            kafka.create(topic, N_PARTITIONS)

        def make(**options: Any) -> "Watched":
            return Watched(passes, kafka, Gate(), **options)

        sender = Sender(settings, InFlight(64 * MIB), make)
        await sender.start()
        while sender.trouble:
            await asyncio.sleep(0)
        passes.begin()
        await sender.send([Outgoing(CLICKS, b"x", (("why", b"x"),))] * 1_000)
        passes.end()
        await sender.close()
        return passes.seen

    assert len(asyncio.run(all_of_it())) >= 1_000 // RECORDS_AT_ONCE


class Passes:
    """Counts passes of the loop; `seen` are those in which something was sent."""

    def __init__(self) -> None:
        self.n = 0
        self.seen: set[int] = set()
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Count from now on."""
        self._task = asyncio.create_task(self._count())

    def end(self) -> None:
        """Count no more."""
        if self._task is not None:
            self._task.cancel()

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.n += 1


class Watched(FakeProducer):
    """A producer that notes in which pass a record came into a batch of it."""

    def __init__(self, passes: Passes, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._passes = passes

    def create_batch(self) -> FakeBatch:
        """A batch that notes the same."""
        made, passes = super().create_batch(), self._passes
        append = made.append

        def noted(**fields: Any) -> int | None:
            passes.seen.add(passes.n)
            return append(**fields)

        made.append = noted  # type: ignore[method-assign]
        return made
