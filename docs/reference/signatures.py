"""Signatures as the source writes them."""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

WIDTH = 88
"""Characters of a line."""


def signature_of(name: str, function: Callable[..., Any]) -> str:
    """`name(arguments) -> what it returns`, without `self`.

    Examples
    --------
    >>> signature_of("signature_of", signature_of)
    'signature_of(name: str, function: Callable[..., Any]) -> str'
    """
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    parsed = ast.parse(source).body[0]
    if not isinstance(parsed, ast.FunctionDef | ast.AsyncFunctionDef):
        raise TypeError(f"a signature must be that of a function; got {name}")
    arguments = [each for each in _arguments(parsed.args) if each != "self"]
    returned = ast.unparse(parsed.returns) if parsed.returns else ""
    end = f" -> {returned}" if returned and returned != "None" else ""
    short = f"{name}({', '.join(arguments)}){end}"
    if len(short) <= WIDTH:
        return short
    lines = "".join(f"    {each},\n" for each in arguments)
    return f"{name}(\n{lines}){end}"


def _arguments(found: ast.arguments) -> Iterator[str]:
    plain = [*found.posonlyargs, *found.args]
    defaults = [None] * (len(plain) - len(found.defaults)) + found.defaults
    for argument, default in zip(plain, defaults, strict=True):
        yield _argument(argument, default)
    if found.vararg:
        yield f"*{ast.unparse(found.vararg)}"
    elif found.kwonlyargs:
        yield "*"
    for argument, default in zip(found.kwonlyargs, found.kw_defaults, strict=True):
        yield _argument(argument, default)
    if found.kwarg:
        yield f"**{ast.unparse(found.kwarg)}"


def _argument(argument: ast.arg, default: ast.expr | None) -> str:
    written = ast.unparse(argument)
    if default is None:
        return written
    return f"{written} = {ast.unparse(default)}"
