"""Whether mutants are drawn, planted and seen as the list says."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.mutants import __main__ as command
from tests.mutants.__main__ import TREE, main
from tests.mutants.c_sites import c_sites
from tests.mutants.copied_tree import CopiedTree
from tests.mutants.drawing import Place, described, draw, is_whole, places
from tests.mutants.mutant import (
    LIST,
    ListUnreadable,
    Mutant,
    NotApplicable,
    list_text,
    read_list,
)
from tests.mutants.nearest_tests import Imports
from tests.mutants.python_sites import Site, changed, python_sites
from tests.mutants.records import Record, lines_of, now_alive
from tests.mutants.running import Run

SOURCE = '''"""Two or more of 3."""

from typing import cast


class Sizes:
    """At least 1."""

    limit: tuple[int, 5] = 7

    def __repr__(self) -> str:
        return "x" * (1 + 1)

    def clipped(self, sizes: list[int], n: int = 2) -> int:
        """No more than 9."""
        total = 0
        for size in sizes[n:]:
            if size < self.limit and size != 4:
                total += min(size, n)
        if total > 100:
            raise ValueError(f"at most {100 + 1}; got {total - 6}")
        self.total = cast("int", total - 3)
        return total if n else divmod(total, n)[1]


def clipped(n: int) -> bool:
    return n in {1, 2} or n is None
'''

CORE = """#include <x.h>

/* More than 1 < 2. */
enum { MOST = 12 };

static int n_below(const int *sizes, int n) {
    int found = 0; /* 0 < 1 */
    for (int i = 0; i < n; i++)
        if (sizes[i] > MOST)
            continue;
        else
            found += 1;
    return found;
}
"""

TESTED = """from models.sizes import clipped


def test_it_knows_its_numbers():
    assert clipped(1)


def test_it_knows_others():
    assert not clipped(3)
"""


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A tree with a module in Python, one in C, and tests of the first."""
    tree = tmp_path / "planted"
    for folder in ("models", "streams/native", "tests/models"):
        (tree / folder).mkdir(parents=True)
    (tree / "models/sizes.py").write_text(SOURCE)
    (tree / "streams/native/sizes.c").write_text(CORE)
    (tree / "tests/models/test_sizes.py").write_text(TESTED)
    return tree


def faults_of(path: str, tree: Path) -> list[Mutant]:
    """All that a file has room for."""
    return [
        described(tree, place)
        for kinds in places(tree).values()
        for some in kinds.values()
        for place in some
        if place.path == path
    ]


def test_a_drawing_is_that_of_its_seed(planted: Path) -> None:
    """And leaves lines alone that are in the list already."""
    drawn = [draw(planted, 9, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({(one.within, one.was, one.nth) for one in drawn[0]}) == 9
    assert {Path(one.path).suffix for one in drawn[0]} == {".py", ".c"}
    kept = tuple(drawn[0][:4])
    others = draw(planted, 5, rng=np.random.default_rng(1), besides=kept)
    assert not {one.was for one in kept} & {one.was for one in others}


def test_what_is_said_to_people_or_type_checkers_stays(planted: Path) -> None:
    """No test should have to read it."""
    faults = faults_of("models/sizes.py", planted)
    for said in ("or more of", "least 1", "more than 9", '"x"', "def __"):
        assert not [one for one in faults if said in one.was]
    # An error may go, as may an attribute; what they say stays.
    assert [one.now for one in faults if "raise" in one.was] == ["pass"]
    assert [one.now for one in faults if "cast" in one.was] == ["pass"]
    assert {one.now for one in faults if "limit:" in one.was} == {
        "limit: tuple[int, 5] = 8",
        "limit: tuple[int, 5] = 6",
    }


def test_an_operator_becomes_its_neighbour(planted: Path) -> None:
    """As do limits, arguments and conditions."""
    now = {one.now for one in faults_of("models/sizes.py", planted)}
    assert {
        "if size <= self.limit and size != 4:",
        "if size < self.limit or size != 4:",
        "if size < self.limit and size == 4:",
        "if not (size < self.limit and size != 4):",
        "total -= min(size, n)",
        "total += max(size, n)",
        "for size in sizes[n + 1:]:",
        "return total if not (n) else divmod(total, n)[1]",
        "return total if n else divmod(n, total)[1]",
        "return n not in {1, 2} or n is None",
        "return n in {1, 2} and n is None",
        "return n in {1, 2} or n is not None",
        "def clipped(self, sizes: list[int], n: int = 3) -> int:",
    } <= now


def test_the_core_is_changed_in_functions_alone(planted: Path) -> None:
    """Neither in comments nor in declarations."""
    path = "streams/native/sizes.c"
    faults = faults_of(path, planted)
    assert {one.within for one in faults} == {"n_below"}
    assert {
        "for (int i = 0; i <= n; i++)",
        "if (!(sizes[i] > MOST))",
        "if (sizes[i] >= MOST)",
        ";",
        "found -= 1;",
        "int found = 1; /* 0 < 1 */",
    } <= {one.now for one in faults}
    assert not [one for one in faults if one.now.endswith("0 <= 1 */")]


@pytest.mark.parametrize(
    ("source", "sites"),
    [(SOURCE, python_sites), (CORE, c_sites)],
    ids=["python", "c"],
)
def test_a_fault_is_in_one_place(
    source: str, sites: Callable[[str], list[Site]], planted: Path
) -> None:
    """Only its line differs, and only at the place that was found."""
    path = "models/sizes.py" if sites is python_sites else "streams/native/sizes.c"
    before = source.splitlines()
    found = sites(source)
    assert found
    for site in found:
        mutant = described(planted, Place(path, site))
        assert is_whole(mutant, source)
        after = mutant.applied_to(source).splitlines()
        differing = [i for i, line in enumerate(after) if line != before[i]]
        assert differing == [site.line]
        assert after[site.line] == changed(before[site.line], site).rstrip()


def test_an_entry_follows_its_line() -> None:
    """Where lines move, and where what it is in is renamed."""
    mutant = Mutant("x.py", "clipped", "compare", "return n < 1", "return n <= 1")
    function = "def {}(n):\n    return n < 1\n\n"
    source = function.format("other") + function.format("clipped")
    assert mutant.line_in(source) == 4
    assert mutant.line_in("# moved\n" + source) == 5
    assert mutant.line_in(function.format("renamed")) == 1
    with pytest.raises(NotApplicable, match="found 2 of `return n < 1`"):
        mutant.line_in(function.format("one") + function.format("other"))
    with pytest.raises(NotApplicable, match="found 1"):
        replace(mutant, nth=2).line_in(source)


def test_a_list_is_read_as_it_was_written(planted: Path) -> None:
    """What cannot be read is named by its line."""
    drawn = draw(planted, 9, rng=np.random.default_rng(1))
    drawn[3] = replace(drawn[3], equivalent="both are 0", nth=2)
    read = read_list(list_text(drawn, "planted"))
    assert sorted(map(str, read)) == sorted(map(str, drawn))
    assert set(read) == set(drawn)
    with pytest.raises(ListUnreadable, match="line 2 is '- 1 < 2'"):
        read_list("# planted\n- 1 < 2\n")
    with pytest.raises(ListUnreadable, match="line 1 is '! 1'"):
        read_list("! 1\n")


def test_the_nearest_tests_are_those_of_its_name() -> None:
    """Laws that import it come later."""
    imports = Imports(TREE)
    nearest = imports.nearest_tests("models/losses/gains.py")
    assert nearest[0] == "tests/models/losses/test_gains.py"
    assert any(test.startswith("tests/laws/") for test in nearest)
    assert imports.nearest_tests("streams/native/join.c")[0] == (
        "tests/streams/native/test_native_join.py"
    )
    assert "models/losses/pair_kernel.py" in imports.in_kernels
    assert "rankstream/wire/envelope.py" not in imports.in_kernels


def test_most_of_the_list_is_there() -> None:
    """Else: `python -m tests.mutants --redraw SEED`, and see that the others die."""
    mutants = read_list(LIST.read_text())
    assert len({one.digest for one in mutants}) == len(mutants) >= 300
    gone = []
    for one in mutants:
        try:
            one.line_in((TREE / one.path).read_text())
        except (NotApplicable, FileNotFoundError):
            gone.append(one)
    assert len(gone) <= len(mutants) / 10


def test_a_run_names_the_test_that_it_lacks(planted: Path, tmp_path: Path) -> None:
    """What died with a test lives without it, and is named with it."""
    faults = (
        Mutant("models/sizes.py", "clipped", "number",
               "return n in {1, 2} or n is None", "return n in {1, 3} or n is None"),
        Mutant("models/sizes.py", "clipped", "compare", "return 1", "return 2"),
    )  # fmt: skip
    told: list[str] = []

    def run(name: str) -> dict[str, dict]:
        record = Record(tmp_path / name)
        return Run(planted, tmp_path / "copies", record, loaded=("hypothesis",)).run(
            faults, 1, told.append
        )

    before = run("before")
    assert [before[one.digest]["outcome"] for one in faults] == ["killed", "gone"]
    test = "tests/models/test_sizes.py::test_it_knows_others"
    assert before[faults[0].digest]["by"] == test
    assert (planted / "models/sizes.py").read_text() == SOURCE
    told.clear()
    assert run("before") == before
    assert not told
    tests = planted / "tests/models/test_sizes.py"
    tests.write_text(TESTED[: TESTED.index("\n\ndef test_it_knows_others")])
    after = run("after")
    assert after[faults[0].digest]["outcome"] == "survived"
    (alive,) = now_alive(lines_of(tmp_path / "before"), after)
    assert alive.startswith(f"{faults[0].digest} {faults[0]}\n    died of {test};")


def test_a_fault_that_ends_the_process_is_seen(planted: Path, tmp_path: Path) -> None:
    """By its test file, which is used for the next fault as well."""
    crashing = TESTED.replace("assert not clipped(3)", "not clipped(3) or os.abort()")
    tests = planted / "tests/models/test_sizes.py"
    tests.write_text(f"import os\n\n{crashing}")
    fault = Mutant(
        "models/sizes.py", "clipped", "number",
        "return n in {1, 2} or n is None", "return n in {1, 3} or n is None",
    )  # fmt: skip
    record = Record(tmp_path / "record")
    run = Run(planted, tmp_path / "copies", record, loaded=())
    found = run.run([fault], 1, str)[fault.digest]
    assert (found["outcome"], found["by"]) == ("killed", "tests/models/test_sizes.py")
    assert not record.unfit()


def test_a_core_with_a_fault_is_used_and_put_back(tmp_path: Path) -> None:
    """The loader takes it, as it says of which sources it is."""
    mutant = Mutant(
        "streams/native/sources.c", "fold_sources", "removed",
        'const char *fold_sources(void) { return FOLD_SOURCES; }',
        'const char *fold_sources(void) { return FOLD_SOURCES "!"; }',
    )  # fmt: skip
    tree = tmp_path / "tree"
    native = "streams/native"
    # Where others compile modules at the same time, files come and go.
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(TREE / native, tree / native, ignore=ignored)
    for path in (tree / native).glob("*.c"):
        if path.name != "sources.c":
            path.unlink()
    copy = CopiedTree(tree, tmp_path / "copy")
    library = next((copy.path / native).glob("libfold.*"))
    before = library.read_bytes()
    code = (
        "import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).fold_sources; "
        "f.restype = ctypes.c_char_p; print(f().decode())"
    )
    with copy.with_fault(mutant):
        said = subprocess.check_output([sys.executable, "-c", code, library], text=True)
    assert said.strip().endswith("!")
    assert library.read_bytes() == before


def test_what_was_not_run_of_the_files_as_they_are_proves_nothing(
    planted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A record of other files has no result, and whoever ran nothing has failed."""
    fault = Mutant("models/sizes.py", "clipped", "compare", "return n in {1, 2}", "")
    (tmp_path / "drawn.txt").write_text(list_text([fault], "planted"))
    monkeypatch.setattr(command, "LIST", tmp_path / "drawn.txt")
    monkeypatch.setattr(command, "TREE", planted)
    line = {"what": "mutant", "name": fault.digest, "digest": "of other files"}
    record = tmp_path / "record"
    Record(record).add({**line, "said": "", "outcome": "killed", "by": ""})
    copies = str(tmp_path / "copies")
    options = ["--out", str(record), "--folder", copies, "--minutes", "0"]
    assert main([*options, "--against", str(record)]) == 1
    said = capsys.readouterr().out
    assert "1 not run yet" in said
    assert "killed" not in said


def test_what_cannot_be_done_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Before anything is copied."""
    assert main(["--only", "models/nowhere"]) == 2
    assert "got 'models/nowhere'" in capsys.readouterr().out
    missing = tmp_path / "before.jsonl"
    assert main(["--against", str(missing)]) == 2
    assert f"{missing} is missing" in capsys.readouterr().out
