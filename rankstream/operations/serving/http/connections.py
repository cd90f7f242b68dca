"""Connections that cannot be held open for nothing: heads, bodies and ends have limits.

uvicorn waits without end for the first byte, for the rest of a head or a body, and for
a client that reads nothing. It also makes a request of all that was sent ahead, whether
or not answers are read. It has a timer for each answer, after which it closes what is
silent; here a look at all connections now and then does that, too.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any, Protocol

import httptools
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rankstream.operations.serving.http.exchanges import Exchange
from rankstream.operations.serving.http.limits import InFlight
from rankstream.operations.serving.problems import Problem, busy, malformed
from rankstream.settings import ServeSettings

GRACE_S = 5.0
"""To write an answer, beyond what reading and waiting may take."""

MOST_HEADERS = 100

PIECE_BYTES = 512
"""So much is parsed at once, and so many requests of a few bytes can it become."""


SWEEP_TICKS = 5
"""Overdue connections are closed every so many ticks of a tenth of a second."""


class Tally(Protocol):
    """What is counted of connections: those that are open, and closed for slowness."""

    n_connections: int
    aborted: int


Begin = Callable[[Exchange], Coroutine[Any, Any, None] | None]
"""Takes a request; gives what is left to do, for a task, where it is not at once."""


class _Reading(FlowControl):
    """Reads on when it is asked to, unless what was read waits still."""

    def __init__(
        self, transport: asyncio.Transport, is_behind: Callable[[], bool]
    ) -> None:
        super().__init__(transport)
        self._is_behind = is_behind

    def resume_reading(self) -> None:
        """Read on, if nothing waits."""
        if not self._is_behind():
            super().resume_reading()


class BoundedProtocol(HttpToolsProtocol):
    """A connection with a time by which something must have happened.

    Attributes
    ----------
    due_s
        When it is closed, whatever it is doing, unless it gets on.
    """

    def __init__(
        self,
        serve: ServeSettings,
        counts: Tally,
        room: InFlight,
        begin: Begin,
        **given: Any,
    ) -> None:
        super().__init__(**given)
        self._begin = begin
        self._serve = serve
        self._counts = counts
        self._room = room
        self._held = b""
        self._last_words = b""
        self._n_head_bytes = self._n_headers = self._n_body_left = 0
        self._is_in_head = True
        self.due_s = time.monotonic() + serve.head_s

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or refuse it where there are as many as may be."""
        super().connection_made(transport)
        self.flow = _Reading(transport, self._is_behind)
        self._counts.n_connections = len(self.connections)
        if len(self.connections) > self._serve.connections:
            self.due_s = time.monotonic() + 1.0
            self._refuse(
                busy(
                    "a server takes at most serve.connections connections; there are "
                    "as many: ask again later",
                    code="connections",
                )
            )

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._hold(b"")
        self._counts.n_connections = len(self.connections)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and refuse a head that does not end."""
        self._parse(self._held + data if self._held else data)

    def _parse(self, data: bytes) -> None:
        """Make requests of bytes, but for those behind a request that waits."""
        rest = memoryview(data)
        while rest and not self.pipeline and not self._is_ending():
            # Of a body whose length is known all may be taken: no request is in it.
            n_bytes = max(PIECE_BYTES, self._n_body_left)
            piece, rest = rest[:n_bytes], rest[n_bytes:]
            if self._is_in_head:
                self._n_head_bytes += len(piece)
            try:
                self.parser.feed_data(piece)
            except httptools.HttpParserUpgrade as offer:
                rest = memoryview(
                    b"".join((self._without_offer(), piece[offer.args[0] :], rest))
                )
            except httptools.HttpParserError:
                self._refuse(
                    _large_head(self._serve)
                    if self._n_headers > MOST_HEADERS
                    else _unreadable("these bytes are none")
                )
            if self._is_in_head and self._n_head_bytes > self._serve.head_bytes:
                self._refuse(_large_head(self._serve))
        self._hold(b"" if self._is_ending() else bytes(rest))

    def _hold(self, rest: bytes) -> None:
        """Keep what waits behind a request as bytes, which take room."""
        self._room.give(len(self._held))
        self._held = b""
        try:
            self._room.take(len(rest))
        except Problem as problem:
            self._refuse(problem)
        else:
            self._held = rest

    def _is_behind(self) -> bool:
        return bool(self.pipeline or self._held)

    def _is_ending(self) -> bool:
        return bool(self._last_words) or self.transport.is_closing()

    def _refuse(self, problem: Problem) -> None:
        """Close with these words, behind the answers to what came before."""
        if self._is_ending():
            return
        self._last_words = _in_bytes(problem)
        cycle: Any = self.cycle
        if not self.pipeline and (
            cycle is None or cycle.response_complete or cycle.more_body
        ):
            self._end()

    def _end(self) -> None:
        self.transport.write(self._last_words)
        self.transport.close()

    def _without_offer(self) -> bytes:
        """The head again, without its offer to speak another protocol.

        As Java's client makes it with its first request. The parser leaves the body to
        the other protocol, so another parser gets all of it. The word `upgrade` may
        stay in Connection: without the header of that name it offers nothing.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version()
        if method == b"CONNECT":
            self._refuse(_unreadable("CONNECT asks for a tunnel"))
        lines = [
            name + b": " + value for name, value in self.headers if name != b"upgrade"
        ]
        start = b"%b %b HTTP/%b" % (method, self.url, version.encode())
        self.parser = parser_for(self)
        self._n_head_bytes = 0
        return b"\r\n".join([start, *lines, b"", b""])

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._is_in_head, self._n_headers = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, of so many; what trails a body is none.

        Raises
        ------
        ValueError
            Where there are too many: nothing of the request is taken then.
        """
        if not self._is_in_head:
            return
        self._n_headers += 1
        if self._n_headers > MOST_HEADERS:
            raise ValueError(f"a head must have at most {MOST_HEADERS} headers")
        super().on_header(name, value)
        if self.headers[-1][0] == b"content-length":
            self._n_body_left = int(value)

    def on_headers_complete(self) -> None:
        """A head is whole: now the body, and the answer."""
        if self.parser.should_upgrade():
            return
        self._is_in_head, self._n_head_bytes = False, 0
        serve = self._serve
        self.due_s = time.monotonic() + serve.body_s + serve.answer_s + GRACE_S
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._n_body_left -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A body is whole; what comes next is a head."""
        if self.parser.should_upgrade():
            return
        self._is_in_head, self._n_head_bytes, self._n_body_left = True, 0, 0
        super().on_message_complete()

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        del app
        # In the next turn of the loop all is parsed that came with the head.
        self.loop.call_soon(self._take, cycle)

    def _take(self, cycle: Any) -> None:
        left = self._begin(Exchange(cycle, self.server_state.default_headers))
        if left is not None:
            task = self.loop.create_task(left)
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def on_response_complete(self) -> None:
        """An answer is on its way: now the next head, unless it came already."""
        self.server_state.total_requests += 1
        if not self.pipeline:
            self.due_s = time.monotonic() + self._serve.head_s
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        if self._last_words:
            if self.cycle.response_complete:
                self._end()
        elif self._held:
            self._parse(self._held)
            self.flow.resume_reading()

    def end(self, counts: Tally) -> None:
        """Close what is overdue; who sent nothing since an answer was not slow."""
        cycle: Any = self.cycle
        is_silent = cycle is not None and cycle.response_complete
        if is_silent and not (self._n_head_bytes or self.transport.is_closing()):
            self.transport.close()
        else:
            counts.aborted += 1
            self.transport.abort()


def parser_for(protocol: HttpToolsProtocol) -> Any:
    """A parser as uvicorn makes it: one request may close, and others be behind it."""
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


class BoundedServer(uvicorn.Server):
    """A server that ends connections whose time is up.

    Parameters
    ----------
    counts
        Hears of them.
    """

    def __init__(self, config: uvicorn.Config, counts: Tally) -> None:
        super().__init__(config)
        self._counts = counts

    async def on_tick(self, counter: int) -> bool:
        """Close what is overdue, now and then."""
        if counter % SWEEP_TICKS == 0:
            close_overdue(self.server_state.connections, self._counts)
        return await super().on_tick(counter)


def close_overdue(connections: set[Any], counts: Tally) -> None:
    """End the connections whose time is up, also those that wait to be flushed."""
    now_s = time.monotonic()
    for connection in list(connections):
        if connection.due_s < now_s:
            connection.end(counts)


def _unreadable(why: str) -> Problem:
    return malformed(f"a connection must hold requests of HTTP/1.1; {why}", "head")


def _large_head(serve: ServeSettings) -> Problem:
    return Problem(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        "head",
        f"a head must take at most {serve.head_bytes:,} bytes (serve.head_bytes), in "
        f"at most {MOST_HEADERS} headers; got more",
    )


def _in_bytes(problem: Problem) -> bytes:
    """An answer after which the connection is closed."""
    body = problem.body()
    headers = {
        **dict(problem.headers),
        b"connection": b"close",
        b"content-type": b"application/problem+json",
        b"content-length": b"%d" % len(body),
    }
    start = f"HTTP/1.1 {problem.status.value} {problem.status.phrase}".encode()
    lines = [name + b": " + value for name, value in headers.items()]
    return b"\r\n".join([start, *lines, b"", body])
