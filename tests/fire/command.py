"""Runs of the harness by its command, for tests."""

import json
import os
import subprocess
import sys
from typing import Any

from deploy.broker import jars, java
from deploy.process import ServerFailed
from tests.services import ServiceMissing, without


def fire(*options: str, timeout_s: float = 1_800.0) -> dict[str, Any]:
    """The result of a run; its exit status must be what the result says."""
    try:
        java()
        jars()
    except ServerFailed as reason:
        without(ServiceMissing(str(reason)), os.environ)
    done = subprocess.run(
        [sys.executable, "-m", "tests.fire", "--json", "--seed", "1", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    assert done.stdout, done.stderr[-3_000:]
    # What pytest shows of a test that fails.
    sys.stdout.write(done.stdout)
    result: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode == 0) == result["ok"]
    return result
