"""The rules of axe-core for pages that everybody can use, run in a browser."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.chromium import Talk
from tests.services import ServiceMissing, without

OF_NPM = "axe-core@4.14.1"

OF_PIP = "axe-playwright-python==0.1.8"
"""A package of Python that holds a copy of axe-core."""

RUN = """axe.run(document, {resultTypes: ["violations"]}).then(({violations}) =>
  violations.map(({id, nodes}) =>
    id + ": " + nodes.map(({html, failureSummary}) => html + failureSummary).join()))
"""


def source(folder: Path, environment: Mapping[str, str] = os.environ) -> str:
    """axe-core as npm has it, else as pip has it.

    Where neither can be asked the test is skipped by hand, and fails in CI.
    """
    npm = shutil.which("npm", path=environment.get("PATH"))
    if npm is not None and _ran(folder, npm, "pack", OF_NPM, "--silent"):
        (packed,) = folder.glob("axe-core-*.tgz")
        with tarfile.open(packed) as files:
            file = files.extractfile("package/axe.min.js")
            assert file is not None
            return file.read().decode()
    pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", OF_PIP)
    if not _ran(folder, *pip):
        missing = f"neither npm has {OF_NPM} nor pip {OF_PIP}: see that one is reached"
        without(ServiceMissing(missing), environment)
    (wheel,) = folder.glob("axe_playwright_python-*.whl")
    held = zipfile.ZipFile(wheel).read("axe_playwright_python/axe.min.js")
    return held.decode()


def _ran(folder: Path, *words: str) -> bool:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, timeout=120, check=False
    )
    return not done.returncode


async def violations(talk: Talk, axe: str) -> list[str]:
    """Rules that the page breaks, each with the elements that do."""
    if not await talk.value("typeof axe === 'object'"):
        await talk.value(axe + ";0")
    found: list[str] = await talk.value(RUN)
    return found
