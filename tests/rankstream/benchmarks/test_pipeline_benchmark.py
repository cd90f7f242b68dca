"""What the repeats of a figure come to, and which figures are measured."""

import pytest

from rankstream.benchmarks.pipeline import FULL, MAKERS
from rankstream.benchmarks.pipeline_figures import FIGURES, RESTART, chosen_figures
from rankstream.benchmarks.pipeline_local import local_figure
from rankstream.benchmarks.pipeline_repeats import (
    Figure,
    Run,
    in_turns,
    throughput_figure,
)
from rankstream.benchmarks.workload import Workload
from rankstream.wire.events import DETERMINISTIC


def figure_of(rates: list[tuple[float, float]], wrong: int | None = None) -> Figure:
    """The figure of rates of ours and the rival; one of the runs may be wrong."""
    pairs = [
        (Run(ours, 338.0, ["lost"] if n == wrong else []), rival)
        for n, (ours, rival) in enumerate(rates)
    ]
    return throughput_figure("fold", pairs, goal=15.0, floor=5.0)


def test_ours_and_the_rival_run_in_turns() -> None:
    """Each repeat holds one run of either; a machine that tires spares neither."""
    said: list[str] = []

    def ours() -> int:
        said.append("ours")
        return len(said)

    def rival() -> int:
        said.append("rival")
        return -len(said)

    pairs = in_turns(ours, rival, 3)

    assert said == ["rival", "ours", "ours", "rival", "rival", "ours"]
    assert pairs == [(2, -1), (3, -4), (6, -5)]
    assert FULL.repeats == 3


def test_a_ratio_is_the_median_of_the_repeats_and_not_of_the_medians() -> None:
    """A machine that slows down to a half between repeats changes no ratio."""
    figure = figure_of([(60.0, 10.0), (35.0, 5.0), (40.0, 8.0)])

    # 60/10 = 6, 35/5 = 7, 40/8 = 5; the medians alone would say 40/8 = 5.
    assert figure["ratio"] == 6.0
    assert (figure["value"], figure["rival"]) == (40.0, 8.0)
    assert figure["spread"] == {
        "value": [35.0, 60.0],
        "rival": [5.0, 10.0],
        "ratio": [5.0, 7.0],
    }
    assert figure["repeats"] == 3


@pytest.mark.parametrize("wrong", range(3))
def test_one_run_that_is_wrong_voids_the_ratio(wrong: int) -> None:
    """Whichever of them it is; the fault is named."""
    figure = figure_of([(10.0, 1.0)] * 3, wrong)

    assert figure["ratio"] is None
    assert "ratio" not in figure["spread"]
    assert figure["faults"] == ["lost"]


def test_the_long_figures_run_only_when_named() -> None:
    """Named ones come in the order in which they are measured."""
    short = chosen_figures([])

    assert short
    assert short == [name for name, row in FIGURES.items() if not row.is_long]
    assert RESTART not in short
    assert chosen_figures([RESTART, "logged"]) == ["logged", RESTART]


def test_a_figure_that_does_not_exist_is_refused() -> None:
    """The message lists those that do."""
    with pytest.raises(ValueError, match=r"in-process.*got restrat, x"):
        chosen_figures(["x", "logged", "restrat"])


def test_every_figure_can_be_measured() -> None:
    """The names that help shows are those that are known."""
    assert list(MAKERS) == list(FIGURES)


def test_the_in_process_replay_says_both_kinds_of_seconds() -> None:
    """Beside each ratio; and everything sent was counted."""
    figure = local_figure(Workload(400, DETERMINISTIC, n_queries=50), 2)

    assert figure["faults"] == []
    assert figure["repeats"] == 2
    least, most = figure["spread"]["ratio"]
    assert 0.0 < least <= figure["ratio"] <= most
    for key in ("wall_s", "cpu_s", "rival_wall_s", "rival_cpu_s"):
        assert figure[key] > 0.0
