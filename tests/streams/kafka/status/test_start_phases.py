"""What is said of how long a start took."""

import asyncio
import subprocess
import sys
import time
from typing import Any

import psutil
import pytest

from rankstream.settings import Settings
from streams.kafka.app import build_app
from streams.kafka.clients import Cluster
from streams.kafka.status.start_phases import StartPhases, began_s

TELLS = """
import time
from typing import Any
time.sleep(1.0)
from streams.kafka.status.start_phases import began_s
print(time.monotonic() - began_s())
"""


def test_phases_add_up_to_the_whole() -> None:
    """One that is told too late ends where the one before it did."""
    phases = StartPhases(100.0)
    phases.ended("first", 101.0)
    phases.lasted("second", 2.5)
    phases.ended("third", 103.0)
    phases.ended("fourth", 104.0)
    assert str(phases) == ("seconds=4.00 first=1.00 second=2.50 third=0.00 fourth=0.50")


@pytest.mark.skipif(sys.platform != "linux", reason="others do not tell")
def test_a_process_knows_when_it_began() -> None:
    """What came before its first module counts too."""
    done = subprocess.run(
        [sys.executable, "-c", TELLS], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) >= 0.98
    age_s = time.time() - psutil.Process().create_time()
    assert time.monotonic() - began_s() == pytest.approx(age_s, abs=2.0)


def test_nothing_is_waited_for_before_the_group_is_joined() -> None:
    """Faust's manager of tables, of which there are none, begins without a pause."""

    async def body() -> None:
        app = build_app(Settings(), "fold", [], Cluster("", {}, {}))
        slept: list[float] = []

        async def note(seconds: float) -> None:
            slept.append(seconds)

        tables: Any = app.tables
        tables.sleep = note
        tables._update_channels = lambda: note(-1.0)
        tables.recovery.start = lambda: note(-2.0)
        await tables.on_start()
        assert slept == [-1.0, -2.0]

    asyncio.run(body())
