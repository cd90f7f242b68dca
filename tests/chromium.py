"""A headless Chromium that opens a page and answers questions about it."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.services import ServiceMissing, without

PATIENCE_S = 30.0

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
        return asyncio.run(_asked(folder, url, questions, milestones))
    finally:
        process.terminate()
        process.wait(timeout=20)


async def _asked(
    folder: Path, url: str, questions: Sequence[str], milestones: Sequence[str]
) -> Opened:
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
            for domain in ("Page", "Runtime", "Log", "Network"):
                await talk.call(f"{domain}.enable")
            await talk.call("Page.setLifecycleEventsEnabled", enabled=True)
            loading = (await talk.call("Page.navigate", url=url))["loaderId"]
            await talk.until_reached(loading, milestones)
            found = [await talk.once_true(question) for question in questions]
            return Opened(
                found,
                talk.complaints,
                talk.milestones_of(loading),
                list(talk.unanswered.values()),
            )


class _Talk:
    """One conversation over the browser's protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self.unanswered: dict[str, str] = {}
        self._milestones: list[tuple[str, str]] = []
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
        deadline = time.monotonic() + PATIENCE_S
        while not set(wanted) <= set(self.milestones_of(loading)):
            if time.monotonic() > deadline:
                return
            await self.once_true("true")
            await asyncio.sleep(0.05)

    async def once_true(self, expression: str) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            answer = await self.call(
                "Runtime.evaluate", expression=expression, returnByValue=True
            )
            value = answer.get("result", {}).get("value")
            if value or time.monotonic() > deadline:
                return value
            await asyncio.sleep(0.1)
