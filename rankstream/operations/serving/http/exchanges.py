"""A request whose body is here already, and an answer that leaves in one write.

uvicorn has an application await each piece of a body, and makes two writes of an
answer: its head, then its body. Most bodies are whole before they are asked for, and
all answers are.
"""

from collections.abc import Coroutine
from http import HTTPStatus
from typing import Any

from starlette.types import ASGIApp

from rankstream.operations.serving.calls import Receive, Scope

_STARTS = {
    int(status): f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
    for status in HTTPStatus
}


class Exchange:
    """One request and its answer, over what the library of the server has of it.

    Parameters
    ----------
    cycle
        The library's own.
    default
        Headers of all answers.
    """

    __slots__ = ("_cycle", "_default", "receive", "scope")

    def __init__(self, cycle: Any, default: list[tuple[bytes, bytes]]) -> None:
        self._cycle = cycle
        self._default = default
        self.scope: Scope = cycle.scope
        self.receive: Receive = cycle.receive

    @property
    def is_blocked(self) -> bool:
        """Whether an answer has to wait, as the client reads nothing."""
        return bool(self._cycle.flow.write_paused and not self._cycle.disconnected)

    def whole_body(self) -> bytes | None:
        """The body, once; None where it is still to come, or is to be asked for."""
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected or cycle.waiting_for_100_continue:
            return None
        if cycle.flow.read_paused:
            cycle.flow.resume_reading()
        body = bytes(cycle.body)
        cycle.body = b""
        return body

    def given_to(self, app: ASGIApp) -> Coroutine[Any, Any, None]:
        """What an application makes of it by itself, as the library has it done."""
        left: Coroutine[Any, Any, None] = self._cycle.run_asgi(app)
        return left

    async def until_read(self) -> None:
        """Wait until the client reads on."""
        if self.is_blocked:
            await self._cycle.flow.drain()

    def abort(self) -> None:
        """Close the connection without an answer."""
        self._cycle.transport.abort()

    def answer(self, status: int, head: bytes, body: bytes) -> None:
        """Answer, unless the client has gone.

        Parameters
        ----------
        head
            Lines of headers, with the length of the body unless the status has none.
        """
        cycle = self._cycle
        if cycle.disconnected:
            return
        pieces = [_STARTS[status]]
        for name, value in self._default:
            pieces += name, b": ", value, b"\r\n"
        pieces.append(head)
        if b"connection: close\r\n" in head:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            pieces.append(b"connection: close\r\n")
        pieces.append(b"\r\n")
        if cycle.scope["method"] != "HEAD":
            pieces.append(body)
        cycle.response_started = cycle.response_complete = True
        cycle.transport.write(b"".join(pieces))
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
