"""Where a module in Python can be given a small fault.

Left out: annotations, decorators, docstrings, what an error or a warning says, how
things print, and what only a type checker reads. A fault lies in one line.
"""

import ast
from itertools import pairwise
from typing import NamedTuple


class Site(NamedTuple):
    """A place in one line, and what stands there then.

    `line` is counted from 0; `begin` and `end` are bytes of it.
    """

    kind: str
    line: int
    begin: int
    end: int
    now: str


COMPARED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
}  # fmt: skip
COMPUTED = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "//"),
}  # fmt: skip
JOINED = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
EXTREMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
    "argmin": "argmax", "argmax": "argmin", "any": "all", "all": "any",
    "floor": "ceil", "ceil": "floor",
}  # fmt: skip

SYMMETRIC = {*EXTREMES, "isinstance", "issubclass", "array_equal", "isclose", "gcd"}
"""Calls whose arguments are not swapped: it does nothing, or only breaks types."""

SAYS = {"warn", "cast", "TypeVar", "NewType", "NamedTuple", "write", "debug", "info"}
"""Calls that only say something, to people or to a type checker."""

PRINTS = {"__repr__", "__str__"}
FLOATS = {0.0: "1.0", 0.5: "0.25", 1.0: "2.0", 2.0: "1.0"}


def python_sites(source: str) -> list[Site]:
    """All of a module, in the order of its lines."""
    finder = _Finder(source)
    finder.visit(ast.parse(source))
    return sorted(finder.found, key=lambda site: site[1:])


class _Finder(ast.NodeVisitor):
    """Collects sites."""

    def __init__(self, source: str) -> None:
        self.found: list[Site] = []
        self._lines = [line.encode() for line in source.splitlines()]

    def _add(self, kind: str, node: ast.expr | ast.stmt, now: str) -> None:
        """A node becomes something else."""
        if node.lineno == node.end_lineno:
            end = node.end_col_offset or 0
            self.found.append(Site(kind, node.lineno - 1, node.col_offset, end, now))

    def _text(self, node: ast.expr) -> str:
        line = self._lines[node.lineno - 1]
        return line[node.col_offset : node.end_col_offset].decode()

    def _between(
        self, kind: str, left: ast.expr, right: ast.expr, words: tuple[str, str]
    ) -> None:
        """An operator between two operands becomes another one."""
        begin = left.end_col_offset or 0
        if left.end_lineno != right.lineno:
            return
        gap = self._lines[right.lineno - 1][begin : right.col_offset]
        at = gap.find(words[0].encode())
        if at >= 0:
            begin += at
            place = right.lineno - 1, begin, begin + len(words[0])
            self.found.append(Site(kind, *place, words[1]))

    # What is left out.

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Neither decorators nor annotations."""
        self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        """As other functions."""
        self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name in PRINTS:
            return
        defaults = [one for one in node.args.kw_defaults if one is not None]
        for one in (*node.args.defaults, *defaults, *node.body):
            self.visit(one)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Only its value."""
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """What is said to people."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """What is said to a type checker."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """It may go, but what it says stays."""
        self._add("removed", node, "pass")

    # What is changed.

    def visit_Compare(self, node: ast.Compare) -> None:
        """At, above or below a limit."""
        pairs = pairwise((node.left, *node.comparators))
        for (left, right), op in zip(pairs, node.ops, strict=True):
            self._between("compare", left, right, COMPARED[type(op)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Another operation."""
        if type(node.op) in COMPUTED and not (_is_text(node.left) or _is_text(node)):
            words = COMPUTED[type(node.op)]
            self._between("arithmetic", node.left, node.right, words)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Both, or one of them."""
        for left, right in pairwise(node.values):
            self._between("and-or", left, right, JOINED[type(node.op)])
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """One more or less."""
        if type(node.value) is int:
            self._add("number", node, str(node.value + 1))
            if node.value > 0:
                self._add("number", node, str(node.value - 1))
        elif type(node.value) is float and node.value in FLOATS:
            self._add("number", node, FLOATS[node.value])

    def visit_If(self, node: ast.If) -> None:
        """Where a condition does not hold."""
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self._negate(node.test)
            self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The other one."""
        self._negate(node.test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if test.lineno == test.end_lineno:
            self._add("negated", test, f"not ({self._text(test)})")

    def visit_Call(self, node: ast.Call) -> None:
        """Extremes, and the order of arguments."""
        named = node.func
        name = named.attr if isinstance(named, ast.Attribute) else ""
        name = named.id if isinstance(named, ast.Name) else name
        if name in SAYS:
            return
        if name in EXTREMES and named.lineno == named.end_lineno:
            begin = (named.end_col_offset or 0) - len(name)
            place = named.lineno - 1, begin, begin + len(name)
            self.found.append(Site("extreme", *place, EXTREMES[name]))
        self._swap(node, name)
        self.generic_visit(node)

    def _swap(self, node: ast.Call, name: str) -> None:
        for left, right in pairwise(node.args[:3]):
            is_plain = not isinstance(left, ast.Starred)
            is_plain &= not isinstance(right, ast.Starred)
            if not is_plain or left.lineno != right.end_lineno or name in SYMMETRIC:
                continue
            one, other = self._text(left), self._text(right)
            if one == other:
                continue
            end = right.end_col_offset or 0
            between = self._lines[left.lineno - 1][left.end_col_offset :]
            between = between[: right.col_offset - (left.end_col_offset or 0)]
            now = f"{other}{between.decode()}{one}"
            self.found.append(
                Site("swapped", left.lineno - 1, left.col_offset, end, now)
            )

    def visit_Slice(self, node: ast.Slice) -> None:
        """One further."""
        for bound in (node.lower, node.upper):
            if bound is not None:
                self._add("slice", bound, f"{_in_brackets(self._text(bound))} + 1")
                self._add("slice", bound, f"{_in_brackets(self._text(bound))} - 1")
        self.generic_visit(node)

    # What is removed.

    def visit_Expr(self, node: ast.Expr) -> None:
        """An effect."""
        if isinstance(node.value, ast.Constant):  # a docstring
            return
        called = node.value.func if isinstance(node.value, ast.Call) else None
        name = getattr(called, "attr", getattr(called, "id", ""))
        if name not in SAYS:
            self._add("removed", node, "pass")
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """A sum, or its sign."""
        self._add("removed", node, "pass")
        if type(node.op) in COMPUTED:
            words = tuple(f"{one}=" for one in COMPUTED[type(node.op)])
            self._between("arithmetic", node.target, node.value, (words[0], words[1]))
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        """A change of something that others see."""
        if isinstance(node.targets[0], ast.Attribute | ast.Subscript):
            self._add("removed", node, "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        """Going on."""
        self._add("removed", node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        """An end."""
        self._add("removed", node, "pass")

    def visit_Return(self, node: ast.Return) -> None:
        """A result, or an early end."""
        if node.value is None:
            self._add("removed", node, "pass")
        elif not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self._add("removed", node, "return None")
            self.visit(node.value)


def _is_text(node: ast.expr) -> bool:
    """Whether it is written text, at least in part."""
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return is_string or isinstance(node, ast.JoinedStr)


def _in_brackets(text: str) -> str:
    return text if text.replace("_", "").replace(".", "").isalnum() else f"({text})"


def changed(line: str, site: Site) -> str:
    """A line with the fault of a site in it."""
    raw = line.encode()
    return (raw[: site.begin] + site.now.encode() + raw[site.end :]).decode()
