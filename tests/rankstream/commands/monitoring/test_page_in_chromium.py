"""The page in a real browser, headless: drawn, escaped, without a complaint."""

import shutil
import subprocess
import threading
from pathlib import Path

import msgspec
import pytest

from rankstream.commands.monitoring.gathered import Gathered
from rankstream.commands.monitoring.web import Server
from rankstream.settings import ExperimentSettings
from streams.folds.preferences import PreferencesFold
from streams.folds.verdicts import verdict_of

EVIL = "<img src=x onerror=alert(1)>"


def browser() -> str:
    """Where Chromium is; without one the test is skipped."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("no Chromium is installed, so the page was not drawn")


def drawn(gathered: Gathered, folder: Path) -> str:
    """The document as it is after a few seconds."""
    server = Server("127.0.0.1", 0, gathered)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        return subprocess.run(
            [
                browser(),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--timeout=6000",
                f"--user-data-dir={folder}",
                "--dump-dom",
                server.url,
            ],
            capture_output=True,
            check=True,
            text=True,
            timeout=90,
        ).stdout
    finally:
        server.close()
        thread.join()


def test_names_are_text_and_verdicts_are_drawn(tmp_path: Path) -> None:
    """Matrix, health and title; a name that looks like markup stays a name."""
    settings = ExperimentSettings(rankers={EVIL: "", "b": "", "c": ""})
    fold = PreferencesFold({EVIL: settings}, 0)
    gathered = Gathered()
    verdict = verdict_of(fold.comparisons()[0])
    gathered.take_verdict(msgspec.json.encode(verdict))
    page = drawn(gathered, tmp_path)

    assert "&lt;img src=x onerror=alert(1)&gt;, epoch 1" in page
    assert "<img" not in page
    assert page.count("<tr") > 8
    assert "coverage" in page
    assert '<p id="state" role="status">live</p>' in page


def test_an_empty_monitor_says_what_to_do(tmp_path: Path) -> None:
    """Instead of an empty table."""
    page = drawn(Gathered(), tmp_path)

    assert '<section id="empty">' in page
    assert '<main id="main" hidden="">' in page
