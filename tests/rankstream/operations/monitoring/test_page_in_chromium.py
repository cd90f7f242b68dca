"""The page in a real browser, headless: drawn, escaped, without a complaint."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.web import Server
from rankstream.settings import ExperimentSettings
from streams.comparisons.preference_fold import PreferencesFold
from streams.comparisons.verdicts import verdict_of
from tests import chromium

EVIL = "<img src=x onerror=alert(1)>"


def asked(gathered: Gathered, questions: Sequence[str], folder: Path) -> list[Any]:
    """Answers of the page; it must not complain of anything."""
    return opened(gathered, questions, folder).answers


def opened(
    gathered: Gathered,
    questions: Sequence[str],
    folder: Path,
    milestones: Sequence[str] = (),
) -> chromium.Opened:
    """The page in a browser; it must not complain of anything."""
    browser = chromium.path()
    server = Server("127.0.0.1", 0, gathered)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        found = chromium.opened(browser, server.url, questions, folder, milestones)
    finally:
        server.close()
        thread.join()
    assert found.complaints == []
    return found


def test_the_page_loads_and_the_network_rests(tmp_path: Path) -> None:
    """No request hangs but the stream, which begins then, and brings news."""
    settings = ExperimentSettings(rankers={"a": "", "b": ""})
    fold = PreferencesFold({"boost": settings}, 0)
    gathered = Gathered()
    (comparison,) = fold.comparisons()
    verdict = verdict_of(comparison)
    gathered.take_verdict(msgspec.json.encode(verdict))
    later = threading.Timer(3.0, gathered.missed, ["Redis", "it is gone", 0])
    later.start()
    found = opened(
        gathered,
        [
            "document.readyState === 'complete'",
            "document.body.getAttribute('aria-busy') === 'false'",
            "document.getElementById('title').textContent === 'boost, epoch 1'",
            "document.getElementById('state').textContent === 'live'",
            "document.querySelector('#away p').firstChild.textContent",
        ],
        tmp_path,
        milestones=("load", "networkIdle"),
    )
    later.join()

    assert {"load", "networkIdle"} <= set(found.milestones)
    assert [each.rpartition("/")[2] for each in found.unanswered] == ["events"]
    assert found.answers == [True] * 4 + [
        "Redis is away since 1970-01-01 00:00:00 UTC: it is gone"
    ]


def test_names_are_text_and_verdicts_are_drawn(tmp_path: Path) -> None:
    """Matrix, health and title; a name that looks like markup stays a name."""
    settings = ExperimentSettings(rankers={EVIL: "", "b": "", "c": ""})
    fold = PreferencesFold({EVIL: settings, "z": settings}, 0)
    gathered = Gathered()
    for comparison in fold.comparisons():
        gathered.take_verdict(msgspec.json.encode(verdict_of(comparison)))
    found = asked(
        gathered,
        [
            "document.getElementById('title').textContent",
            "document.querySelectorAll('#matrix tr').length",
            "document.querySelectorAll('#health tr').length > 5",
            "document.querySelectorAll('img').length === 0",
            "document.getElementById('empty').hidden",
            "document.getElementById('state').textContent === 'live'",
            "document.querySelectorAll('#experiments button')[1].focus() || true",
            "document.querySelectorAll('#experiments button')[1].click() || true",
            "document.getElementById('title').textContent === 'z, epoch 1'",
            "document.activeElement.dataset.name",
        ],
        tmp_path,
    )

    assert found == [f"{EVIL}, epoch 1", 4, *[True] * 7, "z"]


def test_an_empty_monitor_says_what_to_do(tmp_path: Path) -> None:
    """Instead of an empty table."""
    found = asked(
        Gathered(),
        [
            "document.getElementById('state').textContent === 'live'",
            "!document.getElementById('empty').hidden",
            "document.getElementById('compared').hidden",
        ],
        tmp_path,
    )

    assert found == [True] * 3


def test_examination_is_drawn_with_its_intervals(tmp_path: Path) -> None:
    """A chart, and its numbers beside it; else why there are none."""
    gathered = Gathered()
    gathered.set_examination([
        {"ratio": 1.0, "interval": [1.0, 1.0], "reason": ""},
        {"ratio": 0.5, "interval": [0.45, 0.55], "reason": ""},
        {"ratio": 0.25, "interval": None, "reason": "as large as it can be"},
        {"ratio": None, "interval": None, "reason": "not shown"},
    ])  # fmt: skip
    row = "document.querySelectorAll('#examination tbody tr')[{}]"
    key = "new KeyboardEvent('keydown', {{key: '{}', bubbles: true}})"
    press = f"document.getElementById('examined').dispatchEvent({key})"
    readout = "document.querySelector('#bias .readout span').textContent"
    found = asked(
        gathered,
        [
            "!document.getElementById('bias').hidden",
            *(row.format(i) + ".textContent" for i in range(4)),
            "document.querySelectorAll('#examined canvas').length",
            readout,
            f"{press.format('ArrowLeft')} || true",
            f"{readout}.startsWith('rank 2') && {readout}",
        ],
        tmp_path,
    )

    assert found == [
        True,
        "11.000", "20.5000.450 – 0.550", "30.250as large as it can be", "4–not shown",
        1, "rank 3: 0.250", True, "rank 2: 0.500, 0.450 – 0.550",
    ]  # fmt: skip
