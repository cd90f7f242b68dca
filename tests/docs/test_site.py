"""The site as it is built: no warning, no dead link, nothing from another host."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from docs.__main__ import build
from docs.staging import stage
from tests import chromium

LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src"}
"""Elements of which a browser loads what they name."""

ADDRESS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What a page loads, where it leads, and which anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(
        self, tag: str, attributes: list[tuple[str, str | None]]
    ) -> None:
        """Note the addresses and the names of an element."""
        named = {name: value or "" for name, value in attributes}
        self.anchors |= {named[each] for each in ("id", "name") if each in named}
        if address := named.get(LOADING.get(tag, "")):
            self.loads.append(address)
        elif tag == "a" and "href" in named:
            self.links.append(named["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built once, strictly."""
    folder = tmp_path_factory.mktemp("site")
    done = build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """All of them; that of a missing page may lie anywhere, so its links are left."""
    return {x: Page(x) for x in sorted(site.rglob("*.html")) if x.name != "404.html"}


def is_elsewhere(address: str) -> bool:
    """Whether it names another host."""
    return bool(urlsplit(address).netloc)


def test_nothing_is_loaded_from_another_host(
    site: Path, pages: dict[Path, Page]
) -> None:
    """By no page and no style, and what is loaded is there."""
    for path, page in pages.items():
        assert [each for each in page.loads if is_elsewhere(each)] == [], path
        missing = [
            each
            for each in page.loads
            if not each.startswith("data:")
            and not (path.parent / unquote(urlsplit(each).path)).exists()
        ]
        assert missing == [], path
    for style in site.rglob("*.css"):
        named = ADDRESS.findall(style.read_text(encoding="utf-8"))
        assert not any(is_elsewhere(one or other) for one, other in named), style


def test_every_link_and_anchor_is_there(pages: dict[Path, Page]) -> None:
    """Within the site."""
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve()
            target = path if not parts.path else target
            target = target / "index.html" if target.is_dir() else target
            anchors = pages[target].anchors if target in pages else set()
            if not target.exists() or (
                parts.fragment and unquote(parts.fragment) not in anchors
            ):
                dead.append(f"{path.name}: {link}")
    assert dead == []


def test_every_page_stands_in_the_navigation(tmp_path: Path) -> None:
    """And no other; nobody finds a page that only a link leads to."""
    stage(tmp_path)
    staged = {x.relative_to(tmp_path).as_posix() for x in tmp_path.rglob("*.md")}
    configured = Path("zensical.toml").read_text(encoding="utf-8")
    named = re.findall(r'= "([\w/-]+\.md)" \}', configured)
    assert sorted(named) == sorted(staged)


def test_search_finds_what_a_page_says(site: Path) -> None:
    """The index has the text of pages, of those made of the code too."""
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    told = {item["location"].partition("#")[0] for item in index["items"]}
    assert {"index.html", "first-hour.html", "reference/commands.html"} <= told
    text = " ".join(item["text"] for item in index["items"])
    assert "time.disorder_ms" in text
    assert "propensity" in text


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The site over HTTP."""
    handler = partial(SilentHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class SilentHandler(SimpleHTTPRequestHandler):
    """Logs no requests."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


ROOT = "[...document.querySelectorAll('*')].find(x => x.shadowRoot)?.shadowRoot"
"""Where the theme draws its search, once somebody opened it."""

SEARCH = (
    "(() => { document.querySelector('.md-search__button').click(); return true; })()",
    f"!!{ROOT}?.querySelector('input')",
    f"""(() => {{
      const input = {ROOT}.querySelector("input");
      input.value = "propensity";
      return input.dispatchEvent(new Event("input", {{bubbles: true}}));
    }})()""",
    f"""(() => {{
      const found = [...{ROOT}.querySelectorAll("a")].map(each => each.href);
      return found.length && found;
    }})()""",
    "performance.getEntriesByType('resource').map(each => each.name)",
)
"""Opens the search, types a word, and says what was found and all that was loaded."""


def test_a_browser_finds_a_page_by_its_words(site: Path, tmp_path: Path) -> None:
    """With what it was served and nothing else."""
    with served(site) as place:
        (*_, found, loaded), complaints = chromium.answers(
            chromium.path(), f"{place}/index.html", SEARCH, tmp_path
        )
    assert any("estimators.html" in address for address in found)
    assert loaded
    assert [name for name in loaded if not name.startswith(place)] == []
    assert complaints == []


WIDE = ("index.html", "settings.html", "reference/commands.html", "tutorials/live.html")
"""Pages with wide tables, long lines of code and pictures."""


def test_no_page_scrolls_sideways(site: Path, tmp_path: Path) -> None:
    """On a phone or a desk; what is wider scrolls by itself."""

    async def widths(talk: chromium.Talk) -> dict[str, int]:
        found = {}
        for width in (390, 1440):
            await talk.look(width, "dark")
            for page in WIDE:
                loading = await talk.go(f"{place}/{page}")
                await talk.until_reached(loading, ["load"])
                is_as_wide = await talk.value("document.documentElement.scrollWidth")
                found[f"{page} at {width}"] = is_as_wide - width
        return found

    with served(site) as place:
        beyond = chromium.visited(chromium.path(), tmp_path, widths)
    assert len(beyond) == 2 * len(WIDE)
    assert {page: n for page, n in beyond.items() if n > 0} == {}
