"""Which tests see a module first: by where they lie, and by what they import."""

import hashlib
import re
from collections import defaultdict
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

PACKAGES = ("models", "streams", "rankstream", "producers", "deploy", "tests")

MOST = 12
"""Test files of one module, at most."""

FOCUSED = 200.0
"""A test file that reaches so many files more is as far away as by one more import."""

_OURS = re.compile(
    rf"^\s*(?:from|import) ((?:{'|'.join(PACKAGES)})\b[\w.]*)"
    r"(?: import (\([^)]*\)|[^\n]*))?",
    re.M,
)
_COMPILES = re.compile(r"^from models\.kernels\.compilation import", re.M)

_TEST = re.compile(r"tests/(?:.*/)?test_\w+\.py")

_EXPORTED = re.compile(r"^(?!static|return|else)[a-z][\w ]*[ *](\w+)\(", re.M)
"""Functions of a source in C that others call."""

NATIVE = "streams/native/"


class Imports:
    """Which file of a tree imports which others, read from their text."""

    def __init__(self, tree: Path) -> None:
        self._texts = {
            path.relative_to(tree).as_posix(): path.read_bytes()
            for package in PACKAGES
            for path in sorted((tree / package).rglob("*.py"))
        }
        self._texts |= {
            path.relative_to(tree).as_posix(): path.read_bytes()
            for path in sorted((tree / NATIVE).glob("*.[ch]"))
        }
        self._exports = {
            name: path
            for path, text in self._texts.items()
            if path.endswith(".c")
            for name in _EXPORTED.findall(text.decode())
        }
        self._of = {path: self._imported(path) for path in self._texts}
        self._by: dict[str, set[str]] = defaultdict(set)
        for path, others in self._of.items():
            for other in others:
                self._by[other].add(path)
        self._reach: dict[str, frozenset[str]] = {}

    def _imported(self, path: str) -> set[str]:
        found: set[str] = set()
        text = self._texts[path].decode()
        if path.startswith(NATIVE):  # in C, or what calls it
            words = set(re.findall(r"\w+", text))
            found |= {self._exports[word] for word in words & self._exports.keys()}
            headers = re.findall(r'#include "(\w+\.h)"', text)
            found |= {NATIVE + header for header in headers}
        for module, names in _OURS.findall(text):
            found |= self._files_of(module)
            for name in re.findall(r"\w+", re.sub(r" as \w+|#.*", "", names)):
                found |= self._files_of(f"{module}.{name}")
        return found - {path}

    def _files_of(self, module: str) -> set[str]:
        at = module.replace(".", "/")
        return {f"{at}.py", f"{at}/__init__.py"} & self._texts.keys()

    def reached_from(self, path: str) -> frozenset[str]:
        """A file and all that it imports of ours, and so on."""
        if path not in self._reach:
            found, waiting = {path}, [path]
            while waiting:
                more = self._of.get(waiting.pop(), set()) - found
                found |= more
                waiting += more
            self._reach[path] = frozenset(found)
        return self._reach[path]

    def digest(self, paths: list[str]) -> str:
        """What tells files, with all that they import, from others."""
        digest = hashlib.blake2b(digest_size=8)
        for path in sorted(set().union(*map(self.reached_from, paths))):
            digest.update(f"{path}\0{self._digest_of(path)}\0".encode())
        return digest.hexdigest()

    @cache  # noqa: B019  a run has one of these, to its end
    def _digest_of(self, path: str) -> str:
        return hashlib.blake2b(self._texts.get(path, b"")).hexdigest()

    def distances_to(self, path: str) -> dict[str, int]:
        """By how many imports others are away from a file."""
        found, waiting = {path: 0}, [path]
        for one in waiting:
            for other in self._by[one] - found.keys():
                found[other] = found[one] + 1
                waiting.append(other)
        return found

    @cached_property
    def in_kernels(self) -> frozenset[str]:
        """Files of which compiled code is made: a change has it compiled anew."""
        kernels = [
            path
            for path, text in self._texts.items()
            if path.startswith("models/") and _COMPILES.search(text.decode())
        ]
        return frozenset().union(*map(self.reached_from, kernels))

    @cache  # noqa: B019
    def nearest_tests(self, path: str) -> list[str]:
        """Test files that should see a fault of a file, the nearest first.

        Those of its room and of its name go first, then laws that import it, then
        what imports what imports it. What imports less goes before what runs the whole
        pipeline.
        """
        away = self.distances_to(path)
        ranked = [
            (self._nearness(path, test, away.get(test)), test)
            for test in self._texts
            if _TEST.fullmatch(test)
        ]
        best = sorted((key, test) for key, test in ranked if key is not None)
        return [test for _, test in best[:MOST]]

    def _nearness(
        self, path: str, test: str, distance: int | None
    ) -> tuple[float, int] | None:
        source, file = PurePosixPath(path), PurePosixPath(test)
        words = set(source.stem.split("_")) - {"test"}
        shared = len(words & set(file.stem.split("_")))
        is_beside = file.parent == mirror_of(source)
        if distance is None:
            if not (is_beside and shared):
                return None
            distance = 3
        score = distance - 1.5 * is_beside - 1.5 * shared / len(words)
        score -= 0.5 * (file.parent.name == "laws")
        n_reached = len(self.reached_from(test))
        return score + n_reached / FOCUSED, n_reached


def mirror_of(path: PurePosixPath) -> PurePosixPath:
    """The folder whose tests are those of a file's room."""
    return "tests" / path.parent
