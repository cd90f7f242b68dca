"""`bench capacity`: constants that were planted are found, and a run has all parts."""

from dataclasses import replace
from pathlib import Path

import pytest

from rankstream.lab.benchmarks.capacity.fit import bytes_of, coefficients, cpu_of
from rankstream.lab.benchmarks.capacity.measure import (
    calibration,
    compared,
    constants_of,
    load_of,
    workloads,
)
from rankstream.lab.benchmarks.capacity.runs import Case, Measured, measured_run
from rankstream.lab.benchmarks.harness import standing
from rankstream.operations.answers.capacity.constants import load_constants
from rankstream.operations.answers.capacity.drivers import drivers_of
from rankstream.operations.cli import main
from rankstream.wire.events import PLACKETT_LUCE, POLICIES
from rankstream.wire.topics import EVENTS, INTERACTIONS, QUERIES, SNAPSHOTS, STATISTICS
from tests.rankstream.lab.benchmarks.shared_bed import SharedBed
from tests.services import KafkaService, RedisService

PLANTED = {"idle": 8_000.0, "commits": 900.0, "wakes": 60.0, "events": 4.0}


def planted_runs() -> list[Measured]:
    """Runs of the calibration whose processes and topics cost what is planted."""
    found = []
    for case in calibration(1.0):
        load = case.load.at(case.n_events / 20.0)
        load = replace(load, is_waiting=case.is_flood, counted_s=20.0)
        drivers = drivers_of(load)
        cores = sum(cost * drivers[name] for name, cost in PLANTED.items()) / 1e6
        processes = ("broker", "ingest", "fold", "learn", "publish")
        found.append(
            Measured(
                case.name,
                load,
                load,
                20.0,
                dict.fromkeys(processes, cores),
                dict.fromkeys(processes, 1_000.0),
                {QUERIES: 990.0 * drivers["list_kilobytes"]},
            )
        )
    return found


def test_planted_costs_are_found() -> None:
    """To four digits, and nothing beside them."""
    runs = planted_runs()
    assert cpu_of(runs)["ingest"] == pytest.approx(PLANTED, rel=1e-3)
    found = bytes_of(runs)
    assert found[QUERIES]["list_kilobytes"] == pytest.approx(990.0, rel=1e-3)
    # Nothing was written there.
    assert found[STATISTICS] == {}
    assert coefficients(runs, [0.0] * len(runs), ["idle"]) == {}


def test_runs_that_cost_as_planned_are_met() -> None:
    """Twice as much is missed by half, and what nobody measured is void."""
    runs = planted_runs()
    constants = constants_of(runs, load_constants(), 0.0)
    run = runs[2]
    cpu = [each for each in compared(run, constants) if "CPU" in each["name"]]
    assert [each["value"] for each in cpu[1:3]] == pytest.approx([0.0, 0.0], abs=0.1)
    assert standing(cpu[1]) == "goal"
    twice = run._replace(cpu={name: 2.0 * x for name, x in run.cpu.items()})
    ingest = next(x for x in compared(twice, constants) if "of ingest, %" in x["name"])
    assert ingest["value"] == pytest.approx(50.0, abs=0.1)
    assert standing(ingest) == "floor"
    constants.cpu.pop("ingest")
    ingest = next(x for x in compared(run, constants) if "of ingest, %" in x["name"])
    assert standing(ingest) == "void"


def test_nothing_is_compared_that_constants_were_taken_from() -> None:
    """No load is in both."""
    taken = [each.load for each in calibration(1.0)]
    assert not [each.name for each in workloads(1.0) if each.load in taken]


def test_files_go_with_this_benchmark_only(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Before anything is measured."""
    assert main(["bench", "curves", "--save", str(tmp_path / "x.json")]) == 2
    assert "--save, --constants go with capacity" in capsys.readouterr().err


@pytest.mark.broker
def test_a_run_is_told_by_process_and_topic(
    kafka: KafkaService, redis_server: RedisService, tmp_path: Path
) -> None:
    """A learner among them; all that was sent is in the topics."""
    bed = SharedBed(tmp_path, kafka, redis_server)
    load = load_of(400.0, 1, policy=POLICIES[PLACKETT_LUCE], features=3, queries=50)
    run = measured_run(bed, Case("few", load, 2_000, is_flood=True))

    assert {*run.cpu} == {"broker", "ingest", "fold", "learn", "publish"}
    assert {*run.cpu} <= {*run.peak_mib}
    assert run.load.per_second * run.lasted_s == pytest.approx(2_000)
    for topic in (QUERIES, EVENTS, INTERACTIONS, STATISTICS, SNAPSHOTS):
        assert run.n_bytes[topic] > 0.0
    lists = run.lasted_s * run.load.lists_per_s * load.list_bytes
    assert run.lasted_s * run.n_bytes[QUERIES] > 0.8 * lists
    assert {each["name"].split(":")[0] for each in compared(run, load_constants())} == {
        "few"
    }
