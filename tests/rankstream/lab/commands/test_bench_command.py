"""`rankstream bench`: what is measured on one core has a process for itself."""

import json
import time
from typing import Any

import pytest

from rankstream.lab.benchmarks.harness import (
    Run,
    cost_figure,
    paired_figure,
    standing,
    throughput_figure,
)
from rankstream.lab.benchmarks.pipeline import FIGURES
from rankstream.lab.commands import bench
from rankstream.lab.commands.bench import ON_ONE_CORE, THREAD_COUNTS, table_of
from rankstream.operations.cli import main


def test_figures_come_back_from_a_process_with_one_thread(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are printed as JSON, whatever thread counts the caller has."""
    for name in THREAD_COUNTS:
        monkeypatch.setenv(name, "2")
    assert "placement" in ON_ONE_CORE
    code = main(["bench", "placement", "--quick", "--json"])
    result = json.loads(capsys.readouterr().out)

    assert code == 0
    assert result["command"] == "rankstream bench placement --quick"
    assert result["date"] == time.strftime("%Y-%m-%d")
    assert len(result["load"]["before"]) == len(result["load"]["after"]) == 3
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
        (["memory", "--rates", "200"], "go with pipeline; got memory"),
        (["pipeline", "--threads", "0"], "--threads must be over 0; got 0"),
        (["pipeline", "--rates", "200", "-3"], "--rates must be over 0; got -3"),
        (["pipeline", "--seconds", "nan"], "--seconds must be over 0; got nan"),
    ],
)
def test_a_figure_that_nobody_knows_is_refused(
    words: list[str], fault: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is measured."""
    assert main(["bench", *words]) == 2
    assert fault in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "ratio", "code"),
    [([], 0.2, 1), (["--quick"], 0.2, 0), (["--quick"], None, 1), ([], 0.4, 0)],
)
def test_a_short_run_may_miss_floors(
    words: list[str],
    ratio: float | None,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It is too small for them. But a figure that is wrong fails it."""
    figure = {
        "name": "fold", "value": 1.0, "unit": "events/s", "rival": 5.0,
        "ratio": ratio, "goal": 0.6, "floor": 0.3,
    }  # fmt: skip
    monkeypatch.setattr(bench, "measured", lambda *_, **__: [figure])

    assert main(["bench", "memory", *words]) == code
    assert ("void" in capsys.readouterr().out) == (ratio is None)


def test_goals_are_printed_as_they_are_compared() -> None:
    """Those of rates as ratios, those of costs in their unit."""
    rate = {
        "name": "fold", "value": 60_900.0, "unit": "events/s", "rival": 10_500.0,
        "ratio": 5.8, "goal": 15.0, "floor": 5.0,
    }  # fmt: skip
    cost = cost_figure("open", [483.0], "bytes", before=469.0, goal=350.0, floor=569.0)

    assert cells(rate, 4, 5, 6) == ["[yellow]5.8 x[/]", "15 x", "5 x"]
    assert cells(cost, 4, 5, 6) == ["[yellow]1.03 x[/]", "<= 350", "<= 569"]
    alone = {**cost, "rival": None}
    assert cells(alone, 4, 5, 6) == ["[yellow]-[/]", "<= 350", "<= 569"]


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


def test_bounds_of_a_cost_may_be_ratios() -> None:
    """Beside a rival it is the ratio that must be small, whatever the value."""
    percent = {"ingest": 11.0, "broker": 49.0}
    topics = {"events": {"records": 35_400, "n_bytes": 1_234_567}}
    cost = paired_figure(
        "no events", "% of a core", [(60.0, 120.0)], (0.3, 0.6), faults=[],
        less_is_better=True, bounds_are_ratios=True, percent=percent, topics=topics,
    )  # fmt: skip

    assert cells(cost, 4, 5, 6) == ["[yellow]0.5 x[/]", "<= 0.3 x", "<= 0.6 x"]
    assert [standing(cost | {"ratio": each}) for each in (0.3, 0.61, None)] == [
        "goal", "below", "void"
    ]  # fmt: skip
    assert cells(cost, 0) == [
        "no events\n  % of a core: ingest 11.0, broker 49.0\n"
        "  records and bytes of topics: events 35,400, 1,235 kB"
    ]


def test_figures_are_printed_as_rows_of_the_page(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that takes them again, its sizes, and the load."""
    given: dict[str, Any] = {}

    def measured(_: str, **options: Any) -> list[dict[str, Any]]:
        given.update(options)
        return [
            paired_figure("fold", "us", [(6.0, 3.0), (9.0, 3.0)], (0.5, 4.0), faults=[])
        ]

    monkeypatch.setattr(bench, "measured", measured)
    words = ["--figures", "trickle", "--rates", "20", "30", "--threads", "3"]
    assert main(["bench", "pipeline", *words, "--markdown"]) == 0

    assert given == {
        "quick": False, "figures": ["trickle"], "rates": [20, 30], "threads": 3
    }  # fmt: skip
    head, line, row = capsys.readouterr().out.splitlines()
    assert f"`rankstream bench pipeline {' '.join(words)}`" in head
    assert head.count(" | ") == line.count(" | ") == row.count(" | ") == 6
    assert row == "| fold | 7.5 us | 3 | 2.5 x (2 to 3) | 0.5 x | 4 x |  |"


def test_what_binds_stands_below_the_name() -> None:
    """With the CPU of each process, of the rival too."""
    run = Run(60_000.0, 338.0, [], 21.4, {"role": 2.5, "broker": 1.25}, "main binds")
    figure = throughput_figure("fold", [(run, run)], goal=15.0, floor=5.0)

    assert cells(figure, 0) == [
        "fold\n  21 to 21 s a run\n  us of CPU an event: role 2.5, broker 1.25\n"
        "  main binds\n  rival: 21 to 21 s a run\n"
        "  rival: us of CPU an event: role 2.5, broker 1.25\n  rival: main binds"
    ]


def cells(figure: dict[str, Any], *which: int) -> list[str]:
    """Some columns of the table: value, rival and ratio unless others are named."""
    columns = table_of("pipeline", [figure]).columns
    return [str(next(iter(columns[n].cells))) for n in which or (1, 3, 4)]
