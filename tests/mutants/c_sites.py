"""Where a source in C can be given a small fault: by its text, within functions."""

import re
from collections.abc import Iterator

from tests.mutants.mutant import scopes
from tests.mutants.python_sites import Site

SWAPS = (
    ("compare", r" < ", " <= "),
    ("compare", r" <= ", " < "),
    ("compare", r" > ", " >= "),
    ("compare", r" >= ", " > "),
    ("compare", r" == ", " != "),
    ("compare", r" != ", " == "),
    ("arithmetic", r" \+ ", " - "),
    ("arithmetic", r" - ", " + "),
    ("arithmetic", r" \+= ", " -= "),
    ("arithmetic", r" \* (?=\w)", " + "),
    ("and-or", r" && ", " || "),
    ("and-or", r" \|\| ", " && "),
    ("removed", r"(?<=^)(?:continue|break);", ";"),
    ("removed", r"(?<=^)\w[\w>\[\]. -]* (?:[-+|&]?=) [^;]*;$", ";"),
    ("removed", r"(?<=^)(?!return|sizeof)\w+\([^;]*\);$", ";"),
)
"""Kind, what of a line without its indentation, and what it becomes."""

NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
NEGATED = re.compile(r"(?<=if \()(?=[^()]*\)$)[^()]+(?=\)$)")
DECLARED = re.compile(
    r"(?:const |static |struct |enum |u?int\d+_t |size_t |bool |char |double )"
)
"""What begins a declaration: without it nothing compiles."""


def c_sites(source: str) -> list[Site]:
    """All of the functions of a source, in the order of its lines."""
    lines = source.splitlines()
    found = []
    for begin, end in scopes("x.c", source).values():
        for i in range(begin + 1, end - 1):
            code = lines[i].partition("/*")[0].rstrip()
            if code.strip() and not code.lstrip().startswith(("*", "#")):
                found += [site._replace(line=i) for site in _of_line(code)]
    return sorted(set(found), key=lambda site: site[1:])


def _of_line(code: str) -> Iterator[Site]:
    """Places of one line."""
    indent = len(code) - len(code.lstrip())
    text = code[indent:]
    for kind, pattern, now in SWAPS:
        if kind == "removed" and DECLARED.match(text):
            continue
        for hit in re.finditer(pattern, text):
            yield Site(kind, 0, indent + hit.start(), indent + hit.end(), now)
    for hit in NUMBER.finditer(text):
        n = int(hit[0])
        for other in (n + 1, n - 1) if n else (1,):
            yield Site(
                "number", 0, indent + hit.start(), indent + hit.end(), str(other)
            )
    for hit in NEGATED.finditer(text):
        now = f"!({hit[0]})"
        yield Site("negated", 0, indent + hit.start(), indent + hit.end(), now)
