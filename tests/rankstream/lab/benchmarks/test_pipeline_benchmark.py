"""What the repeats of a figure come to, and which figures are measured."""

from pathlib import Path

import pytest

from rankstream.lab.benchmarks.harness import (
    SPARE,
    Figure,
    Lasting,
    Run,
    in_turns,
    throughput_figure,
)
from rankstream.lab.benchmarks.pipeline import FIGURES, chosen_figures
from rankstream.lab.benchmarks.pipeline.bed import BenchmarkFailed
from rankstream.lab.benchmarks.pipeline.local import local_figure
from rankstream.lab.benchmarks.pipeline.logs import KeptLog, Part, Progress, part_of
from rankstream.lab.benchmarks.pipeline.measure import MAKERS
from rankstream.lab.benchmarks.pipeline.sizes import FULL, QUICK, sized
from rankstream.lab.benchmarks.workload import Workload
from rankstream.wire.events import DETERMINISTIC


def figure_of(rates: list[tuple[float, float]], wrong: int | None = None) -> Figure:
    """The figure of rates of ours and the rival; one of the runs may be wrong."""
    pairs = [
        (Run(ours, 338.0, ["lost"] if n == wrong else []), Run(rival, 300.0, []))
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


class Machine:
    """A stage that starts for a second, and has a speed that may change."""

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self.lengths: list[int] = []

    def __call__(self, n: int) -> Run:
        """Run over a log of so many events."""
        self.lengths.append(n)
        return Run(self.rate, 1.0, [], lasted_s=n / self.rate)


def test_a_log_is_as_long_as_the_warm_up_says() -> None:
    """And longer where that was too short to say it; neither counts."""
    machine = Machine(100.0)
    runs = Lasting(machine, 1_000, least_s=20.0)
    runs.warm_up()

    # It lasted 10 s of 20: twice as long, and a half for drift.
    assert machine.lengths == [1_000, 3_000]
    assert (runs().lasted_s, runs().lasted_s) == (30.0, 30.0)
    assert machine.lengths == [1_000] + 3 * [3_000]
    # A moment says little of a rate: step by step.
    machine = Machine(100.0)
    Lasting(machine, 10, least_s=20.0).warm_up()
    assert machine.lengths == [10, 120, 1_440, 3_000]


def test_the_warm_up_never_counts_and_no_short_run_does() -> None:
    """Even where the first lasts, and where the machine becomes faster later."""
    machine = Machine(100.0)
    runs = Lasting(machine, 5_000, least_s=20.0)
    runs.warm_up()
    assert machine.lengths == [5_000, 5_000]
    machine.rate = 500.0
    assert runs().lasted_s >= 20.0
    assert machine.lengths == [5_000, 5_000, 5_000, 5_000 * 2 * SPARE]
    assert FULL.least_s >= 20.0


def test_it_is_warm_once_the_broker_takes_no_less() -> None:
    """Its code is compiled while it runs, however long each run lasts."""
    took_us = [16.0, 8.0, 6.3, 5.2, 5.0]
    left = iter(took_us)

    def run(n: int) -> Run:
        return Run(1.0, 1.0, [], lasted_s=float(n), cpu_us={"broker": next(left)})

    Lasting(run, 30, least_s=20.0).warm_up()

    # 5.2 of 6.3 is more than four fifths.
    assert list(left) == [5.0]


def test_what_is_measured_begins_when_each_partition_has_committed() -> None:
    """What each had committed by then does not count, nor an idle commit at the end."""
    marks = [
        Progress(1_000, 0, 9),
        Progress(1_200, 0, 11),
        Progress(1_500, 1, 4),
        Progress(3_000, 0, 19),
        Progress(3_500, 1, 14),
        Progress(9_000, 0, 19),
    ]
    part = part_of(marks, lambda _, offset: 10 * (offset + 1))

    assert part == Part(10 * (8 + 10), 1_500, 3_500)
    assert (part.lasted_s, part.rate) == (2.0, 90.0)


def test_a_run_that_is_over_with_the_first_commits_tells_nothing() -> None:
    """Where the last partition commits once, at the end."""
    marks = [Progress(1_000, 0, 9), Progress(3_000, 0, 19), Progress(3_500, 1, 14)]
    with pytest.raises(BenchmarkFailed, match="several commits"):
        part_of(marks, lambda _, offset: offset)


def test_what_a_run_took_is_said_of_both_sides() -> None:
    """CPU as medians; what binds of the run in the middle."""
    runs = [
        Run(rate, 338.0, [], lasted_s, {"role": us, "broker": 1.0}, line)
        for rate, lasted_s, us, line in (
            (30.0, 21.0, 3.0, "fast"), (10.0, 25.0, 9.0, "slow"), (20.0, 22.0, 5.0, "m")
        )
    ]  # fmt: skip
    figure = throughput_figure(
        "fold", [(run, run) for run in runs], goal=15.0, floor=5.0
    )
    for prefix in ("", "rival_"):
        assert figure[f"{prefix}lasted_s"] == [21.0, 25.0]
        assert figure[f"{prefix}cpu_us"] == {"role": 5.0, "broker": 1.0}
        assert figure[f"{prefix}binds"] == "m"


def test_a_kept_log_gives_the_records_that_were_made(tmp_path: Path) -> None:
    """As often as it is read; empty values too."""
    records = [(0, b"a" * 70_000), (3, b""), (1, b"bc")]
    log = KeptLog(tmp_path / "log", iter(records))
    assert list(log) == list(log) == records


def test_the_long_figures_run_only_when_named() -> None:
    """Named ones come in the order in which they are measured."""
    short = chosen_figures([])

    assert short
    assert short == [name for name, row in FIGURES.items() if not row.is_long]
    assert "restart" not in short
    assert chosen_figures(["restart", "logged"]) == ["logged", "restart"]


def test_a_figure_that_does_not_exist_is_refused() -> None:
    """The message lists those that do."""
    with pytest.raises(ValueError, match=r"in-process.*got restrat, x"):
        chosen_figures(["x", "logged", "restrat"])


def test_sizes_beside_kafka_streams_are_options() -> None:
    """One may say several sizes; all others stay as they are."""
    options: dict[str, float | list[int]] = {
        "events": 70,
        "seconds": 2.5,
        "repeats": 3,
        "rates": [9, 8],
        "threads": 1,
    }
    changed = sized(QUICK, {**options, "partitions": [2]})

    assert changed == QUICK._replace(
        input=70, least_s=2.5, trickle_s=2.5, turns=3, trickle_turns=3, rates=(9, 8),
        threads=1, widths=(2,),
    )  # fmt: skip
    assert FULL.turns == 2
    assert sized(FULL, {}) == FULL


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
