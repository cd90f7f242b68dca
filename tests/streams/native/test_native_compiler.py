"""How the core is compiled and loaded, and what is said where that cannot be."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from streams.native import compiler
from streams.native.compiler import NotCompiled, compile_into, library_name
from streams.native.core_library import loaded
from tests.services import ServiceMissing, without

TREE = Path(__file__).parents[3]


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A path without any."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)


def program(folder: Path, name: str, says: str) -> str:
    """A program that does nothing but leave word."""
    path = folder / name
    path.write_text(f"#!/bin/sh\necho \"$@\" > '{folder / 'words'}'\n{says}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.usefixtures("no_compiler")
def test_ziglang_is_asked_for_only_without_a_compiler(tmp_path: Path) -> None:
    """Any of three will do."""
    assert compiler.requirements() == [compiler.ZIGLANG]
    for name in compiler.COMPILERS:
        found = Path(program(tmp_path, name, "exit 0"))
        assert compiler.requirements() == []
        found.unlink()


def test_a_named_compiler_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the words that it is named with; what it said is passed on."""
    named = program(tmp_path, "mine", "echo it is broken >&2; exit 3")
    monkeypatch.setenv("CC", f"'{named}' -m64")
    with pytest.raises(NotCompiled, match=r"mine -m64 -std.*: status 3") as caught:
        compile_into(tmp_path)
    assert "it is broken" in str(caught.value)
    assert "CC names the compiler: correct CC, or unset it" in str(caught.value)
    words = (tmp_path / "words").read_text()
    assert "-ffp-contract=off" in words
    assert "-march" not in words


@pytest.fixture(scope="module")
def of_other_sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The core compiled without a warning, as of other sources than these.

    Without a warning here only: another compiler's must not stop an installation.
    """
    if compiler.requirements():
        without(ServiceMissing("the path has no compiler"), os.environ)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiler, "sources_digest", lambda: "0123456789abcdef")
        folder = tmp_path_factory.mktemp("other")
        return compile_into(folder, "-Wall", "-Wextra", "-Werror")


def test_no_warning_is_given(of_other_sources: Path) -> None:
    """Each of them would be an error."""
    assert of_other_sources.is_file()


def test_a_named_compiler_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other is taken silently."""
    monkeypatch.setenv("CC", "no-such-compiler -O3")
    with pytest.raises(NotCompiled, match="got 'no-such-compiler': correct CC, or"):
        compiler.compiler_on_path()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x00 no program", "this is no program that runs here"),
        (b"#!/no/such/shell\n", "this is no program that runs here"),
        (b"#!/bin/sh\nexit 0\n", "it said that all is well, and wrote nothing"),
        (b"#!/bin/sh\necho 'gr\xfc\xdfe' >&2\nexit 1\n", "status 1\ngr"),
    ],
)
def test_what_does_not_compile_is_named_with_the_remedy(
    content: bytes, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is that `CC` names; nothing is left behind."""
    path = tmp_path / "mine"
    path.write_bytes(content)
    path.chmod(0o755)
    monkeypatch.setenv("CC", str(path))
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(NotCompiled) as caught:
        compile_into(into)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"the fold's core must compile; {path} -std")
    assert "correct CC, or unset it" in str(caught.value)
    assert list(into.iterdir()) == []


def test_a_broken_compiler_on_the_path_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody set CC, so it is not CC that must be corrected."""
    program(tmp_path, "gcc", "exit 4")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(NotCompiled, match=r"status 4\n.*\n?.*or set CC to another one"):
        compile_into(tmp_path)


def test_words_that_no_shell_reads_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quotation that does not end."""
    monkeypatch.setenv("CC", "'gcc -O3")
    with pytest.raises(NotCompiled, match=r"CC must be words .*No closing quotation"):
        compiler.compiler_on_path()


@pytest.mark.parametrize(
    "hook", ["get_requires_for_build_wheel", "build_editable", "build_wheel"]
)
def test_an_installation_ends_in_words(hook: str, tmp_path: Path) -> None:
    """A traceback of the build would hide them."""
    build = (
        "import sys; from streams.native import build_backend;"
        f"build_backend.{hook}(*sys.argv[1:])"
    )
    words = [] if hook.startswith("get") else [str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", build, *words],
        capture_output=True, text=True, check=False, cwd=TREE,
        env=os.environ | {"CC": "no-such-compiler"},
    )  # fmt: skip
    assert done.returncode == 1
    assert "rankstream: CC must name a compiler on the path; got" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("no_compiler")
def test_without_any_compiler_the_remedy_is_named() -> None:
    """By `make native`, where no build brings ziglang."""
    hidden = (
        "import sys; sys.path = [p for p in sys.path if 'site-packages' not in p];"
        "import runpy; runpy.run_module('streams.native.compiler', "
        "run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", hidden],
        capture_output=True, text=True, check=False, cwd=TREE, env=dict(os.environ),
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("a C compiler must be on the path; found none of cc")
    assert f"-m pip install '{compiler.ZIGLANG}'" in done.stderr


def test_a_library_of_other_sources_is_refused(of_other_sources: Path) -> None:
    """As after `git pull`: fields may have other numbers."""
    with pytest.raises(ImportError, match="of '0123456789abcdef': run `make native`"):
        loaded(of_other_sources)


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    """With what to do."""
    with pytest.raises(ImportError, match="is missing: run `make native`"):
        loaded(tmp_path / library_name())


@pytest.mark.parametrize("content", [b"", b"no library", None])
def test_what_is_no_library_of_ours_is_refused(
    content: bytes | None, tmp_path: Path
) -> None:
    """As of another machine, or without what ours export; with what to do."""
    path = tmp_path / library_name()
    if content is None:
        theirs = importlib.util.find_spec("msgspec._core")
        assert theirs is not None
        assert theirs.origin is not None
        shutil.copy(theirs.origin, path)
    else:
        path.write_bytes(content)
    with pytest.raises(ImportError, match=r"this machine loads; .*: run `make native`"):
        loaded(path)


@pytest.mark.parametrize(
    "name", [".#join.c", "#join.c#", "join.c~", ".join.c.swp", "join.c.orig", "4.c"]
)
def test_what_an_editor_leaves_is_no_source(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of Emacs refers to no file; nothing of it is compiled or compared."""
    monkeypatch.setattr(compiler, "FOLDER", tmp_path)
    (tmp_path / "join.c").write_bytes(b"int x;\n")
    before = compiler.sources_digest()
    if name.startswith(".#"):
        (tmp_path / name).symlink_to("somebody@somewhere.1")
    else:
        (tmp_path / name).write_bytes(b"int y;\n")
    assert compiler.sources_digest() == before
    assert [path.name for path in compiler.source_files()] == ["join.c"]


def test_sources_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By names and content, not by how lines end."""
    monkeypatch.setattr(compiler, "FOLDER", tmp_path)
    seen = set()
    for name, content in (
        ("a.c", b"int x;\n"),
        ("b.c", b"int x;\n"),
        ("b.h", b"int x;\n"),
        ("b.h", b"int y;\n"),
    ):
        (tmp_path / name).write_bytes(content)
        seen.add(compiler.sources_digest())
    assert len(seen) == 4
    (tmp_path / "b.h").write_bytes(b"int y;\r\n")
    assert compiler.sources_digest() in seen


def test_installing_compiles_again_when_a_source_is_newer(tmp_path: Path) -> None:
    """For both commands of the README, and not otherwise."""
    classes = ("deploy/kafka/pom.xml", "tests/session/broker_classes.py")
    for name in ("Makefile", "pyproject.toml", *classes):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / name, tmp_path / name)
    native = tmp_path / "streams" / "native"
    ignored = shutil.ignore_patterns("__pycache__", ".#*")
    shutil.copytree(TREE / "streams" / "native", native, ignore=ignored)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    program(python.parent, "python", "exit 0")
    stamps = [tmp_path / ".venv" / name for name in ("installed", "installed-dev")]
    later = max(path.stat().st_mtime for path in tmp_path.rglob("*")) + 10

    def steps(target: str) -> str:
        words = ["make", "-n", target, f"PYTHON={sys.executable}"]
        done = subprocess.run(
            words, cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout

    for stamp in stamps:
        stamp.touch()
        os.utime(stamp, (later, later))
    for target in ("demo", "test"):
        assert "pip install" not in steps(target)
    for source in ("elements.c", "fields.h"):
        os.utime(native / source, (later + 10, later + 10))
        for target in ("demo", "test"):
            assert "pip install" in steps(target)
        os.utime(native / source, (later - 5, later - 5))
