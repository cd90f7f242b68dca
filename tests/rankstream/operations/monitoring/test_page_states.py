"""The page in each of its states, narrow and wide, light and dark, for everybody."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.web import Server
from streams.training.curves.estimated_curve import CHOSEN_FROM_CLICKS
from tests import axe, chromium, monitored
from tests.chromium import Talk

WIDTHS = 390, 1_024, 1_440
SCHEMES = "light", "dark"
LIVE = "document.getElementById('state').textContent === 'live'"
SIDEWAYS = "document.documentElement.scrollWidth > window.innerWidth"


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The rules of axe-core."""
    return axe.source(tmp_path_factory.mktemp("axe"))


@contextlib.contextmanager
def served(gathered: Gathered, port: int = 0) -> Iterator[Server]:
    """A page, on any port if none is given."""
    server = Server("127.0.0.1", port, gathered)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join()


class Visitor:
    """Looks at a state of the page in all widths and schemes.

    Parameters
    ----------
    pictures
        Where screenshots go; None for nowhere.
    """

    def __init__(self, rules: str, folder: Path, pictures: Path | None) -> None:
        self._rules = rules
        self._folder = folder
        self._pictures = pictures

    def visit(
        self, url: str, name: str, prepare: Callable[[Talk], Awaitable[Any]]
    ) -> list[str]:
        """What is wrong with a state: rules that it breaks, widths it runs over."""

        async def look(talk: Talk) -> list[str]:
            await talk.look(WIDTHS[-1], SCHEMES[0])
            await talk.go(url)
            await prepare(talk)
            found = []
            for width in WIDTHS:
                for scheme in SCHEMES:
                    await talk.look(width, scheme)
                    broken = await axe.violations(talk, self._rules)
                    if await talk.value(SIDEWAYS):
                        broken.append(f"scrolls sideways: {await talk.value(WIDEST)}")
                    found += [f"{width} {scheme}: {each}" for each in broken]
                    if self._pictures is not None:
                        place = self._pictures / f"{name}-{width}-{scheme}.png"
                        await talk.value("scrollTo(0, 0)")
                        place.write_bytes(await talk.picture())
            if self._pictures is not None:
                await self._show(talk, name, self._pictures)
            return found + [f"complaint: {each}" for each in talk.complaints]

        return chromium.visited(chromium.path(), self._folder, look)

    async def _show(self, talk: Talk, name: str, folder: Path) -> None:
        """A window of it, for pages that tell of it."""
        for scheme in SCHEMES:
            await talk.look(1_200, scheme, 720)
            await asyncio.sleep(0.2)  # charts are drawn again in other colours
            picture = await talk.picture(is_whole=False)
            (folder / f"{name}-{scheme}.png").write_bytes(picture)


WIDEST = """[...document.querySelectorAll("body *")].filter((each) =>
  each.getBoundingClientRect().right > innerWidth + 1).map((each) =>
  each.tagName + "#" + each.id + "." + each.className).slice(0, 8).join(" ")"""


@pytest.fixture
def visitor(rules: str, tmp_path: Path, request: pytest.FixtureRequest) -> Visitor:
    """Somebody with the rules at hand, and a folder for screenshots if one is named."""
    pictures: Path | None = request.config.getoption("--screenshots")
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    return Visitor(rules, tmp_path, pictures)


async def is_live(talk: Talk) -> None:
    """Wait until the page hears of news."""
    assert await talk.once_true(LIVE)


def test_an_empty_page_has_steps_that_tick_off(visitor: Visitor) -> None:
    """As they happen; those that are open say what to do."""
    gathered = monitored.empty(2)

    async def prepare(talk: Talk) -> None:
        await is_live(talk)
        done = "document.querySelectorAll('#steps .done').length"
        assert await talk.value(done) == 2
        assert "click events" in await talk.value(
            "document.querySelectorAll('#steps .open')[0].textContent"
        )
        gathered.set_steps([True] * 3 + [False] * 2)
        assert await talk.once_true(f"{done} === 3")

    with served(gathered) as server:
        assert visitor.visit(server.url, "empty", prepare) == []


def test_a_reason_instead_of_an_interval_keeps_within_the_page(
    visitor: Visitor,
) -> None:
    """As in the demonstration, whose roles are counted but have no pages."""
    gathered = monitored.empty(5)
    gathered.set_examination([
        {"ratio": 1.0 / rank, "interval": None, "reason": CHOSEN_FROM_CLICKS}
        for rank in range(1, 11)
    ])  # fmt: skip

    async def prepare(talk: Talk) -> None:
        await is_live(talk)
        hint = "document.getElementById('uncounted').hidden"
        assert not await talk.value(hint)
        gathered.take_flow({"fold": {"consumed": 0, "lag_records": 0}}, 0.0)
        assert await talk.once_true(hint)
        title = "document.getElementById('examined-title').textContent"
        assert "interval" not in await talk.value(title)

    with served(gathered) as server:
        assert visitor.visit(server.url, "reasons", prepare) == []


def test_a_full_page_has_a_sentence_first(visitor: Visitor) -> None:
    """For each experiment, and everything else that is known below."""

    async def prepare(talk: Talk) -> None:
        await is_live(talk)
        choose = "document.querySelector('[data-key=\"search-box\"]').click() || true"
        assert await talk.value(choose)
        assert await talk.once_true(
            "document.getElementById('title').textContent === 'search-box, epoch 1'"
        )
        words = await talk.value("document.getElementById('words').textContent")
        assert words.startswith("new beats old: +0.4")
        assert words.endswith("; safe to stop")
        assert await talk.once_true("document.querySelector('#course canvas') !== null")
        assert await talk.value("document.getElementById('matrices').hidden")
        shown = "[...document.querySelectorAll('main > section:not([hidden])')]"
        names = await talk.value(f"{shown}.map((x) => x.dataset.place).join(' ')")
        assert names == (
            "experiments canaries decisions interventions values bias log models"
        )
        title = "document.getElementById('examined-title').textContent"
        assert (await talk.value(title)).endswith("with 95 % intervals")

    with served(monitored.full()) as server:
        assert visitor.visit(server.url, "full", prepare) == []


def test_more_than_two_rankers_have_a_matrix(visitor: Visitor) -> None:
    """And the course of the pair that is chosen."""

    async def prepare(talk: Talk) -> None:
        await is_live(talk)
        choose = "document.querySelector('[data-key=\"four-rankers\"]').click() || true"
        assert await talk.value(choose)
        assert await talk.once_true("!document.getElementById('matrices').hidden")
        assert await talk.value("document.querySelectorAll('#matrix td').length") == 16
        pair = "document.querySelector('#pairs [data-pair=\"2\"]')"
        assert await talk.value(f"{pair}.click() || true")
        assert await talk.once_true(
            "document.getElementById('coursetitle').textContent"
            ".startsWith('semantic over popular')"
        )
        assert await talk.value(f"{pair}.focus() || document.activeElement === {pair}")

    with served(monitored.full(4_000)) as server:
        assert visitor.visit(server.url, "matrix", prepare) == []


def test_what_is_away_is_said_and_the_last_that_was_known_is_kept(
    visitor: Visitor,
) -> None:
    """Which part, since when, and how old what is shown of it is."""
    gathered = monitored.full(4_000)
    hour_ago_ms = time.time_ns() // 1_000_000 - 3_600_000
    gathered.heard("Kafka", hour_ago_ms - 2_000)
    gathered.missed("Kafka", "connection refused (Kafka at k:9092)", hour_ago_ms)
    for role in ("role ingest", "role fold", "role learn"):
        gathered.missed(role, "its page does not answer", hour_ago_ms + 60_000)
    gathered.take_flow(
        dict.fromkeys(("ingest", "fold", "learn", "publish")), time.monotonic()
    )
    gathered.note("snapshots", "Redis answers, and holds no snapshot of a model.")

    async def prepare(talk: Talk) -> None:
        await is_live(talk)
        said = await talk.value("document.getElementById('away').textContent")
        assert "Kafka is away since" in said
        assert "connection refused (Kafka at k:9092)" in said
        assert "what is shown of it is 60 min old" in said
        assert "roles ingest, fold, learn are away since" in said
        assert not await talk.value("document.getElementById('silent').hidden")
        assert await talk.value("document.getElementById('uncounted').hidden")
        note = await talk.value("document.getElementById('trouble').textContent")
        assert note.startswith("Redis answers, and holds no snapshot")
        models = "document.querySelectorAll('#snapshots tbody tr').length"
        assert await talk.value(models) == 3
        assert await talk.value("document.querySelectorAll('#experiments li').length")

    with served(gathered) as server:
        assert visitor.visit(server.url, "away", prepare) == []


def test_a_monitor_that_is_gone_leaves_what_it_said(visitor: Visitor) -> None:
    """With the time of its last word; where it is there again the page is live."""
    gathered = monitored.full(4_000)
    gone = "document.getElementById('state').textContent.startsWith({!r})"

    async def prepare(talk: Talk) -> None:
        await is_live(talk)
        assert await talk.once_true(
            "performance.getEntriesByType('resource').length && "
            "document.querySelector('#course canvas') !== null"
        )
        first.close()
        assert await talk.once_true(gone.format("the monitor is away since"))
        with served(gathered, port):
            await is_live(talk)
        assert await talk.once_true(gone.format("the monitor is away since"))
        assert await talk.value("document.querySelectorAll('#experiments li').length")
        talk.complaints.clear()  # the browser tells that the connection was refused

    with contextlib.ExitStack() as first:
        server = first.enter_context(served(gathered))
        port = server.port
        found = visitor.visit(server.url, "gone", prepare)
    assert [each for each in found if "net::ERR" not in each] == []


def test_a_page_that_hears_nothing_says_that_it_loads(visitor: Visitor) -> None:
    """And then that nobody answers; it goes on as soon as somebody does."""
    gathered = monitored.full(4_000)

    async def prepare(talk: Talk) -> None:
        await talk.call("Network.setBlockedURLs", urls=["*/overview"])
        await talk.call("Page.reload")
        assert await talk.once_true(
            "document.getElementById('state').textContent.startsWith("
            "'the monitor does not answer')"
        )
        assert not await talk.value("document.getElementById('loading').hidden")
        assert await talk.value("document.body.getAttribute('aria-busy') === 'true'")

    with served(gathered) as server:
        found = visitor.visit(server.url, "loading", prepare)
    assert [each for each in found if "net::ERR_BLOCKED" not in each] == []


def test_two_hundred_experiments_and_fifty_models_stay_light(tmp_path: Path) -> None:
    """Below 100 MB of the heap and a bounded number of elements."""

    async def count(talk: Talk) -> tuple[int, float, int]:
        await talk.look(1_440, "light")
        await talk.go(server.url)
        await is_live(talk)
        rows = await talk.value("document.querySelectorAll('#experiments li').length")
        heap = await talk.call("Runtime.getHeapUsage")
        elements = await talk.value("document.querySelectorAll('*').length")
        assert rows == 200
        models = "document.querySelectorAll('#snapshots tbody tr').length"
        assert await talk.value(models) == 50
        return rows, heap["usedSize"], elements

    with served(monitored.many()) as server:
        _, used, elements = chromium.visited(chromium.path(), tmp_path, count)
    assert used < 100e6
    assert elements < 5_000
