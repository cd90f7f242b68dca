"""What few events cost is told by process and topic; no time or share is looked at."""

import itertools
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from rankstream.lab.benchmarks.pipeline import trickle
from rankstream.lab.benchmarks.pipeline.bed import BenchmarkFailed
from rankstream.lab.benchmarks.pipeline.beside_rival import InputRuns, warm_part
from rankstream.lab.benchmarks.pipeline.input_log import (
    CLICKS_A_LIST,
    LATEST_MS,
    N_SHOWN,
    SOONEST_MS,
    InputLog,
)
from rankstream.lab.benchmarks.pipeline.logs import Part, Progress
from rankstream.lab.benchmarks.pipeline.processes import IDLE, Processes, shares_line
from rankstream.lab.benchmarks.pipeline.trickle import Pace, trickle_figure
from rankstream.wire.events import ClickEvent, QueryEvent
from rankstream.wire.topics import QUERIES
from tests.rankstream.lab.benchmarks.shared_bed import SharedBed, needs_the_rival
from tests.services import KafkaService, RedisService

BUSY_S = 0.4
BUSY = f"""
import time
input()
ends_s = time.process_time() + {BUSY_S}
while time.process_time() < ends_s:
    pass
print(flush=True)
input()
"""


def test_a_log_is_in_order_and_each_query_has_a_partition() -> None:
    """Clicks follow their lists, each place once; the same log whenever it is read."""
    log = list(itertools.islice(InputLog(4, start_ms=1_000), 3_000))
    assert log == list(itertools.islice(InputLog(4, start_ms=1_000), 3_000))
    assert [each.at_ms for each in log] == sorted(each.at_ms for each in log)
    lists: dict[str, QueryEvent] = {}
    places: defaultdict[str, set[int]] = defaultdict(set)
    partitions: defaultdict[str, set[int]] = defaultdict(set)
    n_clicks = 0
    for record in log:
        if record.topic == QUERIES:
            query = msgspec.json.decode(record.value, type=QueryEvent)
            lists[query.impression_id] = query
            assert len(set(query.shown)) == N_SHOWN
        else:
            click = msgspec.json.decode(record.value, type=ClickEvent)
            query = lists[click.impression_id]
            assert SOONEST_MS <= click.at_ms - query.at_ms < LATEST_MS
            assert click.position is not None
            assert 1 <= click.position <= N_SHOWN
            assert click.position not in places[query.impression_id]
            places[query.impression_id].add(click.position)
            n_clicks += 1
        partitions[query.query_id].add(record.partition)
    assert {len(each) for each in partitions.values()} == {1}
    assert set.union(*partitions.values()) == set(range(4))
    # What is not clicked yet is missing: 10 s of a log of 5.
    assert 0.1 * CLICKS_A_LIST * len(lists) < n_clicks < CLICKS_A_LIST * len(lists)
    # One that follows shares no list.
    after = itertools.islice(InputLog(4, start_ms=1_000, first=len(lists)), 100)
    queries = [each.value for each in after if each.topic == QUERIES]
    ids = {msgspec.json.decode(each, type=QueryEvent).impression_id for each in queries}
    assert ids.isdisjoint(lists)


def test_what_a_process_took_stays_when_it_has_ended() -> None:
    """Those of one name add up; what the cores did not do is told, too."""
    busy = [
        subprocess.Popen(
            [sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    living = [(each.pid, "busy") for each in busy]
    processes = Processes(lambda: living)
    processes.sample()
    start_s = time.time()
    for each in busy:
        assert each.stdin is not None
        each.stdin.write(b"\n")
        each.stdin.flush()
    for each in busy:
        assert each.stdout is not None
        each.stdout.readline()
    processes.sample()
    end_s = time.time()
    for each in busy:
        each.communicate(b"\n")
    living.clear()
    processes.sample()
    used = processes.between(start_s, end_s)

    assert set(used) == {"busy", IDLE}
    assert 1.2 * BUSY_S < used["busy"] < 4.0 * BUSY_S
    with pytest.raises(BenchmarkFailed, match="before and after"):
        processes.between(start_s - 60.0, end_s)


def test_cores_are_shared_by_what_is_named_and_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 20 s on two cores."""
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    line = shares_line({"fold": 10.0, "broker": 4.0, IDLE: 20.0}, 20.0)
    assert line == "2 cores: fold 25%, broker 10%, idle 50%, other work 15%"


def test_a_first_third_of_a_log_does_not_count() -> None:
    """Nor what was read between then and a commit of each partition."""
    marks = [
        Progress(1_000, 0, 99),
        Progress(2_000, 1, 99),
        Progress(3_000, 0, 199),
        Progress(4_000, 1, 149),
        Progress(5_000, 0, 349),
        Progress(6_000, 1, 249),
    ]
    assert warm_part(marks, 9_000, 600) == Part(150 + 150, 3_000, 9_000)
    assert warm_part(marks, 9_000, 601) == Part(150 + 100, 4_000, 9_000)
    assert warm_part(marks, 9_000, 903) == Part(100, 5_000, 9_000)
    with pytest.raises(BenchmarkFailed, match="1,801 events must be read"):
        warm_part(marks, 9_000, 1_801)


@pytest.mark.broker
def test_ours_and_kafka_streams_count_what_trickles(
    kafka: KafkaService,
    redis_server: RedisService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both are told by process, with all that was sent and what they wrote."""
    needs_the_rival()
    monkeypatch.setattr(trickle, "QUIET_S", 0.0)
    bed = SharedBed(tmp_path, kafka, redis_server)
    figure = trickle_figure(bed, Pace(1_000.0, 1, 0.2, 0.6), 1, 1)

    assert figure["faults"] == []
    assert set(figure["percent"]) == {"broker", "watching", "ingest", "fold"}
    assert set(figure["rival_percent"]) == {"broker", "application"}
    assert figure["value"] == pytest.approx(sum(figure["percent"].values()))
    assert figure["rival"] == pytest.approx(sum(figure["rival_percent"].values()))
    for topics in (figure["topics"], figure["rival_topics"]):
        assert not [topic for topic in topics if topic.startswith("bench")]


@pytest.mark.broker
def test_ours_take_a_log_that_waits_to_its_end(
    kafka: KafkaService, redis_server: RedisService, tmp_path: Path
) -> None:
    """What is measured are most of its events, and each process has its share."""
    n_events = 60_000
    found = InputRuns(SharedBed(tmp_path, kafka, redis_server), 1, 1).ours(n_events)

    assert found.faults == []
    # Ends of the input are events, too.
    assert 0.0 < found.rate * found.lasted_s <= n_events * 2 / 3 + 2
    assert set(found.cpu_us) == {"broker", "watching", "ingest", "fold"}
    assert found.binds.endswith("%")
