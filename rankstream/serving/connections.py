"""Connections that cannot be held open for nothing: heads, bodies and ends have limits.

uvicorn closes a connection that is silent after an answer. It waits without end for the
first byte, for the rest of a head or a body, and for a client that reads nothing.
"""

import asyncio
import time
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rankstream.sections import ServeSettings
from rankstream.serving.pages import Counts

GRACE_S = 5.0
"""To write an answer, beyond what reading and waiting may take."""

MOST_HEADERS = 100

OF_AN_OFFER = {b"connection", b"upgrade", b"http2-settings"}

FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
    b"content-type: application/problem+json\r\ncontent-length: %d\r\n\r\n%b"
)
TOO_MANY = (
    b'{"title":"Service Unavailable","status":503,"code":"connections",'
    b'"detail":"a server takes at most serve.connections connections; there are as '
    b'many: ask again later"}'
)
LARGE_HEAD = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n"
    b"content-length: 0\r\n\r\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """A connection with a time by which something must have happened.

    Attributes
    ----------
    due_s
        When it is closed, whatever it is doing, unless it gets on.
    """

    def __init__(self, serve: ServeSettings, counts: Counts, **given: Any) -> None:
        super().__init__(**given)
        self._serve = serve
        self._counts = counts
        self._n_head_bytes = self._n_headers = 0
        self._is_in_head = True
        self.due_s = time.monotonic() + serve.head_s

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or refuse it where there are as many as may be."""
        super().connection_made(transport)
        self._counts.n_connections = len(self.connections)
        if len(self.connections) > self._serve.connections:
            self.due_s = time.monotonic() + 1.0
            transport.write(FULL % (len(TOO_MANY), TOO_MANY))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        self._counts.n_connections = len(self.connections)

    def data_received(self, data: bytes) -> None:
        """Take bytes, and refuse a head that does not end."""
        if self.transport.is_closing():
            return
        if self._is_in_head:
            self._n_head_bytes += len(data)
        try:
            self._unset_keepalive_if_required()
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            self._decline(data[offer.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        if self._is_in_head and self._n_head_bytes > self._serve.head_bytes:
            self.transport.write(LARGE_HEAD)
            self.transport.close()

    def _decline(self, rest: bytes) -> None:
        """Go on in HTTP/1.1 where a client offers another protocol.

        As Java's does with its first request. The parser leaves its body to the other
        protocol, so another parser gets the head again, without the offer.
        """
        lines = [
            name + b": " + value
            for name, value in self.headers
            if name not in OF_AN_OFFER
        ]
        start = self.scope["method"].encode() + b" " + self.url + b" HTTP/1.1"
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join([start, *lines, b"", rest]))

    def on_message_begin(self) -> None:
        """A head begins."""
        super().on_message_begin()
        self._is_in_head, self._n_headers = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, of so many."""
        self._n_headers += 1
        if self._n_headers <= MOST_HEADERS:
            super().on_header(name, value)
        elif self._n_headers == MOST_HEADERS + 1:
            # One that alone is too large: the door refuses the head.
            super().on_header(b"x-too-many", b" " * (self._serve.head_bytes + 1))

    def on_headers_complete(self) -> None:
        """A head is whole: now the body, and the answer."""
        if self._offers_another():
            self.scope["method"] = self.parser.get_method().decode("ascii")
            return
        self._is_in_head, self._n_head_bytes = False, 0
        serve = self._serve
        self.due_s = time.monotonic() + serve.body_s + serve.answer_s + GRACE_S
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """A body is whole; what comes next is a head."""
        if self._offers_another():
            return
        self._is_in_head, self._n_head_bytes = True, 0
        super().on_message_complete()

    def _offers_another(self) -> bool:
        """Whether this head offers a protocol; CONNECT does too, and is refused."""
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def on_response_complete(self) -> None:
        """An answer is on its way: now the next head, unless it came already."""
        if not self.pipeline:
            self.due_s = time.monotonic() + self._serve.head_s
        super().on_response_complete()


def close_overdue(connections: set[Any], counts: Counts) -> None:
    """End the connections whose time is up, also those that wait to be flushed."""
    now_s = time.monotonic()
    for connection in list(connections):
        if connection.due_s < now_s:
            counts.aborted += 1
            connection.transport.abort()
