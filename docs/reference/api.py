"""The page of what programs import: classes and functions with their docstrings."""

import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from types import FunctionType, ModuleType
from typing import Any

from docs.reference.docstrings import markdown_of
from docs.reference.markdown import code
from docs.reference.signatures import signature_of

INTRODUCTION = """# Python API

What services and notebooks import, made of the docstrings. `pip install rankstream`
brings what services need; notebooks and `streams.local` need `rankstream[local]`.

"""

MODULES = (
    "rankstream",
    "rankstream.notebook.reading",
    "rankstream.notebook.log",
    "rankstream.notebook.ranker",
    "rankstream.notebook.simulating",
    "rankstream.ranker",
    "rankstream.ranking.ranked_list",
    "rankstream.experiments",
    "rankstream.logging_lists",
    "rankstream.snapshots",
    "rankstream.settings",
    "streams.local",
)
"""In the order in which somebody needs them."""


_MODULES = re.compile(r"\b[a-z_]+\.")


def page() -> str:
    """All of them."""
    modules = [importlib.import_module(name) for name in MODULES]
    parts = [
        INTRODUCTION + "\n".join(f"* [`{x.__name__}`](#{_anchor(x)})" for x in modules)
    ]
    for module in modules:
        parts.append(f"\n## {module.__name__} {{ #{_anchor(module)} }}\n")
        parts.append(markdown_of(module.__doc__))
        for name, member in _public(module):
            parts += _member(name, member)
    return "\n".join(parts)


def _anchor(module: ModuleType) -> str:
    return module.__name__.replace(".", "-")


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Classes and functions that the module itself declares, in their order."""
    for name, member in vars(module).items():
        is_own = getattr(member, "__module__", "") == module.__name__
        if is_own and not name.startswith("_") and callable(member):
            yield name, member


def _member(name: str, member: Any) -> Iterator[str]:
    yield f"### {name}\n"
    if isinstance(member, FunctionType):
        yield code(signature_of(name, member), "python")
        yield markdown_of(member.__doc__)
        return
    written = vars(member).get("__init__")
    if isinstance(written, FunctionType) and not is_dataclass(member):
        yield code(signature_of(name, written), "python")
    elif fields := inspect.get_annotations(member):
        lines = "".join(
            f"    {each}: {_written(kind)}\n" for each, kind in fields.items()
        )
        yield code(f"class {name}:\n{lines}", "python")
    yield markdown_of(member.__doc__)
    for own, below in vars(member).items():
        if not own.startswith("_"):
            yield from _of_class(name, own, below)


def _of_class(name: str, own: str, member: Any) -> Iterator[str]:
    if isinstance(member, property):
        yield f"#### {name}.{own}\n"
        yield markdown_of(member.__doc__)
        return
    function = (
        member.__func__ if isinstance(member, staticmethod | classmethod) else member
    )
    if isinstance(function, FunctionType):
        yield f"#### {name}.{own}()\n"
        yield code(signature_of(own, function), "python")
        yield markdown_of(function.__doc__)


def _written(kind: Any) -> str:
    """An annotation without the modules of its names."""
    return _MODULES.sub("", inspect.formatannotation(kind))
