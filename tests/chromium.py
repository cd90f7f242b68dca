"""A headless Chromium that opens a page and answers questions about it."""

import asyncio
import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp

from tests.services import ServiceMissing, without

T = TypeVar("T")

PATIENCE_S = 120.0
"""A busy machine is slow, and only slow."""

NAMES = ("chromium", "chromium-browser", "google-chrome")


def path(environment: Mapping[str, str] = os.environ) -> str:
    """Where a browser is; without one the test is skipped by hand, and fails in CI."""
    places = environment.get("PATH")
    found = next(filter(None, (shutil.which(each, path=places) for each in NAMES)), "")
    if not found:
        missing = f"no browser is on the path: none of {', '.join(NAMES)}; install one"
        without(ServiceMissing(missing), environment)
    return found


@dataclass
class Opened:
    """What came of opening a page.

    `answers` are what expressions come to, each once it is true; `milestones` what the
    browser said of its loading, such as `load` and `networkIdle`; `unanswered` the
    addresses that were asked for and did not end.
    """

    answers: list[Any]
    complaints: list[str]
    milestones: list[str]
    unanswered: list[str]


def answers(
    browser: str, url: str, questions: Sequence[str], folder: Path
) -> tuple[list[Any], list[str]]:
    """What expressions come to in the page, each once it is true; and complaints."""
    found = opened(browser, url, questions, folder)
    return found.answers, found.complaints


def opened(
    browser: str,
    url: str,
    questions: Sequence[str],
    folder: Path,
    milestones: Sequence[str] = (),
) -> Opened:
    """A page once its milestones are reached and its questions answered."""

    async def ask(talk: Talk) -> Opened:
        loading = await talk.go(url)
        await talk.until_reached(loading, milestones)
        found = [await talk.once_true(question) for question in questions]
        return Opened(
            found,
            talk.complaints,
            talk.milestones_of(loading),
            list(talk.unanswered.values()),
        )

    return visited(browser, folder, ask)


def visited(browser: str, folder: Path, visit: "Callable[[Talk], Awaitable[T]]") -> T:
    """What comes of a conversation with a browser that was started for it."""
    process = subprocess.Popen(
        [
            browser, "--headless", "--no-sandbox", "--disable-gpu",
            "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        return asyncio.run(_talked(folder, visit))
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)


async def _talked(folder: Path, visit: "Callable[[Talk], Awaitable[T]]") -> T:
    place = folder / "DevToolsActivePort"
    deadline = time.monotonic() + PATIENCE_S
    while not (place.exists() and place.read_text().strip()):
        assert time.monotonic() < deadline, "the browser must start"
        await asyncio.sleep(0.1)
    port = place.read_text().split()[0]
    async with aiohttp.ClientSession() as session:
        # It may listen before it has a page.
        while not (pages := await _pages(session, port)):
            assert time.monotonic() < deadline, "the browser must have a page"
            await asyncio.sleep(0.1)
        address = pages[0]["webSocketDebuggerUrl"]
        async with session.ws_connect(address, max_msg_size=0) as socket:
            talk = Talk(socket)
            for domain in ("Page", "Runtime", "Log", "Network"):
                await talk.call(f"{domain}.enable")
            await talk.call("Page.setLifecycleEventsEnabled", enabled=True)
            return await visit(talk)


async def _pages(session: aiohttp.ClientSession, port: str) -> list[dict[str, Any]]:
    async with session.get(f"http://127.0.0.1:{port}/json") as listed:
        return [each for each in await listed.json() if each["type"] == "page"]


class Talk:
    """One conversation over the browser's protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self.unanswered: dict[str, str] = {}
        self._milestones: list[tuple[str, str]] = []
        self._socket = socket
        self._number = 0

    async def go(self, url: str) -> str:
        """Open a page; returns what its milestones are told of."""
        return str((await self.call("Page.navigate", url=url))["loaderId"])

    async def look(self, width: int, scheme: str, height: int = 900) -> None:
        """Take a window of this width, and the user's wish for light or dark."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        await self.call("Emulation.setScrollbarsHidden", hidden=True)
        wish = {"name": "prefers-color-scheme", "value": scheme}
        await self.call("Emulation.setEmulatedMedia", features=[wish])

    async def picture(self, *, is_whole: bool = True) -> bytes:
        """The page as a PNG; the window alone if it is not whole."""
        found = await self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=is_whole
        )
        return base64.b64decode(found["data"])

    async def value(self, expression: str) -> Any:
        """What an expression comes to, once its promise is kept."""
        found = await self.call(
            "Runtime.evaluate",
            expression=expression, returnByValue=True, awaitPromise=True,
        )  # fmt: skip
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The answer to a command of the protocol."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        await self._socket.send_json(asked)
        while True:
            said = json.loads((await self._socket.receive()).data)
            if said.get("id") == self._number:
                return dict(said.get("result", {}))
            self._hear(said.get("method", ""), said.get("params", {}))

    def _hear(self, method: str, said: dict[str, Any]) -> None:
        if method in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.complaints.append(json.dumps(said))
        elif method == "Network.requestWillBeSent":
            self.unanswered[said["requestId"]] = said["request"]["url"]
        elif method in ("Network.loadingFinished", "Network.loadingFailed"):
            self.unanswered.pop(said["requestId"], None)
        elif method == "Page.lifecycleEvent":
            self._milestones.append((said["loaderId"], said["name"]))

    def milestones_of(self, loading: str) -> list[str]:
        """What was reached, in its order."""
        return [name for each, name in self._milestones if each == loading]

    async def until_reached(self, loading: str, wanted: Sequence[str]) -> None:
        """Wait until loading has come so far, for some time."""
        deadline = time.monotonic() + PATIENCE_S
        while not set(wanted) <= set(self.milestones_of(loading)):
            if time.monotonic() > deadline:
                return
            await self.once_true("true")
            await asyncio.sleep(0.05)

    async def once_true(self, expression: str) -> Any:
        """What an expression comes to once it is true, or after some time."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = await self.call(
                "Runtime.evaluate", expression=expression, returnByValue=True
            )
            value = answer.get("result", {}).get("value")
            if value or time.monotonic() > deadline:
                return value
            await asyncio.sleep(0.1)
