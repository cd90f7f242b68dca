"""The description of the API, made of the structs of requests and answers."""

import inspect
from typing import Any

import msgspec

from rankstream.adapters.registry import NAMES
from rankstream.operations.serving.requests import (
    ClickRequest,
    CombineAnswer,
    CombineRequest,
    EventsAnswer,
    ProblemAnswer,
    RankAnswer,
    RankRequest,
)
from rankstream.wire.event_schemas import event_definitions
from rankstream.wire.events import ClickEvent, QueryEvent

PLACE = "#/components/schemas/"

STRUCTS = (
    QueryEvent, ClickEvent, ClickRequest, EventsAnswer, RankRequest, RankAnswer,
    CombineRequest, CombineAnswer, ProblemAnswer,
)  # fmt: skip

REFUSALS = {
    "400": "The body or the query string is malformed.",
    "401": "A token is missing, or is another.",
    "403": "The page's origin is not allowed.",
    "408": "The body did not come in time.",
    "413": "The body is too large, or holds too many documents.",
    "415": "The body is of another type.",
    "422": "Ingestion would refuse a document. Nothing was sent.",
    "429": "The client asks too often. Retry-After says when to ask again.",
    "503": "Nothing is promised. Ask again after Retry-After, with the same ids.",
}


def description() -> dict[str, Any]:
    """The API in OpenAPI 3.1."""
    _, components = msgspec.json.schema_components(
        STRUCTS, ref_template=PLACE + "{name}"
    )
    for each in components.values():
        each["description"] = inspect.cleandoc(each["description"])
    components |= event_definitions(PLACE)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "rankstream",
            "version": "1",
            "description": "What is answered with success lies in Kafka.",
        },
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
        "paths": {
            "/v1/events": {"post": _events()},
            "/v1/rank": {
                "post": _operation(
                    "rank", "Rank items with a model.", RankRequest, RankAnswer
                )
            },
            "/v1/combine": {
                "post": _operation(
                    "combine",
                    "Combine rankings as an experiment has it.",
                    CombineRequest,
                    CombineAnswer,
                )
            },
            "/v1/click": {
                "post": _operation(
                    "click",
                    "A click; without at_ms it happened now.",
                    ClickRequest,
                    EventsAnswer,
                    status="202",
                )
            },
            "/healthz": {"get": _page("health", "Whether the server answers.")},
            "/readyz": {"get": _page("readiness", "Whether it is ready, else why.")},
        },
    }


def _events() -> dict[str, Any]:
    found = _operation(
        "events",
        "Events, all or none: one document, an array, or one a line (NDJSON).",
        None,
        EventsAnswer,
        status="202",
    )
    one = {"anyOf": [_reference(QueryEvent), _reference(ClickEvent)]}
    body = {"anyOf": [one, {"type": "array", "items": one}]}
    found["requestBody"] = {
        "required": True,
        "content": {
            "application/json": {"schema": body},
            "application/x-ndjson": {"schema": {"type": "string"}},
        },
    }
    found["parameters"] = [
        {
            "name": "format",
            "in": "query",
            "description": "What documents are; its options are parameters too.",
            "schema": {"type": "string", "enum": list(NAMES)},
        },
        {
            "name": "refused",
            "in": "query",
            "description": "Whether a document that cannot be taken refuses the "
            "request, or becomes a dead letter.",
            "schema": {"type": "string", "enum": ["request", "dead-letter"]},
        },
    ]
    return found


def _operation(
    name: str,
    summary: str,
    request: type[msgspec.Struct] | None,
    answer: type[msgspec.Struct],
    *,
    status: str = "200",
) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": _reference(ProblemAnswer)}}
    found: dict[str, Any] = {
        "operationId": name,
        "summary": summary,
        "responses": {
            status: {
                "description": "Kafka has what it was to have.",
                "content": {"application/json": {"schema": _reference(answer)}},
            },
            **{
                number: {"description": said, "content": problem}
                for number, said in REFUSALS.items()
            },
        },
    }
    if request is not None:
        content = {"application/json": {"schema": _reference(request)}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _page(name: str, summary: str) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "security": [],
        "responses": {"200": {"description": "It is so."}},
    }


def _reference(struct: type[msgspec.Struct]) -> dict[str, str]:
    return {"$ref": PLACE + struct.__name__}
