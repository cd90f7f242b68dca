"""What the figures of the fold alone count; none of their times is looked at."""

import subprocess
from pathlib import Path

import pytest

from rankstream.lab.benchmarks.folded_log import ONE_PARTITION, folded_records
from rankstream.lab.benchmarks.harness import (
    Run,
    cost_figure,
    in_fresh_process,
    resident,
    standing,
    throughput_figure,
)
from rankstream.lab.benchmarks.memory import (
    ERA_DAYS,
    PEAK_DAYS,
    Day,
    growth,
    list_bytes,
    long_run,
    pairs_of,
)
from rankstream.lab.benchmarks.pipeline import FIGURES, first_start, needs_services
from rankstream.lab.benchmarks.pipeline.first_start import main, start_s
from rankstream.lab.benchmarks.pipeline.local import compared_figure
from rankstream.lab.benchmarks.pipeline.state import (
    placed_state_figure,
    query_bytes,
    written_state,
)
from rankstream.lab.benchmarks.workload import (
    Workload,
)
from rankstream.settings import Settings, TimeSettings
from rankstream.wire.events import DETERMINISTIC, LOGGED

DAY_MS = 86_400_000


def test_a_cost_is_better_the_less_it_is() -> None:
    """Goal and floor are in its unit, the ratio is that to what was before."""
    figure = cost_figure("open", [500.0, 300.0, 400.0], "bytes", before=800, goal=400)

    assert (figure["value"], figure["rival"], figure["ratio"]) == (400.0, 800, 0.5)
    assert (figure["goal"], figure["floor"]) == (400, None)
    assert figure["spread"] == {"value": [300.0, 500.0], "ratio": [0.375, 0.625]}
    assert standing(figure) == "goal"
    assert standing(figure | {"goal": 399.0}) == "floor"
    assert standing(figure | {"goal": None, "floor": 400.0}) == "floor"
    assert standing(figure | {"goal": 300.0, "floor": 399.0}) == "below"
    assert standing(figure | {"ratio": None}) == "void"


def test_a_rate_is_better_the_larger_its_ratio_is() -> None:
    """Whatever its value."""
    run = Run(50.0, 1.0, [])
    figure = throughput_figure(
        "fold", [(run, run._replace(rate=100.0))], goal=0.5, floor=0.3
    )

    assert standing(figure) == "goal"
    assert standing(figure | {"goal": 0.6}) == "floor"
    assert standing(figure | {"goal": 0.6, "floor": 0.51}) == "below"


def test_a_broker_is_started_only_where_a_figure_needs_one() -> None:
    """Those of the fold alone need none, together neither."""
    without = [name for name, row in FIGURES.items() if not row.needs_services]

    assert len(without) == 9
    assert not needs_services(without)
    assert needs_services([*without, "restart"])


def test_every_list_is_credited_where_rankers_are_compared() -> None:
    """Else the ratio would be void."""
    figure = compared_figure(60, 2)

    assert figure["faults"] == []
    assert figure["repeats"] == 2
    assert figure["ratio"] > 0.0


def test_state_of_drawn_lists_costs_alike_with_and_without_features() -> None:
    """It says where they stand, and of each event by what it is known."""
    few, many = (placed_state_figure(3_000, n_features) for n_features in (1, 46))

    assert few["value"] == many["value"]
    assert 0.9 * (8 + 24) < many["value"] < 2 * (8 + 24)
    assert standing(many) == "goal"


def test_state_is_counted_while_windows_close() -> None:
    """Not that of the first window, in which nothing closes."""
    plan = Workload(9_000, LOGGED, n_queries=40, per_second=9.0, n_partitions=1)
    found = written_state(plan)
    records = list(folded_records(plan))[:-1]
    n_events = sum(n for _, n in records)

    # A log of 1,000 s, the window is 300 s; 7 checkpoints, the first 3 do not count.
    assert 0.5 * n_events < found.n_events < 0.65 * n_events
    # Each of 4 checkpoints writes at least the popular half of the queries again.
    assert found.own_records > 4 * 20
    assert found.own_bytes > 30 * found.own_records
    assert found.all_bytes > found.own_bytes
    assert found.all_records > found.own_records


def test_pairs_are_those_of_lists_and_groups() -> None:
    """Ten places of one list, or of two; in each group of two."""
    for policy, n_lists in ((DETERMINISTIC, 1), (LOGGED, 2)):
        plan = Workload(200, policy, n_queries=1, n_partitions=1)
        assert pairs_of(plan, 2) == 10 * n_lists * 2


def test_memory_is_that_of_a_process_of_its_own() -> None:
    """Not of one that has done much already."""
    assert 1 << 20 < in_fresh_process(resident) < resident()


def test_lists_and_queries_are_measured_where_nothing_is_open() -> None:
    """What a list is divided by is counted from the log; state is a query's own."""
    _, n_pairs = list_bytes(3_000)
    state, _ = query_bytes(20, 10)

    assert 10_000 < n_pairs <= 30_000
    assert 500 < state < 20_000


def test_the_first_fold_is_that_of_the_role() -> None:
    """All that it is given is counted."""
    main()


def test_seconds_of_a_process_are_those_of_the_processors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fails gives none."""
    monkeypatch.setattr(first_start, "CHILD", "platform")
    assert start_s(tmp_path) > 0.0
    monkeypatch.setattr(first_start, "CHILD", "no_such_module")
    with pytest.raises(subprocess.CalledProcessError):
        start_s(tmp_path)


def test_growth_compares_peaks_and_is_void_where_nothing_left() -> None:
    """However memory falls and rises between."""
    saw = [100, 200, 300, 400, 200, 300, 400, 200, 300, 400]
    days = [Day(n << 20, n, 10, 1e-6) for n in saw]
    assert [figure["ratio"] for figure in growth(days)] == [1.0, 1.0, 1.0]
    assert growth(days)[0]["value"] == 400.0
    stays = [day._replace(n_left=0) for day in days]
    assert [figure["ratio"] for figure in growth(stays)] == [None] * 3
    grown = [*days[:-1], days[-1]._replace(n_keys=800, resident=800 << 20)]
    assert [figure["ratio"] for figure in growth(grown)] == [2.0, 2.0, 1.0]
    assert [standing(figure) for figure in growth(grown)] == ["below", "below", "goal"]


def test_eras_leave_while_days_pass() -> None:
    """As many keys at the end as within the first days; none of them is old."""
    settings = Settings(
        kafka=ONE_PARTITION, time=TimeSettings(keep_ms=ERA_DAYS * DAY_MS)
    )
    days = long_run(settings, 300, 2 * PEAK_DAYS)
    peaks = [max(day.n_keys for day in part) for part in (days[:5], days[5:])]

    assert sum(day.n_left for day in days[5:]) > 0
    assert peaks[1] < 1.1 * peaks[0]
