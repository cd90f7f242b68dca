"""Answers as dictionaries and lists, and as tables."""

import dataclasses
import importlib
import importlib.util
import math
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


class Answer:
    """What each answer is, whatever it is of: a frozen dataclass that extends this."""

    def to_dict(self) -> dict[str, Any]:
        """It by names, as JSON may have it; see `as_builtins`."""
        return {name: as_builtins(getattr(self, name)) for name in _names_of(self)}


def as_builtins(value: Any) -> Any:
    """A value with its names, bytes as hexadecimal digits, no finite number as None.

    Examples
    --------
    >>> as_builtins({"sha256": b"a", "low": float("nan"), "ranks": (1, 2)})
    {'sha256': '61', 'low': None, 'ranks': [1, 2]}
    """
    if isinstance(value, Answer):
        return value.to_dict()
    if names := _names_of(value):
        return {name: as_builtins(getattr(value, name)) for name in names}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {name: as_builtins(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_builtins(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table_of(rows: Iterable[Any]) -> Any:
    """A table with a row for each: of pandas where that is installed, else of pyarrow.

    Raises
    ------
    ImportError
        Where neither is.
    """
    named = [as_builtins(row) for row in rows]
    if importlib.util.find_spec("pandas") is not None:
        return importlib.import_module("pandas").DataFrame(named)
    return importlib.import_module("pyarrow").Table.from_pylist(named)


def _names_of(value: Any) -> tuple[str, ...]:
    """Names of the fields of a structure; empty for anything else."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return tuple(each.name for each in dataclasses.fields(value))
    return getattr(value, "_fields", ())
