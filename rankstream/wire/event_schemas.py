"""JSON Schemas (draft 2020-12) of what is JSON on our topics.

Shapes are those of the structs, by `msgspec.json.schema`. Limits of input events are
those that ingestion holds to and a schema can say; `docs/contract/README.md` has those
that none can. What a schema refuses, ingestion refuses.
"""

import inspect
from typing import Any, cast

import msgspec

from rankstream.wire.bounds import (
    LARGEST_TEAM,
    LAST_MS,
    MAX_CANARY_CHARACTERS,
    MAX_ID_CHARACTERS,
    MAX_QUERY_CHARACTERS,
    MAX_SHOWN,
)
from rankstream.wire.events import POLICIES, SCHEMA, ClickEvent, QueryEvent
from rankstream.wire.models.canary_reports import CanaryReport
from rankstream.wire.models.model_evaluations import ModelRates, ModelValues
from rankstream.wire.verdicts import Verdict

Schema = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"

ID: Schema = {"minLength": 1, "maxLength": MAX_ID_CHARACTERS}
NAME: Schema = {"maxLength": MAX_ID_CHARACTERS}
TIME: Schema = {"minimum": 0, "maximum": LAST_MS}

COMMON: dict[str, Schema] = {
    "schema": {"const": SCHEMA, "description": "The number of this layout."},
    "impression_id": ID | {"description": "Names the list; unique."},
    "at_ms": TIME | {"description": "Milliseconds since 1970, in UTC."},
}

QUERY_FIELDS: dict[str, Schema] = COMMON | {
    "query_id": {
        "minLength": 1,
        "maxLength": MAX_QUERY_CHARACTERS,
        "description": "The query; statistics are kept by its normalised form.",
    },
    "model": NAME | {"description": "The model that ranked; empty for none."},
    "version": {
        "minimum": 0,
        "maximum": 2**63 - 1,
        "description": "Version of the model.",
    },
    "intervention": NAME
    | {"description": "Changes with every deployment; without it the model's name."},
    "seed": {
        "minimum": -(2**63),
        "maximum": 2**64 - 1,
        "description": "Of the draw. A seed of an experiment is larger than a double "
        "can hold: write it as an integer of 64 bits.",
    },
    "policy": {"enum": list(POLICIES), "description": "How the list was drawn."},
    "shown": {
        "minItems": 1,
        "maxItems": MAX_SHOWN,
        "uniqueItems": True,
        "items": {"type": "string", **ID},
        "description": "Items in displayed order; all of them candidates.",
    },
    "candidates": {
        "uniqueItems": True,
        "items": {"type": "string", **ID},
        "description": "All items that were ranked, at most `limits.documents`.",
    },
    "scores": {"description": "A number for each candidate."},
    "exposures": {
        "description": "P(candidate at rank): candidates by ranks, row after row."
    },
    "features": {
        "description": "A row for each shown item, normalised as it was scored."
    },
    "experiment": {"description": "The comparison that the list belongs to."},
    "rankings": {"description": "Each ranker's own list, best first."},
    "assignments": {
        "items": {"type": "integer", "minimum": -1, "maximum": LARGEST_TEAM},
        "description": "For each shown item the number of the ranker that it counts "
        "for, by sorted names, from 0; -1 for none.",
    },
    "ranks": {
        "description": "Base64 of little-endian uint16, shown items by rankers: where "
        "each ranker of a multileaved list has them, from 1."
    },
    "candidate_features": {
        "description": "A row for each candidate; raw with features_hash."
    },
    "user": {"description": "What the impressions of a user share."},
    "session": {"description": "What the impressions of a session share."},
    "attributes": {"description": "Anything, at most 16 levels deep."},
    "features_hash": {
        "pattern": "^[0-9a-f]{16}$",
        "description": "Hash of the list of features, in hexadecimal.",
    },
    "canary": {
        "maxLength": MAX_CANARY_CHARACTERS,
        "description": "Stage of the canary in force for the session, in both arms: "
        "INTERVENTION/STAGE, as the ranking has it.",
    },
}

CLICK_FIELDS: dict[str, Schema] = COMMON | {
    "query_id": {
        "maxLength": MAX_QUERY_CHARACTERS,
        "description": "The query of the list. May be absent only where the impression "
        "id carries its route.",
    },
    "item_id": NAME | {"description": "What was clicked."},
    "position": {"minimum": 1, "description": "Its rank on the page, from 1."},
    "action": ID | {"description": "What the user did."},
    "event_id": NAME
    | {"description": "Names the click: sent again, it is a duplicate."},
}

EXPERIMENT_FIELDS: dict[str, Schema] = {
    "id": {"description": "Name of the experiment."},
    "epoch": {
        "minimum": 1,
        "maximum": 2**31 - 1,
        "description": "Rises with each change of its configuration.",
    },
    "method": {"description": "How lists are drawn."},
}


def event_schemas() -> dict[str, Schema]:
    """Schema of each kind of JSON, by the name of its file.

    `query-event` and `click-event` are sent to us; `verdict`, `intervention-rates` and
    `policy-values` are on `evaluations`, and readers of these pass over fields that
    they do not know.

    Examples
    --------
    >>> sorted(event_schemas())
    ['canary', 'click-event', 'intervention-rates', 'policy-values', 'query-event', \
'verdict']
    """
    query = _schema("query-event", QueryEvent)
    _describe(query["$defs"]["QueryEvent"], QUERY_FIELDS)
    _describe(query["$defs"]["Experiment"], EXPERIMENT_FIELDS)
    query["$defs"]["QueryEvent"]["allOf"] = [
        _needs(_policy("plackett-luce"), "candidates", "scores"),
        _needs(_policy("tail-shuffle"), "candidates"),
        _needs(_policy("logged"), "candidates", "exposures"),
        _needs(_given("scores"), "candidates"),
        _needs(_given("exposures"), "candidates"),
        _needs(_given("features_hash"), "candidates", "candidate_features"),
    ]
    click = _schema("click-event", ClickEvent)
    _describe(click["$defs"]["ClickEvent"], CLICK_FIELDS)
    named = {"properties": {"item_id": {"type": "string", "minLength": 1}}}
    click["$defs"]["ClickEvent"]["anyOf"] = [
        {"required": ["item_id"], **named},
        _given("position"),
    ]
    return {
        "query-event": query,
        "click-event": click,
        "verdict": _schema("verdict", Verdict),
        "intervention-rates": _schema("intervention-rates", ModelRates),
        "policy-values": _schema("policy-values", ModelValues),
        "canary": _schema("canary", CanaryReport),
    }


def event_definitions(prefix: str) -> dict[str, Schema]:
    """Definitions of the events that are sent to us, which refer to `prefix` + name."""
    found: dict[str, Schema] = {}
    for name in ("query-event", "click-event"):
        found |= event_schemas()[name]["$defs"]
    return cast(dict[str, Schema], _referring(found, prefix))


def schema_file(schema: Schema) -> bytes:
    """A schema as its file holds it."""
    return msgspec.json.format(msgspec.json.encode(schema), indent=2) + b"\n"


def _schema(name: str, struct: type[msgspec.Struct]) -> Schema:
    schema = msgspec.json.schema(struct)
    for each in schema["$defs"].values():
        each["description"] = inspect.cleandoc(each["description"])
    return {"$schema": DIALECT, "$id": f"urn:rankstream:{name}:{SCHEMA}", **schema}


def _describe(definition: Schema, fields: dict[str, Schema]) -> None:
    """Add limits and words; where null is allowed, a limit does not speak of it."""
    definition["description"] = definition["description"].partition("\n")[0]
    for name, added in fields.items():
        shape = definition["properties"][name]
        for part in (shape, *shape.get("anyOf", ())):
            if "items" in added and "items" in part:
                part["items"] = added["items"]
        shape.update({key: added[key] for key in added if key != "items"})


def _referring(value: Any, prefix: str) -> Any:
    if isinstance(value, list):
        return [_referring(each, prefix) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _referring(each, prefix) for name, each in value.items()}
    if "$ref" in found:
        found["$ref"] = prefix + found["$ref"].rpartition("/")[2]
    return found


def _policy(name: str) -> Schema:
    return {"required": ["policy"], "properties": {"policy": {"const": name}}}


def _given(name: str) -> Schema:
    """That a field is there, and not null."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


def _needs(condition: Schema, *names: str) -> Schema:
    return {"if": condition, "then": {"allOf": [_given(name) for name in names]}}
