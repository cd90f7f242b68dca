"""Nothing that is read can become code: no module of ours has the means."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TREE = Path(__file__).parents[1]
ROOMS = ("rankstream", "models", "streams", "producers", "deploy")

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {("yaml", "load"), ("jsonpickle", "decode")}
OPTIONS = {"allow_pickle"}
"""By which numpy makes objects of a file; without it, it refuses them."""


def means_in(tree: ast.Module) -> Iterator[str]:
    """Whatever makes objects or code of bytes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {(node.module or "").partition(".")[0]}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in CALLS:
                yield f"{node.lineno}: {node.func.id}"
            continue
        elif isinstance(node, ast.keyword):
            if node.arg in OPTIONS:
                yield f"{node.lineno}: {node.arg}"
            continue
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if (node.value.id, node.attr) in METHODS:
                yield f"{node.lineno}: {node.value.id}.{node.attr}"
            continue
        else:
            continue
        for name in sorted(names & MODULES):
            yield f"{node.lineno}: {name}"


def test_nothing_of_ours_makes_objects_or_code_of_bytes() -> None:
    """Records, snapshots, files and settings are data, whoever wrote them."""
    found = {
        f"{path.relative_to(TREE)}:{each}"
        for room in ROOMS
        for path in (TREE / room).rglob("*.py")
        for each in means_in(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from pickle import loads", "import dill.session",
        "eval('1')", "exec(b)", "yaml.load(f)", "np.load(f, allow_pickle=True)",
    ],
)  # fmt: skip
def test_what_makes_code_of_bytes_is_found(code: str) -> None:
    """The search above sees what it must see."""
    assert len(list(means_in(ast.parse(code)))) == 1
