"""A copy of the tree in which faults are planted, one at a time."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from streams.native.compiler import (
    FLAGS,
    compiler,
    library_name,
)
from tests.mutants.mutant import Mutant, NotApplicable

NATIVE = "streams/native"
LEFT_OUT = (
    ".git", ".venv", "__pycache__", "build", "dist", "node_modules", ".kafka",
    ".hypothesis", ".*_cache", "*.egg-info",
)  # fmt: skip


SAYS_SOURCES = b"FOLD_SOURCES"
"""In the source that says which ones the loader must find beside the library."""


class CopiedTree:
    """A copy, with the objects of the core beside it.

    Parameters
    ----------
    tree
        What is copied: its files as they are, committed or not.
    folder
        Where to; what a copy there had is replaced, but for what was compiled.
    """

    def __init__(self, tree: Path, folder: Path) -> None:
        self.path = folder / "tree"
        self.kernels = folder / "kernels"
        self._changed_kernels = folder / "changed-kernels"
        self._objects = folder / "objects"
        self._library = self.path / NATIVE / library_name()
        shutil.rmtree(self._objects, ignore_errors=True)
        for one in list(self.path.rglob("*")):
            if (one.is_file() or one.is_symlink()) and one.suffix != ".pyc":
                one.unlink()
        ignored = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(
            tree, self.path, ignore=ignored, symlinks=True, dirs_exist_ok=True
        )
        (self.path / ".venv").symlink_to(Path(sys.prefix))
        self.kernels.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def with_fault(self, mutant: Mutant) -> Iterator[None]:
        """The copy has the fault as long as this lasts.

        Raises
        ------
        NotApplicable
            Where its line is gone, or the core does not compile with it.
        """
        path = self.path / mutant.path
        before, kept = path.read_bytes(), path.stat()
        changed = mutant.applied_to(before.decode()).encode()
        is_native = path.suffix == ".c"
        try:
            path.write_bytes(changed)
            # Compiled Python is known by time and size: its time follows from its text.
            digest = hashlib.blake2b(changed, digest_size=8).hexdigest()
            time_s = int(digest, 16) % 10**9
            os.utime(path, (time_s, time_s))
            if is_native:
                self._use(self._library_with(path, before, digest))
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(kept.st_atime_ns, kept.st_mtime_ns))
            if is_native:
                self._use(self._objects / self._library.name)
            shutil.rmtree(self.path / ".hypothesis", ignore_errors=True)

    @contextmanager
    def kernels_for(self, is_anew: bool) -> Iterator[Path]:
        """A cache of kernels; what is compiled anew is thrown away afterwards.

        Else the kernels without the fault would be thrown away.
        """
        if not is_anew:
            yield self.kernels
            return
        shutil.rmtree(self._changed_kernels, ignore_errors=True)
        shutil.copytree(self.kernels, self._changed_kernels, copy_function=os.link)
        try:
            yield self._changed_kernels
        finally:
            shutil.rmtree(self._changed_kernels, ignore_errors=True)

    def _use(self, library: Path) -> None:
        """The core is another one; who has the old file open keeps it."""
        beside = self._library.with_suffix(".next")
        shutil.copy2(library, beside)
        beside.replace(self._library)

    def _library_with(self, changed: Path, before: bytes, name: str) -> Path:
        """The core with one source compiled anew, or as it was made before."""
        made = self._objects / f"{name}.so"
        if made.exists():
            return made
        sources = sorted((self.path / NATIVE).glob("*.c"))
        if not self._objects.exists():
            self._objects.mkdir()
            shutil.copy2(self._library, self._objects)
            now = changed.read_bytes()
            changed.write_bytes(before)
            for path in sources:
                self._compile(path, self._objects / f"{path.stem}.o")
            changed.write_bytes(now)
        objects = [self._objects / f"{path.stem}.o" for path in sources]
        for i, path in enumerate(sources):
            if path == changed or SAYS_SOURCES in path.read_bytes():
                objects[i] = self._objects / f"{path.stem}.changed.o"
                self._compile(path, objects[i])
        self._say([*compiler(), *FLAGS, *objects, "-o", made, "-lm"])
        return made

    def _compile(self, path: Path, made: Path) -> None:
        defined = []
        if SAYS_SOURCES in path.read_bytes():
            code = "from streams.native import compiler as c; "
            code += "print(c.sources_digest())"
            digest = self._say([sys.executable, "-c", code]).strip()
            defined = [f'-DFOLD_SOURCES="{digest}"']
        command = [*compiler(), *FLAGS, "-fPIC", "-w", *defined]
        self._say([*command, "-c", path, "-o", made])

    def _say(self, command: Sequence[str | Path]) -> str:
        """What a command answers."""
        answer = subprocess.run(
            [str(one) for one in command],
            cwd=self.path, env=os.environ | {"PYTHONPATH": str(self.path)},
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        if answer.returncode:
            raise NotApplicable(
                f"the core must compile with the fault; {answer.stderr[:300]}: draw "
                "another entry in its place"
            )
        return answer.stdout
