"""No circle of files: what a file imports imports nothing that needs that file."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("deploy", "models", "producers", "rankstream", "streams")

FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for room in ROOMS
    for path in sorted((ROOT / room).rglob("*.py"))
    if path.name != "__init__.py"
}


def imported(tree: ast.AST) -> Iterator[str]:
    """Names of all that may be a module: also where a function imports it.

    What only a checker of types imports is left out: nothing loads it.
    """
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            yield from imported(node)


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
