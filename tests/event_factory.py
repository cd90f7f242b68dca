"""Small canonical events for tests: everything has a default, everything can be set."""

from typing import Any

import msgspec
import numpy as np

from rankstream.wire.events import (
    DETERMINISTIC,
    SCHEMA,
    Click,
    Element,
    Impression,
    encode_record,
)
from rankstream.wire.routing import identity
from streams.native.elements import Elements

START_MS = 1_700_000_000_000


def impression(name: str = "i1", at_ms: int = START_MS, **fields: Any) -> Impression:
    """A canonical impression; `items` are the candidates, all shown in that order."""
    items: list[str] = fields.pop("items", ["a", "b", "c"])
    shown: list[str] = fields.pop("shown", items)
    candidates = sorted(items)
    rows = np.array([candidates.index(item) for item in shown], "<u2")
    values: dict[str, Any] = {
        "identity": identity("i", name),
        "impression_id": name,
        "query_id": "q",
        "at_ms": at_ms,
        "model": "m",
        "version": 0,
        "intervention": "m",
        "seed": 0,
        "policy": DETERMINISTIC,
        "candidates": msgspec.msgpack.encode(candidates),
        "shown": rows.tobytes(),
        "is_open_set": False,
        "scores": b"",
        "exposures": b"",
        "features": b"",
        "n_features": 0,
        "unit": int.from_bytes(identity("i", name)[:8], "big"),
        "extra": b"",
    }
    return Impression(**(values | fields))


def click(name: str = "i1", at_ms: int = START_MS + 1, **fields: Any) -> Click:
    """A canonical click on the first place of an impression."""
    values: dict[str, Any] = {
        "identity": b"",
        "impression": identity("i", name),
        "item_id": "",
        "position": 1,
        "at_ms": at_ms,
        "action": "click",
        "raw": b"{}",
        "origin": ("clicks", 0, 0, 0),
    }
    values |= fields
    if not values["identity"]:
        values["identity"] = identity(
            "c", name, values["item_id"], str(values["position"]), str(at_ms)
        )
    return Click(**values)


def as_record(elements: list[Element], sequence: int = 1) -> Elements:
    """Elements as they come in a record of the canonical log."""
    return Elements(encode_record([SCHEMA, 0, sequence, elements]))


def as_kept(raw: list[bytes]) -> Elements:
    """Elements that are encoded already, as a commit gives them back."""
    return Elements(encode_record([SCHEMA, 0, 1, [msgspec.Raw(one) for one in raw]]))
