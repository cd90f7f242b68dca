"""What a command says where a package is missing or somebody else's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rankstream.installation import check_rooms, not_installed, path_options
from streams.native.core_library import loaded

TREE = Path(__file__).parents[2]


def test_ours_are_ours() -> None:
    """Nothing is said where all is well."""
    check_rooms()


@pytest.mark.parametrize("file", ["models/__init__.py", "models.py"])
@pytest.mark.parametrize(("command", "status"), [("topics", 2), ("worker", 78)])
def test_a_stranger_s_models_are_named(
    file: str, command: str, status: int, tmp_path: Path
) -> None:
    """A package or a module, with its place and ours, in one line."""
    theirs = tmp_path / file
    theirs.parent.mkdir(exist_ok=True)
    theirs.touch()
    done = subprocess.run(
        [sys.executable, "-m", "rankstream", command],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(TREE)},
    )  # fmt: skip
    assert done.returncode == status
    assert done.stderr.startswith(f"rankstream {command}: the package `models` must")
    assert str(tmp_path / "models") in done.stderr
    assert str(TREE / "models") in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_package_of_the_extra_is_named_with_the_extra() -> None:
    """The package is what Python missed, not its module."""
    missing = ModuleNotFoundError("No module named 'faust'", name="faust.types")
    assert "faust is not installed: pip install 'rankstream[pipeline]'" in str(
        not_installed(missing)
    )
    missing = ModuleNotFoundError("No module named 'lightgbm'", name="lightgbm")
    assert "pip install 'rankstream[trees]'" in str(not_installed(missing, "bench"))


def test_a_room_that_was_written_over_is_named() -> None:
    """As where two distributions share a folder."""
    missing = ModuleNotFoundError("No module named", name="models.kernels")
    assert "`models.kernels` must lie beside" in str(not_installed(missing))


def test_a_core_that_is_not_compiled_is_said_in_one_sentence(tmp_path: Path) -> None:
    """As after new sources in C came in, without `make native`."""
    with pytest.raises(ImportError) as refused:
        loaded(tmp_path / "core.so")
    assert str(not_installed(refused.value)) == str(refused.value)
    broken = ImportError("cannot import name", name="streams.fold.join")
    with pytest.raises(ImportError, match="cannot import name"):
        not_installed(broken)


@pytest.mark.parametrize("name", ["rankstream.rankers", "json.tool2", ""])
def test_a_fault_of_ours_stays_a_fault(name: str) -> None:
    """No installation would help, so the traceback stays."""
    missing = ModuleNotFoundError("No module named", name=name)
    with pytest.raises(ModuleNotFoundError):
        not_installed(missing)


def test_a_child_s_path_begins_as_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the folder at hand only where ours does."""
    monkeypatch.setattr(sys, "path", [str(Path.cwd()), "/elsewhere"])
    assert path_options() == []
    monkeypatch.setattr(sys, "path", ["/elsewhere/bin", "/elsewhere"])
    assert path_options() == ["-P"]
