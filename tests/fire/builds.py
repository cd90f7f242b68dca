"""Another build of this project, from its history, to run beside this one."""

import os
import shutil
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

HERE = Path(__file__).parents[2]
CORE = Path("streams/native")


def build_of(commit: str, folder: Path) -> Path:
    """The tree of a commit, its core compiled, ready to be run.

    Raises
    ------
    ValueError
        Where there is no such commit.
    """
    got = subprocess.run(
        ["git", "archive", commit],  # noqa: S607  as everywhere in a checkout
        cwd=HERE, capture_output=True, check=False,
    )  # fmt: skip
    if got.returncode:
        raise ValueError(
            f"--from must name a commit; got {commit!r}: {got.stderr.decode().strip()}"
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with tarfile.open(fileobj=BytesIO(got.stdout)) as archive:
        archive.extractall(folder, filter="data")
    subprocess.run(
        [sys.executable, "-m", "streams.native.compiler"],
        cwd=folder, env=environment(folder), check=True, capture_output=True,
    )  # fmt: skip
    return folder


def create_topics(tree: Path, config: Path) -> None:
    """Topics as that build makes them: it may refuse those of a later one."""
    subprocess.run(
        [
            *(sys.executable, "-m", "rankstream", "topics", "create"),
            *("--config", str(config)),
        ],
        cwd=tree, env=environment(tree), check=True, capture_output=True,
    )  # fmt: skip


def environment(tree: Path) -> dict[str, str]:
    """That of a process that imports from a tree."""
    return {**os.environ, "PYTHONPATH": str(tree)}
