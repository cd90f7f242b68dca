"""Node, and the client in TypeScript as it compiles here."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.services import ServiceMissing, without

CLIENT = Path(__file__).parents[1] / "producers" / "typescript"

COMPILER = CLIENT / "node_modules" / ".bin" / "tsc"


def node(environment: Mapping[str, str] = os.environ) -> str:
    """Where Node is; without it the test is skipped by hand, and fails in CI."""
    places = environment.get("PATH")
    found = shutil.which("node", path=places)
    if not found:
        missing = "no Node is on the path: install nodejs, 18 or later"
        without(ServiceMissing(missing), environment)
    has_compiler = COMPILER.exists() or any(
        shutil.which(each, path=places) for each in ("tsc", "npm")
    )
    if not has_compiler:
        missing = "neither tsc nor npm is on the path: install one of them"
        without(ServiceMissing(missing), environment)
    return str(found)


def ran(node: str, *words: str, **variables: str) -> tuple[int, str]:
    """Exit status of Node in the client's folder, and all that it says."""
    done = subprocess.run(
        [node, *words],
        cwd=CLIENT,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout
