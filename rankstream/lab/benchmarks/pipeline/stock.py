"""Runs of the rival of the pipeline: an empty agent of stock Faust."""

import subprocess
import time
from pathlib import Path

from rankstream.lab.benchmarks.harness import Run, own_python
from rankstream.lab.benchmarks.pipeline.bed import Bed, BenchmarkFailed, say
from rankstream.lab.benchmarks.pipeline.logs import Part, create_topic, preload
from rankstream.lab.benchmarks.pipeline.meter import Meter

N_BYTES = 300
N_PARTITIONS = 4
TOPIC = "stock"
MODULE = "rankstream.lab.benchmarks.pipeline.stock_agent"

PATIENCE_S = 900.0
LOOK_S = 0.5


class StockRuns:
    """Each reads the first records of one topic, which grows as far as it is asked to.

    Parameters
    ----------
    bed
        Whose broker has the topic.
    """

    def __init__(self, bed: Bed) -> None:
        self._bed = bed
        self._n_written = 0

    def __call__(self, n_records: int) -> Run:
        """One run over so many records.

        Raises
        ------
        BenchmarkFailed
            Where the agent ends before it has taken them, or does not take them.
        """
        self._write(n_records)
        command = own_python(MODULE, self._bed.broker.bootstrap, TOPIC, n_records)
        printed = self._bed.folder / "stock.log"
        with printed.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603  our own command
                command, stdout=output, stdin=subprocess.PIPE, cwd=self._bed.folder
            )
        meter = Meter(self._bed.broker_pid, lambda: process.pid)
        try:
            start_s, end_s = _awaited(process, printed, meter)
        finally:
            process.kill()
            process.communicate()
        part = Part(n_records - 1, round(1e3 * start_s), round(1e3 * end_s))
        run = meter.measured(part, N_BYTES, [])
        say(f"stock agent, {n_records:,} records: {run.rate:,.0f} a second; {run.told}")
        return run

    def _write(self, n_records: int) -> None:
        bootstrap = self._bed.broker.bootstrap
        if not self._n_written:
            create_topic(bootstrap, TOPIC, N_PARTITIONS)
        value = b"x" * N_BYTES
        missing = range(self._n_written, n_records)
        preload(bootstrap, ((TOPIC, n % N_PARTITIONS, value) for n in missing))
        self._n_written = max(self._n_written, n_records)


def _awaited(
    process: "subprocess.Popen[bytes]", printed: Path, meter: Meter
) -> tuple[float, float]:
    """When it took its first record and its last."""
    ends_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_s and process.poll() is None:
        meter.sample()
        _, mark, took = printed.read_text().rpartition("took=")
        if mark and took.endswith("\n"):
            meter.sample()
            start_s, end_s = map(float, took.split())
            return start_s, end_s
        time.sleep(LOOK_S)
    raise BenchmarkFailed(
        f"the stock agent must take its records within {PATIENCE_S:g} s; it has not "
        f"(exit status {process.poll()})"
    )
