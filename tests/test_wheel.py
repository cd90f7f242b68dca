"""What `pip install` brings: the built wheel in two clean virtual environments."""

import base64
import csv
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from ctypes import CDLL, c_char_p
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from rankstream.operations.cli import COMMANDS
from streams.native.build_backend import platform_tag
from streams.native.compiler import FOLDER, library_name, source_files
from streams.native.core_library import loaded
from streams.native.elements import WIDTH
from tests.forest_factory import drawn_forest, packed, scored_by_hand
from tests.fuzz.fuzzing import real_records
from tests.services import ServiceMissing, without
from tests.snapshot_factory import envelope

TREE = Path(__file__).parents[1]
LOCK = TREE / "deploy" / "requirements.lock"
LOCKS = (LOCK, LOCK.with_stem("requirements-image"))
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
        if found.name == "streams.native.libfold":
            continue  # no module, though its ending is that of one
        try:
            importlib.import_module(found.name)
        except ModuleNotFoundError as missing:
            # What draws, and what grows trees, is of extras of their own.
            is_drawing = found.name.startswith("rankstream.operations.plots.")
            if missing.name == "lightgbm":
                print(found.name)
            elif not is_drawing or missing.name != "matplotlib":
                raise
"""

OF_TREES = "models.training.lightgbm_rounds"
"""What the extra `trees` is for; nothing imports it before trees are grown."""


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


def uv(*words: str | Path, path: str | None = None) -> None:
    """Run uv; without an index the test is skipped by hand, and fails in CI."""
    done = subprocess.run(
        [sys.executable, "-m", "uv", *words, "--quiet", "--no-config"],
        capture_output=True, text=True, timeout=300, check=False,
        env=os.environ if path is None else without_compiler(path),
    )  # fmt: skip
    if done.returncode and UNREACHED.search(done.stderr):
        said = " ".join(done.stderr.split())
        raise ServiceMissing(f"no package index is reached: {said[-400:]}")
    assert done.returncode == 0, done.stderr


def without_compiler(path: str) -> dict[str, str]:
    """Our environment, but for the path and a compiler that is named."""
    return {k: v for k, v in os.environ.items() if k != "CC"} | {"PATH": path}


def new_environment(folder: Path) -> Path:
    """An empty one; returns its Python."""
    venv.create(folder, symlinks=True, with_pip=False)
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def other_wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Built where the path has no compiler, from the source distribution."""
    folder = tmp_path_factory.mktemp("other")
    source, nothing = _copied(folder / "source"), folder / "nothing"
    nothing.mkdir()
    try:
        out = ("--out-dir", folder / "dist", source)
        uv("build", "--python", sys.executable, *out, path=str(nothing))
    except ServiceMissing as reason:
        without(reason, os.environ)
    (wheel,) = (folder / "dist").glob("*.whl")
    yield wheel
    shutil.rmtree(folder)


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
    uv(*install, f"rankstream[serve] @ {wheel.as_uri()}")
    yield {name: Environment(folder / name, service) for name in ("base", "pipeline")}
    shutil.rmtree(folder)


def _install_locked(folder: Path) -> Path:
    python = new_environment(folder)
    uv("pip", "install", "--python", python, "--require-hashes", "-r", LOCK)
    return python


def _built(folder: Path) -> Path:
    source = _compiled_in_a_hurry(_copied(folder / "source"))
    uv("build", "--wheel", "--out-dir", folder / "dist", source)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def _copied(source: Path) -> Path:
    # A copy: what an earlier build left in this tree must not come in.
    for name in BUILT_FROM:
        ignored = shutil.ignore_patterns(
            "__pycache__", "libfold.*", ".#*", "typescript"
        )
        shutil.copytree(TREE / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(TREE / name, source)
    return source


def _compiled_in_a_hurry(source: Path) -> Path:
    # When and whether it compiles is asked, not how well.
    compiler = source / "streams" / "native" / "compiler.py"
    text = compiler.read_text()
    assert '"-O3"' in text
    compiler.write_text(text.replace('"-O3"', '"-O0"'))
    return source


def test_the_wheel_brings_the_core(other_wheel: Path) -> None:
    """For any Python on this platform; all that it holds is recorded."""
    assert other_wheel.name.endswith(f"-py3-none-{platform_tag()}.whl")
    assert not other_wheel.name.endswith("-any.whl")
    with zipfile.ZipFile(other_wheel) as wheel:
        assert wheel.testzip() is None
        names = wheel.namelist()
        (said,) = (name for name in names if name.endswith(".dist-info/WHEEL"))
        (record,) = (name for name in names if name.endswith(".dist-info/RECORD"))
        tags = wheel.read(said).decode().splitlines()
        rows = list(csv.reader(wheel.read(record).decode().splitlines()))
        for name, recorded, n_bytes in rows:
            content = wheel.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
            own = (f"sha256={digest.decode().rstrip('=')}", str(len(content)))
            assert (recorded, n_bytes) == (("", "") if name == record else own)
    assert f"streams/native/{library_name()}" in names
    assert sorted(row[0] for row in rows) == sorted(names)
    assert "Root-Is-Purelib: false" in tags
    assert f"Tag: py3-none-{platform_tag()}" in tags


def test_the_wheel_brings_the_page_of_the_monitor(other_wheel: Path) -> None:
    """With what draws its charts, and the licence of that."""
    room = Path("rankstream/operations/monitoring/page")
    names = {f"{room}/{each.name}" for each in (TREE / room).iterdir()}
    assert f"{room}/uPlot.LICENSE" in names
    assert names <= {*zipfile.ZipFile(other_wheel).namelist()}


def test_the_source_distribution_holds_the_sources_in_c(other_wheel: Path) -> None:
    """And no library: the wheel above was built from it."""
    (path,) = other_wheel.parent.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"streams/native/{file.name}" for file in source_files()} <= names
    assert not any("libfold" in name for name in names)


OURS = FOLDER / library_name()
"""The core of this tree, by the compiler on the path; loading compares its sources."""


def test_ziglang_compiles_where_the_path_has_no_compiler(
    other_wheel: Path, tmp_path: Path
) -> None:
    """And its library finds the same places, byte for byte, as that of this tree."""
    with zipfile.ZipFile(other_wheel) as wheel:
        path = wheel.extract(f"streams/native/{library_name()}", tmp_path)
    assert b"clang version" in Path(path).read_bytes()
    libraries = loaded(Path(path)), loaded(OURS)
    for record in real_records(100):
        found = [_places(library, record) for library in libraries]
        assert found[0] == found[1] != b""


def test_the_core_of_ziglang_replays_a_log_to_the_same_bytes(
    other_wheel: Path, tmp_path: Path
) -> None:
    """Outputs and state, with clicks that wait, repeats, late ones and restores."""
    with zipfile.ZipFile(other_wheel) as wheel:
        theirs = wheel.extract(f"streams/native/{library_name()}", tmp_path)
    libraries = (Path(theirs), OURS)
    paths = [tmp_path / "theirs", tmp_path / "ours"]
    command = (sys.executable, "-m", "tests.streams.native.replayed_bytes")
    replays = [
        subprocess.Popen(
            [*command, library, path], cwd=TREE, stdout=subprocess.PIPE, text=True
        )
        for library, path in zip(libraries, paths, strict=True)
    ]
    said = [json.loads(replay.communicate(timeout=300)[0]) for replay in replays]
    assert [one.pop("library") for one in said] == [str(path) for path in libraries]
    assert said[0] == said[1]
    for outcome in ("applied_clicks", "duplicate", "late", "orphan", "interactions"):
        assert said[0][outcome] > 0
    written = [path.read_bytes() for path in paths]
    assert written[0] == written[1]
    assert len(written[0]) > 1_000_000


def _places(library: CDLL, record: bytes) -> bytes:
    data = np.frombuffer(record, np.uint8)
    head = np.zeros(4, np.int64)
    first = library.fold_find_head(data.ctypes.data, len(data), head.ctypes.data)
    tags = np.zeros(head[3], np.int8)
    places = np.zeros((head[3], WIDTH), np.int64)
    refused = library.fold_find_elements(
        data.ctypes.data, first, len(data), head[3], tags.ctypes.data,
        places.ctypes.data,
    )  # fmt: skip
    assert refused == 0
    return head.tobytes() + tags.tobytes() + places.tobytes()


def test_a_link_to_the_tree_compiles_into_it(tmp_path: Path) -> None:
    """As the README's commands install it, and again with what has changed."""
    source = _compiled_in_a_hurry(_copied(tmp_path / "source"))
    native, python = source / "streams" / "native", new_environment(tmp_path / "linked")
    install = ("pip", "install", "--python", python, "--no-deps", "--editable", source)
    said: list[bytes] = []
    for comment in ("", "/* Changed. */"):
        with (native / "elements.c").open("a") as file:
            file.write(comment)
        try:
            uv(*install, "--reinstall")
        except ServiceMissing as reason:
            without(reason, os.environ)
        # A name of its own: what is loaded by name stays what it was.
        library = CDLL(str((native / library_name()).rename(tmp_path / str(len(said)))))
        library.fold_sources.restype = c_char_p
        said.append(library.fold_sources())
    assert len(set(said)) == 2


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


SCORES = """
import sys
from rankstream.ranker import Ranker
from rankstream.ranking.compiled_trees import compiled_scores

ranker = Ranker("m", source=lambda: bytes.fromhex(sys.argv[1]))
ranker.load()
ranking = ranker.rank([[0.5] * 6, [-1.0] * 6], policy="deterministic")
print(compiled_scores() is not None, ranking.scores.tolist())
"""


def test_trees_are_scored_by_the_library_of_the_wheel(
    environments: dict[str, Environment],
) -> None:
    """Where nothing but the base is installed."""
    given = envelope(2, kind="trees", n_features=6, weights=packed())
    documents = np.array([[0.5] * 6, [-1.0] * 6], np.float32)
    by_hand = scored_by_hand(drawn_forest(1), documents)
    scores = np.array(by_hand, np.float32).tolist()
    status, said, complaint = environments["base"].run(
        "python", "-c", SCORES, given.hex()
    )
    assert (status, said, complaint) == (0, f"True {scores}\n", "")


def test_help_needs_the_base_only(environments: dict[str, Environment]) -> None:
    """And the version, which is that of the wheel."""
    base = environments["base"]
    status, said, complaint = base.run("rankstream", "--help")
    assert (status, complaint) == (0, "")
    assert "worker" in said
    version = base.installed()["rankstream"]
    assert base.run("rankstream", "--version") == (0, f"{version}\n", "")


def test_the_base_prints_schemas(environments: dict[str, Environment]) -> None:
    """For who writes a client, and needs no pipeline."""
    status, said, complaint = environments["base"].run("rankstream", "schemas")
    assert (status, complaint) == (0, "")
    assert "query-event" in json.loads(said)


def test_the_base_writes_settings(environments: dict[str, Environment]) -> None:
    """Before anything else is installed."""
    words = ("init", "--kafka", "none", "--events", "own", "--goal", "learn")
    status, said, complaint = environments["base"].run("rankstream", *words)
    assert (status, complaint) == (0, "")
    assert said.startswith("rankstream.toml was written")


ON_THE_BASE = ("init", "schemas")
NEEDED = {
    "backup": "copy", "completion": "bash", "decisions": "list", "dlq": "count",
    "dump": "log.dump", "plan": "--events 9/s --lists 9 --queries 9",
    "restore": "copy", "statistics": "list", "topics": "check",
}  # fmt: skip
"""Commands that do with the base, and words without which others say their usage."""


@pytest.mark.parametrize("command", [x for x in COMMANDS if x not in ON_THE_BASE])
def test_a_command_on_the_base_says_what_to_install(
    command: str, environments: dict[str, Environment]
) -> None:
    """One sentence, no traceback; a worker is not started again and again."""
    words = [command, *NEEDED.get(command, "").split()]
    status, said, complaint = environments["base"].run("rankstream", *words)
    assert status == (78 if command == "worker" else 2)
    assert said == ""
    assert complaint.startswith(f"rankstream {command}: this command needs the extra")
    extra = "serve" if command == "serve" else "pipeline"
    assert complaint.endswith(f"pip install 'rankstream[{extra}]'\n")
    assert complaint.count("\n") == 1


def test_the_extra_is_all_that_our_modules_import(
    environments: dict[str, Environment],
) -> None:
    """Each module of the five packages can be imported, but that which grows trees."""
    words = ("-P", "-c", ALL_MODULES)
    assert environments["pipeline"].run("python", *words) == (0, f"{OF_TREES}\n", "")


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
        worker.communicate(timeout=300)
    assert "event=waiting" in heard[-1], heard


def test_a_stranger_s_models_are_explained(
    environments: dict[str, Environment],
) -> None:
    """Where they come first on the path: both places, and the way out."""
    pipeline = environments["pipeline"]
    words = ("-m", "rankstream", "worker")
    status, said, complaint = pipeline.run("python", *words)
    assert (status, said) == (78, "")
    assert complaint.startswith("rankstream worker: the package `models` must be")
    assert str(pipeline.service / "models") in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("file", LOCKS, ids=lambda file: file.stem)
def test_the_lock_file_has_hashes_and_no_address(file: Path) -> None:
    """Nor a path of a machine; who installs says from where."""
    lock = file.read_text()
    assert not ADDRESS.search(lock)
    for pinned in re.split(r"(?<!\\)\n", lock.strip()):
        if not pinned.startswith("#"):
            assert re.match(r"[a-z0-9-]+==[\w.]+", pinned), pinned
            assert "--hash=sha256:" in pinned
