"""A loopback port that leads to another one, as an address does that is moved."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Self

from deploy.process import free_port

CHUNK_BYTES = 65_536


class Gate:
    """Clients name its port; where that leads can be changed while they are there.

    Attributes
    ----------
    port
        Where it listens, from the start on.
    n_accepted
        Connections that came so far.
    """

    def __init__(self, target: int | None, port: int = 0) -> None:
        self.port = port or free_port()
        self.n_accepted = 0
        self._target = target
        self._tasks: set[asyncio.Task[None]] = set()
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
        if self._server is not None:
            self._loop.call_soon_threadsafe(self._server.close)
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def lead_to(self, target: int | None) -> None:
        """Lead new connections elsewhere, or nowhere; old ones stay."""
        self._target = target

    def cut(self) -> int:
        """Close every connection on both sides; how many there were."""
        n_cut: int = self._run(self._cut())
        return n_cut

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _cut(self) -> int:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(tasks)

    async def _accept(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a connection must be served in a task")
        self.n_accepted += 1
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
        there = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            ways = [
                asyncio.create_task(_pump(reader, there[1])),
                asyncio.create_task(_pump(there[0], writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            there[1].transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while some := await reader.read(CHUNK_BYTES):
            writer.write(some)
            await writer.drain()


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
