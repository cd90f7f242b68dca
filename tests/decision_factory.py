"""Rewrites of decisions for tests: everything has a default, everything can be set."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from rankstream.wire.decision_shards import digest_of, pack_shards
from rankstream.wire.decisions import (
    SCHEMA,
    Decision,
    Evidence,
    Manifest,
    decision_key,
    encode_decision,
    encode_manifest,
    entry_of,
    manifest_key,
    named_shards,
)

ITEMS = [f"item {row}" for row in range(6)]
"""Sorted."""

EVIDENCE = Evidence("general", 1_000, 200, 40, 0.1, 0.02, 0.18)

Records = list[tuple[bytes | None, bytes | None]]


def decision(number: int = 1, **fields: Any) -> Decision:
    """Of six items, the last one first; nothing is tied."""
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "number": number,
        "items": ITEMS,
        "order": [5, 4, 3, 2, 1, 0],
        "evidence": [EVIDENCE],
    }
    made = Decision(**(values | fields))
    if made.blocks or not made.order:
        return made
    return msgspec.structs.replace(made, blocks=[1] * len(made.order))


class Written(NamedTuple):
    """A rewrite as its parts: manifest, bytes of that, shards by digest."""

    manifest: Manifest
    value: bytes
    shards: dict[bytes, bytes]
    records: Records
    """Of the topic, if all decisions are new."""


def rewrite(
    number: int = 1, decisions: Mapping[str, Decision] | None = None, **fields: Any
) -> Written:
    """A rewrite of model `m` that stands on epoch 0; by default one query, `q`."""
    if decisions is None:
        decisions = {"q": decision(number)}
    name = fields.get("name", "rule")
    shards = pack_shards(
        entry_of(query, each) for query, each in decisions.items() if each.order
    )
    values: dict[str, Any] = {
        "schema": SCHEMA,
        "name": name,
        "number": number,
        "at_ms": 1_700_000_000_000 + number,
        "model": "m",
        "stands_on": "0.1",
        "intervention": f"rule@{number}",
        "default": "m@0.1",
        "envelope": b"",
        "n_decisions": len(decisions),
        "n_left_out": 0,
        "shards": [digest_of(each) for each in shards],
    }
    manifest = Manifest(**(values | fields))
    value = encode_manifest(manifest)
    records: Records = [
        (decision_key(name, query, b"set" + bytes(13)), encode_decision(each))
        for query, each in decisions.items()
    ]
    records.append((manifest_key(name), value))
    return Written(manifest, value, dict(named_shards(shards)), records)
