"""Runs tests, each time in a process that has imported nothing of ours.

A program that the run starts in the copied tree: it has loaded pytest and what its
arguments name, packages of others, and forks for each request. A request is a line of
JSON on standard input, the answer a line on standard output.
"""

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

import psutil
import pytest

IDLE_S = 60.0
"""Tests that use no processor for so long wait for something that never comes. What
they take by the clock says nothing, as others use the machine too."""

SAMPLE_S = 2.0

MOST_BYTES = 6 << 30
"""Memory of a process: a fault may ask for all there is."""

ARGUMENTS = (
    "-x", "-q", "-p", "no:cacheprovider", "-m", "not broker", "--hypothesis-seed=0",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",  # of plugins that are loaded
)  # fmt: skip


class Recorder:
    """Tells which test failed first."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def tell(self, **said: Any) -> None:
        """Write one line."""
        os.write(self._pipe, json.dumps(said).encode() + b"\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test has failed, in its body or around it."""
        if report.failed:
            self.tell(failed=report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file could not be read."""
        if report.failed:
            self.tell(failed=report.nodeid)


def run_forked(asked: dict[str, Any]) -> dict[str, Any]:
    """Run tests in a process of their own.

    Parameters
    ----------
    asked
        `tests`, `environment`, `cpu_s`, after which they are ended, and `log`.

    Returns
    -------
    dict
        `outcome`: passed, failed, timeout or nothing, where no test was chosen;
        `failed`: the first that did, "" where the process ended with none; `cpu_s`.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            _run(asked, writer)
        finally:
            os._exit(1)
    os.close(writer)
    said, is_over = b"", False
    used_s, since = 0.0, time.monotonic()
    while not is_over:
        if select.select([reader], [], [], SAMPLE_S)[0]:
            more = os.read(reader, 65536)
            if not more:
                break
            said += more
        elif (now_s := _used_s(child)) > used_s + IDLE_S / 1000.0:
            used_s, since = now_s, time.monotonic()
            is_over = used_s > asked["cpu_s"]
        else:
            is_over = time.monotonic() - since > IDLE_S
    os.close(reader)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    _, _, used = os.wait4(child, 0)
    lines = [json.loads(line) for line in said.splitlines()]
    cpu_s = used.ru_utime + used.ru_stime
    return {
        **_outcome(lines, is_over=is_over or cpu_s >= asked["cpu_s"]),
        "cpu_s": round(cpu_s, 2),
    }


def _used_s(pid: int) -> float:
    """Seconds of processor of a process and of all that it started."""
    total_s = 0.0
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in (process, *process.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):
                total_s += sum(one.cpu_times())
    return total_s


def _outcome(lines: list[Any], *, is_over: bool) -> dict[str, str]:
    failed = next((line["failed"] for line in lines if "failed" in line), "")
    code = next((line["exit"] for line in lines if "exit" in line), None)
    if failed:
        return {"outcome": "failed", "failed": failed}
    if code is None and is_over:
        return {"outcome": "timeout", "failed": ""}
    # Without a code the process crashed, in whichever test.
    named: dict[Any, str] = {0: "passed", 5: "nothing"}
    return {"outcome": named.get(code, "failed"), "failed": ""}


def _run(asked: dict[str, Any], pipe: int) -> None:
    """The life of a child."""
    os.setsid()
    cpu_s = int(asked["cpu_s"]) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(old, new)
    os.set_inheritable(pipe, False)
    os.environ.update(asked["environment"])
    _read_settings_of_numba()
    recorder = Recorder(pipe)
    code = pytest.main([*ARGUMENTS, *asked["tests"]], plugins=[recorder])
    recorder.tell(exit=int(code))


def _read_settings_of_numba() -> None:
    """It reads them as it is imported, which was before the fork."""
    if "numba" in sys.modules:
        sys.modules["numba"].core.config.reload_config()


def main() -> None:
    """Answer requests until there are no more."""
    for name in sys.argv[1:]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answers.write(json.dumps(run_forked(asked)) + "\n")
            answers.flush()
        except BrokenPipeError:  # nobody asks any more
            os._exit(0)


if __name__ == "__main__":
    main()
