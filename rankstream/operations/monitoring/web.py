"""The monitor's page: static files, JSON, and a stream of what changed.

Loopback only unless told otherwise. Nothing is taken from a request but the name of
an experiment and the number of a pair. A page elsewhere cannot read ours: the host
must be one that was bound, and everything is said to be for this origin only.
"""

import asyncio
import errno
import math
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankstream.listening import openness
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.serving.http.connections import (
    BoundedProtocol,
    BoundedServer,
)
from rankstream.operations.serving.http.limits import InFlight
from rankstream.settings import ServeSettings

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; "
    "style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

CONNECTIONS = 64
"""Of all browsers together; a page has two or three."""

MOST_STREAMS, MOST_STREAMS_A_HOST = 48, 16
"""Of all and of one address. Connections are left for who asks for the page itself."""

LOOK_S = 0.5
"""How often a stream looks for news."""

ALIVE_S = 5.0
"""After so long without news it says that it lives; pages count on it."""

STOP_S = 2

_to_json = msgspec.json.Encoder().encode


def static() -> dict[str, tuple[str, bytes]]:
    """Path, media type and bytes of each file of the page."""
    room = files("rankstream.operations.monitoring").joinpath("page")
    found = {}
    for each in room.iterdir():
        kind = KINDS.get("." + each.name.rpartition(".")[2])
        if kind is not None:
            path = "/" if each.name == "index.html" else f"/{each.name}"
            found[path] = kind, each.read_bytes()
    return found


class Server:
    """The page of one monitor."""

    def __init__(self, host: str, port: int, gathered: Gathered) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise OSError(
                f"an address must be free to listen at; {host}:{port} is not: choose "
                "another with --port"
            ) from error
        address, bound = self._socket.getsockname()[:2]
        named = f"[{address}]" if ":" in address else address
        self.url = f"http://{named}:{bound}/"
        self.warning = openness(address, bound)
        names = {
            f"[{host}]" if ":" in host else host,
            "localhost",
            "127.0.0.1",
            "[::1]",
        }
        hosts = frozenset(f"{name}:{bound}" for name in names)
        self._news = News(gathered)
        counts = _Counts()
        serve = ServeSettings(connections=CONNECTIONS)
        room = InFlight(serve.under_way_bytes)
        app = application(gathered, self._news, hosts)
        protocol: Any = partial(
            _PageProtocol, serve, counts, room, lambda exchange: exchange.given_to(app)
        )
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=round(serve.head_s),
            timeout_graceful_shutdown=STOP_S,
        )
        self._server = BoundedServer(config, counts)
        self._ended = threading.Event()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._socket.getsockname()[1])

    def serve_forever(self) -> None:
        """Answer until it is closed."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._ended.set()

    def close(self) -> None:
        """Answer nobody any more."""
        self._news.is_over = True
        self._server.should_exit = True
        self._ended.wait(2 * STOP_S)
        self._socket.close()


def application(gathered: Gathered, news: "News", hosts: frozenset[str]) -> Starlette:
    """The application: what it serves, to whoever asks for one of these hosts."""

    async def overview(_: Request) -> Response:
        return _json(gathered.overview())

    async def experiment(request: Request) -> Response:
        pair = request.query_params.get("pair", "0")
        number = int(pair) if pair.isdecimal() and len(pair) < 9 else 0
        name = request.query_params.get("name", "")
        return _json(gathered.experiment(name, number))

    async def events(request: Request) -> Response:
        kind = "text/event-stream"
        if request.method == "HEAD":
            return Response(media_type=kind)
        host = request.client.host if request.client else ""
        if not news.admits(host):
            words = "as many streams as may be are open: close other pages\n"
            return Response(words, HTTPStatus.SERVICE_UNAVAILABLE)
        return _Stream(news, host)

    async def no_icon(_: Request) -> Response:
        return Response(status_code=HTTPStatus.NO_CONTENT)

    app = Starlette(
        routes=[
            *(Route(path, _file(*each)) for path, each in static().items()),
            Route("/overview", overview),
            Route("/experiment", experiment),
            Route("/events", events),
            Route("/favicon.ico", no_icon),
        ],
        middleware=[Middleware(_Door, hosts=hosts)],
    )
    app.router.redirect_slashes = False
    return app


class News:
    """Streams of what changed, as server-sent events.

    The first event of a stream has the whole overview, each later one those parts of it
    that are not as they were. `is_over` ends all streams.
    """

    def __init__(self, gathered: Gathered) -> None:
        self.is_over = False
        self._gathered = gathered
        self._open: Counter[str] = Counter()
        self._found: dict[str, bytes] = {}
        self._number, self._made_s = -1, -math.inf

    def admits(self, host: str) -> bool:
        """Whether an address may have one more stream; then it is counted."""
        if self._open.total() >= MOST_STREAMS:
            return False
        if self._open[host] >= MOST_STREAMS_A_HOST:
            return False
        self._open[host] += 1
        return True

    def leave(self, host: str) -> None:
        """One of its streams is over."""
        self._open[host] -= 1
        self._open = +self._open

    def _encoded(self, now_s: float) -> tuple[int, dict[str, bytes]]:
        """Number and parts of the overview: of all streams one encodes it at a time."""
        if now_s - self._made_s >= LOOK_S:
            overview = self._gathered.overview()
            self._number, self._made_s = overview["number"], now_s
            self._found = {name: _to_json(value) for name, value in overview.items()}
        return self._number, self._found

    async def stream(self) -> AsyncIterator[bytes]:
        """Events until the reader goes, or all is over."""
        known: dict[str, bytes] = {}
        number, said_s = -1, 0.0
        while not self.is_over:
            now_s = time.monotonic()
            if self._gathered.number != number or now_s - said_s >= ALIVE_S:
                number, found = self._encoded(now_s)
                changed = {
                    name: msgspec.Raw(value)
                    for name, value in found.items()
                    if known.get(name) != value
                }
                known = found
                if changed:
                    said_s = now_s
                    yield b"data: " + _to_json(changed) + b"\n\n"
            await asyncio.sleep(LOOK_S)


class _Stream(StreamingResponse):
    """A stream that is counted until it is over, whoever ends it."""

    def __init__(self, news: News, host: str) -> None:
        super().__init__(news.stream(), media_type="text/event-stream")
        self._news, self._host = news, host

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._news.leave(self._host)


@dataclass
class _Counts:
    """Connections; nobody asks for them."""

    n_connections: int = 0
    aborted: int = 0


class _PageProtocol(BoundedProtocol):
    """A connection of a browser, whose stream may last."""

    def on_headers_complete(self) -> None:
        """A head is whole; a stream has no end by which it is due."""
        super().on_headers_complete()
        if self.url.partition(b"?")[0] == b"/events":
            self.due_s = math.inf


class _Door:
    """Lets in who asks for a host of ours, and says what browsers may do."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                more = [(k.lower().encode(), v.encode()) for k, v in HEADERS.items()]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        asked = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        app: ASGIApp = self._app
        if asked not in self._hosts:
            app = Response("wrong host\n", HTTPStatus.MISDIRECTED_REQUEST)
        await app(scope, receive, with_headers)


def _file(kind: str, body: bytes) -> Any:
    async def answer(_: Request) -> Response:
        return Response(body, media_type=kind)

    return answer


def _json(value: object) -> Response:
    status = HTTPStatus.NOT_FOUND if value is None else HTTPStatus.OK
    return Response(_to_json(value), status, media_type="application/json")
