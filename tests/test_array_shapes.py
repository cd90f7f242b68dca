"""Every array parameter of a public function, method or class gives its shape.

`python tests/test_array_shapes.py ROOM...` prints what is missing; without a room, in
all that is ours. A shape is given by a line `name : [n, k]` (or `a, b : [n]`), or in
prose by `` `name` [n] ``. It may stand in the docstring of

- the function itself; for `__init__` and for fields, of the class;
- the method that it overrides, in any base class of ours;
- what the docstring names with "As in `name`" or "as in `Class.method`".
"""

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("models", "streams", "rankstream", "producers")
ROOMS = ("models", "streams", "rankstream", "producers")
"""Folders in which no shape may be missing."""

ARRAYS = frozenset({"ArrayLike", "NDArray", "ndarray"})
CONTAINERS = frozenset({"Iterable", "Sequence", "list", "tuple"})
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
RECORDS = frozenset({"NamedTuple", "Struct"})
SHAPE = r"(?:\[(?!0\b)[^\]\n]+\])+"


@dataclass(frozen=True)
class Documented:
    """A function, or the fields of a class: its arrays, and where they may be told.

    Parameters
    ----------
    name
        `function`, `Class.method`, or `Class`.
    arrays
        Names of its parameters or fields that are arrays, and their lines.
    """

    path: Path
    name: str
    docstring: str
    arrays: dict[str, int]
    bases: tuple[str, ...] = ()


@dataclass
class Source:
    """What all modules define, by name."""

    aliases: set[str] = field(default_factory=lambda: set(ARRAYS))
    documented: dict[str, list[Documented]] = field(default_factory=dict)
    bases: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def tells(self, what: Documented, array: str, depth: int = 0) -> bool:
        """Whether a docstring that counts for `what` gives the shape of `array`."""
        if gives_shape(what.docstring, array):
            return True
        if depth > 4:
            return False
        return any(
            self.tells(other, array, depth + 1)
            for name in self._elsewhere(what)
            for other in self._nearest(name, what.path)
        )

    def _elsewhere(self, what: Documented) -> Iterator[str]:
        """Names of what else may tell of the arrays of `what`."""
        owner, _, method = what.name.partition(".")
        for name in re.findall(r"\b[Aa]s\s+in\s+`([\w.]+)`", what.docstring):
            last = name.removesuffix("()")
            yield last
            if method:
                yield f"{owner}.{last}"
        for base in self.bases.get(owner, what.bases):
            yield f"{base}.{method}" if method else base

    def _nearest(self, name: str, path: Path) -> list[Documented]:
        """Those of that name, of the same module where it has one."""
        owner, _, last = name.rpartition(".")
        is_class = owner.rpartition(".")[2][:1].isupper()
        found = self.documented.get(name if is_class else last, [])
        return [each for each in found if each.path == path] or found


def gives_shape(docstring: str, array: str) -> bool:
    """Whether the docstring gives the array's shape in brackets."""
    line = rf"^[ \t]*(?:\w+, )*{array}(?:, \w+)* : (?:[^\[\n]* )?{SHAPE}"
    named = r"`?\w+`?"
    prose = rf"(?<!\w)`?{array}`?(?:(?:,| and|, and)\s+{named})*\s+{SHAPE}"
    return bool(re.search(line, docstring, re.M) or re.search(prose, docstring))


def is_array(annotation: ast.expr | None, aliases: set[str]) -> bool:
    """Whether the annotation is an array, one or None, or a row of arrays."""
    match annotation:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in aliases
        case ast.BinOp(left=left, right=right):
            return is_array(left, aliases) or is_array(right, aliases)
        case ast.Subscript(value=ast.Name(id=name), slice=inner) if name in CONTAINERS:
            held = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return any(is_array(each, aliases) for each in held)
        case ast.Subscript(value=value):
            return is_array(value, aliases)
    return False


@cache
def ours() -> Source:
    """What all our modules define."""
    paths = [path for package in PACKAGES for path in ROOT.glob(f"{package}/**/*.py")]
    return read({path: ast.parse(path.read_text()) for path in sorted(paths)})


def read(modules: dict[Path, ast.Module]) -> Source:
    """What the modules define."""
    source = Source()
    for tree in modules.values():
        for name, value in _assigned(tree):
            if isinstance(value, ast.Subscript) and is_array(value, set(ARRAYS)):
                source.aliases.add(name)
    for path, tree in modules.items():
        for each in _documented(path, tree, source.aliases):
            source.documented.setdefault(each.name, []).append(each)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                source.bases[node.name] = tuple(map(_name, node.bases))
    return source


def _assigned(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node.value


def _name(node: ast.expr) -> str:
    """`Base` of `Base`, `module.Base` and `Base[Item]`."""
    match node:
        case ast.Subscript(value=value) | ast.Call(func=value):
            return _name(value)
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _documented(
    path: Path, tree: ast.Module, aliases: set[str]
) -> Iterator[Documented]:
    for node in tree.body:
        if isinstance(node, FUNCTIONS):
            yield _function(path, node, node.name, aliases)
        elif isinstance(node, ast.ClassDef):
            yield from _class(path, node, aliases)


def _class(path: Path, node: ast.ClassDef, aliases: set[str]) -> Iterator[Documented]:
    docstring = ast.get_docstring(node) or ""
    bases = tuple(map(_name, node.bases))
    decorators = {_name(each) for each in node.decorator_list}
    is_record = "dataclass" in decorators or RECORDS & set(bases)
    arrays = {
        each.target.id: each.lineno
        for each in node.body
        if is_record
        and isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and not each.target.id.startswith("_")
        and is_array(each.annotation, aliases)
    }
    for each in node.body:
        if not isinstance(each, FUNCTIONS):
            continue
        if each.name == "__init__":
            arrays |= _arrays(each, aliases)
            docstring += "\n" + (ast.get_docstring(each) or "")
        else:
            yield _function(path, each, f"{node.name}.{each.name}", aliases)
    yield Documented(path, node.name, docstring, arrays, bases)


def _function(path: Path, node: Function, name: str, aliases: set[str]) -> Documented:
    docstring = ast.get_docstring(node) or ""
    return Documented(path, name, docstring, _arrays(node, aliases))


def _arrays(node: Function, aliases: set[str]) -> dict[str, int]:
    given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    extra = [each for each in (node.args.vararg, node.args.kwarg) if each]
    return {
        each.arg: each.lineno
        for each in (*given, *extra)
        if is_array(each.annotation, aliases)
    }


def missing(source: Source, room: Path) -> tuple[list[str], int]:
    """Arrays of the room whose shapes nobody gives, and how many arrays there are."""
    found, n_arrays = [], 0
    for what in (each for named in source.documented.values() for each in named):
        is_public = not any(part.startswith("_") for part in what.name.split("."))
        if not is_public or not what.path.is_relative_to(room):
            continue
        n_arrays += len(what.arrays)
        found += [
            (what.path.relative_to(ROOT).as_posix(), line, f"{what.name}({array})")
            for array, line in what.arrays.items()
            if not source.tells(what, array)
        ]
    return [f"{path}:{line}: {name}" for path, line, name in sorted(found)], n_arrays


@pytest.mark.parametrize("room", ROOMS)
def test_array_parameters_give_their_shapes(room: str) -> None:
    """A caller reads from the docstring how an array must lie."""
    lines, _ = missing(ours(), ROOT / room)
    assert (ROOT / room).exists()
    assert not lines, "\n".join(lines)


def test_a_shape_that_nobody_gives_is_missed() -> None:
    """The check can fail: of each form, one array with a shape and one without."""
    tree = ast.parse('''
Floats = npt.NDArray[np.float64]

def line(scores: Floats, rows: Floats | None, k: int):
    """Rank.

    Parameters
    ----------
    scores : [n]
    rows : rows of the candidates[k]
    """

def prose(scores: np.ndarray, rows: Floats):
    """Rank `scores` [n], where `rows[0]` is in [0, 1]."""

async def like(scores: Floats, rows: Floats):
    """As in `prose`."""

def _private(scores: Floats):
    """Not asked."""

class Base(NamedTuple):
    """Holds `first` [n]."""

    first: Floats
    second: Floats

    def over(self, scores: Floats, rows: Floats):
        """Ranks scores [n]."""

class Heir(Base):
    """Says nothing, and needs to say nothing."""

    def __init__(self, *first: Floats, second: Floats):
        pass

    def over(self, scores: Floats, rows: Floats):
        pass
''')
    path = ROOT / "models" / "example.py"
    lines, n_arrays = missing(read({path: tree}), path)
    assert [line.split()[1] for line in lines] == [
        "line(rows)",
        "prose(rows)",
        "like(rows)",
        "Base(second)",
        "Base.over(rows)",
        "Heir(second)",
        "Heir.over(rows)",
    ]
    assert n_arrays == 14


if __name__ == "__main__":
    asked = sys.argv[1:] or PACKAGES
    for room in asked:
        without_shape, all_arrays = missing(ours(), ROOT / room)
        total = f"{room}: {len(without_shape)} of {all_arrays} arrays have no shape"
        sys.stdout.write("\n".join([*without_shape, total]) + "\n")
