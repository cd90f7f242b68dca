"""The adapters by name, and their options."""

from typing import Any

import msgspec

from rankstream.adapters.adapter import Adapter, AdapterOptions
from rankstream.adapters.cloud_events import CloudEvents
from rankstream.adapters.metarank import Metarank
from rankstream.adapters.own import Own
from rankstream.adapters.ubi import Ubi
from rankstream.wire.nearest_name import suggestion

_CARRIED: dict[str, Adapter] = {each.name: each for each in (Own(), Ubi(), Metarank())}

ADAPTERS: tuple[Adapter, ...] = (*_CARRIED.values(), CloudEvents(_CARRIED.get))
"""In the order in which help texts tell of them."""

NAMES = tuple(each.name for each in ADAPTERS)


def adapter_named(name: str) -> Adapter:
    """The adapter of this name.

    Raises
    ------
    ValueError
        Where there is none.
    """
    for each in ADAPTERS:
        if each.name == name:
            return each
    raise ValueError(
        f"a format must be one of {NAMES}; got {name!r}{suggestion(name, NAMES)}"
    )


def options_of(fields: dict[str, Any]) -> AdapterOptions:
    """The options that these fields name.

    Raises
    ------
    ValueError
        Where one is unknown, or cannot be what it is.
    """
    known = AdapterOptions.__struct_fields__
    for name in fields:
        if name not in known:
            raise ValueError(
                f"options of a format must be some of {', '.join(known)}; got "
                f"{name!r:.60}{suggestion(name, known)}"
            )
    try:
        options = msgspec.convert(fields, AdapterOptions)
    except msgspec.ValidationError as error:
        names = ", ".join(known)
        raise ValueError(
            f"options of a format must be some of {names}; {error}"
        ) from error
    check_options(options)
    return options


def check_options(options: AdapterOptions) -> None:
    """Refuse what no field alone can tell.

    Raises
    ------
    ValueError
        Where CloudEvents are said to carry what no adapter reads.
    """
    if options.data not in _CARRIED:
        raise ValueError(
            f"the option data must be one of {tuple(_CARRIED)}; got {options.data!r}"
        )
    if not options.hit_fields:
        raise ValueError("the option hit_fields must name a field; got none")


_MARKS = {
    "cloudevents": (b'"specversion"',),
    "ubi": (b'"_index"', b'"action_name"', b'"query_response_', b'"user_query"'),
    "metarank": (b'"ranking"', b'"interaction"'),
}
"""Names in documents of each format, and in no event of ours."""


def resembled(document: bytes) -> str:
    """The format whose field names a document has; empty where it is none of them."""
    found = (
        name
        for name, marks in _MARKS.items()
        if any(mark in document for mark in marks)
    )
    return next(found, "")
