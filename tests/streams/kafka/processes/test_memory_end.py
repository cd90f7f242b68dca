"""Where nothing finds memory, a process ends instead of living on as half of one."""

import subprocess
import sys

import pytest

from streams.kafka.processes.child_end import FAILURE_EXIT, REASON
from tests.worker_process import PATIENCE_S

BEGIN = """
import asyncio, sys, threading
from streams.kafka.processes.child_end import end_without_memory
end_without_memory()
def fails():
    raise {error}
"""
THREAD = "threading.Thread(target={target}).start()"
PLACES = {
    "a callback": "asyncio.run(main())",
    "a callback in a thread": THREAD.format(target="lambda: asyncio.run(main())"),
    "a thread": THREAD.format(target="fails"),
    "what nobody hears": "type('Gone', (), {'__del__': lambda _: fails()})()",
}
MAIN = """
async def main():
    asyncio.get_running_loop().call_soon(fails)
    await asyncio.sleep(0.5)
"""
LIVED = """
for each in threading.enumerate():
    if each is not threading.current_thread():
        each.join()
sys.stdout.write('lived on')
"""


def run(place: str, error: str) -> subprocess.CompletedProcess[str]:
    """A process in which something fails, and which would go on."""
    script = BEGIN.format(error=error) + MAIN + PLACES[place]
    return subprocess.run(
        [sys.executable, "-c", f"{script}\n{LIVED}"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_a_lack_of_memory_ends_the_process(place: str) -> None:
    """Wherever it is found, and the reason is said."""
    ended = run(place, "MemoryError")
    assert (ended.returncode, ended.stdout) == (FAILURE_EXIT, "")
    assert REASON in ended.stderr


@pytest.mark.parametrize("place", PLACES)
def test_any_other_error_is_told_as_ever(place: str) -> None:
    """Only the lack of memory leaves nobody who could go on."""
    ended = run(place, "ValueError('seven')")
    assert (ended.returncode, ended.stdout) == (0, "lived on")
    assert "ValueError: seven" in ended.stderr
