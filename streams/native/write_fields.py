"""Write `fields.h`: the numbers that Python and C share, from the structs themselves.

Run `python -m streams.native.write_fields` after a change of the wire types.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from rankstream.wire import bounds, events, topics, units_of_time
from rankstream.wire.events import (
    Click,
    ClickEvent,
    ClickMark,
    Frontier,
    Impression,
    Interaction,
    QueryEvent,
)

HEADER = Path(__file__).with_name("fields.h")

ANY, NUMBER, SPAN, IDENTITY = range(4)
KINDS = ("KIND_ANY", "KIND_NUMBER", "KIND_SPAN", "KIND_IDENTITY")
"""Kinds of values that the locator tells apart; a span is a string or binary data."""

IDENTITY_BYTES = 16

_NAMES: dict[type[msgspec.Struct], str] = {
    Impression: "IMPRESSION",
    Click: "CLICK",
    Frontier: "FRONTIER",
}
"""Elements, in the order of their tags."""
_INPUTS: dict[type[msgspec.Struct], str] = {
    QueryEvent: "QUERY_EVENT",
    ClickEvent: "CLICK_EVENT",
}
"""Input events: maps, as Python hands them over."""
_BOUNDS = {
    "EVENT_SCHEMA": events.SCHEMA,
    "MAX_ID_CHARACTERS": bounds.MAX_ID_CHARACTERS,
    "MAX_CANARY_CHARACTERS": bounds.MAX_CANARY_CHARACTERS,
    "MAX_QUERY_CHARACTERS": bounds.MAX_QUERY_CHARACTERS,
    "MAX_SHOWN": bounds.MAX_SHOWN,
    "LARGEST_TEAM": bounds.LARGEST_TEAM,
    "MAX_CLICK_BYTES": bounds.MAX_CLICK_BYTES,
    "MAX_EVENT_BYTES": topics.MAX_EVENT_BYTES,
    "LAST_MS": bounds.LAST_MS,
    "LEAST_SECONDS": units_of_time.LEAST_SECONDS,
    "LEAST_MS": units_of_time.LEAST_MS,
    "LEAST_US": units_of_time.LEAST_US,
}
"""Of what ingestion takes."""
_IDENTITIES = ("identity", "impression")
_KINDS = {int: NUMBER, str: SPAN, bytes: SPAN}


def kinds_of(struct: type[msgspec.Struct]) -> list[int]:
    """The kind of each field, that of the tag first."""
    kinds = [NUMBER]
    for field in msgspec.structs.fields(struct):
        is_identity = field.type is bytes and field.name in _IDENTITIES
        kinds.append(IDENTITY if is_identity else _KINDS.get(field.type, ANY))
    return kinds


def _numbers(names: Sequence[str], *, first: int = 0) -> str:
    # No enumerations: compilers warn where numbers of two of them meet.
    defined = enumerate(names, first)
    return "\n".join(f"#define {name} {number}" for number, name in defined)


def _fields(struct: type[msgspec.Struct]) -> str:
    name = _NAMES[struct]
    fields = [field.name.upper() for field in msgspec.structs.fields(struct)]
    numbers = [f"{name}_{field}" for field in ("TAG", *fields)]
    each = [
        f"    X({field}, {KINDS[kind]})"
        for field, kind in zip(numbers, kinds_of(struct), strict=True)
    ]
    return "\n".join(
        [
            _numbers([*numbers, f"N_{name}_FIELDS"]),
            " \\\n".join([f"#define {name}_FIELDS(X)", *each]),
        ]
    )


def _words(name: str, numbers: Sequence[str], words: Sequence[str]) -> str:
    """A table of what each number is called."""
    each = [
        f'    X({number}, "{word}")'
        for number, word in zip(numbers, words, strict=True)
    ]
    return " \\\n".join([f"#define {name}(X)", *each])


def _input(struct: type[msgspec.Struct]) -> str:
    name, fields = _INPUTS[struct], struct.__struct_fields__
    numbers = [f"{name}_{field.upper()}" for field in fields]
    return "\n".join(
        [
            _numbers([*numbers, f"N_{name}_FIELDS"]),
            _words(f"{name}_FIELDS", numbers, fields),
        ]
    )


def header() -> str:
    """The text of `fields.h`."""
    for number, struct in enumerate(_NAMES, 1):
        if struct.__struct_config__.tag != number:
            raise ValueError(
                f"tags must be 1, 2, 3; got {struct.__struct_config__.tag} for "
                f"{struct.__name__}: adapt elements.c to what the structs say"
            )
    policies = [
        f"POLICY_{policy.upper().replace('-', '_')}" for policy in events.POLICIES
    ]
    parts = [
        "/* Written by write_fields.py from rankstream/wire/events.py: change that. */",
        "#ifndef FOLD_FIELDS_H\n#define FOLD_FIELDS_H",
        f"#define IDENTITY_BYTES {IDENTITY_BYTES}",
        "/* Kinds of values; a span is a string or binary data. */",
        _numbers(KINDS),
        "/* Tags of elements. */",
        _numbers([*_NAMES.values()], first=1),
        _numbers(policies),
        "/* Fields by place, tags included; X(place, kind) for each of an element. */",
        *(_fields(struct) for struct in _NAMES),
        f"#define N_INTERACTION_FIELDS {len(Interaction.__struct_fields__)}",
        f"#define N_CLICK_MARK_FIELDS {len(ClickMark.__struct_fields__)}",
        "/* Fields of input events, and what policies are called in them. */",
        *(_input(struct) for struct in _INPUTS),
        _words("POLICY_NAMES", policies, events.POLICIES),
        "/* Bounds of what ingestion takes. */",
        "\n".join(
            f"#define {name} INT64_C({bound})" for name, bound in _BOUNDS.items()
        ),
        "#endif",
    ]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    HEADER.write_text(header())
