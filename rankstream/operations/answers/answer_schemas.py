"""JSON Schemas of answers, from their types: what `to_dict` may give."""

import enum
import types
import typing
from collections.abc import Mapping
from typing import Any

from rankstream.operations.answers.as_builtins import OTHERS, Answer, types_of

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_PLAIN: dict[Any, Schema] = {
    Any: {},
    object: {},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    # What is no finite number has no name in JSON.
    float: {"type": ["number", "null"]},
    bytes: {"type": "string", "pattern": "^([0-9a-f]{2})*$"},
    types.NoneType: {"type": "null"},
}


def schema_of(kind: Any, title: str) -> Schema:
    """The schema of an answer, or of what is made of answers.

    Parameters
    ----------
    kind
        A type. Also types by name, which are an object; a list of one, which is an
        array; and a tuple, one of several.

    Raises
    ------
    TypeError
        Where JSON has no such thing.

    Examples
    --------
    >>> schema_of([{"n": int}], "some numbers")["items"]["properties"]
    {'n': {'type': 'integer'}}
    """
    shapes = _Shapes()
    whole = shapes.of(kind)
    beside = {"$defs": dict(sorted(shapes.named.items()))} if shapes.named else {}
    return {"$schema": DIALECT, "title": title, **whole, **beside}


class _Shapes:
    """Schemas of types, those of structures by name."""

    def __init__(self) -> None:
        self.named: dict[str, Schema] = {}
        self._kinds: dict[str, type] = {}

    def of(self, kind: Any) -> Schema:
        if isinstance(kind, dict | list | tuple):
            return self._of_written(kind)
        if kind is None or kind in _PLAIN:
            return dict(_PLAIN[type(None) if kind is None else kind])
        if typing.get_origin(kind) is not None or isinstance(kind, types.UnionType):
            return self._of_several(typing.get_origin(kind), typing.get_args(kind))
        if isinstance(kind, type) and issubclass(kind, enum.Enum):
            return {"enum": [each.value for each in kind]}
        return self._of_structure(kind)

    def _of_written(self, kind: Any) -> Schema:
        if isinstance(kind, dict):
            return self._of_fields(kind)
        if isinstance(kind, list):
            return {"type": "array", "items": self.of(*kind)}
        return {"anyOf": [self.of(each) for each in kind]}

    def _of_structure(self, kind: Any) -> Schema:
        fields = _fields(kind)
        if not fields:
            raise TypeError(f"an answer must be of types that JSON has; got {kind!r}")
        name = kind.__name__
        while self._kinds.setdefault(name, kind) is not kind:
            name += "_"
        if name not in self.named:
            self.named[name] = {}  # so that what holds itself ends
            self.named[name] = self._of_fields(fields)
        return {"$ref": f"#/$defs/{name}"}

    def _of_fields(self, fields: Mapping[str, Any]) -> Schema:
        own = {name: self.of(kind) for name, kind in fields.items() if name != OTHERS}
        others = self.of(fields[OTHERS]) if OTHERS in fields else False
        return {
            "type": "object",
            "properties": own,
            "required": [*own],
            "additionalProperties": others,
        }

    def _of_several(self, origin: Any, arguments: tuple[Any, ...]) -> Schema:
        if origin is typing.Annotated:
            return self.of(arguments[0])
        if origin is typing.Literal:
            return {"enum": [*arguments]}
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.of(each) for each in arguments]}
        if issubclass(origin, Mapping):
            # JSON has names only: of whatever type they are here.
            return {"type": "object", "additionalProperties": self.of(arguments[-1])}
        if issubclass(origin, tuple) and arguments[-1] is not ...:
            items = [self.of(each) for each in arguments]
            return {"type": "array", "prefixItems": items, "items": False}
        return {"type": "array", "items": self.of(arguments[0])}


def _fields(kind: Any) -> dict[str, Any]:
    """Types by name of what a structure gives; empty for anything else."""
    if not isinstance(kind, type):
        return {}
    return kind.gives() if issubclass(kind, Answer) else types_of(kind)
