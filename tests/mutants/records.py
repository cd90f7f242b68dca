"""What runs have found so far: one line of JSON for each mutant and each test file."""

import json
from collections.abc import Iterable
from pathlib import Path
from threading import Lock
from typing import Any

DIED = {"killed", "timeout"}
"""What became of a mutant that tests see: one failed, or did not end."""


class Record:
    """A file that grows by a line with each result.

    Parameters
    ----------
    path
        The file; what it has already is not run again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._known = {_key(line): line for line in lines_of(path)}

    def known(self, what: str, name: str, digest: str) -> dict[str, Any] | None:
        """The result that is there, if it is of the same files."""
        line = self._known.get((what, name))
        return line if line and line["digest"] == digest else None

    def add(self, line: dict[str, Any]) -> None:
        """Keep one more; a later one of the same name counts."""
        with self._lock:
            self._known[_key(line)] = line
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def unfit(self) -> list[str]:
        """Test files that fail or are slow without a fault, however kernels are run."""
        names = [name for (what, name) in self._known if what == "file"]
        files = [name.partition(" ")[0] for name in names]
        return sorted({file for file in files if files.count(file) > 1})


def _key(line: dict[str, Any]) -> tuple[str, str]:
    return line["what"], line["name"]


def lines_of(path: Path) -> list[dict[str, Any]]:
    """The lines of a record; one that a killed run left in pieces is passed over."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def now_alive(
    earlier: Iterable[dict[str, Any]], now: dict[str, dict[str, Any]]
) -> list[str]:
    """What died in an earlier record and lives now, each with what saw it then."""
    found = []
    for one in {_key(line): line for line in earlier}.values():
        here = now.get(one["name"], one)
        has_died = one["what"] == "mutant" and one["outcome"] in DIED
        if has_died and here["outcome"] not in DIED:
            found.append(
                f"{one['name']} {one['said']}\n"
                f"    died of {one['by'] or 'a test that did not end'}; "
                f"now {here['outcome']}"
            )
    return found


def count_of(results: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many there are of each outcome."""
    found: dict[str, int] = {}
    for one in results:
        found[one["outcome"]] = found.get(one["outcome"], 0) + 1
    return dict(sorted(found.items()))
