"""What `pip install` brings: the built wheel in two clean virtual environments."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from rankstream.cli import COMMANDS
from tests.services import ServiceMissing, without
from tests.snapshot_factory import envelope

TREE = Path(__file__).parents[1]
LOCK = TREE / "deploy" / "requirements.lock"
BUILT_FROM = ("rankstream", "models", "streams", "producers", "deploy")
UNREACHED = re.compile(
    r"error sending request|failed to fetch|dns error|connect(ion)? (error|refused)"
    r"|network (was disabled|is unreachable)|timed? ?out|No module named uv",
    re.IGNORECASE,
)
ADDRESS = re.compile(r"https?:|//|index-url|find-links|(^|\s)/\w|@ ", re.MULTILINE)

RANKS = """
import sys
import rankstream.experiments, rankstream.ranking.combining, rankstream.settings
import rankstream.snapshots
from rankstream.ranker import Ranker

ranker = Ranker("m", source=lambda: bytes.fromhex(sys.argv[1]))
ranker.load()
print(ranker.rank([[1.0, 2.0, 3.0], [3.0, 2.0, 2.0]], cutoff=2).scores.tolist())
"""

ALL_MODULES = """
import importlib, pkgutil
for room in ("rankstream", "models", "streams", "producers", "deploy"):
    package = importlib.import_module(room)
    for found in pkgutil.walk_packages(package.__path__, room + "."):
        importlib.import_module(found.name)
"""


@dataclass(frozen=True)
class Environment:
    """A virtual environment, and the folder of a service with `models` of its own."""

    folder: Path
    service: Path

    def run(self, name: str, *words: str, timeout_s: int = 60) -> tuple[int, str, str]:
        """Status, standard output and standard error of one of its programs."""
        done = subprocess.run(
            [self.folder / "bin" / name, *words],
            capture_output=True, text=True, timeout=timeout_s, check=False,
            cwd=self.service, env=clean_environment(),
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def installed(self) -> dict[str, str]:
        """Version of each distribution."""
        (site,) = self.folder.glob("lib/python*/site-packages")
        found = importlib.metadata.distributions(path=[str(site)])
        return {each.name.lower().replace("_", "-"): each.version for each in found}


def clean_environment() -> dict[str, str]:
    """Ours, without what would bring this tree into the other's path."""
    left_out = ("PYTHON", "RANKSTREAM_", "VIRTUAL_ENV")
    return {k: v for k, v in os.environ.items() if not k.startswith(left_out)}


def uv(*words: str | Path) -> None:
    """Run uv; without an index the test is skipped by hand, and fails in CI."""
    done = subprocess.run(
        [sys.executable, "-m", "uv", *words, "--quiet", "--no-config"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    if done.returncode and UNREACHED.search(done.stderr):
        said = " ".join(done.stderr.split())
        raise ServiceMissing(f"no package index is reached: {said[-400:]}")
    assert done.returncode == 0, done.stderr


def new_environment(folder: Path) -> Path:
    """An empty one; returns its Python."""
    venv.create(folder, symlinks=True, with_pip=False)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def environments(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Environment]]:
    """The base, and the pipeline as the lock file has it; the wheel is built once."""
    folder = tmp_path_factory.mktemp("wheel")
    service = folder / "service"
    (service / "models").mkdir(parents=True)
    (service / "models" / "__init__.py").write_text("WHOSE = 'theirs'\n")
    try:
        # The lock needs no wheel of ours, so both go on at once.
        with ThreadPoolExecutor(1) as beside:
            locked = beside.submit(_install_locked, folder / "pipeline")
            wheel = _built(folder)
            python = new_environment(folder / "base")
            uv("pip", "install", "--python", python, wheel)
            python = locked.result()
    except ServiceMissing as reason:
        without(reason, os.environ)
    # Without an index: whatever the extra asks for must be in the lock file.
    install = ("pip", "install", "--no-index", "--python", python)
    uv(*install, f"rankstream[pipeline] @ {wheel.as_uri()}")
    yield {name: Environment(folder / name, service) for name in ("base", "pipeline")}
    shutil.rmtree(folder)


def _install_locked(folder: Path) -> Path:
    python = new_environment(folder)
    uv("pip", "install", "--python", python, "--require-hashes", "-r", LOCK)
    return python


def _built(folder: Path) -> Path:
    # A copy: what an earlier build left in this tree must not come in.
    source = folder / "source"
    for name in BUILT_FROM:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(TREE / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(TREE / name, source)
    uv("build", "--wheel", "--out-dir", folder / "dist", source)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def test_the_base_is_three_packages(environments: dict[str, Environment]) -> None:
    """And what they bring themselves."""
    installed = set(environments["base"].installed())
    brought_by_redis = {"async-timeout"} if sys.version_info < (3, 11, 3) else set()
    assert installed == {"rankstream", "numpy", "redis", "msgspec", *brought_by_redis}


def test_a_service_ranks_with_the_base(environments: dict[str, Environment]) -> None:
    """Beside its own `models`."""
    words = ("-c", RANKS + "import models; print(models.WHOSE)", envelope(2).hex())
    assert environments["base"].run("python", *words) == (
        0, "[12.0, 14.0]\ntheirs\n", "",
    )  # fmt: skip


def test_help_needs_the_base_only(environments: dict[str, Environment]) -> None:
    """And the version, which is that of the wheel."""
    base = environments["base"]
    status, said, complaint = base.run("rankstream", "--help")
    assert (status, complaint) == (0, "")
    assert "worker" in said
    version = base.installed()["rankstream"]
    assert base.run("rankstream", "--version") == (0, f"{version}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_on_the_base_says_what_to_install(
    command: str, environments: dict[str, Environment]
) -> None:
    """One sentence, no traceback; a worker is not started again and again."""
    status, said, complaint = environments["base"].run("rankstream", command)
    assert status == (78 if command == "worker" else 2)
    assert said == ""
    assert complaint.startswith(f"rankstream {command}: this command needs the extra")
    assert complaint.endswith("pip install 'rankstream[pipeline]'\n")
    assert complaint.count("\n") == 1


def test_the_extra_is_all_that_our_modules_import(
    environments: dict[str, Environment],
) -> None:
    """Each module of the five packages can be imported from the wheel."""
    words = ("-P", "-c", ALL_MODULES)
    assert environments["pipeline"].run("python", *words) == (0, "", "")


def test_a_worker_starts_beside_a_stranger_s_models(
    environments: dict[str, Environment],
) -> None:
    """The processes of its roles too: here one gets so far as to wait for Kafka."""
    pipeline = environments["pipeline"]
    worker = subprocess.Popen(
        [pipeline.folder / "bin" / "rankstream", "worker", "--role", "fold"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=pipeline.service,
        env=clean_environment() | {"RANKSTREAM_KAFKA__BOOTSTRAP": "127.0.0.1:9"},
    )  # fmt: skip
    assert worker.stdout is not None
    heard = []
    try:
        for line in worker.stdout:
            heard.append(line)
            if "event=waiting" in line or "event=child-ended" in line:
                break
    finally:
        worker.terminate()
        worker.communicate(timeout=30)
    assert "event=waiting" in heard[-1], heard


def test_a_stranger_s_models_are_explained(
    environments: dict[str, Environment],
) -> None:
    """Where they come first on the path: both places, and the way out."""
    pipeline = environments["pipeline"]
    words = ("-m", "rankstream.cli", "worker")
    status, said, complaint = pipeline.run("python", *words)
    assert (status, said) == (78, "")
    assert complaint.startswith("rankstream worker: the package `models` must be")
    assert str(pipeline.service / "models") in complaint
    assert complaint.count("\n") == 1


def test_the_lock_file_has_hashes_and_no_address() -> None:
    """Nor a path of a machine; who installs says from where."""
    lock = LOCK.read_text()
    assert not ADDRESS.search(lock)
    for pinned in re.split(r"(?<!\\)\n", lock.strip()):
        if not pinned.startswith("#"):
            assert re.match(r"[a-z0-9-]+==[\w.]+", pinned), pinned
            assert "--hash=sha256:" in pinned
