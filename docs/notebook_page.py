"""A notebook as a page: what it says, its cells, and what these printed."""

import json
from collections.abc import Iterator
from typing import Any

from docs.reference.markdown import code


def page_of(notebook: str) -> str:
    r"""A notebook, as Jupyter stores it, in Markdown.

    Examples
    --------
    >>> cell = {"cell_type": "markdown", "source": ["# Clicks"]}
    >>> page_of(json.dumps({"cells": [cell]}))
    '# Clicks\n'
    """
    cells = json.loads(notebook)["cells"]
    return "\n".join(part for cell in cells for part in _parts(cell))


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield f"{source}\n"
        return
    yield code(source, "python")
    for output in cell["outputs"]:
        printed = output.get("text") or output.get("data", {}).get("text/plain")
        if printed:
            yield code("".join(printed))
