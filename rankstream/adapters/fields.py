"""Fields of documents whose schema nobody enforces: of the right type, or refused."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import msgspec

from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES

Adapting = TypeVar("Adapting", bound=Callable[..., list[Event]])

_decode = msgspec.json.Decoder().decode

UNREADABLE = (
    msgspec.DecodeError,
    RecursionError,
    UnicodeError,
    ValueError,
    OverflowError,
)
"""What is raised on bytes that are no JSON, and on numbers without an end."""

QUERY_MARKS = (b'"query_response_', b'"shown"', b'"items"')
"""Names that documents with a list have, and those of clicks have not."""


def place_of(document: bytes) -> str:
    """The topic whose letters take a document that cannot be read."""
    return QUERIES if any(mark in document for mark in QUERY_MARKS) else CLICKS


def marks_of(options: AdapterOptions) -> tuple[bytes, ...]:
    """What documents have in them that tell of lists, or of items of one."""
    names = (*options.impression_actions, *options.hit_fields, "data_base64")
    return (*QUERY_MARKS, *(f'"{name}"'.encode() for name in names))


def may_tell_of_list(document: bytes, marks: tuple[bytes, ...]) -> bool:
    """Whether a document must be read ahead, as others may need what it tells."""
    return any(mark in document for mark in marks) or (
        b'"user_query"' in document and b'"action_name"' not in document
    )


def refusing(adapt: Adapting) -> Adapting:
    """`adapt` of an adapter, which raises `NotAdapted` and nothing else.

    A document that raised another error would end the role that adapts, again and
    again.
    """

    @functools.wraps(adapt)
    def guarded(self: Any, document: bytes, *args: Any, **named: Any) -> list[Event]:
        try:
            return adapt(self, document, *args, **named)
        except NotAdapted:
            raise
        except UNREADABLE as error:
            words = f"a document must be JSON in UTF-8; {error}"
            raise NotAdapted("not-json", words, kind=place_of(document)) from error

    return cast("Adapting", guarded)


def object_in(document: bytes) -> dict[str, Any]:
    """The JSON object that a document is, or that lies in its `_source`."""
    found = _decode(document)
    if not isinstance(found, dict):
        words = f"a document must be a JSON object; got {_type(found)}"
        raise NotAdapted("no-object", words)
    source = found.get("_source")
    # What tools that copy an index write around each document.
    return source if isinstance(source, dict) and "_index" in found else found


def text(value: Any, name: str, kind: str) -> str:
    """An id or a name, empty where it is absent; whole numbers are names as well."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise NotAdapted("type", f"{name} must be text; got {_type(value)}", kind=kind)


def needed(value: Any, name: str, kind: str, why: str, code: str = "no-id") -> str:
    """A name that must be there, and what for."""
    found = text(value, name, kind)
    if not found:
        raise NotAdapted(code, f"{name} must be there: {why}", kind=kind)
    return found


def objects(value: Any, name: str, kind: str) -> dict[str, Any]:
    """An object inside another, empty where it is absent."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return value
    raise NotAdapted("type", f"{name} must be an object; got {_type(value)}", kind=kind)


def items(value: Any, name: str, kind: str) -> list[Any]:
    """An array."""
    if isinstance(value, list):
        return value
    raise NotAdapted("type", f"{name} must be an array; got {_type(value)}", kind=kind)


def _type(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "text", bool: "true or false"}
    return names.get(type(value), "nothing" if value is None else "a number")
