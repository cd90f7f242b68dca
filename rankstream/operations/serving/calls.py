"""One request: its body, read within limits, and its answer."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cached_property
from http import HTTPStatus
from typing import Any, NamedTuple

from rankstream.operations.serving.http.elements import Elements
from rankstream.operations.serving.http.limits import InFlight, Turn, Turns
from rankstream.operations.serving.problems import Problem, malformed
from rankstream.settings import ServeSettings

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"

GZIP_PIECE = 16 * 1_024
"""Bytes that are unpacked at a time, so that a bomb is seen before it grows."""

DRAINED_BYTES, DRAINED_S = 32 << 20, 1.0
"""Of a body that is refused, at most so much is read before the answer."""


class Answer(NamedTuple):
    """What is sent back."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    kind: bytes = JSON
    headers: Headers = ()


class ClientGone(Exception):
    """The client has hung up; there is nobody to answer.

    Operator action: none.
    """


class Call:
    """One request, as handlers see it.

    Parameters
    ----------
    room
        What is read of the body takes room in it, until `close`.
    turns
        Where a large body waits for its turn.
    serve
        How large a body may be, packed and unpacked, and how long it may take to come.
    here
        Gives the body at once, where all of it has come already; None where not.

    Attributes
    ----------
    headers
        By name in small letters; the door refuses those that may not come twice.
    turn
        Of this request, until `close`.
    """

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        room: InFlight,
        turns: Turns,
        serve: ServeSettings,
        here: Callable[[], bytes | None] = lambda: None,
    ) -> None:
        self.scope = scope
        self.turn = Turn(turns)
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self._receive = receive
        self._here = here
        self._room = room
        self._most = serve.body_bytes
        self._within_s = serve.body_s
        self._body: bytes | None = None
        self._taken = 0
        self._is_whole = False

    def header(self, name: bytes) -> str:
        """A header by its name in small letters; empty where it is not there."""
        value = self.headers.get(name)
        return "" if value is None else value.decode("latin-1")

    @cached_property
    def kind(self) -> str:
        """Media type of the body, in small letters, without parameters."""
        return self.header(b"content-type").partition(";")[0].strip().lower()

    async def body(self, elements: Elements) -> bytes:
        """All of the body, unpacked.

        Parameters
        ----------
        elements
            Counts what is in it while it comes, so that what would be too much is
            neither read nor unpacked.

        Raises
        ------
        Problem
            Where it is too large or too slow, holds too much, or is packed otherwise
            than by gzip.
        ClientGone
            Where it ended early.
        """
        packing = self.header(b"content-encoding").strip().lower()
        if packing not in ("", "identity", "gzip"):
            raise Problem(
                HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
                "encoding",
                f"content-encoding must be gzip or identity; got {packing!r}",
                is_last=True,
            )
        counting = None if packing == "gzip" else elements
        body = self.whole()
        if body is None:
            body = await self._received(counting)
        elif counting is not None and len(body) > counting.free:
            counting.take(body)
        return body if packing != "gzip" else await self._unpacked(body, elements)

    def whole(self) -> bytes | None:
        """The body as it came, where all of it is here; None where it is still to come.

        Raises
        ------
        Problem
            Where it is too large, or there is no room.
        """
        if self._body is None:
            self._check_length()
            self._body = self._here()
            if self._body is not None:
                self._chunk_of({"type": "http.request", "body": self._body})
        return self._body

    async def drain(self) -> None:
        """Read on for a moment, and keep nothing.

        A client that still sends would lose the answer with its connection.
        """
        if self._is_whole or self.header(b"expect"):
            return
        left = DRAINED_BYTES
        try:
            async with asyncio.timeout(DRAINED_S):
                while left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body", False):
                        return  # it ended, or the client has gone
        except TimeoutError:
            return

    def close(self) -> None:
        """Give back the room that the body took, and the turn."""
        self.turn.end()
        self._room.give(self._taken)
        self._taken, self._body = 0, None

    def _check_length(self) -> None:
        # What is announced is refused before a byte of it is read.
        said = self.header(b"content-length")
        if said.isdecimal() and len(said) < 20:
            if int(said) > self._most:
                raise self._too_large()
            if self._room.taken + int(said) > self._room.n_bytes:
                self._room.take(int(said), is_last=True)

    async def _received(self, elements: Elements | None) -> bytes:
        try:
            async with asyncio.timeout(self._within_s):
                return await self._read(elements)
        except TimeoutError:
            raise Problem(
                HTTPStatus.REQUEST_TIMEOUT,
                "slow",
                f"a body must come within {self._within_s:g} s; it did not: send less "
                "at once",
                is_last=True,
            ) from None

    async def _read(self, elements: Elements | None) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while not self._is_whole:
            chunk = self._chunk_of(await self._receive())
            size += len(chunk)
            if size > self._most:
                raise self._too_large()
            if elements is not None:
                elements.take(chunk)
            chunks.append(chunk)
        return b"".join(chunks)

    def _chunk_of(self, message: MutableMapping[str, Any]) -> bytes:
        if message["type"] == "http.disconnect":
            raise ClientGone
        self._is_whole = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        if len(chunk) > self._most:
            raise self._too_large()
        self._take(len(chunk))
        return chunk

    def _take(self, n_bytes: int) -> None:
        self._room.take(n_bytes, is_last=True)
        self._taken += n_bytes

    async def _unpacked(self, packed: bytes, elements: Elements) -> bytes:
        unpacking = zlib.decompressobj(wbits=31)
        pieces, size = [], 0
        try:
            for start in range(0, len(packed), GZIP_PIECE):
                rest = packed[start : start + GZIP_PIECE]
                while rest and not unpacking.eof:
                    piece = unpacking.decompress(rest, GZIP_PIECE)
                    rest = unpacking.unconsumed_tail
                    size += len(piece)
                    if size > self._most:
                        raise self._too_large()
                    self._take(len(piece))
                    if not (unpacking.eof and size <= elements.free):
                        elements.take(piece)
                    pieces.append(piece)
                    await self.turn.spend(len(piece))
                if unpacking.eof and start + GZIP_PIECE < len(packed):
                    raise _not_one_stream()
        except zlib.error as error:
            raise malformed(f"a body must be whole gzip; {error}", "gzip") from error
        if not unpacking.eof or unpacking.unused_data:
            raise _not_one_stream()
        return b"".join(pieces)

    def _too_large(self) -> Problem:
        return Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too-large",
            f"a body must take at most {self._most:,} bytes, unpacked too "
            "(serve.body_bytes): send less at once",
            is_last=True,
        )


def _not_one_stream() -> Problem:
    return malformed(
        "a body must be one whole stream of gzip; it is cut off, or goes on", "gzip"
    )
