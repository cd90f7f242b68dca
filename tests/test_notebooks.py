"""The notebooks of the documentation run, and show what they are said to show."""

import json
from pathlib import Path

import pytest

from tests import notebooks
from tests.data_sets import folder_of

OPEN_BANDIT_DATA = folder_of("OBD-small")


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_says(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the character; `python -m tests.notebooks` stores what is shown now."""
    if "OPEN_BANDIT_DATA" in path.read_text(encoding="utf-8"):
        if not OPEN_BANDIT_DATA.exists():
            pytest.skip(f"needs the Open Bandit data set in {OPEN_BANDIT_DATA}")
        monkeypatch.setenv("OPEN_BANDIT_DATA", str(OPEN_BANDIT_DATA))
    monkeypatch.setenv("COLUMNS", "80")  # pandas goes by it
    assert notebooks.shown_by(path) == notebooks.kept_in(path)


def test_there_are_three() -> None:
    """Each begins with what it is about, and its cells have ids, as tools need."""
    assert len(notebooks.NOTEBOOKS) == 3
    for path in notebooks.NOTEBOOKS:
        cells = notebooks.read(path)["cells"]
        assert cells[0]["cell_type"] == "markdown"
        assert all(cell["id"] for cell in cells)


def test_what_a_cell_shows_is_its_prints_and_its_value(tmp_path: Path) -> None:
    """A cell that fails ends the run."""
    cells = [
        {"cell_type": "code", "source": ["a = 1\n", "print(a)\n", "a + 1"]},
        {"cell_type": "markdown", "source": ["text"]},
        {"cell_type": "code", "source": ["a + 5"], "outputs": []},
        {"cell_type": "code", "source": ["b = a"]},
    ]
    path = tmp_path / "some.ipynb"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    assert notebooks.shown_by(path) == ["1\n2", "6", ""]
    notebooks.keep(path)
    assert notebooks.kept_in(path) == ["1\n2", "6", ""]
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["1 / 0"]}]}))
    with pytest.raises(ZeroDivisionError):
        notebooks.shown_by(path)
