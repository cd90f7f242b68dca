"""A headless Chromium that opens a page and answers questions about it."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from tests.services import ServiceMissing, without

NAMES = ("chromium", "chromium-browser", "google-chrome")


def path(environment: Mapping[str, str] = os.environ) -> str:
    """Where a browser is; without one the test is skipped by hand, and fails in CI."""
    places = environment.get("PATH")
    found = next(filter(None, (shutil.which(each, path=places) for each in NAMES)), "")
    if not found:
        missing = f"no browser is on the path: none of {', '.join(NAMES)}; install one"
        without(ServiceMissing(missing), environment)
    return found


def answers(
    browser: str, url: str, questions: Sequence[str], folder: Path
) -> tuple[list[Any], list[str]]:
    """What expressions come to in the page, each once it is true; and complaints."""
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
        return asyncio.run(_asked(folder, url, questions))
    finally:
        process.terminate()
        process.wait(timeout=20)


async def _asked(
    folder: Path, url: str, questions: Sequence[str]
) -> tuple[list[Any], list[str]]:
    place = folder / "DevToolsActivePort"
    deadline = time.monotonic() + 60.0
    while not (place.exists() and place.read_text().strip()):
        assert time.monotonic() < deadline, "the browser must start"
        await asyncio.sleep(0.1)
    port = place.read_text().split()[0]
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{port}/json") as listed:
            pages = [each for each in await listed.json() if each["type"] == "page"]
        async with session.ws_connect(pages[0]["webSocketDebuggerUrl"]) as socket:
            talk = _Talk(socket)
            for method in ("Page.enable", "Runtime.enable", "Log.enable"):
                await talk.call(method)
            await talk.call("Page.navigate", url=url)
            found = [await talk.once_true(question) for question in questions]
            return found, talk.complaints


class _Talk:
    """One conversation over the browser's protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._number = 0

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        asked = {"id": self._number, "method": method, "params": parameters}
        await self._socket.send_json(asked)
        while True:
            said = json.loads((await self._socket.receive()).data)
            if said.get("id") == self._number:
                return dict(said.get("result", {}))
            if said.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.complaints.append(json.dumps(said["params"]))

    async def once_true(self, expression: str) -> Any:
        deadline = time.monotonic() + 30.0
        while True:
            answer = await self.call(
                "Runtime.evaluate", expression=expression, returnByValue=True
            )
            value = answer.get("result", {}).get("value")
            if value or time.monotonic() > deadline:
                return value
            await asyncio.sleep(0.1)
