"""Laws of what a load needs: figures by hand, monotone, additive, and none made up."""

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rankstream.lab.benchmarks.capacity.events import events_of
from rankstream.operations.answers.capacity.constants import (
    Coefficients,
    Constant,
    Constants,
    Costs,
    load_constants,
    save_constants,
)
from rankstream.operations.answers.capacity.drivers import (
    DRIVERS,
    distinct,
    drivers_of,
    frequencies,
    hottest_share,
)
from rankstream.operations.answers.capacity.load import (
    PLANNED,
    Load,
    planned_settings,
)
from rankstream.operations.answers.capacity.needs import READ_BACK, work_of
from rankstream.operations.answers.capacity.plan import Plan, plan_of
from rankstream.operations.commands.plan import POLICIES
from rankstream.settings import ExperimentSettings, KafkaSettings, Settings
from rankstream.wire.topics import QUERIES

LOAD = Load(1_000.0, items=10, queries=50_000.0)
DRAWN = Load(500.0, 10, 1e6, features=24, candidates=20, policy="plackett-luce")

RISING = (0.0, 1.0, 30.0, 1_000.0, 40_000.0, 3e6)


def plain(per_us: float = 10.0) -> Constants:
    """Constants by which everything can be told by hand: each event costs the same."""
    processes = ("broker", "ingest", "fold", "learn", "publish")
    roles = ("ingest", "fold", "learn", "publish")
    memory = {f"memory_{role}{how}_mib": 100.0 for role in roles for how in HOWS}
    memory |= {f"memory_{role}_waiting_mib_per_kb": 0.0 for role in roles}
    more = {"open_list_bytes": 200.0, "known_identity_bytes": 40.0}
    restart = dict.fromkeys(READ_BACK, 10.0) | {"restart_s": 1.0}
    topics = [each.topic for each in plan_of(LOAD, load_constants()).topics]
    return Constants(
        machine="by hand",
        date="2026-11-27",
        command="none",
        load=(0.0, 0.0),
        cpu={name: Coefficients({"events": per_us}, "by hand") for name in processes},
        n_bytes={
            name: Coefficients({"events": 100.0} if name == QUERIES else {}, "by hand")
            for name in topics
        },
        constants={
            name: Constant(value, "", "by hand")
            for name, value in (memory | more | restart).items()
        },
    )


HOWS = ("", "_waiting")


def figures(plan: Plan) -> dict[str, float]:
    """All numbers of a plan by name."""
    found: dict[str, Any] = {
        name: getattr(plan, name)
        for name in (
            "partitions", "cores", "memory_bytes", "broker_cores", "bytes_in_per_s",
            "bytes_out_per_s", "disk_bytes", "restart_s",
        )
    }  # fmt: skip
    found |= {f"disk of {each.topic}": each.disk_bytes for each in plan.topics}
    return found | {f"processes of {each.role}": each.processes for each in plan.roles}


def test_shares_of_queries_are_those_of_ranks() -> None:
    """Those that are binned too: as many queries, as many distinct ones."""
    n = 300_000
    ranks = np.arange(1, n + 1)
    shares = 1.0 / ranks / (1.0 / ranks).sum()
    binned, counts = frequencies(n)
    assert counts.sum() == n
    assert (binned * counts).sum() == pytest.approx(1.0)
    for n_lists in (1.0, 1_000.0, 1e6):
        by_hand = -np.expm1(n_lists * np.log1p(-shares)).sum()
        assert distinct(n_lists, n) == pytest.approx(by_hand, rel=1e-2)
    assert distinct(1.0, 7) == pytest.approx(1.0)
    assert hottest_share(Load(1.0, 1, 2.0)) == pytest.approx(2.0 / 3.0)


@pytest.mark.parametrize("name", DRIVERS)
@pytest.mark.parametrize("load", [LOAD, DRAWN])
def test_no_driver_falls_where_more_comes(name: str, load: Load) -> None:
    """And none is below 0."""
    found = [DRIVERS[name](load.at(rate)) for rate in RISING]
    assert found[0] >= 0.0
    assert np.diff(found).min() >= -1e-9 * found[-1]


@pytest.mark.parametrize("load", [LOAD, DRAWN])
def test_no_figure_falls_where_more_comes(load: Load) -> None:
    """By the constants that are shipped, all of which are there."""
    plans = [plan_of(load.at(rate), load_constants()) for rate in RISING]
    assert [each.unsaid for each in plans] == [[]] * len(plans)
    for before, after in itertools.pairwise(map(figures, plans)):
        for name, value in before.items():
            # More processes each hold a part; so a restart may be shorter.
            if name != "restart_s":
                assert after[name] >= value * (1.0 - 1e-9), name


def test_units() -> None:
    """10 us of each of 1,000 events are a hundredth of a core; bytes are bytes."""
    plan = plan_of(LOAD, plain())
    assert plan.broker_cores == pytest.approx(0.01)
    cores = {each.role: each.cores for each in plan.roles}
    # No list has features, so there is nothing to learn.
    assert cores == pytest.approx(
        {"ingest": 0.01, "fold": 0.01, "learn": 0.0, "publish": 0.0}
    )
    assert plan.bytes_in_per_s == pytest.approx(100_000.0)
    assert plan.bytes_out_per_s == pytest.approx(100_000.0)
    # Seven days.
    assert plan.disk_bytes == pytest.approx(
        100_000.0 * 7 * 86_400 + held_of(plan, "statistics")
    )
    # Keys and open lists are read back; what came in five seconds is folded again.
    live = distinct(LOAD.n_counted, LOAD.queries)
    n_read = 2 * live + LOAD.lists_per_s * 330.0
    assert plan.restart_s == pytest.approx(1.0 + 1e-5 * n_read + 0.01 * 5.0)


def test_a_restart_beyond_what_was_measured_is_assumed() -> None:
    """By keys, and by lists that are open."""
    few = Load(100.0, items=10, queries=1_000.0)
    open_lists = few.at(1_000.0)
    found = [
        [each for each in plan_of(load, plain()).assumed if "restart" in each]
        for load in (few, Load(100.0, items=10, queries=2e5), open_lists)
    ]
    assert [len(each) for each in found] == [0, 1, 1]
    assert " keys takes as long" in found[1][0]
    # 1,000 events a second, 1.4 of a list, for five minutes and a half.
    assert found[2][0].startswith("a restart with 235,714 open lists takes as long")


def held_of(plan: Plan, topic: str) -> float:
    """Bytes of a topic on disks."""
    (found,) = [each.disk_bytes for each in plan.topics if each.topic == topic]
    assert found is not None
    return found


def test_copies_add_up() -> None:
    """With three replicas as much comes in three times, and goes out twice more."""
    settings = planned_settings(Settings(), replicas=3)
    one, three = (plan_of(load, plain()) for load in (LOAD, LOAD.under(settings)))
    assert one.bytes_in_per_s is not None
    assert one.bytes_out_per_s is not None
    assert one.disk_bytes is not None
    assert three.bytes_in_per_s == pytest.approx(3 * one.bytes_in_per_s)
    assert three.bytes_out_per_s == pytest.approx(
        one.bytes_out_per_s + 2 * one.bytes_in_per_s
    )
    assert three.disk_bytes == pytest.approx(3 * one.disk_bytes)


def test_processes_have_their_share_of_a_core_and_folds_a_partition_each() -> None:
    """8 cores of folding at 6 tenths are 14 processes, which need 14 partitions."""
    plan = plan_of(LOAD.at(800_000.0), plain())
    processes = {each.role: each.processes for each in plan.roles}
    assert processes["fold"] == plan.partitions == 14
    # Its partitions cannot be raised.
    assert processes["ingest"] == 4
    assert plan.bounds[0].what.startswith("4 processes of ingest")


def test_of_many_processes_each_reads_and_folds_its_part_again() -> None:
    """A restart is of one of the 14, and after 5 s of events at 8 cores of folding."""
    load = LOAD.at(800_000.0)
    n_read = 2 * distinct(load.n_counted, load.queries) + load.lists_per_s * 330.0
    assert plan_of(load, plain()).restart_s == pytest.approx(
        1.0 + 1e-5 * n_read / 14 + 8.0 * 5.0 / 14
    )


def test_what_a_process_takes_idle_is_no_room_for_work() -> None:
    """8 cores of folding at 6 tenths, of which a tenth is idle, are 16 processes."""
    constants = plain()
    constants.cpu["fold"] = Coefficients({"events": 10.0, "idle": 1e5}, "by hand")
    plan = plan_of(LOAD.at(800_000.0), constants)
    (fold,) = [each for each in plan.roles if each.role == "fold"]
    assert fold.processes == 16
    assert fold.cores == pytest.approx(8.0 + 16 * 0.1)


def test_at_its_bound_a_role_has_no_room() -> None:
    """Four processes at 6 tenths of a core do 240,000 events of 10 us a second."""
    plan = plan_of(LOAD, plain())
    found = {each.what: each.events_per_s for each in plan.bounds}
    assert found["4 processes of ingest"] == pytest.approx(240_000.0)
    assert found["4 processes of the fold"] == pytest.approx(240_000.0)
    share = hottest_share(LOAD)
    (query,) = [rate for what, rate in found.items() if "query" in what]
    assert query == pytest.approx(60_000.0 / share)
    assert [each.events_per_s for each in plan.bounds] == sorted(found.values())

    shipped = load_constants()
    for bound in plan_of(DRAWN, shipped, utilisation=0.5).bounds:
        assert bound.events_per_s > 0.0
        if "learning" in bound.what:
            work = work_of(DRAWN.at(bound.events_per_s), "learn", Costs(shipped))
            idle = shipped.cpu["learn"].per["idle"] / 1e6
            assert work == pytest.approx(0.5 - idle, rel=1e-6)


@pytest.mark.parametrize("policy", PLANNED)
def test_a_list_has_the_bytes_that_are_planned(policy: str) -> None:
    """Of events that are made apart; names of queries differ by some digits."""
    load = Load(
        100.0, 12, 20_000.0, features=5, candidates=15, policy=policy,
        settings=Settings(kafka=KafkaSettings()),
    )  # fmt: skip
    events = itertools.islice(events_of(load, 0), 2_000)
    sizes = [len(each.value) for each in events if each.topic == QUERIES]
    assert load.list_bytes == pytest.approx(np.mean(sizes), rel=0.1)


def test_what_nobody_measured_is_not_said() -> None:
    """None, and the reason; whatever adds it up is not said either."""
    constants = plain()
    constants.cpu.pop("fold")
    constants.constants["restart_s"] = Constant(None, "s", "nobody has killed one")
    plan = plan_of(LOAD, constants)
    assert plan.cores is None
    assert plan.restart_s is None
    assert plan.memory_bytes is not None
    assert plan.unsaid == [
        "CPU of fold: nobody measured it",
        "restart_s: nobody has killed one",
    ]
    constants.constants.pop("open_list_bytes")
    assert plan_of(LOAD, constants).memory_bytes is None


def test_settings_that_nobody_measured_are_named() -> None:
    """Experiments cost the fold more; their roles and topics are not said."""
    experiment = ExperimentSettings(rankers={"a": "", "b": ""})
    plan = plan_of(LOAD.under(Settings(experiments={"e": experiment})), plain())
    roles = {each.role: each.cores for each in plan.roles}
    assert roles["evaluate"] is None
    assert plan.bytes_in_per_s is None
    assert any("experiments" in each for each in plan.unsaid)
    assert any("CPU of evaluate" in each for each in plan.unsaid)


def test_constants_come_back_as_they_were_written(tmp_path: Path) -> None:
    """And what cannot be is refused, by its name."""
    path = tmp_path / "here.json"
    save_constants(plain(), path)
    assert load_constants(path) == plain()

    written = json.loads(path.read_text())
    written["cpu"]["fold"]["per"]["events"] = -1.0
    path.write_text(json.dumps(written))
    with pytest.raises(ValueError, match=r"fold by events of .* must be 0 or more"):
        load_constants(path)
    path.write_text("{}")
    with pytest.raises(ValueError, match="must be a file of `bench capacity"):
        load_constants(path)
    with pytest.raises(ValueError, match="--constants must be a file"):
        load_constants(tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"per_second": -1.0}, "--events must be 0 or more; got -1"),
        ({"per_second": float("nan")}, "--events must be 0 or more; got nan"),
        ({"items": 0}, "--lists must be 1 or more; got 0"),
        ({"queries": 0.5}, "--queries must be 1 or more"),
        ({"clicks": float("inf")}, "--clicks must be 0 or more; got inf"),
        ({"features": -1}, "--features must be 0 or more"),
        ({"candidates": 9}, "--candidates must be as many as --lists, 10, or more"),
        ({"policy": "multileave"}, "--policy must be one whose lists were measured"),
    ],
)
def test_a_load_that_cannot_be_is_refused(more: dict[str, Any], reason: str) -> None:
    """By the option that says it."""
    with pytest.raises(ValueError, match=reason):
        Load(**({"per_second": 1.0, "items": 10, "queries": 10.0} | more))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"partitions": 0}, "must be over 0; got 0, None, None"),
        ({"replicas": -1}, "must be over 0"),
        ({"window_s": 0.0}, "must be over 0"),
        ({"retention_days": 1}, "kafka.events_days must be 3 or more"),
    ],
)
def test_settings_that_cannot_be_are_refused(more: dict[str, Any], reason: str) -> None:
    """As a worker would."""
    with pytest.raises(ValueError, match=reason):
        planned_settings(Settings(), **more)


def test_a_share_of_a_core_is_one() -> None:
    """Over 0, at most 1."""
    for share in (0.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="--utilisation must be over 0"):
            plan_of(LOAD, plain(), utilisation=share)


def test_what_is_shipped_names_its_drivers_and_sources() -> None:
    """Each constant says by which command and when."""
    constants = load_constants()
    rows = [*constants.cpu.values(), *constants.n_bytes.values()]
    assert {name for row in rows for name in row.per} <= {*drivers_of(LOAD)}
    told = [row.source for row in rows]
    told += [each.source for each in constants.constants.values()]
    assert all(source.startswith("2026-") for source in told)


def test_help_names_the_policies_that_were_measured() -> None:
    """It does without what plans."""
    assert POLICIES == PLANNED
