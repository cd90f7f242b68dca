"""The release recipe: one version, in one place, that moves."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

TREE = Path(__file__).parents[1]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with what the recipe reads and writes."""
    for name in ("Makefile", "pyproject.toml", "CHANGELOG.md"):
        shutil.copy(TREE / name, tmp_path)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "config", "user.name", "somebody")
    git(tmp_path, "config", "user.email", "somebody@localhost")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "--message", "Begin")
    return tmp_path


def git(folder: Path, *words: str) -> str:
    """What git prints."""
    return subprocess.run(
        ["git", *words],  # noqa: S607
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def release(folder: Path, version: str) -> tuple[int, str]:
    """Status of the recipe, and what it says."""
    done = subprocess.run(
        ["make", "release", f"VERSION={version}"],  # noqa: S607
        cwd=folder, check=False, capture_output=True, text=True,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_release_moves_the_version_and_the_changelog(repository: Path) -> None:
    """In one commit, with a tag; what comes next has its heading."""
    status, said = release(repository, "7.8.9")
    assert status == 0, said
    settings = tomllib.loads((repository / "pyproject.toml").read_text())
    assert settings["project"]["version"] == "7.8.9"
    day = git(repository, "log", "-1", "--format=%cd", "--date=format:%Y-%m-%d")
    headings = [
        line
        for line in (repository / "CHANGELOG.md").read_text().splitlines()
        if line.startswith("## ")
    ]
    assert headings[:2] == ["## Unreleased", f"## 7.8.9 - {day}"]
    assert git(repository, "describe") == "v7.8.9"
    assert git(repository, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("version", "reason"),
    [("", "needs VERSION=1.2.3"), ("next", "got 'next'"), ("1.0.0", "tag already")],
)
def test_a_version_that_is_none_is_refused(
    repository: Path, version: str, reason: str
) -> None:
    """Nothing is changed."""
    git(repository, "tag", "v1.0.0")
    status, said = release(repository, version)
    assert (status, git(repository, "status", "--porcelain")) == (2, "")
    assert reason in said


def test_a_release_needs_a_clean_tree(repository: Path) -> None:
    """What is not committed would come in unseen."""
    (repository / "CHANGELOG.md").write_text("## Unreleased\n")
    status, said = release(repository, "7.8.9")
    assert status == 2
    assert "clean tree" in said
    assert git(repository, "log", "--format=%s") == "Begin"
