"""Answers as dictionaries and lists, and as tables."""

import dataclasses
import math
import typing
from collections.abc import Mapping
from typing import Any

import msgspec


class Answer:
    """What each answer is, whatever it is of: a frozen dataclass that extends this."""

    def to_dict(self) -> dict[str, Any]:
        """It by names, as JSON may have it; see `as_builtins`."""
        return {name: as_builtins(getattr(self, name)) for name in _names_of(self)}

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """Types by name of what `to_dict` gives; who gives other names says so."""
        return types_of(cls)


OTHERS = "*"
"""Stands in `Answer.gives` for names that may be any."""


def types_of(kind: type) -> dict[str, Any]:
    """Types of the fields of a structure by name; empty for anything else."""
    if issubclass(kind, msgspec.Struct):
        names = kind.__struct_fields__
    elif dataclasses.is_dataclass(kind):
        names = tuple(each.name for each in dataclasses.fields(kind))
    else:
        names = getattr(kind, "_fields", ())
    hints = typing.get_type_hints(kind) if names else {}
    return {name: hints[name] for name in names}


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


def _names_of(value: Any) -> tuple[str, ...]:
    """Names of the fields of a structure; empty for anything else."""
    if isinstance(value, msgspec.Struct):
        return value.__struct_fields__
    if dataclasses.is_dataclass(value):
        return tuple(each.name for each in dataclasses.fields(value))
    return getattr(value, "_fields", ())
