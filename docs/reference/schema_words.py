"""JSON Schemas in words, and their fields as tables."""

import inspect
import json
from collections.abc import Mapping
from typing import Any

from docs.reference.markdown import escaped, table

Schema = Mapping[str, Any]

NULL = {"type": "null"}

_NAMES = {"string": "text", "object": "table", "boolean": "true or false"}

_BOUNDS = (
    ("minimum", "maximum", "exclusiveMinimum", ""),
    ("minLength", "maxLength", "", " characters"),
    ("minItems", "maxItems", "", " items"),
)


def words_of(schema: Schema) -> str:
    """What a value may be.

    Examples
    --------
    >>> words_of({"type": "integer", "minimum": 1})
    'integer, 1 or more'
    >>> words_of({"anyOf": [{"type": "string", "maxLength": 256}, {"type": "null"}]})
    'text, at most 256 characters or null'
    >>> words_of({"type": "array", "items": {"$ref": "#/$defs/RankItem"}})
    'list of `RankItem`'
    """
    if "$ref" in schema:
        return f"`{name_of(schema)}`"
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return "one of " * (len(values) > 1) + ", ".join(map(_literal, values))
    if "anyOf" in schema:
        kinds = [each for each in schema["anyOf"] if each != NULL or _may_be(schema)]
        return " or ".join(map(words_of, kinds)) + _bounds(schema)
    if isinstance(schema.get("type"), list):
        return " or ".join(words_of({"type": each}) for each in schema["type"])
    kind = str(schema.get("type", "anything"))
    words = _NAMES.get(kind, kind)
    if "prefixItems" in schema:
        return f"list of {', '.join(map(words_of, schema['prefixItems']))}"
    if kind == "array":
        words = f"list of {words_of(schema.get('items', {}))}"
    elif kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        words = f"table of {words_of(schema['additionalProperties'])}"
    return words + _bounds(schema)


def _may_be(schema: Schema) -> bool:
    """Whether null is a value: of what may be left out it says the same as nothing."""
    return "default" not in schema


def name_of(reference: Schema) -> str:
    """The last part of a reference."""
    return str(reference["$ref"]).rpartition("/")[2]


def fields_table(schema: Schema) -> str:
    """A row for each property of an object: what it may be, and what it is without."""
    properties = schema.get("properties", {})
    required = set(schema.get("required", ()))
    word = "required" if required != properties.keys() else ""
    rows = []
    for name, field in properties.items():
        default = _literal(field["default"]) if field.get("default") is not None else ""
        rows.append(
            [
                f"`{name}`",
                words_of(field),
                word if name in required else default,
                escaped(field.get("description", "")),
            ]
        )
    return table(["field", "may be", "without it", "is"], rows)


def described(schema: Schema) -> str:
    """The docstring of what a schema was made of."""
    return inspect.cleandoc(schema.get("description", ""))


def _literal(value: object) -> str:
    return f"`{json.dumps(value)}`"


def _bounds(schema: Schema) -> str:
    for least, most, above, unit in _BOUNDS:
        low, high = schema.get(least), schema.get(most)
        if above in schema:
            return f", above {schema[above]:g}"
        if low is not None and high is not None:
            return f", {_number(low)} to {_number(high)}{unit}"
        if low is not None:
            return f", {_number(low)} or more{unit}"
        if high is not None:
            return f", at most {_number(high)}{unit}"
    return ""


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
