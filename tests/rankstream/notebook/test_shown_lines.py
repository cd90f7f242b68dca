"""What `help(rankstream)` and the page of notebooks show is what happens."""

import re
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import rankstream
from tests.clicked_tables import Shop

PAGE = Path(__file__).parents[3] / "docs" / "notebook.md"


def lines_of_help() -> str:
    """The program in the docstring of the package."""
    told = str(rankstream.__doc__)
    lines = [line[4:] for line in told.splitlines() if line.startswith("    ")]
    return "\n".join(lines)


def lines_of_page() -> str:
    """The first program of the page."""
    return PAGE.read_text(encoding="utf-8").split("```python\n")[1].partition("```")[0]


@pytest.mark.parametrize(
    "lines", [lines_of_help(), lines_of_page()], ids=["help", "page"]
)
def test_from_one_import_to_a_valued_ranker(
    lines: str, own: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In eight lines at most."""
    assert len([line for line in lines.splitlines() if line.strip()]) <= 8
    monkeypatch.chdir(tmp_path)
    queries = pc.replace_substring_regex(own.clicks["query"], "^query 1$", "red shoes")
    place = own.clicks.column_names.index("query")
    found: dict[str, Any] = {
        "clicks": own.clicks.set_column(place, "query", queries),
        "products": own.products,
    }
    exec(lines, found)  # noqa: S102  our own lines
    assert found["log"].outcomes["impressions applied"] == 1_250
    assert found["log"].evaluate({"new": found["ranker"]}).rows[1].difference > 0.0


def test_the_page_has_each_method_and_role() -> None:
    """And no other method."""
    text = PAGE.read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| `(\w+)\(", text, re.M))
    methods = {
        name
        for name, each in vars(rankstream.Log).items()
        if callable(each) and not name.startswith("_")
    }
    assert shown == methods
