"""What a learner has learned, and how fast, in the terminal and on the page."""

import io
import time
from pathlib import Path

from rich.console import Console

from rankstream.operations.monitoring.courses import COURSE_POINTS, LearnerProgress
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.terminal import view_of
from rankstream.settings import TrainingSettings
from tests.rankstream.operations.monitoring.test_page_in_chromium import asked


def gathered_of(*versions: tuple[str, int]) -> Gathered:
    """A monitor that saw these versions, each with its event time."""
    gathered = Gathered()
    for version, created_ms in versions:
        gathered.set_snapshots(
            [
                {
                    "model": "search",
                    "version": version,
                    "created_ms": created_ms,
                    "updates": 345,
                    "is_trained": False,
                }
            ]
        )
    return gathered


def test_the_pace_is_of_event_time() -> None:
    """600 lists in half a minute; none from one snapshot; again after a new epoch."""
    gathered = gathered_of(("2.1000", 0), ("2.1000", 5), ("2.1600", 30_000))
    (found,) = gathered.overview()["snapshots"]
    assert found["learned"] == 1_600
    assert found["per_minute"] == 1_200.0
    assert found["course"] == [[0, 1_000], [30_000, 1_600]]
    (alone,) = gathered_of(("2.1000", 0)).overview()["snapshots"]
    assert alone["per_minute"] is None
    (again,) = gathered_of(("2.1000", 0), ("3.10", 9)).overview()["snapshots"]
    assert again["course"] == [[9, 10]]


def test_a_long_course_keeps_its_ends_near() -> None:
    """Every second point goes when there are too many."""
    progress = LearnerProgress()
    for i in range(10_000):
        progress.add(i, i)
    assert len(progress.points) <= COURSE_POINTS
    assert progress.points[0] == (0, 0)
    assert abs((progress.per_minute() or 0.0) - 60_000.0) < 1e-6


def test_the_terminal_tells_it() -> None:
    """Lists, updates and pace."""
    screen = printed(gathered_of(("2.1000", 0), ("2.1600", 30_000)))
    assert "1,600 lists learned, 345 updates, 1,200 lists a minute" in screen


def test_the_page_tells_and_draws_it(tmp_path: Path) -> None:
    """A row for the model with its course."""
    found = asked(
        gathered_of(("2.1000", 0), ("2.1200", 9_000), ("2.1600", 30_000)),
        [
            "document.querySelectorAll('#snapshots polyline.course').length === 1",
            "document.querySelector('#snapshots tbody')?.textContent",
        ],
        tmp_path,
    )
    assert found[0]
    for text in ("1,600 lists learned", "345 updates", "1,200 lists a minute"):
        assert text in found[1]


def trained_of(*versions: tuple[str, int]) -> Gathered:
    """A monitor whose settings say that `search` is trained."""
    gathered = Gathered({"search": TrainingSettings()})
    for version, created_ms in versions:
        found = {"model": "search", "version": version, "created_ms": created_ms}
        gathered.set_snapshots([{**found, "updates": 1, "is_trained": False}])
    return gathered


def test_a_trained_model_learns_no_lists(tmp_path: Path) -> None:
    """It is trained when so many were counted, and has no pace."""
    gathered = trained_of(("0.0", 0))
    (found,) = gathered.overview()["snapshots"]
    assert found["is_trained"]
    screen = printed(gathered)
    assert "version 0.0, from the start" in screen
    assert "not trained yet" in screen
    gathered = trained_of(("0.1000", 5_000), ("0.3000", 65_000))
    screen = printed(gathered)
    assert "3,000 lists counted" in screen
    for words in ("learned", "updates", "a minute"):
        assert words not in screen
    rows = "document.querySelector('#snapshots tbody')"
    told, drawn = asked(
        gathered,
        [rows + "?.textContent", rows + ".querySelectorAll('svg').length === 0"],
        tmp_path,
    )
    assert "3,000 lists counted" in told
    assert "learned" not in told
    assert drawn


def test_ages_are_never_absurd(tmp_path: Path) -> None:
    """Nothing happened before version 0; event time may be ahead of this clock."""
    now_ms = time.time_ns() // 1_000_000
    for created_ms, said in (
        (0, "version 0.5, from the start"),
        (now_ms + 3_600_000, "version 0.5, its event time 60 min ahead"),
        (now_ms - 3 * 86_400_000, "version 0.5, 72 h old in event time"),
    ):
        gathered = gathered_of(("0.5", created_ms))
        screen = printed(gathered)
        assert said.replace("60 min", "59 min") in screen or said in screen
        (told,) = asked(
            gathered,
            ["document.querySelector('#snapshots tbody')?.textContent"],
            tmp_path / str(created_ms),
        )
        assert said.replace("60 min", "59 min") in told or said in told


def printed(gathered: Gathered) -> str:
    """The screen as text."""
    console = Console(width=200, file=io.StringIO())
    with console.capture() as capture:
        console.print(view_of(gathered))
    return capture.get()
