"""What the processes of a run take, and what is said to bind; no time is looked at."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from producers.brokers.topic_admin import TopicAdmin
from rankstream.lab.benchmarks.pipeline.bed import BenchmarkFailed
from rankstream.lab.benchmarks.pipeline.logs import Part
from rankstream.lab.benchmarks.pipeline.measure import FoldRuns
from rankstream.lab.benchmarks.pipeline.meter import Meter, Usage, what_binds
from rankstream.lab.benchmarks.pipeline.stock import StockRuns
from rankstream.lab.benchmarks.workload import Workload
from rankstream.settings import load_settings
from rankstream.wire.events import DETERMINISTIC
from streams.topology import topics_of
from tests.rankstream.lab.benchmarks.shared_bed import SharedBed
from tests.services import KafkaService, RedisService

BUSY_S = 0.3
"""Of CPU, in a thread beside the first one, which waits for its word."""

BESIDE = f"""
import sys, threading, time

def work():
    sys.stdin.readline()
    while time.thread_time() < {BUSY_S}:
        pass
    print("done", flush=True)
    sys.stdin.readline()

threading.Thread(target=work).start()
"""


def test_cpu_is_told_by_process_and_thread() -> None:
    """What a second thread does is not its first one's, nor the broker's."""
    with subprocess.Popen(
        [sys.executable, "-c", BESIDE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as role:
        assert role.stdin is not None
        assert role.stdout is not None
        with subprocess.Popen(
            [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as broker:
            # What its start takes is not of the run.
            assert broker.stdout is not None
            broker.stdout.readline()
            while len(os.listdir(f"/proc/{role.pid}/task")) < 2:
                time.sleep(0.01)
            meter = Meter(lambda: broker.pid, lambda: role.pid)
            meter.sample()
            start_s = time.time()
            role.stdin.write(b"\n")
            role.stdin.flush()
            assert role.stdout.readline() == b"done\n"
            end_s = time.time()
            meter.sample()
            role.stdin.write(b"\n")
            role.stdin.flush()
            used = meter.between(start_s, end_s)

            # What passes between a sample and its moment is shared out, too.
            assert used.consumer_s > 0.5 * BUSY_S
            assert used.role_s > 0.5 * BUSY_S
            assert used.main_s < 0.2 * BUSY_S
            assert used.broker_s < 0.5 * BUSY_S
            each_us = used.us_each(1_000)["consumer thread"]
            assert each_us == pytest.approx(1e3 * used.consumer_s)
            # Time passes evenly between two samples.
            half = meter.between(start_s, (start_s + end_s) / 2)
            assert half.consumer_s == pytest.approx(used.consumer_s / 2)
            run = meter.measured(
                Part(1_000, round(1e3 * start_s) + 1, round(1e3 * end_s) - 1), 9.0, []
            )
            assert run.cpu_us["consumer thread"] > 0.5e3 * BUSY_S
            assert "binds" in run.binds or "bind:" in run.binds
            assert broker.stdin is not None
            broker.stdin.close()


def test_what_lies_outside_of_the_samples_is_refused() -> None:
    """As are samples of a process that is not there: there are none."""
    meter = Meter(os.getpid, os.getpid)
    meter.sample()
    with pytest.raises(BenchmarkFailed, match="before and after"):
        meter.between(time.time(), time.time())

    def missing() -> int:
        raise BenchmarkFailed("a worker must run fold; it does not")

    nobody = Meter(os.getpid, missing)
    nobody.sample()
    with pytest.raises(BenchmarkFailed, match="before and after"):
        nobody.between(0.0, 0.0)


@pytest.mark.parametrize(
    ("used", "line"),
    [
        # 20 s on two cores: 40 s of them.
        (
            Usage(25.0, 18.0, 0.5, 7.0, 0.2, 7.0, 6.0),
            "its main thread binds: main thread ran 90% of the time and waited for a "
            "core 2%; 2 cores: idle 15%, other work 5%",
        ),
        (
            Usage(25.0, 6.0, 0.5, 19.0, 0.2, 7.0, 6.0),
            "its consumer thread binds: consumer thread ran 95% of the time and waited "
            "for a core 1%; 2 cores: idle 15%, other work 5%",
        ),
        (
            Usage(10.0, 8.0, 9.0, 2.0, 3.0, 5.0, 0.0),
            "the cores bind: main thread ran 40% of the time and waited for a core "
            "45%; 2 cores: idle 0%, other work 62%",
        ),
        (
            Usage(10.0, 8.0, 0.2, 2.0, 0.1, 24.0, 2.0),
            "the cores bind: main thread ran 40% of the time and waited for a core "
            "1%; 2 cores: idle 5%, other work 10%",
        ),
        (
            Usage(6.0, 5.0, 0.2, 1.0, 0.1, 4.0, 28.0),
            "waiting binds, not CPU: main thread ran 25% of the time and waited for a "
            "core 1%; 2 cores: idle 70%, other work 5%",
        ),
    ],
)
def test_what_binds_is_said_in_a_line(used: Usage, line: str) -> None:
    """A thread that is always busy, else cores that are, else neither."""
    assert what_binds(used, 20.0, 2) == line


@pytest.mark.broker
def test_ours_and_the_rival_are_measured_on_one_broker(
    kafka: KafkaService, redis_server: RedisService, tmp_path: Path
) -> None:
    """Both say what they, their threads and the broker took; a log's topics go."""
    bed = SharedBed(tmp_path, kafka, redis_server)
    ours = FoldRuns(bed, Workload(0, DETERMINISTIC, n_queries=200))(3_000)
    rival = StockRuns(bed)(2_000)

    for run in (ours, rival):
        assert run.faults == []
        assert run.lasted_s > 0.0
        assert run.rate > 0.0
        assert set(run.cpu_us) == {
            "role",
            "main thread",
            "consumer thread",
            "broker",
        }
        assert run.cpu_us["main thread"] > 0.0
        assert run.cpu_us["consumer thread"] > 0.0
        assert "bind" in run.binds
    first, *_ = sorted(tmp_path.glob("bench*.toml"))
    settings = load_settings(first, {})
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    assert admin.n_partitions() == {}
    admin.close()
