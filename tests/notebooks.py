"""Notebooks run cell by cell, as far as that takes no Jupyter; their outputs are kept.

`python -m tests.notebooks` runs those of `docs/notebooks` and writes what they show.
"""

import ast
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """A notebook as it is stored."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def source_of(cell: dict[str, Any]) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def shown_by(path: Path) -> list[str]:
    """What each cell of code shows, in a folder of its own: prints, then its value."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return [_run(source_of(cell), names) for cell in cells]


def kept_in(path: Path) -> list[str]:
    """What each cell of code is said to show."""
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    return ["".join(map(_text, cell["outputs"])) for cell in cells]


def keep(path: Path) -> None:
    """Run a notebook, and store what its cells show."""
    found = read(path)
    cells = [cell for cell in found["cells"] if cell["cell_type"] == "code"]
    for number, (cell, text) in enumerate(zip(cells, shown_by(path), strict=True), 1):
        cell["execution_count"] = number
        cell["outputs"] = [_output(text, number)] if text else []
    text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def _run(source: str, names: dict[str, Any]) -> str:
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)  # noqa: S102  our own notebooks
        if isinstance(last, ast.Expr):
            code = compile(ast.Expression(last.value), "cell", "eval")
            value = eval(code, names)  # noqa: S307  our own notebooks
            if value is not None:
                printed.write(repr(value))
    return printed.getvalue().rstrip("\n")


def _output(text: str, number: int) -> dict[str, Any]:
    return {
        "data": {"text/plain": text.splitlines(keepends=True)},
        "execution_count": number,
        "metadata": {},
        "output_type": "execute_result",
    }


def _text(output: dict[str, Any]) -> str:
    return "".join(output["data"]["text/plain"])


if __name__ == "__main__":
    for each in [Path(word) for word in sys.argv[1:]] or NOTEBOOKS:
        keep(each)
