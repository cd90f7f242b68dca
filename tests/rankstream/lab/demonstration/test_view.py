"""What the demonstration shows of position bias."""

import io

import numpy as np
from rich.console import Console

from models.bias.examination import ExaminationCurve
from rankstream.lab.demonstration.view import DemoState, end_of, view_of


def printed(estimated: ExaminationCurve | None, width: int = 120) -> str:
    """The screen as text."""
    state = DemoState("data", 10, 0.5, (1.0, 0.5, 0.25), estimated=estimated)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(view_of(state))
    return console.export_text()


def test_estimates_stand_beside_the_truth_without_intervals() -> None:
    """Nobody knows how far off they are; where there is no estimate, none is shown."""
    curve = ExaminationCurve(
        np.array([1.0, 0.61, np.nan]),
        np.array([1.0, 0.4, np.nan]),
        np.array([1.0, 0.7, np.nan]),
        ("", "", "not shown"),
    )
    screen = printed(curve)

    assert "2  0.500     0.610  ██" in screen
    assert "3  0.250         -  " in screen
    assert "nan" not in screen
    assert "0.400" not in screen
    assert "0.610" not in printed(None)


def test_a_narrow_terminal_shows_estimates_and_bars() -> None:
    """Eighty columns: nothing is cut."""
    curve = ExaminationCurve(
        np.array([1.0, 0.61, 0.2]),
        np.array([1.0, 0.4, 0.1]),
        np.array([1.0, 0.7, 0.3]),
        ("", "", ""),
    )
    screen = printed(curve, 80)

    assert "0.610" in screen
    assert "0.400" not in screen
    assert "█" in screen
    assert "2  0.500     0.610  ██" in screen
    assert "… │" not in screen


def test_without_a_live_view_the_end_has_outcomes_and_examination() -> None:
    """As somebody reads them in a file."""
    state = DemoState("data", 10, 0.5, (1.0, 0.5), counts={"orphan": 70})
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(end_of(state))
    text = console.export_text()

    assert ["orphan", "70"] in [line.strip("│ ").split() for line in text.splitlines()]
    assert "2  0.500         -" in text
