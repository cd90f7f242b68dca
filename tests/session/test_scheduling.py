"""A process that dies takes nothing with it but the test that killed it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

CONFTEST = """
import os, time
from tests.session.scheduling import LongestFirst

# Of two who take the places of dead ones, one is given work while the other collects.
COLLECTS_S = {"gw2": 0.4, "gw3": 0.8}

def pytest_xdist_make_scheduler(config, log):
    return LongestFirst(config, log, {})

def pytest_runtest_logreport(report):
    # Of a process that dies the pipe may be broken before its end is known.
    if report.nodeid.endswith("before") and hasattr(report, "node"):
        if os.environ["PIPE"] == "broken":
            report.node.gateway._io.close_write()

def pytest_collection():
    time.sleep(COLLECTS_S.get(os.environ.get("PYTEST_XDIST_WORKER"), 0.0))
"""

KILLED = """
import os, signal, time

def test_before(): pass
def test_it_kills():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGSEGV)

def test_after(): pass
"""


@pytest.mark.parametrize("n_processes", [1, 2])
@pytest.mark.parametrize("n_killed", [1, 2])
@pytest.mark.parametrize("pipe", ["whole", "broken"])
def test_who_dies_is_replaced_and_all_else_is_done(
    pipe: str, n_killed: int, n_processes: int, tmp_path: Path
) -> None:
    """Also what it had not begun; a test that kills always does so once."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    for number in range(8):
        text = KILLED if number < n_killed else "def test_beside(): pass"
        (tmp_path / f"test_{number}.py").write_text(text)
    done = subprocess.run(
        [
            sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
            "-n", str(n_processes), "--dist", "loadfile", str(tmp_path),
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PIPE": pipe},
    )  # fmt: skip
    assert f"{n_killed} failed, {8 + n_killed} passed" in done.stdout, done.stdout
    for number in range(n_killed):
        assert done.stdout.count(f"FAILED test_{number}.py::test_it_kills") == 1
