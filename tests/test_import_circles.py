"""No circle of files: what a file imports imports nothing that needs that file.

And what the fold and a training load of ours stays in bounds, as a reader meets it.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("deploy", "models", "producers", "rankstream", "streams")

FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
    if path.name != "__init__.py"
}


def imported(tree: ast.AST, *, at_once: bool = False) -> Iterator[str]:
    """Names of all that may be a module: also where a function imports it.

    What only a checker of types imports is left out: nothing loads it. What functions
    import is, too, where `at_once` asks for what a file loads as it is loaded.
    """
    for node in ast.iter_child_nodes(tree):
        if at_once and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield from imported(node, at_once=at_once)


def loaded_by(name: str) -> set[str]:
    """Our modules that are loaded with one of them, and itself."""
    found: set[str] = set()
    left = {name}
    while left:
        found |= left
        trees = [ast.parse(FILES[each].read_text(encoding="utf-8")) for each in left]
        names = {each for tree in trees for each in imported(tree, at_once=True)}
        left = (names & FILES.keys()) - found
    return found


def circles(imports: dict[str, set[str]]) -> set[str]:
    """What is left when all that imports nothing of what is left has gone."""
    left = dict(imports)
    while gone := {name for name, needs in left.items() if not needs & left.keys()}:
        left = {name: needs for name, needs in left.items() if name not in gone}
    return set(left)


def test_a_circle_is_found_and_a_line_is_none() -> None:
    """Whoever imports a file of a circle cannot be loaded before it either."""
    line = {"a": {"b", "c"}, "b": {"c"}, "c": {"numpy"}}
    assert circles(line) == set()
    assert circles({**line, "c": {"b"}}) == {"a", "b", "c"}
    deferred = ast.parse("def load():\n    from streams import local\n")
    assert "streams.local" in set(imported(deferred))


def test_no_file_needs_itself() -> None:
    """Not by way of others either, nor where a function imports."""
    imports = {
        name: set(imported(ast.parse(path.read_text(encoding="utf-8"))))
        for name, path in FILES.items()
    }
    assert circles(imports) == set()


@pytest.mark.parametrize(
    ("name", "most"),
    [("streams.partition_fold", 40), ("streams.training.trained_snapshot", 140)],
)
def test_a_reader_has_few_modules_to_read(name: str, most: int) -> None:
    """A part that takes all settings, or a table for a name of it, brings many."""
    assert "streams.statistics.keys" in loaded_by(name)
    assert "rankstream.settings" not in loaded_by(name)
    assert len(loaded_by(name)) <= most
