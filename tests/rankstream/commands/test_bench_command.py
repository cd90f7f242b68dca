"""`rankstream bench`: what is measured on one core has a process for itself."""

import json
from typing import Any

import pytest

from rankstream.benchmarks.pipeline_figures import FIGURES
from rankstream.cli import main
from rankstream.commands.bench import ON_ONE_CORE, THREAD_COUNTS, table_of


def test_figures_come_back_from_a_process_with_one_thread(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are printed as JSON, whatever thread counts the caller has."""
    for name in THREAD_COUNTS:
        monkeypatch.setenv(name, "2")
    assert "placement" in ON_ONE_CORE
    code = main(["bench", "placement", "--quick", "--json"])
    result = json.loads(capsys.readouterr().out)

    below = any(f["ratio"] < (f["floor"] or 0.0) for f in result["figures"])
    assert code == int(below)
    assert result["figures"]
    assert all(figure["value"] > 0.0 for figure in result["figures"])


def test_the_figures_are_listed_and_not_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With what each is, and which run only when named."""
    assert main(["bench", "pipeline", "--list"]) == 0

    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert list(lines) == list(FIGURES)
    assert "only when named" in lines["restart"]
    assert "only when named" not in lines["logged"]


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["pipeline", "--figures", "fast"], "--figures must be some of logged, "),
        (["memory", "--figures", "logged"], "go with pipeline; got memory"),
        (["memory", "--list"], "go with pipeline; got memory"),
    ],
)
def test_a_figure_that_nobody_knows_is_refused(
    words: list[str], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is measured."""
    assert main(["bench", *words]) == 2
    assert fault in capsys.readouterr().err


def test_a_spread_is_printed_where_there_are_several_repeats() -> None:
    """The least and the largest stand beside the median."""
    figure = {
        "name": "fold", "value": 60_900.0, "unit": "events/s", "rival": 10_500.0,
        "ratio": 5.8, "goal": 15.0, "floor": 5.0, "repeats": 3,
        "spread": {
            "value": [50_000.0, 70_000.0], "rival": [9_000.0, 11_000.0],
            "ratio": [5.1, 6.4],
        },
    }  # fmt: skip
    one = {**figure, "repeats": 1}

    assert cells(figure) == [
        "60,900 (50,000 to 70,000)",
        "10,500 (9,000 to 11,000)",
        "[yellow]5.8 x[/] (5.1 to 6.4)",
    ]
    assert cells(one) == ["60,900", "10,500", "[yellow]5.8 x[/]"]


def cells(figure: dict[str, Any]) -> list[str]:
    """Value, rival and ratio as the table has them."""
    columns = table_of("pipeline", [figure]).columns
    return [str(next(iter(columns[n].cells))) for n in (1, 3, 4)]
