"""A loopback port that leads to another one, and fails as what lies between may."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Self

from deploy.process import free_port

CHUNK_BYTES = 65_536


class Line:
    """A connection through a gate: both its sides, and what became of it.

    Attributes
    ----------
    is_lost
        Nothing reaches either side any more, not even that the other one is gone.
    has_ended
        The client was told that nothing more comes; what it sends still arrives.
    """

    def __init__(self, here: asyncio.StreamWriter, there: asyncio.StreamWriter) -> None:
        self.here, self.there = here, there
        self.is_lost = self.has_ended = False

    def passes(self, writer: asyncio.StreamWriter) -> bool:
        """Whether bytes still go this way."""
        return not (self.is_lost or (self.has_ended and writer is self.here))


class Gate:
    """Clients name its port; where that leads can be changed while they are there.

    Attributes
    ----------
    port
        Where it listens, from the start on.
    """

    def __init__(self, target: int | None, port: int = 0) -> None:
        self.port = port or free_port()
        self._target = target
        self._tasks: set[asyncio.Task[None]] = set()
        self._lines: set[Line] = set()
        self._delay_s = 0.0
        self._is_held: Callable[[bytes], bool] = _passes
        self._flows = asyncio.Event()
        self._flows.set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        self._server = self._run(
            asyncio.start_server(self._accept, "127.0.0.1", self.port)
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def n_open(self) -> int:
        """Connections of clients that it has, lost ones included."""
        return len(self._tasks)

    def lead_to(self, target: int | None) -> None:
        """Lead new connections elsewhere, or nowhere; old ones stay."""
        self._target = target

    def cut(self) -> int:
        """Close every connection on both sides; how many there were."""
        n_cut: int = self._run(self._cut())
        return n_cut

    def stall(self) -> None:
        """Pass nothing on, on new connections either, and tell nobody."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def flow(self, delay_s: float = 0.0) -> None:
        """Pass on what was held back, and what comes, each piece so much later."""
        self._delay_s = delay_s
        self._loop.call_soon_threadsafe(self._flows.set)

    def hold(self, is_held: Callable[[bytes], bool] | None) -> None:
        """Pass on nothing of a client from a piece on that is held, while it is so.

        What is cut meanwhile is never passed on.
        """
        self._is_held = is_held or _passes

    def lose(self) -> int:
        """Pass nothing on for good, and tell nobody; new connections are served.

        As where what kept track of connections on the way has forgotten them.
        """
        n_lost: int = self._run(self._lose())
        return n_lost

    def half_close(self) -> int:
        """Tell clients that nothing more comes, while servers hear of nothing."""
        n_closed: int = self._run(self._half_close())
        return n_closed

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(300)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._cut()
        await asyncio.sleep(0.05)  # whoever was let in meanwhile is served now
        await self._cut()
        await asyncio.sleep(0)  # what was aborted closes its socket

    async def _cut(self) -> int:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(tasks)

    async def _lose(self) -> int:
        for line in self._lines:
            line.is_lost = True
        return len(self._lines)

    async def _half_close(self) -> int:
        for line in self._lines:
            line.has_ended = True
            with contextlib.suppress(OSError):
                line.here.write_eof()
        return len(self._lines)

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection must be served in a task")
        self._tasks.add(task)
        try:
            await self._relay(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # one side is gone, or it was cut
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._target is None:
            return
        from_there, there = await asyncio.open_connection("127.0.0.1", self._target)
        line = Line(writer, there)
        self._lines.add(line)
        ways = [
            asyncio.create_task(self._pump(line, reader, there)),
            asyncio.create_task(self._pump(line, from_there, writer)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if line.is_lost:  # the other side must not hear that this one is gone
                await asyncio.Event().wait()
        finally:
            self._lines.discard(line)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            there.transport.abort()

    async def _pump(
        self, line: Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            while some := await reader.read(CHUNK_BYTES):
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                await self._flows.wait()
                while writer is line.there and self._is_held(some):
                    await asyncio.sleep(0.02)
                if line.passes(writer):
                    writer.write(some)
                    await writer.drain()
        await self._flows.wait()


def _passes(_: bytes) -> bool:
    return False


@contextlib.contextmanager
def watched(look: Callable[[], None]) -> Iterator[list[Exception]]:
    """Something that is done on and on, in a thread; what it raised ends it."""
    raised: list[Exception] = []
    enough = threading.Event()

    def go_on() -> None:
        while not enough.wait(0.005):
            try:
                look()
            except Exception as error:  # noqa: BLE001  the test tells of it
                raised.append(error)
                return

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield raised
    finally:
        enough.set()
        thread.join()
