"""The container file: what knows such files finds no fault, and the image fits us."""

import json
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from rankstream.operations.cli import parser_for
from rankstream.settings import load_settings
from streams.worker_roles import ROLES
from tests.deploy.programs import DEPLOY, Pages, Program, brought, paths_of_roles
from tests.test_wheel import BUILT_FROM

FILE = DEPLOY / "Containerfile"
TREE = DEPLOY.parent


@pytest.fixture(scope="module")
def image() -> list[tuple[str, str]]:
    """Instructions of the last stage, each with what stands behind it."""
    joined = FILE.read_text(encoding="utf-8").replace("\\\n", "")
    lines = [line for line in joined.splitlines() if line and line[0] != "#"]
    first = max(n for n, line in enumerate(lines) if line.startswith("FROM "))
    found = [line.partition(" ") for line in lines[first:]]
    return [(name, said.strip()) for name, _, said in found]


def only(image: list[tuple[str, str]], name: str) -> str:
    """What stands behind an instruction that is there once."""
    (said,) = (said for each, said in image if each == name)
    return said


@pytest.fixture(scope="module")
def variables(image: list[tuple[str, str]]) -> dict[str, str]:
    """What the image sets."""
    return dict(word.split("=", 1) for word in only(image, "ENV").split())


def test_a_linter_finds_no_fault() -> None:
    """Each that is accepted has its reason beside it."""
    done = subprocess.run(
        [brought("hadolint"), FILE],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_what_the_image_sets_are_settings(
    variables: dict[str, str], tmp_path: Path
) -> None:
    """And a worker has its pages where they are said to be."""
    file = tmp_path / "empty.toml"
    file.touch()
    assert load_settings(file, variables).metrics.port == 9100


def test_the_health_of_each_command_is_asked_for(
    image: list[tuple[str, str]], variables: dict[str, str], tmp_path: Path
) -> None:
    """Of every role, of `serve` and of the monitor, at paths that they have."""
    file = tmp_path / "empty.toml"
    file.touch()
    asked = re.search(r"CMD (\[.*\])$", only(image, "HEALTHCHECK"))
    assert asked
    words = json.loads(asked[1])
    assert words[:3] == ["python", "-m", "deploy.health"]
    found = {urlsplit(url).port: urlsplit(url).path for url in words[3:]}
    every = [word for role in ROLES for word in ("--role", role)]
    pages: Pages = {}
    for command in (["worker", *every], ["serve"], ["monitor", "--web"]):
        pages |= Program(command, variables, file).pages()
    assert found.keys() == pages.keys()
    assert all(path in pages[port] for port, path in found.items())
    assert {found[port] for port in found if port >= 9100} == {"/livez"}
    assert "/livez" in paths_of_roles()
    exposed = {*only(image, "EXPOSE").split()}
    assert exposed == {"8087", "8088", f"9100-{9100 + len(ROLES) - 1}"}


def test_nobody_is_root_and_a_number_says_so(image: list[tuple[str, str]]) -> None:
    """Whoever owns what is written to is the same."""
    user, group = only(image, "USER").split(":")
    assert int(user) > 0
    made = next(said for name, said in image if name == "RUN" and "install" in said)
    assert f"--owner {user} --group {group} /var/cache/rankstream" in made


def test_it_runs_our_commands(image: list[tuple[str, str]]) -> None:
    """Whose help it shows where nothing is said."""
    assert json.loads(only(image, "ENTRYPOINT")) == ["rankstream"]
    with pytest.raises(SystemExit) as ended:
        parser_for([]).parse_args(json.loads(only(image, "CMD")))
    assert ended.value.code == 0


def test_what_a_build_needs_comes_in_and_nothing_else() -> None:
    """Builders that prefer another name for the list fall back to this one."""
    listed = (TREE / ".dockerignore").read_text(encoding="utf-8").splitlines()
    admitted = {line[1:] for line in listed if line.startswith("!")}
    assert admitted == {*BUILT_FROM, "pyproject.toml", "README.md", "LICENSE"}
    assert "*" in listed
    assert "**/libfold.*" in listed
    assert not (TREE / ".containerignore").exists()
