"""The application: paths and their handlers, behind one door that all requests pass."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from starlette.routing import Router

from rankstream.experiments import Experiments
from rankstream.operations.serving.access import (
    ANY,
    CLICK,
    FOR_PAGES,
    NOBODY,
    RANK,
    SEND,
    Access,
)
from rankstream.operations.serving.calls import (
    Answer,
    Call,
    ClientGone,
    Headers,
    Receive,
    Scope,
    Send,
)
from rankstream.operations.serving.clicks import Clicks
from rankstream.operations.serving.deliveries import Delivery
from rankstream.operations.serving.documents import Documents
from rankstream.operations.serving.http.exchanges import Exchange
from rankstream.operations.serving.http.heads import check_head
from rankstream.operations.serving.http.limits import InFlight, Turns
from rankstream.operations.serving.lists import Lists
from rankstream.operations.serving.openapi import description
from rankstream.operations.serving.pages import Counts, Pages
from rankstream.operations.serving.problems import Problem
from rankstream.operations.serving.sender import Sender
from rankstream.ranker import Ranker
from rankstream.settings import ServeSettings, Settings
from rankstream.snapshots import SnapshotStore, store_of

Handler = Callable[[Call], Awaitable[Answer]]
Short = Callable[[Call], tuple[Delivery, Answer] | None]

WRITE, READ = ("POST",), ("GET", "HEAD")
"""Methods of a path."""

COMMON = ((b"x-content-type-options", b"nosniff"),)
NOT_STORED = (b"cache-control", b"no-store")
PROBLEM = b"application/problem+json"

log = logging.getLogger("rankstream.serve")


class Endpoint(NamedTuple):
    """A path: its methods, who answers, and what it asks a token for."""

    path: str
    methods: tuple[str, ...]
    handler: Handler
    role: str
    is_probed: bool = False
    """Whether it is asked by address too, as by probes, and so under any host."""
    begin: Short | None = None
    """Does what `handler` does up to where Kafka is waited for, and has the answer for
    then; None where that takes a task."""


@dataclass
class Parts:
    """What a server is made of."""

    settings: Settings
    room: InFlight
    sender: Sender
    store: SnapshotStore
    rankers: dict[str, Ranker]
    experiments: Experiments
    counts: Counts
    pages: Pages
    access: Access
    turns: Turns

    @property
    def serve(self) -> ServeSettings:
        """Its own settings."""
        return self.settings.serve


def parts_of(
    settings: Settings, sender: Sender | None = None, room: InFlight | None = None
) -> Parts:
    """The parts of a server; nothing is connected yet.

    Parameters
    ----------
    sender, room
        Another sender than to Kafka, and its room.

    Raises
    ------
    SettingsError
        Where a file that the settings name cannot be read.
    """
    room = room or InFlight(settings.serve.under_way_bytes)
    sender = sender or Sender(settings, room)
    store = store_of(settings)
    rules = {one.models[0]: name for name, one in settings.decided.items()}
    rankers = {
        name: Ranker(
            name,
            store=store,
            decisions=rules.get(name, ""),
            segment=settings.ingestion.segment,
            **(
                {"feature_names": model.feature_names}
                if model.feature_names
                else {"n_features": model.features}
            ),
        )
        for name, model in settings.models.items()
    }
    experiments = Experiments(store)
    counts = Counts(room, sender, rankers)
    described = msgspec.json.encode(description())
    pages = Pages(counts, sender, rankers, experiments, described)
    access = Access(settings.serve)
    turns = Turns(settings.serve.answer_s)
    return Parts(
        settings,
        room,
        sender,
        store,
        rankers,
        experiments,
        counts,
        pages,
        access,
        turns,
    )


def endpoints_of(parts: Parts) -> list[Endpoint]:
    """Every path that there is."""
    documents = Documents(parts.settings, parts.sender)
    lists = Lists(
        parts.settings, parts.sender, documents, parts.rankers, parts.experiments
    )
    clicks = Clicks(parts.sender, documents)
    pages = parts.pages
    return [
        Endpoint("/v1/events", WRITE, documents.take, SEND, begin=documents.begin),
        Endpoint("/v1/rank", WRITE, lists.rank, RANK),
        Endpoint("/v1/combine", WRITE, lists.combine, RANK),
        Endpoint("/v1/click", WRITE, clicks.take, CLICK),
        Endpoint("/beacon.js", READ, clicks.script, NOBODY),
        Endpoint("/openapi.json", READ, pages.description, NOBODY),
        Endpoint("/metrics", READ, pages.metrics, ANY),
        Endpoint("/healthz", READ, pages.health, NOBODY, is_probed=True),
        Endpoint("/readyz", READ, pages.readiness, NOBODY, is_probed=True),
    ]


def application(parts: Parts) -> "Door":
    """The application of these parts; it connects when it starts."""

    @asynccontextmanager
    async def lifespan(_: Router) -> AsyncIterator[None]:
        await parts.sender.start()
        followed: list[Ranker | Experiments] = [
            *parts.rankers.values(),
            parts.experiments,
        ]
        # Each looks at Redis first, which may be slow to say that it is away.
        await asyncio.gather(*(asyncio.to_thread(each.follow) for each in followed))
        try:
            yield
        finally:
            await parts.sender.close()
            await asyncio.gather(*(asyncio.to_thread(each.close) for each in followed))
            parts.store.close()

    return Door(parts, endpoints_of(parts), Router(lifespan=lifespan))


class _Asked(NamedTuple):
    """A request that is being answered."""

    exchange: Exchange
    endpoint: Endpoint | None
    origin: str
    started_s: float


class Door:
    """Lets requests through that keep to the rules, and answers all of them.

    A path is looked up once: what says who may ask says who answers, too.

    Parameters
    ----------
    life
        Hears of the start and the end of the server.
    """

    def __init__(self, parts: Parts, endpoints: list[Endpoint], life: Router) -> None:
        self._life = life
        self._serve = parts.serve
        self._room = parts.room
        self._turns = parts.turns
        self._access = parts.access
        self._sender = parts.sender
        self._answers = parts.counts.answers
        self._endpoints = {endpoint.path: endpoint for endpoint in endpoints}
        self._seconds = {
            path: parts.counts.seconds.labels(path) for path in self._endpoints
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hear of the start and the end; requests come to `begin`."""
        await self._life(scope, receive, send)

    def begin(self, exchange: Exchange) -> Coroutine[Any, Any, None] | None:
        """Take a request, and give what is left to do of it, for a task.

        None where all of it was here and is on its way to Kafka: its answer follows
        Kafka's, without a task.
        """
        started_s = time.perf_counter()
        endpoint = self._endpoints.get(exchange.scope["path"])
        call = Call(
            exchange.scope,
            exchange.receive,
            self._room,
            self._turns,
            self._serve,
            exchange.whole_body,
        )
        asked = _Asked(exchange, endpoint, call.header(b"origin"), started_s)
        begun = None
        try:
            handler = self._admitted(call, endpoint)
            if endpoint and handler is endpoint.handler and endpoint.begin:
                begun = None if exchange.is_blocked else endpoint.begin(call)
        except Exception as error:  # noqa: BLE001  it is told as that of a handler
            handler = partial(_raising, error)
        if begun is None:
            return self._handle(asked, call, handler)
        call.close()
        self._sender.tell(begun[0], partial(self._decided, asked, *begun))
        return None

    async def _handle(self, asked: _Asked, call: Call, handler: Handler) -> None:
        exchange, endpoint, _, _ = asked
        try:
            answer = await handler(call)
        except ClientGone:
            return
        except Problem as problem:
            call.close()
            if problem.is_last:
                await call.drain()
            answer = _refusal(problem)
        except Exception:  # a fault of one request: told and logged, and others go on
            at = endpoint.path if endpoint else ""
            log.exception("event=request-failed path=%s", at)
            answer = _refusal(
                Problem(
                    HTTPStatus.INTERNAL_SERVER_ERROR,
                    "failed",
                    "the request failed by a fault of the server; its log says more",
                )
            )
        finally:
            call.close()
        await exchange.until_read()
        self._finish(asked, answer)

    def _decided(self, asked: _Asked, delivery: Delivery, answer: Answer) -> None:
        """Answer what was begun without a task."""
        problem = self._sender.problem_of(delivery)
        self._finish(asked, _refusal(problem) if problem else answer)

    def _finish(self, asked: _Asked, answer: Answer) -> None:
        path = asked.endpoint.path if asked.endpoint else "other"
        status = int(answer.status)
        self._answers[path, status] += 1
        try:
            headers = answer.headers + self._access.headers_for(asked.origin)
            asked.exchange.answer(status, _head(answer, headers), answer.body)
        except Exception:  # others that wait for the same batch are answered
            log.exception("event=request-failed path=%s", path)
            asked.exchange.abort()
        if asked.endpoint:
            self._seconds[path].observe(time.perf_counter() - asked.started_s)

    def _admitted(self, call: Call, endpoint: Endpoint | None) -> Handler:
        check_head(call, self._serve.head_bytes)
        if endpoint is None or not (
            endpoint.is_probed or self._access.may_ask_any_host(endpoint.role)
        ):
            self._access.check_host(call)
        asking = self._access.asking(call)
        method = call.scope["method"]
        if asking.origin and method == "OPTIONS" and endpoint is not None:
            return _allowed
        self._access.check(call, endpoint.role if endpoint else NOBODY, asking)
        if endpoint is None:
            raise _not_here(call, HTTPStatus.NOT_FOUND, "path")
        if method not in endpoint.methods:
            problem = _not_here(call, HTTPStatus.METHOD_NOT_ALLOWED, "method")
            problem.headers = ((b"allow", ", ".join(endpoint.methods).encode()),)
            raise problem
        return endpoint.handler


async def _raising(error: Exception, call: Call) -> Answer:
    del call
    raise error


async def _allowed(call: Call) -> Answer:
    """What a page's script may send, as its browser asks before it does."""
    del call
    return Answer(b"", HTTPStatus.NO_CONTENT, headers=FOR_PAGES)


def _refusal(problem: Problem) -> Answer:
    return Answer(problem.body(), problem.status, PROBLEM, problem.headers)


def _not_here(call: Call, status: HTTPStatus, code: str) -> Problem:
    return Problem(
        status,
        code,
        "there must be such a path and method; got "
        f"{call.scope['method']} {call.scope['path'][:100]!r}: /openapi.json has those "
        "that there are",
    )


def _head(answer: Answer, headers: Headers) -> bytes:
    if answer.status == HTTPStatus.NO_CONTENT:
        return _lines(headers)
    length = b"content-length: %d\r\n" % len(answer.body)
    return _lines(headers, answer.kind) + length


@lru_cache(maxsize=256)
def _lines(headers: Headers, kind: bytes = b"") -> bytes:
    """Headers as they are sent, those of all answers too."""
    named = {**dict(COMMON), NOT_STORED[0]: NOT_STORED[1], **dict(headers)}
    if kind:
        named[b"content-type"] = kind
    return b"".join(b"%b: %b\r\n" % each for each in named.items())
