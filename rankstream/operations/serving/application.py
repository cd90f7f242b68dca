"""The application: paths and their handlers, behind one door that all requests pass."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.routing import Route

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
    Receive,
    Scope,
    Send,
)
from rankstream.operations.serving.clicks import Clicks
from rankstream.operations.serving.documents import Documents
from rankstream.operations.serving.limits import InFlight, Turns
from rankstream.operations.serving.lists import Lists
from rankstream.operations.serving.openapi import description
from rankstream.operations.serving.pages import Counts, Pages
from rankstream.operations.serving.problems import Problem, malformed
from rankstream.operations.serving.sender import Sender
from rankstream.ranker import Ranker
from rankstream.settings import ServeSettings, Settings
from rankstream.snapshots import SnapshotStore, store_of

Handler = Callable[[Call], Awaitable[Answer]]

COMMON = ((b"x-content-type-options", b"nosniff"),)
NOT_STORED = (b"cache-control", b"no-store")
PROBLEM = b"application/problem+json"

log = logging.getLogger("rankstream.serve")


class Endpoint(NamedTuple):
    """A path: its method, who answers, and what it asks a token for."""

    path: str
    method: str
    handler: Handler
    role: str
    is_probed: bool = False
    """Whether it is asked by address too, as by probes, and so under any host."""


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
        Endpoint("/v1/events", "POST", documents.take, SEND),
        Endpoint("/v1/rank", "POST", lists.rank, RANK),
        Endpoint("/v1/combine", "POST", lists.combine, RANK),
        Endpoint("/v1/click", "POST", clicks.take, CLICK),
        Endpoint("/beacon.js", "GET", clicks.script, NOBODY),
        Endpoint("/openapi.json", "GET", pages.description, NOBODY),
        Endpoint("/metrics", "GET", pages.metrics, ANY),
        Endpoint("/healthz", "GET", pages.health, NOBODY, is_probed=True),
        Endpoint("/readyz", "GET", pages.readiness, NOBODY, is_probed=True),
    ]


def application(parts: Parts) -> Starlette:
    """The application of these parts; it connects when it starts."""
    endpoints = endpoints_of(parts)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
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

    app = Starlette(
        routes=[
            Route(each.path, _Handled(each.handler), methods=[each.method])
            for each in endpoints
        ],
        middleware=[Middleware(_Door, parts=parts, endpoints=endpoints)],
        exception_handlers={HTTPException: _not_here},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    return app


async def _not_here(request: Request, error: Exception) -> Any:
    """Tell of what the router refuses as of everything else."""
    status = HTTPStatus(getattr(error, "status_code", HTTPStatus.NOT_FOUND))
    given = getattr(error, "headers", None) or {}
    raise Problem(
        status,
        "method" if status == HTTPStatus.METHOD_NOT_ALLOWED else "path",
        f"there must be such a path and method; got {request.method} "
        f"{request.url.path[:100]!r}: /openapi.json has those that there are",
        headers=tuple((k.lower().encode(), v.encode()) for k, v in given.items()),
    )


class _Handled:
    """A handler as the router calls it."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive, send  # the door has both
        scope["rankstream.answer"] = await self._handler(scope["rankstream.call"])


class _Door:
    """Lets requests through that keep to the rules, and answers all of them."""

    def __init__(self, app: Any, parts: Parts, endpoints: list[Endpoint]) -> None:
        self._app = app
        self._serve = parts.serve
        self._room = parts.room
        self._turns = parts.turns
        self._access = parts.access
        self._answers = parts.counts.answers
        self._endpoints = {endpoint.path: endpoint for endpoint in endpoints}
        self._seconds = {
            path: parts.counts.seconds.labels(path) for path in self._endpoints
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_s = time.perf_counter()
        path = scope["path"]
        endpoint = self._endpoints.get(path)
        call = Call(
            scope,
            receive,
            self._room,
            self._turns,
            most=self._serve.body_bytes,
            within_s=self._serve.body_s,
        )
        scope["rankstream.call"] = call
        origin = call.header(b"origin")
        try:
            answer = await self._answer(call, endpoint, scope, receive, send)
        except ClientGone:
            return
        except Problem as problem:
            call.close()
            if problem.is_last:
                await call.drain()
            answer = Answer(problem.body(), problem.status, PROBLEM, problem.headers)
        except Exception:  # a fault of one request: told and logged, and others go on
            at = endpoint.path if endpoint else ""
            log.exception("event=request-failed path=%s", at)
            failed = Problem(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "failed",
                "the request failed by a fault of the server; its log says more",
            )
            answer = Answer(failed.body(), failed.status, PROBLEM)
        finally:
            call.close()
        self._answers[endpoint.path if endpoint else "other", int(answer.status)] += 1
        await _sent(send, answer, self._access.headers_for(origin))
        if endpoint:
            self._seconds[endpoint.path].observe(time.perf_counter() - started_s)

    async def _answer(
        self,
        call: Call,
        endpoint: Endpoint | None,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> Answer:
        _check_head(call, self._serve.head_bytes)
        if endpoint is None or not endpoint.is_probed:
            self._access.check_host(call)
        asking = self._access.asking(call)
        if asking.origin and scope["method"] == "OPTIONS" and endpoint is not None:
            return Answer(b"", HTTPStatus.NO_CONTENT, headers=FOR_PAGES)
        self._access.check(call, endpoint.role if endpoint else NOBODY, asking)
        await self._app(scope, receive, send)
        answer: Answer = scope["rankstream.answer"]
        return answer


ONCE = (
    b"host", b"origin", b"authorization", b"content-type", b"content-encoding",
    b"content-length", b"transfer-encoding",
)  # fmt: skip
"""Headers that two readers could take different ones of."""


def _check_head(call: Call, most: int) -> None:
    """Refuse heads that are large, or that two servers could read differently.

    Raises
    ------
    Problem
    """
    scope = call.scope
    if scope["http_version"] not in ("1.0", "1.1"):
        raise Problem(
            HTTPStatus.HTTP_VERSION_NOT_SUPPORTED,
            "version",
            f"a request must be HTTP/1.1 or 1.0; got {scope['http_version']!r}",
            is_last=True,
        )
    headers = scope["headers"]
    size = len(scope["raw_path"]) + len(scope["query_string"]) + 4 * len(headers)
    for name, value in headers:
        size += len(name) + len(value)
    if size > most:
        raise Problem(
            HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
            "head",
            f"a head must take at most {most:,} bytes (serve.head_bytes); got {size:,}",
            is_last=True,
        )
    names = [name for name, _ in headers]
    is_twice = len(call.headers) < len(names) and any(
        names.count(each) > 1 for each in ONCE
    )
    if is_twice or {b"content-length", b"transfer-encoding"} <= call.headers.keys():
        raise _ambiguous(
            "host, origin, token, type and length must be said once; a header comes "
            "twice, or two headers say the length"
        )
    coding = call.header(b"transfer-encoding")
    if coding and coding.strip().lower() != "chunked":
        raise _ambiguous(
            f"transfer-encoding must be chunked and nothing else; got {coding[:100]!r}"
        )


def _ambiguous(detail: str) -> Problem:
    problem = malformed(detail, "head")
    problem.headers = ((b"connection", b"close"),)
    return problem


async def _sent(
    send: Send, answer: Answer, more: tuple[tuple[bytes, bytes], ...]
) -> None:
    headers = [*COMMON, *more, *answer.headers]
    if answer.status != HTTPStatus.NO_CONTENT:
        headers.append((b"content-type", answer.kind))
        headers.append((b"content-length", b"%d" % len(answer.body)))
    if not any(name == NOT_STORED[0] for name, _ in answer.headers):
        headers.append(NOT_STORED)
    start = {
        "type": "http.response.start",
        "status": int(answer.status),
        "headers": headers,
    }
    await send(start)
    await send({"type": "http.response.body", "body": answer.body})
